//! Simulates time: the node's clock, and the lock of the state that the clock changes.

pub(crate) mod timing;
mod watched_step;

use std::future::Future;
use std::panic;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use os::{Clock, Time, WatchedWork};

use crate::state::State;

/// How long a blocked thread waits for the other threads before it advances simulated time.
const WAKE_TIMEOUT: Duration = Duration::from_millis(1);

/// How often, when simulated time follows the wall clock, an idle node advances its time and a
/// waiting thread reads the state.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How simulated time advances.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ClockMode {
    /// Each thread that waits advances it.
    #[default]
    AutoAdvance,
    /// Only [`crate::Sim::advance`] advances it.
    Held,
    /// It follows the wall clock: at this instant the simulated time was this.
    Real(Instant, Duration),
}

/// The state of a node, shared by its processes, handles and jobs.
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
    /// How many threads wait for a change of the state.
    waiting: usize,
}

impl Inner {
    /// Advances simulated time to the wall clock, if simulated time follows the wall clock.
    fn catch_up(&mut self) {
        if let ClockMode::Real(since, then) = self.mode {
            self.state.advance_to(then + since.elapsed());
        }
    }
}

impl SharedState {
    pub(crate) fn new(state: State) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            inner: Mutex::new(Inner {
                state,
                mode: ClockMode::AutoAdvance,
                waiting: 0,
            }),
            changed: Condvar::new(),
            this: Weak::clone(this),
        })
    }

    /// Returns an owned reference, for objects that outlive a call.
    pub(crate) fn this(&self) -> Arc<Self> {
        self.this.upgrade().expect("the caller holds a reference")
    }

    /// Locks the state and runs `act` on it. Does not run callbacks, because the caller may hold a
    /// lock that a callback takes.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut guard = self.lock();
        let result = act(&mut guard.state);
        self.unlock(guard);
        result
    }

    /// Locks the state, runs `act` on it, and then runs the callbacks that became due.
    pub(crate) fn with_callbacks<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut guard = self.lock();
        let result = act(&mut guard.state);
        self.release(guard);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        let mut guard = os::lock(&self.inner);
        guard.catch_up();
        guard
    }

    /// Unlocks the state and wakes the threads that wait for a change. Does not wake them if time
    /// follows the wall clock: a waiting thread then knows when the next event is due, and
    /// thousands of calls a second would wake it for nothing.
    fn unlock(&self, guard: MutexGuard<'_, Inner>) {
        let wakes = guard.waiting > 0 && !matches!(guard.mode, ClockMode::Real(..));
        drop(guard);
        if wakes {
            self.changed.notify_all();
        }
    }

    fn release(&self, mut guard: MutexGuard<'_, Inner>) {
        let callbacks = std::mem::take(&mut guard.state.callbacks);
        self.unlock(guard);
        for callback in callbacks {
            callback();
        }
    }

    pub(crate) fn set_mode(&self, mode: impl FnOnce(Duration) -> ClockMode) {
        let mut guard = self.lock();
        guard.mode = mode(guard.state.now);
        self.release(guard);
        self.changed.notify_all();
    }

    /// Advances the simulated time by `span`, in each mode.
    pub(crate) fn advance(&self, span: Duration) {
        let mut guard = self.lock();
        if let ClockMode::Real(_, then) = &mut guard.mode {
            *then += span;
        }
        let now = guard.state.now + span;
        guard.state.advance_to(now);
        self.release(guard);
        self.changed.notify_all();
    }

    /// Waits until `ready` returns a value, at most until `deadline`.
    pub(crate) fn wait<R>(
        &self,
        deadline: Duration,
        mut ready: impl FnMut(&mut State) -> Option<R>,
    ) -> Option<R> {
        let mut guard = self.lock();
        let mut step = watched_step::begin_wait(guard.state.now);
        loop {
            let value = ready(&mut guard.state);
            if value.is_none() {
                step.check(guard.state.now, deadline);
            }
            if value.is_some() || guard.state.now >= deadline {
                step.end(guard.state.now.min(deadline));
                self.release(guard);
                return value;
            }
            let until = deadline.min(step.limit());
            let next = guard
                .state
                .next_event()
                .map_or(until, |next| next.min(until));
            guard = match guard.mode {
                ClockMode::AutoAdvance => {
                    guard.state.advance_to(next);
                    self.release(guard);
                    self.lock()
                }
                ClockMode::Held => {
                    guard.waiting += 1;
                    let mut guard = self
                        .changed
                        .wait(guard)
                        .unwrap_or_else(PoisonError::into_inner);
                    guard.waiting -= 1;
                    guard
                }
                ClockMode::Real(..) => {
                    let span = next.saturating_sub(guard.state.now).min(POLL_INTERVAL);
                    guard.waiting += 1;
                    let waited = self.changed.wait_timeout(guard, span);
                    let mut guard = waited.unwrap_or_else(PoisonError::into_inner).0;
                    guard.waiting -= 1;
                    // Callbacks of events that became due while waiting must not wait for the next
                    // call.
                    guard.catch_up();
                    if !guard.state.callbacks.is_empty() {
                        self.release(guard);
                        guard = self.lock();
                    }
                    guard
                }
            };
        }
    }

    /// In [`ClockMode::AutoAdvance`], advances the time to the next event.
    fn advance_to_next_event(&self) {
        let mut guard = self.lock();
        if let (ClockMode::AutoAdvance, Some(next)) = (guard.mode, guard.state.next_event()) {
            guard.state.advance_to(next);
        }
        self.release(guard);
    }

    /// Makes simulated time follow the wall clock for as long as the node exists. A thread lets
    /// events happen even while no calls are made.
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

/// Lets the due events happen, and returns how long to sleep until the next step.
fn next_step(shared: &Weak<SharedState>) -> Option<Duration> {
    let shared = shared.upgrade()?;
    let (now, next) = shared.with_callbacks(|state| (state.now, state.next_event()));
    Some(next.map_or(POLL_INTERVAL, |next| {
        next.saturating_sub(now).min(POLL_INTERVAL)
    }))
}

impl Clock for SharedState {
    fn now(&self) -> Time {
        Time(self.with(|state| state.now))
    }

    fn since_start_of_windows(&self) -> Duration {
        self.with(|state| state.now.saturating_sub(state.started))
    }

    fn sleep(&self, span: Duration) {
        let until = self.with(|state| state.now + span);
        self.wait(until, |_| None::<()>);
    }

    /// Waits in real time, without advancing simulated time. Counts only the simulated time that
    /// `work` itself waits. So no other thread makes `work` late by advancing simulated time while
    /// the machine is busy.
    ///
    /// In [`ClockMode::AutoAdvance`], waits until `work` has ended even if it is late, so that
    /// every run has the same outcome and leaves no thread behind.
    fn run_watched(&self, patience: Duration, work: WatchedWork) -> bool {
        let (thread, late) = watched_step::spawn(patience, work);
        let is_late = late.recv().is_ok();
        if !is_late || matches!(self.lock().mode, ClockMode::AutoAdvance) {
            thread
                .join()
                .unwrap_or_else(|panicked| panic::resume_unwind(panicked));
        }
        !is_late
    }

    fn block_on(&self, mut wait: Pin<&mut dyn Future<Output = ()>>) {
        let mut step = watched_step::begin_wait(self.now().0);
        let woken = Arc::new(Woken {
            thread: thread::current(),
            flag: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        while wait.as_mut().poll(&mut context).is_pending() {
            if !woken.flag.load(Ordering::Acquire) {
                thread::park_timeout(WAKE_TIMEOUT);
            }
            // No other thread has woken this thread, so it must be waiting for simulated time to
            // pass.
            if !woken.flag.swap(false, Ordering::AcqRel) {
                self.advance_to_next_event();
            }
            step.check(self.now().0, Duration::MAX);
        }
        step.end(self.now().0);
    }
}

/// Wakes a thread that blocks on a future.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::SharedState;
    use crate::state::State;

    #[test]
    fn calls_do_not_wake_a_thread_that_waits_for_an_event() {
        const CALLS: usize = 10_000;
        let shared = SharedState::new(State::default());
        shared.follow_real_time();
        let (looks, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                shared.wait(Duration::MAX, |_| {
                    looks.fetch_add(1, Ordering::SeqCst);
                    (ended.load(Ordering::SeqCst) > 0).then_some(())
                })
            });
            while looks.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            for _ in 0..CALLS {
                shared.with(|_| thread::yield_now());
            }
            ended.store(1, Ordering::SeqCst);
            assert_eq!(waits.join().expect("it does not panic"), Some(()));
        });
        assert!(looks.into_inner() < CALLS / 10);
    }
}
