//! Each fact is a test: on Linux on the simulated node, as a Windows program on Windows or Wine.

use std::process::ExitCode;

use facts::{Check, Fact, Outcome, SimulatedNode, TestNode, local_node};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if std::env::consts::OS == "windows" {
        arguments.test_threads = Some(1); // Wine's WMI and service manager do not serve two threads at once.
    }
    let checked = facts::all().into_iter().filter(|fact| matches!(fact.check, Check::Test(_)));
    let trials = checked.map(|fact| Trial::test(fact.id, move || check(fact))).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn check(fact: &Fact) -> Result<(), libtest_mimic::Failed> {
    let node = local_node().unwrap_or_else(|| Box::new(SimulatedNode::new()) as Box<dyn TestNode>);
    match facts::check(fact, &*node) {
        Outcome::Holds => Ok(()),
        Outcome::Skipped(why) => {
            println!("skipped: {}: {why}", fact.id);
            Ok(())
        }
        Outcome::Fails(why) => Err(format!("{} {why}", fact.sentence).into()),
    }
}
