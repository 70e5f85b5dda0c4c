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
    let run = match fact.check {
        Check::Test(run) => run,
        Check::None(reason) => return Outcome::Skipped(reason.to_owned()),
    };
    if node.system() == System::Wine
        && let Some(differs) = fact.wine
    {
        return Outcome::Skipped(format!("Wine: {differs}"));
    }
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
