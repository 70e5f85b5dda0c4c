//! A fact and its check.

use crate::node::TestNode;

/// A check. It panics if the fact does not hold, and calls [`missing`](crate::missing) if the system lacks what it needs.
type Check = fn(&dyn TestNode);

/// The check of a fact, whose sentence and sources are in docs/facts.md.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// The id, such as `FILE-OPEN-07`. It never changes its meaning.
    pub id: &'static str,
    /// The check.
    pub check: Check,
    /// What Wine does instead or lacks, if the check fails there.
    pub wine: Option<&'static str>,
}

impl Fact {
    /// Creates a fact with a check.
    pub const fn new(id: &'static str, check: Check) -> Self {
        Self { id, check, wine: None }
    }

    /// States what Wine does instead, or lacks.
    #[must_use]
    pub const fn wine(self, differs: &'static str) -> Self {
        Self { wine: Some(differs), ..self }
    }
}
