//! The queue of idle connections, in the order in which they are evicted.

use std::collections::BTreeMap;

use storage_ops::ClientId;

/// What a connection without a call in flight has been used for. The first class is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionClass {
    /// No HTTP/2 preface received yet.
    Silent,
    /// No call received yet.
    Unused,
    /// Calls have been received, and the next one may follow.
    Idle,
}

/// The position of a connection in the queue: its class, and when it was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    class: EvictionClass,
    pushed: u64,
}

/// Connections without a call in flight, by class, within a class least recently used first.
#[derive(Debug, Default)]
pub(super) struct LruQueue {
    entries: BTreeMap<Rank, ClientId>,
    pushed: u64,
}

impl LruQueue {
    /// Adds a connection behind all others of its class.
    pub(super) fn push(&mut self, id: ClientId, class: EvictionClass) -> Rank {
        self.pushed += 1;
        let rank = Rank { class, pushed: self.pushed };
        self.entries.insert(rank, id);
        rank
    }

    pub(super) fn remove(&mut self, rank: Rank) {
        self.entries.remove(&rank);
    }

    /// Removes and returns the connection to evict first.
    pub(super) fn pop(&mut self) -> Option<(EvictionClass, ClientId)> {
        self.entries.pop_first().map(|(rank, id)| (rank.class, id))
    }

    /// Returns how many connections of a class the queue has.
    pub(super) fn count_of(&self, class: EvictionClass) -> usize {
        self.entries.keys().filter(|rank| rank.class == class).count()
    }
}
