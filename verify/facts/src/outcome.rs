//! Running a check and naming its outcome.

use std::panic::{self, AssertUnwindSafe};

use crate::fact::{Check, Fact};
use crate::node::{System, TestNode};

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The fact holds.
    Holds,
    /// The check could not run, for this reason.
    Skipped(String),
    /// The fact does not hold: the message of the check.
    Fails(String),
}

/// Checks a fact on a node.
pub fn check(fact: &Fact, node: &dyn TestNode) -> Outcome {
    match difference(fact, node) {
        Some(differs) => Outcome::Skipped(format!("Wine: {differs}")),
        None => run(fact, node),
    }
}

/// Returns what `node` is known to do instead of what the fact says, if it is Wine.
pub fn difference(fact: &Fact, node: &dyn TestNode) -> Option<&'static str> {
    fact.wine.filter(|_| node.system() == System::Wine)
}

/// Checks a fact on a node, also if the node is known to behave otherwise.
pub fn run(fact: &Fact, node: &dyn TestNode) -> Outcome {
    let run = match fact.check {
        Check::Test(run) => run,
        Check::None(reason) => return Outcome::Skipped(reason.to_owned()),
    };
    match panic::catch_unwind(AssertUnwindSafe(|| run(node))) {
        Ok(Ok(())) => Outcome::Holds,
        Ok(Err(missing)) => Outcome::Skipped(missing.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Outcome::Fails(text.unwrap_or("the check panicked").to_owned())
        }
    }
}
