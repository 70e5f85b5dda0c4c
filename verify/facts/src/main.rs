//! Lists all facts, or checks them on one system. Prints lines of JSON, which `cargo xtask facts` reads.

mod line;

use clap::{Args, Parser, Subcommand};
use facts::{Check, Fact, Origin, Outcome, SOURCES, SUBJECTS, SimulatedNode, TestNode, local_node};
use line::Line;

#[derive(Parser)]
#[command(about = "Lists the facts about Windows, or checks them on one system; prints lines of JSON")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// List the keys of the sources, and all facts
    List,
    /// Check the facts on the simulated node
    Simulator(Range),
    /// Check the facts on this machine, which runs Windows or Wine
    Local(Range),
}

#[derive(Args)]
struct Range {
    /// Check only the facts after the one with this id
    #[arg(long, value_name = "ID")]
    after: Option<String>,
}

fn main() {
    match Arguments::parse().task {
        Task::List => list(),
        Task::Simulator(range) => check(&range, || Box::new(SimulatedNode::new())),
        Task::Local(range) => check(&range, || local_node().expect("this machine runs neither Windows nor Wine")),
    }
}

fn list() {
    for (key, name) in SOURCES {
        Line::Source { key, name }.print();
    }
    for subject in SUBJECTS {
        for Fact { id, sentence, origin, check, .. } in subject.facts() {
            let (origin, assumed) = match origin {
                Origin::Published(sources) => ((*sources).to_owned(), false),
                Origin::Assumed(reason) => ((*reason).to_owned(), true),
            };
            let unchecked = match check {
                Check::Test(_) => None,
                Check::None(reason) => Some(*reason),
            };
            Line::Fact { subject: subject.title, id, sentence, origin, assumed, unchecked }.print();
        }
    }
}

/// Checks the facts in order, each on a fresh node.
fn check(range: &Range, node: impl Fn() -> Box<dyn TestNode>) {
    let all = facts::all();
    let start = match &range.after {
        Some(id) => all.iter().position(|fact| fact.id == id).expect("the id of a fact") + 1,
        None => 0,
    };
    for fact in all[start..].iter().filter(|fact| matches!(fact.check, Check::Test(_))) {
        let node = node();
        Line::Begin { id: fact.id, differs: facts::difference(fact, &*node) }.print();
        let (result, why) = match facts::run(fact, &*node) {
            Outcome::Holds => ("holds", String::new()),
            Outcome::Skipped(why) => ("skipped", why),
            Outcome::Fails(why) => ("fails", why),
        };
        Line::End { id: fact.id, result, why }.print();
    }
}
