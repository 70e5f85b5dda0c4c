//! The node itself: its state behind one lock, and the time that moves it.

pub(crate) mod timing;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use os::{Clock, Time};

use crate::state::State;

/// How long a blocked thread gives the others before it moves simulated time itself.
const WAKE_TIMEOUT: Duration = Duration::from_millis(1);

/// How often real time is looked at when nobody asks for anything.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How time moves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ClockMode {
    /// Whoever waits moves it.
    #[default]
    AutoAdvance,
    /// Only [`crate::Sim::advance`] does.
    Held,
    /// As the wall clock does: then it was that late here.
    Real(Instant, Duration),
}

/// A simulated node, shared by all who see it.
#[derive(Debug)]
pub(crate) struct SharedState {
    inner: Mutex<Inner>,
    changed: Condvar,
    this: Weak<Self>,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    mode: ClockMode,
    /// How many threads wait for a change.
    waiting: usize,
}

impl Inner {
    /// Lets real time catch up.
    fn catch_up(&mut self) {
        if let ClockMode::Real(since, then) = self.mode {
            self.state.advance_to(then + since.elapsed());
        }
    }
}

impl SharedState {
    pub(crate) fn new(state: State) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            inner: Mutex::new(Inner { state, mode: ClockMode::AutoAdvance, waiting: 0 }),
            changed: Condvar::new(),
            this: Weak::clone(this),
        })
    }

    /// The node itself, for what outlives a call.
    pub(crate) fn this(&self) -> Arc<Self> {
        self.this.upgrade().expect("whoever calls holds the state")
    }

    /// Does something with the state. Nobody is called back: the caller may hold a lock that a callback takes.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut guard = self.lock();
        let result = act(&mut guard.state);
        self.unlock(guard);
        result
    }

    /// Does something with the state, and then makes the calls that became due.
    pub(crate) fn with_callbacks<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut guard = self.lock();
        let result = act(&mut guard.state);
        self.release(guard);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        let mut guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        guard.catch_up();
        guard
    }

    fn unlock(&self, guard: MutexGuard<'_, Inner>) {
        let waiting = guard.waiting > 0;
        drop(guard);
        if waiting {
            self.changed.notify_all();
        }
    }

    fn release(&self, mut guard: MutexGuard<'_, Inner>) {
        let calls = std::mem::take(&mut guard.state.calls);
        self.unlock(guard);
        for call in calls {
            call();
        }
    }

    pub(crate) fn set_mode(&self, mode: impl FnOnce(Duration) -> ClockMode) {
        let mut guard = self.lock();
        guard.mode = mode(guard.state.now);
        self.release(guard);
    }

    /// Moves time on by `span`, whatever its pace but real.
    pub(crate) fn advance(&self, span: Duration) {
        self.with_callbacks(|state| state.advance_to(state.now + span));
    }

    /// Waits until `ready` has an answer, or until `deadline`.
    pub(crate) fn wait<R>(&self, deadline: Duration, mut ready: impl FnMut(&mut State) -> Option<R>) -> Option<R> {
        let mut guard = self.lock();
        loop {
            let answer = ready(&mut guard.state);
            if answer.is_some() || guard.state.now >= deadline {
                self.release(guard);
                return answer;
            }
            let next = guard.state.next_event().map_or(deadline, |due| due.min(deadline));
            guard = match guard.mode {
                ClockMode::AutoAdvance => {
                    guard.state.advance_to(next);
                    self.release(guard);
                    self.lock()
                }
                ClockMode::Held => {
                    guard.waiting += 1;
                    let mut guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
                    guard.waiting -= 1;
                    guard
                }
                ClockMode::Real(..) => {
                    let span = next.saturating_sub(guard.state.now);
                    guard.waiting += 1;
                    let waited = self.changed.wait_timeout(guard, span);
                    let mut guard = waited.unwrap_or_else(PoisonError::into_inner).0;
                    guard.waiting -= 1;
                    // What real time brings is to be told at once.
                    guard.catch_up();
                    if !guard.state.calls.is_empty() {
                        self.release(guard);
                        guard = self.lock();
                    }
                    guard
                }
            };
        }
    }

    /// Moves flowing time to the next event, if there is one.
    fn advance_to_next_event(&self) {
        let mut guard = self.lock();
        if let (ClockMode::AutoAdvance, Some(next)) = (guard.mode, guard.state.next_event()) {
            guard.state.advance_to(next);
        }
        self.release(guard);
    }

    /// Follows real time for as long as the node exists, so that what is due happens though nobody asks.
    pub(crate) fn follow_real_time(self: &Arc<Self>) {
        self.set_mode(|now| ClockMode::Real(Instant::now(), now));
        let shared = Arc::downgrade(self);
        thread::spawn(move || {
            while let Some(next) = next_step(&shared) {
                thread::sleep(next);
            }
        });
    }
}

/// Lets happen what is due, and returns when to come back.
fn next_step(shared: &Weak<SharedState>) -> Option<Duration> {
    let shared = shared.upgrade()?;
    let (now, due) = shared.with_callbacks(|state| (state.now, state.next_event()));
    Some(due.map_or(POLL_INTERVAL, |due| due.saturating_sub(now).min(POLL_INTERVAL)))
}

impl Clock for SharedState {
    fn now(&self) -> Time {
        Time(self.with(|state| state.now))
    }

    fn sleep(&self, span: Duration) {
        let until = self.with(|state| state.now + span);
        self.wait(until, |_| None::<()>);
    }

    fn block_on(&self, mut wait: Pin<&mut dyn Future<Output = ()>>) {
        let woken = Arc::new(Woken { thread: thread::current(), flag: AtomicBool::new(false) });
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        while wait.as_mut().poll(&mut context).is_pending() {
            while !woken.flag.swap(false, Ordering::AcqRel) {
                thread::park_timeout(WAKE_TIMEOUT);
                // Others had their chance: nothing but time can be what is waited for.
                if !woken.flag.load(Ordering::Acquire) {
                    self.advance_to_next_event();
                }
            }
        }
    }
}

/// Wakes a thread that is blocked on a future.
struct Woken {
    thread: Thread,
    flag: AtomicBool,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
