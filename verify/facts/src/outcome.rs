//! Running a check and naming its outcome.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};

use crate::fact::Fact;
use crate::node::{Missing, System, TestNode};

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The fact holds.
    Holds,
    /// Wine behaves otherwise or lacks something, as `wine.txt` says.
    Differs(&'static str),
    /// The system lacks what the check needs.
    Missing(String),
    /// The fact does not hold: the message of the check.
    Fails(String),
}

impl fmt::Display for Outcome {
    /// Writes the outcome as one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, text) = match self {
            Self::Holds => ("holds", ""),
            Self::Differs(how) => ("differs: ", *how),
            Self::Missing(what) => ("missing: ", what.as_str()),
            Self::Fails(why) => ("FAILS: ", why.as_str()),
        };
        write!(f, "{kind}{}", text.replace(['\r', '\n', '\t'], " "))
    }
}

impl Outcome {
    /// Returns whether the last line is an outcome.
    pub(crate) fn is_in(printed: &str) -> bool {
        let last = printed.trim().lines().last().unwrap_or_default();
        let starts = ["differs: ", "missing: ", "FAILS: "];
        last == "holds" || starts.iter().any(|start| last.starts_with(start))
    }
}

/// Checks a fact on a node.
pub fn check(fact: &Fact, node: &dyn TestNode) -> Outcome {
    let Err(cause) = panic::catch_unwind(AssertUnwindSafe(|| (fact.check)(node))) else {
        return Outcome::Holds;
    };
    if let Some(differs) = fact.wine_differs()
        && node.system() == System::Wine
    {
        return Outcome::Differs(differs);
    }
    match cause.downcast::<Missing>() {
        Ok(missing) => Outcome::Missing(missing.0),
        Err(panic) => Outcome::Fails(message(&*panic)),
    }
}

/// Returns the message of a panic.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<String>() {
        return text.clone();
    }
    panic
        .downcast_ref::<&str>()
        .copied()
        .unwrap_or("the check panicked")
        .to_owned()
}
