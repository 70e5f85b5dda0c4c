//! Each fact is a test: on Linux on the simulated node, as a Windows program on Windows or Wine.

use std::process::ExitCode;

use facts::{Fact, Outcome, SimulatedNode, TestNode, local_node};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if std::env::consts::OS == "windows" {
        arguments.test_threads = Some(1); // Wine's WMI and service manager do not serve two threads at once.
    }
    let trials = facts::all()
        .into_iter()
        .map(|fact| Trial::test(fact.id, move || check(&fact)))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn check(fact: &Fact) -> Result<(), libtest_mimic::Failed> {
    let node =
        local_node().unwrap_or_else(|| Box::new(SimulatedNode::default()) as Box<dyn TestNode>);
    let why = match facts::check(fact, &*node) {
        Outcome::Holds => return Ok(()),
        Outcome::Fails(why) => return Err(why.into()),
        Outcome::Differs(how) => format!("Wine: {how}"),
        Outcome::Missing(what) => what,
    };
    println!("skipped: {}: {why}", fact.id);
    Ok(())
}
