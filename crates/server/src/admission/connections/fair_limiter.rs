//! A limiter that shares the slots for calls fairly between connections.

/// Limits how many slots all connections hold together.
///
/// The first slot of a connection may come from the whole capacity. The further slots of all connections come from one
/// half of the capacity, and a connection may hold only as many of them as then remain of that half. A few connections
/// with many calls therefore leave half of the capacity to the first calls of all others, and some of the other half to
/// their further calls. The owner of the limiter stores how many slots each connection holds, and passes that number as
/// `held`.
///
/// `Usage` in storage-ops shares threads by a simpler rule, because an operation waits until it gets a thread. A call
/// without a slot is refused in the end, so that some slots must remain for further calls of every connection.
#[derive(Debug)]
pub(super) struct FairLimiter {
    capacity: usize,
    in_use: usize,
    /// The connections that hold at least one slot.
    holders: usize,
}

impl FairLimiter {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, in_use: 0, holders: 0 }
    }

    /// Whether a connection that holds `held` slots may have one more.
    pub(super) fn admits(&self, held: usize) -> bool {
        let remaining = (self.capacity / 2).saturating_sub(self.in_use.saturating_sub(self.holders));
        self.in_use < self.capacity && (held == 0 || held <= remaining)
    }

    /// Adds a slot to those that a connection holds.
    pub(super) fn acquire(&mut self, held: &mut usize) {
        self.holders += usize::from(*held == 0);
        self.in_use += 1;
        *held += 1;
    }

    /// Takes a slot from those that a connection holds, or, with `None`, from those of a connection that was removed.
    pub(super) fn release(&mut self, held: Option<&mut usize>) {
        self.in_use -= 1;
        if let Some(held) = held {
            *held -= 1;
            self.holders -= usize::from(*held == 0);
        }
    }

    /// Removes a connection that holds `held` slots; the slots remain in use until each is released.
    pub(super) fn remove_holder(&mut self, held: usize) {
        self.holders -= usize::from(held > 0);
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }
}
