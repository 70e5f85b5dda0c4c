//! Checks all facts on the simulated node, or on the machine itself, and prints a line of JSON for each.

use clap::{Parser, ValueEnum};
use facts::{Check, Outcome, SimulatedNode, TestNode, local_node};
use serde::Serialize;

#[derive(Parser)]
#[command(about = "Checks the facts about Windows on one system and prints a line of JSON for each")]
struct Arguments {
    /// The system to check
    system: Choice,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    /// The simulated node
    Simulator,
    /// This machine, which runs Windows or Wine
    Local,
}

/// The result of one fact.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    result: &'static str,
    why: String,
}

fn main() {
    let arguments = Arguments::parse();
    for fact in facts::all().into_iter().filter(|fact| matches!(fact.check, Check::Test(_))) {
        let node: Box<dyn TestNode> = match arguments.system {
            Choice::Simulator => Box::new(SimulatedNode::new()),
            Choice::Local => local_node().expect("this machine runs neither Windows nor Wine"),
        };
        let (result, why) = match facts::check(fact, &*node) {
            Outcome::Holds => ("holds", String::new()),
            Outcome::Skipped(why) => ("skipped", why),
            Outcome::Fails(why) => ("fails", why),
        };
        let line = Line { id: fact.id, result, why };
        println!("{}", serde_json::to_string(&line).expect("the line is serializable"));
    }
}
