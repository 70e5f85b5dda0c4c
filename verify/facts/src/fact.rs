//! A fact and its check.

use crate::node::TestNode;

/// A check. It panics if the fact does not hold, and calls [`missing`](crate::missing) if the
/// system lacks what it needs.
type Check = fn(&dyn TestNode);

/// The check of a fact, whose sentence and sources are in docs/facts.md.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// The id, such as `FILE-OPEN-07`. It never changes its meaning.
    pub id: &'static str,
    /// The check.
    pub check: Check,
}

impl Fact {
    /// Creates a fact with a check.
    pub const fn new(id: &'static str, check: Check) -> Self {
        Self { id, check }
    }

    /// Returns what Wine does instead, or lacks, if the check fails there.
    pub fn wine_differs(&self) -> Option<&'static str> {
        let mut difference = None;
        for line in include_str!("wine.txt").lines() {
            match line.strip_prefix("    ") {
                None => difference = line.strip_suffix(':'),
                Some(ids) if ids.split(' ').any(|pattern| self.matches(pattern)) => {
                    return difference;
                }
                Some(_) => {}
            }
        }
        None
    }

    /// Returns whether this is the id of the fact, or, with a final `*`, its beginning.
    fn matches(&self, pattern: &str) -> bool {
        pattern
            .strip_suffix('*')
            .map_or(self.id == pattern, |start| self.id.starts_with(start))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_difference_of_wine_is_of_a_fact() {
        let facts = crate::all();
        for ids in include_str!("wine.txt")
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
        {
            for pattern in ids.split(' ') {
                assert!(
                    facts.iter().any(|fact| fact.matches(pattern)),
                    "no fact is {pattern}"
                );
            }
        }
    }
}
