//! A limiter that shares a number of calls fairly between connections.

/// Limits how many calls all connections hold together.
///
/// The first call of a connection may use the whole capacity, the further calls of all connections only half of it, and
/// those of one connection only as many as then remain of that half. A few connections with many calls therefore leave
/// half of the capacity to the first calls of all others, and some of the other half to their further calls. How many
/// calls a connection holds is stored with the connection by the owner of the limiter, which passes it as `held`.
///
/// Threads are shared by a simpler rule (`Usage` in storage-ops): an operation waits for one until it gets it, but a call
/// that finds no capacity is refused, so some must remain for further calls of every connection.
#[derive(Debug)]
pub(super) struct FairLimiter {
    capacity: usize,
    in_use: usize,
    /// The connections that hold at least one call.
    holders: usize,
}

impl FairLimiter {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, in_use: 0, holders: 0 }
    }

    /// Whether a connection that holds `held` calls may have one more.
    pub(super) fn admits(&self, held: usize) -> bool {
        let remaining = (self.capacity / 2).saturating_sub(self.in_use.saturating_sub(self.holders));
        self.in_use < self.capacity && (held == 0 || held <= remaining)
    }

    /// Adds a call to those that a connection holds.
    pub(super) fn acquire(&mut self, held: &mut usize) {
        self.holders += usize::from(*held == 0);
        self.in_use += 1;
        *held += 1;
    }

    /// Takes a call from those that a connection holds, or, with `None`, from those of a connection that was removed.
    pub(super) fn release(&mut self, held: Option<&mut usize>) {
        self.in_use -= 1;
        if let Some(held) = held {
            *held -= 1;
            self.holders -= usize::from(*held == 0);
        }
    }

    /// Removes a connection that holds `held` calls; the calls remain in use until each is released.
    pub(super) fn remove_holder(&mut self, held: usize) {
        self.holders -= usize::from(held > 0);
    }

    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }

    pub(super) fn holders(&self) -> usize {
        self.holders
    }
}
