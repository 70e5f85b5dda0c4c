//! Slots for running calls, with a bounded queue of calls that wait for one.
//!
//! A [`FairLimiter`] decides which connection may take a slot. Of the calls that wait and may have one, that of the
//! connection with the fewest slots is next, and of equals the earliest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use storage_ops::Call;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::admission::connections::ConnectionId;
use crate::admission::fair_limiter::FairLimiter;
use crate::admission::limits::Limits;

/// The slots of a server.
#[derive(Debug)]
pub(crate) struct CallSlots {
    queue_capacity: usize,
    queue_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limiter: FairLimiter,
    /// How many slots each connection holds; connections without any are absent.
    held: HashMap<ConnectionId, usize>,
    queue: VecDeque<Waiter>,
    refused: u64,
}

#[derive(Debug)]
struct Waiter {
    connection: ConnectionId,
    call: WaitingCall,
    slot: oneshot::Sender<CallSlot>,
}

/// A call that waits for a slot.
#[derive(Clone, Debug)]
pub(crate) struct WaitingCall {
    pub(crate) call: Call,
    /// What it requests, without a secret or the name of a user.
    pub(crate) object: String,
}

/// One slot. Dropping it passes it to the next call in the queue.
#[derive(Debug)]
pub(crate) struct CallSlot {
    slots: Arc<CallSlots>,
    connection: ConnectionId,
}

impl CallSlots {
    pub(crate) fn new(limits: &Limits) -> Self {
        let state =
            State { limiter: FairLimiter::new(limits.calls), held: HashMap::new(), queue: VecDeque::new(), refused: 0 };
        Self { queue_capacity: limits.queue, queue_timeout: limits.queue_timeout, state: Mutex::new(state) }
    }

    /// Takes a slot, or waits for one in the queue, in which `call` describes the caller. Returns `None` if the queue is
    /// full or the wait times out.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        connection: ConnectionId,
        call: impl FnOnce() -> WaitingCall,
    ) -> Option<CallSlot> {
        let slot = {
            let mut state = self.lock();
            if state.admits(connection) {
                return Some(self.take(&mut state, connection));
            }
            state.queue.retain(|waiter| !waiter.slot.is_closed());
            if state.queue.len() >= self.queue_capacity {
                state.refused += 1;
                return None;
            }
            let (sender, slot) = oneshot::channel();
            state.queue.push_back(Waiter { connection, call: call(), slot: sender });
            slot
        };
        let slot = timeout(self.queue_timeout, slot).await.ok().and_then(Result::ok);
        self.lock().refused += u64::from(slot.is_none());
        slot
    }

    /// How many slots are in use.
    pub(crate) fn in_use(&self) -> usize {
        self.lock().limiter.in_use()
    }

    /// How many calls wait for a slot.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().queue.iter().filter(|waiter| !waiter.slot.is_closed()).count()
    }

    /// The calls that wait for a slot, in the order of their arrival.
    pub(crate) fn waiting_calls(&self) -> Vec<WaitingCall> {
        let state = self.lock();
        state.queue.iter().filter(|waiter| !waiter.slot.is_closed()).map(|waiter| waiter.call.clone()).collect()
    }

    /// How many calls did not get a slot.
    pub(crate) fn refused(&self) -> u64 {
        self.lock().refused
    }

    fn take(self: &Arc<Self>, state: &mut State, connection: ConnectionId) -> CallSlot {
        state.limiter.acquire(state.held.entry(connection).or_default());
        CallSlot { slots: Arc::clone(self), connection }
    }

    /// Takes slots for all calls in the queue that may have one, and removes them from the queue.
    fn take_for_waiting(self: &Arc<Self>, state: &mut State) -> Vec<(Waiter, CallSlot)> {
        let mut taken = Vec::new();
        state.queue.retain(|waiter| !waiter.slot.is_closed());
        while let Some(index) = state.next()
            && let Some(waiter) = state.queue.remove(index)
        {
            let slot = self.take(state, waiter.connection);
            taken.push((waiter, slot));
        }
        taken
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn held(&self, connection: ConnectionId) -> usize {
        self.held.get(&connection).copied().unwrap_or_default()
    }

    fn admits(&self, connection: ConnectionId) -> bool {
        self.limiter.admits(self.held(connection))
    }

    /// Returns which call of the queue takes the next slot.
    fn next(&self) -> Option<usize> {
        let held = self.queue.iter().map(|waiter| self.held(waiter.connection)).enumerate();
        held.filter(|(_, held)| self.limiter.admits(*held)).min_by_key(|(_, held)| *held).map(|(index, _)| index)
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        let mut guard = self.slots.lock();
        let state = &mut *guard;
        let held = state.held.get_mut(&self.connection);
        let is_last = held.as_ref().is_some_and(|held| **held == 1);
        state.limiter.release(held);
        if is_last {
            state.held.remove(&self.connection);
        }
        // Under the same lock, so that no new call takes the slot before those that wait.
        let taken = self.slots.take_for_waiting(state);
        drop(guard);
        for (waiter, slot) in taken {
            // If the call has just stopped waiting, the slot is dropped here and passed to the next one.
            let _ = waiter.slot.send(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use storage_ops::{Call, ClientId};

    use super::{CallSlot, CallSlots, WaitingCall};
    use crate::admission::connections::{Connection, ConnectionId, ConnectionLimits, Connections};
    use crate::admission::limits::Limits;

    fn slots(calls: usize, queue: usize, queue_timeout: Duration) -> Arc<CallSlots> {
        Arc::new(CallSlots::new(&Limits { calls, queue, queue_timeout, ..Limits::default() }))
    }

    const TIMEOUT: Duration = Duration::from_secs(5);

    fn connections<const N: usize>() -> [Connection; N] {
        let all = Connections::new(ConnectionLimits::default());
        std::array::from_fn(|_| all.admit())
    }

    async fn acquire(slots: &Arc<CallSlots>, connection: ConnectionId) -> Option<CallSlot> {
        let client = ClientId(connection.number());
        let call = Call { number: connection.number(), label: "/v1.Disk/Rescan", client, began: Duration::ZERO };
        slots.acquire(connection, || WaitingCall { call, object: "rescan".to_owned() }).await
    }

    async fn acquire_all(slots: &Arc<CallSlots>, connection: &Connection) -> Vec<CallSlot> {
        let mut acquired = Vec::new();
        while let Some(slot) = acquire(slots, connection.id()).await {
            acquired.push(slot);
        }
        acquired
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_take_all_they_can_leave_a_slot_for_another() {
        let slots = slots(64, 8, Duration::ZERO);
        let [modest, greedy @ ..] = connections::<9>();
        let mut all = Vec::new();
        for connection in &greedy {
            all.push(acquire_all(&slots, connection).await);
        }
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [17, 9, 5, 3, 2, 2, 1, 1]);
        assert!(acquire(&slots, modest.id()).await.is_some());
        drop(all);
        assert_eq!(acquire_all(&slots, &modest).await.len(), 17, "released slots can be acquired again");
    }

    #[tokio::test(start_paused = true)]
    async fn nine_connections_with_as_many_calls_as_they_may_have_leave_others_several_each() {
        let limits = Limits::default();
        let slots = slots(limits.calls, 0, Duration::ZERO);
        let [modest, greedy @ ..] = connections::<10>();
        let mut all = Vec::new();
        for connection in greedy.iter().flat_map(|connection| vec![connection; limits.streams as usize]) {
            all.extend(acquire(&slots, connection.id()).await);
        }
        assert_eq!(acquire_all(&slots, &modest).await.len(), 18);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_slot_goes_to_the_connection_that_has_the_fewest() {
        let slots = slots(8, 8, TIMEOUT);
        let [most, one, modest, others @ ..] = connections::<7>();
        let mut held = Vec::new();
        for connection in [&most, &most, &most, &one].into_iter().chain(&others) {
            held.push(acquire(&slots, connection.id()).await.expect("a slot is free"));
        }
        let waiting = [&one, &modest].map(|connection| {
            let (slots, id) = (Arc::clone(&slots), connection.id());
            tokio::spawn(async move { acquire(&slots, id).await.expect("in time") })
        });
        while slots.waiting() < 2 {
            tokio::task::yield_now().await;
        }
        drop(held.remove(0));
        let [waits, modest] = waiting;
        let _slot = modest.await.expect("no panic");
        assert!(!waits.is_finished() && slots.waiting() == 1, "it has a slot, and waits for another");
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_slot_can_be_acquired() {
        let slots = slots(1, 0, TIMEOUT);
        let [one, other] = connections();
        let slot = acquire(&slots, one.id()).await.expect("the slot is free");
        assert!(acquire(&slots, other.id()).await.is_none());
        drop(slot);
        assert!(acquire(&slots, other.id()).await.is_some());
        assert_eq!((slots.in_use(), slots.refused()), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_calls_get_slots_in_fifo_order() {
        let slots = slots(1, 8, TIMEOUT);
        let [one, other] = connections();
        let first = acquire(&slots, one.id()).await.expect("the slot is free");
        let wait = |id| {
            tokio::spawn({
                let slots = Arc::clone(&slots);
                async move { acquire(&slots, id).await }
            })
        };
        let (second, cancelled, third) = (wait(other.id()), wait(one.id()), wait(one.id()));
        while slots.waiting() < 3 {
            tokio::task::yield_now().await;
        }
        let listed = |slots: &CallSlots| slots.waiting_calls().iter().map(|one| one.call.number).collect::<Vec<_>>();
        let [first_id, second_id] = [&one, &other].map(|connection| connection.id().number());
        assert_eq!(listed(&slots), [second_id, first_id, first_id]);
        cancelled.abort();
        cancelled.await.expect_err("it was aborted");
        assert_eq!((slots.waiting(), listed(&slots)), (2, vec![second_id, first_id]));
        drop(first);
        let second = second.await.expect("no panic").expect("it is the first in the queue");
        assert!(!third.is_finished());
        drop(second);
        assert!(third.await.expect("no panic").is_some());
        assert_eq!((slots.in_use(), slots.waiting(), slots.refused()), (0, 0, 0));
    }

    #[test]
    fn a_call_that_waits_is_not_overtaken() {
        // Several calls wait all the time, and each slot that one of them releases is for another of them.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("built");
        let slots = slots(1, 64, TIMEOUT);
        let all = Connections::new(ConnectionLimits::default());
        let stop = Arc::new(AtomicBool::new(false));
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let (slots, connection, stop) = (Arc::clone(&slots), all.admit(), Arc::clone(&stop));
                runtime.spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        drop(acquire(&slots, connection.id()).await);
                    }
                })
            })
            .collect();
        let other = all.admit();
        for _ in 0..100_000 {
            let state = slots.lock();
            let somebody_waits = state.queue.iter().any(|waiter| !waiter.slot.is_closed());
            assert!(!(somebody_waits && state.admits(other.id())), "a new call would overtake one that waits");
        }
        stop.store(true, Ordering::Relaxed);
        runtime.block_on(async {
            for task in waiting {
                task.await.expect("no panic");
            }
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_refuses_at_once_and_a_waiting_call_is_refused_after_the_timeout() {
        let slots = slots(1, 2, TIMEOUT);
        let [one, other] = connections();
        let _slot = acquire(&slots, one.id()).await;
        let start = tokio::time::Instant::now();
        let (a, b, elapsed) = tokio::join!(acquire(&slots, other.id()), acquire(&slots, other.id()), async {
            assert!(acquire(&slots, other.id()).await.is_none());
            start.elapsed()
        });
        assert!(a.is_none() && b.is_none());
        assert_eq!((elapsed, slots.refused(), slots.waiting()), (Duration::ZERO, 3, 0));
    }
}
