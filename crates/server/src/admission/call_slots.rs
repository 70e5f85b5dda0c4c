//! Slots for calls that run, shared fairly between connections.
//!
//! The first call of a connection may have any slot, its further ones only half of all. So a few connections that
//! would like to have all of them leave half to the others. Who finds no slot waits in the order of arrival, for as
//! long as there is room to wait.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::admission::connections::ConnectionId;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// A number of slots.
#[derive(Debug)]
pub(crate) struct CallSlots {
    all: usize,
    queue: usize,
    book: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    by_connection: HashMap<ConnectionId, usize>,
    waiting: VecDeque<Waiter>,
    refused: u64,
}

#[derive(Debug)]
struct Waiter {
    connection: ConnectionId,
    slot: oneshot::Sender<CallSlot>,
}

/// One of them; dropping it hands it on.
#[derive(Debug)]
pub(crate) struct CallSlot {
    slots: Arc<CallSlots>,
    connection: ConnectionId,
}

impl CallSlots {
    /// `all` slots, for which `queue` calls may wait.
    pub(crate) fn new(all: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self { all, queue, book: Mutex::default() })
    }

    /// Takes a slot, waiting for it if there is room to wait, but not for long.
    pub(crate) async fn take(self: &Arc<Self>, connection: ConnectionId, patience: Duration) -> Option<CallSlot> {
        let slot = {
            let mut book = self.book();
            if book.may(connection, self.all) {
                return Some(self.give(&mut book, connection));
            }
            book.waiting.retain(|waiter| !waiter.slot.is_closed());
            if book.waiting.len() >= self.queue {
                book.refused += 1;
                return None;
            }
            let (sender, slot) = oneshot::channel();
            book.waiting.push_back(Waiter { connection, slot: sender });
            slot
        };
        let slot = timeout(patience, slot).await.ok().and_then(Result::ok);
        self.book().refused += u64::from(slot.is_none());
        slot
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.book().taken
    }

    /// How many calls wait for one.
    pub(crate) fn waiting(&self) -> usize {
        self.book().waiting.iter().filter(|waiter| !waiter.slot.is_closed()).count()
    }

    /// How many calls have got none.
    pub(crate) fn refused(&self) -> u64 {
        self.book().refused
    }

    fn give(self: &Arc<Self>, book: &mut State, connection: ConnectionId) -> CallSlot {
        book.taken += 1;
        *book.by_connection.entry(connection).or_default() += 1;
        CallSlot { slots: Arc::clone(self), connection }
    }

    /// Takes the first out of the queue that may have a slot now, and the slot for it.
    fn next(self: &Arc<Self>) -> Option<(Waiter, CallSlot)> {
        let mut guard = self.book();
        let book = &mut *guard;
        book.waiting.retain(|waiter| !waiter.slot.is_closed());
        let at = book.waiting.iter().position(|waiter| book.may(waiter.connection, self.all))?;
        let waiter = book.waiting.remove(at)?;
        let slot = self.give(book, waiter.connection);
        drop(guard);
        Some((waiter, slot))
    }

    fn book(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may(&self, connection: ConnectionId, all: usize) -> bool {
        let further = self.taken - self.by_connection.len();
        self.taken < all && (!self.by_connection.contains_key(&connection) || further < all / 2)
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        let mut book = self.slots.book();
        book.taken -= 1;
        if let Some(taken) = book.by_connection.get_mut(&self.connection) {
            *taken -= 1;
            if *taken == 0 {
                book.by_connection.remove(&self.connection);
            }
        }
        let nobody = book.waiting.is_empty();
        drop(book);
        if nobody {
            return;
        }
        while let Some((waiter, slot)) = self.slots.next() {
            // One that has just given up hands the slot on by dropping it.
            let _ = waiter.slot.send(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crate::admission::connections::{Connections, Limits};

    use super::{CallSlot, CallSlots};

    const PATIENCE: Duration = Duration::from_secs(5);

    fn connections<const N: usize>() -> [crate::admission::connections::Connection; N] {
        let all = Connections::new(Limits::default());
        std::array::from_fn(|_| all.admit())
    }

    async fn take_all(slots: &Arc<CallSlots>, connection: &crate::admission::connections::Connection) -> Vec<CallSlot> {
        let mut taken = Vec::new();
        while let Some(slot) = slots.take(connection.id(), Duration::ZERO).await {
            taken.push(slot);
        }
        taken
    }

    #[tokio::test(start_paused = true)]
    async fn however_greedy_some_are_another_finds_a_place() {
        let slots = CallSlots::new(64, 8);
        let [modest, greedy @ ..] = connections::<9>();
        let mut all = Vec::new();
        for connection in &greedy {
            all.push(take_all(&slots, connection).await);
        }
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [33, 1, 1, 1, 1, 1, 1, 1]);
        assert!(slots.take(modest.id(), Duration::ZERO).await.is_some());
        drop(all);
        assert_eq!(take_all(&slots, &modest).await.len(), 33, "what was given back can be had again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_place_can_be_taken() {
        let slots = CallSlots::new(1, 0);
        let [one, other] = connections();
        let slot = slots.take(one.id(), PATIENCE).await.expect("it is free");
        assert!(slots.take(other.id(), PATIENCE).await.is_none());
        drop(slot);
        assert!(slots.take(other.id(), PATIENCE).await.is_some());
        assert_eq!((slots.taken(), slots.refused()), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_gets_the_next_place_in_the_order_of_arrival() {
        let slots = CallSlots::new(1, 8);
        let [one, other] = connections();
        let first = slots.take(one.id(), PATIENCE).await.expect("it is free");
        let wait = |id| {
            tokio::spawn({
                let slots = Arc::clone(&slots);
                async move { slots.take(id, PATIENCE).await }
            })
        };
        let (second, gone, third) = (wait(other.id()), wait(one.id()), wait(one.id()));
        while slots.waiting() < 3 {
            tokio::task::yield_now().await;
        }
        gone.abort();
        gone.await.expect_err("it was aborted");
        assert_eq!(slots.waiting(), 2);
        drop(first);
        let second = second.await.expect("no panic").expect("it came first");
        assert!(!third.is_finished());
        drop(second);
        assert!(third.await.expect("no panic").is_some());
        assert_eq!((slots.taken(), slots.waiting(), slots.refused()), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn where_too_many_wait_the_next_is_told_at_once_and_those_in_time() {
        let slots = CallSlots::new(1, 2);
        let [one, other] = connections();
        let _place = slots.take(one.id(), PATIENCE).await;
        let start = tokio::time::Instant::now();
        let (a, b, at_once) = tokio::join!(slots.take(other.id(), PATIENCE), slots.take(other.id(), PATIENCE), async {
            assert!(slots.take(other.id(), PATIENCE).await.is_none());
            start.elapsed()
        });
        assert!(a.is_none() && b.is_none());
        assert_eq!((at_once, slots.refused(), slots.waiting()), (Duration::ZERO, 3, 0));
    }
}
