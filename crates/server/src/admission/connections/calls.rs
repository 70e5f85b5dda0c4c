//! The gate for calls: which calls run, which wait, and which are refused.
//!
//! A call is in flight from its headers until its client has read the response. Meanwhile, the call
//! is in one of these states:
//!
//! 1. *Transferring*: its request is incomplete.
//! 2. *Waiting* for a slot.
//! 3. *Running*: the call holds a slot, and its operation runs.
//! 4. *Transferring*: the client has not read the response.
//!
//! The first slot of a connection may be any slot. The further slots of all connections come from
//! one half of the slots, and a connection gets one of them only if it would then hold no more of
//! them than were free before. A few connections with many calls therefore leave one half of the
//! slots to the first calls of other connections, and some slots of the other half to the further
//! calls of other connections. `Usage` in storage-ops shares threads by a simpler rule, because an
//! operation waits until it gets a thread. Here, a call that gets no slot in time is refused.
//! Therefore some slots must remain for the further calls of every connection.
//!
//! Of the calls that wait and may take a slot, the earliest is the next. Only further calls wait:
//! half of the slots are enough for the first calls of all connections.
//!
//! As many calls as there are slots may be in flight without a slot. At that limit, a further call
//! closes the connection with the most transferring calls: its client leaves requests incomplete or
//! responses unread. If no connection has many of them, only the first call of a connection is
//! accepted.
//!
//! The calls are a part of the state of the connections and have the same lock.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use storage_ops::{Call, ConnectionId};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::Status;

use super::{ConnectionHandle, Connections, EvictionClass, State};
use crate::drain::GOAWAY_GRACE;

/// The calls of a server, as a part of the state of its connections.
#[derive(Debug)]
pub(super) struct CallQueue {
    /// How many calls may run.
    slots: usize,
    /// How many calls run.
    running: usize,
    /// How many connections have at least one call that runs.
    running_connections: usize,
    /// How many calls are in flight: they transfer, wait or run.
    in_flight: usize,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    connection: Arc<ConnectionHandle>,
    call: WaitingCall,
    slot: oneshot::Sender<CallSlot>,
}

/// A call that waits for a slot.
#[derive(Clone, Debug)]
pub(crate) struct WaitingCall {
    pub(crate) call: Call,
    /// What the call requests, without a secret or the name of a user.
    pub(crate) object: String,
}

/// How many transferring calls a client that reads its responses has at most at one moment.
const FEW_TRANSFERRING: usize = 16;

/// At the limit of open connections, every other connection has a call in flight.
const CONNECTIONS_BUSY: &str = "too many connections have calls in flight; try again later";
/// The grace period of the connection, which was evicted, is over.
const EVICTED: &str = "csi-proxy is closing this connection to make room for others; connect again";
/// Too many calls wait, or no slot became free in time.
const TOO_MANY_CALLS: &str = "too many calls are running; try again later";

impl CallQueue {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots,
            running: 0,
            running_connections: 0,
            in_flight: 0,
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How many calls hold a slot.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// The calls that wait for a slot, in the order of their arrival.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &WaitingCall> {
        self.waiting
            .iter()
            .filter(|waiter| !waiter.slot.is_closed())
            .map(|waiter| &waiter.call)
    }

    /// Whether one more call may be in flight without a slot.
    fn has_room(&self) -> bool {
        self.in_flight - self.running < self.slots
    }

    /// Whether a connection that holds `held` slots may have one more.
    fn admits(&self, held: usize) -> bool {
        // Further slots are all slots but the first one of each connection. More than half of the
        // slots can be such slots while calls of a closed connection still run.
        let further = self.running - self.running_connections;
        let free_further = (self.slots / 2).saturating_sub(further);
        // With one more, the connection would hold `held` further slots.
        self.running < self.slots && (held == 0 || held <= free_further)
    }

    /// Removes a connection whose calls hold `slots` slots. The slots remain in use until each is
    /// released.
    pub(super) fn remove_connection(&mut self, id: ConnectionId, slots: usize) {
        self.running_connections -= usize::from(slots > 0);
        self.waiting.retain(|waiter| waiter.connection.id != id);
    }
}

impl Connections {
    /// The calls that wait for a slot, in the order of their arrival.
    pub(crate) fn waiting_calls(&self) -> Vec<WaitingCall> {
        self.lock().calls.waiting().cloned().collect()
    }
}

impl State {
    /// Makes room for a call without a slot: closes the connection with the most transferring calls,
    /// unless connections that are closing make room already. Returns false if every connection has
    /// few of these calls.
    fn make_room(&self) -> bool {
        let mut waiting = BTreeMap::<_, usize>::new();
        for waiter in &self.calls.waiting {
            *waiting.entry(waiter.connection.id).or_default() += 1;
        }
        let transferring = self.members.iter().map(|(id, member)| {
            let waiting = waiting.get(id).copied().unwrap_or_default();
            let calls = member.calls.saturating_sub(member.slots + waiting);
            (calls, &member.unfinished)
        });
        let (closing, open): (Vec<_>, Vec<_>) =
            transferring.partition(|(_, close)| close.is_cancelled());
        let closing_calls: usize = closing.iter().map(|(calls, _)| calls).sum();
        if self.calls.in_flight - self.calls.running < self.calls.slots + closing_calls {
            return true;
        }
        match open.iter().max_by_key(|(calls, _)| *calls) {
            Some((calls, close)) if *calls > FEW_TRANSFERRING => {
                close.cancel();
                true
            }
            _ => false,
        }
    }

    /// Takes a slot, if the connection may have one more.
    fn take_slot(&mut self, connection: &Arc<ConnectionHandle>) -> Option<CallSlot> {
        let held = &mut self.members.get_mut(&connection.id)?.slots;
        if !self.calls.admits(*held) {
            return None;
        }
        self.calls.running_connections += usize::from(*held == 0);
        self.calls.running += 1;
        *held += 1;
        Some(CallSlot(Arc::clone(connection)))
    }

    /// Takes slots for all calls that wait and may have one.
    fn take_slots_for_waiting(&mut self) -> Vec<(Waiter, CallSlot)> {
        let mut taken = Vec::new();
        self.calls.waiting.retain(|waiter| !waiter.slot.is_closed());
        while let Some(index) = self.next_waiter()
            && let Some(waiter) = self.calls.waiting.remove(index)
        {
            let slot = self.take_slot(&waiter.connection);
            taken.extend(slot.map(|slot| (waiter, slot)));
        }
        taken
    }

    /// Returns which of the waiting calls takes the next slot.
    fn next_waiter(&self) -> Option<usize> {
        self.calls.waiting.iter().position(|waiter| {
            let member = self.members.get(&waiter.connection.id);
            self.calls.admits(member.map_or(0, |member| member.slots))
        })
    }
}

impl ConnectionHandle {
    /// Counts a call on the connection until the returned guard is dropped. Until then the
    /// connection is not evicted.
    pub(crate) fn begin_call(self: &Arc<Self>) -> Result<InFlightCall, Status> {
        let mut guard = self.connections.lock();
        let state = &mut *guard;
        let Some(mut member) = state.members.get_mut(&self.id) else {
            return Err(Status::unavailable(CONNECTIONS_BUSY));
        };
        if member
            .evicted_at
            .is_some_and(|evicted| evicted.elapsed() >= GOAWAY_GRACE)
        {
            state.totals.refused_connections_busy += 1;
            return Err(Status::unavailable(EVICTED));
        }
        let is_first = member.calls == 0;
        if is_first && state.busy >= state.limits.connections {
            state.totals.refused_connections_busy += 1;
            return Err(Status::unavailable(CONNECTIONS_BUSY));
        }
        if !is_first && !state.calls.has_room() {
            let has_made_room = state.make_room();
            member = match state.members.get_mut(&self.id) {
                Some(member) if has_made_room => member,
                _ => {
                    state.totals.refused_calls += 1;
                    return Err(Status::unavailable(TOO_MANY_CALLS));
                }
            };
        }
        member.calls += 1;
        member.rank = None;
        state.calls.in_flight += 1;
        state.busy += usize::from(is_first);
        // The connection stays open for as long as the call takes, and counts until it closes.
        state.leaving -= usize::from(mem::take(&mut member.is_leaving));
        drop(guard);
        Ok(InFlightCall(Arc::clone(self)))
    }
}

/// A call in flight on a connection; the call ends when this is dropped.
#[derive(Debug)]
pub(crate) struct InFlightCall(Arc<ConnectionHandle>);

impl InFlightCall {
    /// Takes a slot, or waits for one while `object` says what the call requests. Fails if no slot
    /// becomes free in time.
    pub(crate) async fn slot(
        &self,
        call: Call,
        object: &(dyn Fn() -> String + Sync),
    ) -> Result<CallSlot, Status> {
        let connections = &self.0.connections;
        let (slot, time) = {
            let mut state = connections.lock();
            if let Some(slot) = state.take_slot(&self.0) {
                return Ok(slot);
            }
            let (sender, slot) = oneshot::channel();
            // Calls that have ended wait no more.
            state
                .calls
                .waiting
                .retain(|waiter| !waiter.slot.is_closed());
            state.calls.waiting.push_back(Waiter {
                connection: Arc::clone(&self.0),
                call: WaitingCall {
                    call,
                    object: object(),
                },
                slot: sender,
            });
            (slot, state.limits.queue_timeout)
        };
        let slot = timeout(time, slot).await.ok().and_then(Result::ok);
        slot.ok_or_else(|| {
            connections.lock().totals.refused_calls += 1;
            Status::unavailable(TOO_MANY_CALLS)
        })
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        let mut guard = self.0.connections.lock();
        let state = &mut *guard;
        state.calls.in_flight -= 1;
        let Some(member) = state.members.get_mut(&self.0.id) else {
            return;
        };
        member.calls -= 1;
        if member.calls > 0 {
            return;
        }
        state.busy -= 1;
        if member.evicted_at.is_some() {
            drop(guard);
            self.0.no_calls.notify_one();
        } else {
            state.set_idle(self.0.id, EvictionClass::Idle);
        }
    }
}

/// One slot. Dropping it passes it to the next call that waits.
#[derive(Debug)]
pub(crate) struct CallSlot(Arc<ConnectionHandle>);

impl Drop for CallSlot {
    fn drop(&mut self) {
        let mut guard = self.0.connections.lock();
        let state = &mut *guard;
        state.calls.running -= 1;
        if let Some(member) = state.members.get_mut(&self.0.id) {
            member.slots -= 1;
            state.calls.running_connections -= usize::from(member.slots == 0);
        }
        // Under the same lock, so that no new call takes the slot before those that wait.
        let taken = state.take_slots_for_waiting();
        drop(guard);
        for (waiter, slot) in taken {
            // If the call has just stopped waiting, the slot is dropped here and passed to the next
            // one.
            let _ = waiter.slot.send(slot);
        }
    }
}
