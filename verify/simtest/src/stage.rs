//! Threads that take turns: of all that run operations on a node, one goes on, up to its next call.
//!
//! So an interleaving is what a [`Schedule`] says it is, and happens again when it is asked for again. Waiting for a
//! lock gives the turn away; where everybody waits, only time can help, and simulated time is made to pass.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use faults::{Call, FaultAction, Layer, Layered, Probe};
use os::{Clock, Os};

thread_local! {
    /// Which of the stage's threads this is.
    static ME: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Decides whose turn it is.
pub trait Schedule: Send {
    /// One of `ready`, which is not empty. `begun` says how many calls each thread has begun.
    fn next(&mut self, ready: &[usize], begun: &[usize]) -> usize;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Ready,
    Waiting,
    Ended,
}

struct State {
    schedule: Box<dyn Schedule>,
    turn: Option<usize>,
    phases: Vec<Phase>,
    begun: Vec<usize>,
}

impl State {
    fn ready(&self) -> Vec<usize> {
        (0..self.phases.len()).filter(|thread| self.phases[*thread] == Phase::Ready).collect()
    }

    fn hand_on(&mut self) {
        let mut ready = self.ready();
        if ready.is_empty() {
            // Whoever gets the turn lets time pass.
            ready = (0..self.phases.len()).filter(|thread| self.phases[*thread] == Phase::Waiting).collect();
        }
        self.turn = if ready.is_empty() { None } else { Some(self.schedule.next(&ready, &self.begun)) };
    }
}

/// Where threads take turns.
#[derive(Clone)]
pub struct Stage(Arc<(Mutex<State>, Condvar)>);

impl Stage {
    /// A stage for `threads`, none of which has begun.
    pub fn new(threads: usize, schedule: impl Schedule + 'static) -> Self {
        let phases = vec![Phase::Ready; threads];
        let mut state = State { schedule: Box::new(schedule), turn: None, phases, begun: vec![0; threads] };
        state.hand_on();
        Self(Arc::new((Mutex::new(state), Condvar::new())))
    }

    /// Runs each of `parts` on a thread of its own, and answers what they do.
    pub fn run<T: Send>(&self, parts: Vec<Box<dyn FnOnce() -> T + Send + '_>>) -> Vec<T> {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (me, part) in parts.into_iter().enumerate() {
                threads.push(scope.spawn(move || {
                    ME.set(Some(me));
                    self.wait_for_turn(self.state(), me);
                    let value = part();
                    let mut state = self.state();
                    state.phases[me] = Phase::Ended;
                    state.hand_on();
                    self.0.1.notify_all();
                    value
                }));
            }
            threads.into_iter().map(|thread| thread.join().expect("a part catches its panics")).collect()
        })
    }

    /// The node with a clock that gives the turn away instead of blocking.
    pub fn over(&self, inner: Arc<dyn Os>) -> Arc<dyn Os> {
        Arc::new(Layered::around(inner, self.clone()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_turn(&self, state: MutexGuard<'_, State>, me: usize) {
        drop(self.0.1.wait_while(state, |state| state.turn != Some(me)).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for the turn to begin the next call.
    fn step(&self, me: usize) {
        let mut state = self.state();
        state.hand_on();
        self.0.1.notify_all();
        self.wait_for_turn(state, me);
        self.state().begun[me] += 1;
    }

    /// Gives the turn away until woken. False if everybody waits.
    fn block(&self, me: usize) -> bool {
        let mut state = self.state();
        state.phases[me] = Phase::Waiting;
        state.hand_on();
        self.0.1.notify_all();
        self.wait_for_turn(state, me);
        let mut state = self.state();
        let woken = state.phases[me] == Phase::Ready;
        state.phases[me] = Phase::Ready;
        woken
    }
}

impl Probe for Stage {
    fn before(&self, _call: &Call) -> FaultAction {
        if let Some(me) = ME.get() {
            self.step(me);
        }
        FaultAction::Go
    }
}

struct Woken {
    stage: Stage,
    thread: usize,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let mut state = self.stage.state();
        if state.phases[self.thread] == Phase::Waiting {
            state.phases[self.thread] = Phase::Ready;
        }
    }
}

impl Layer for Stage {
    fn block_on(&self, clock: &dyn Clock, mut wait: Pin<&mut dyn Future<Output = ()>>) {
        let Some(me) = ME.get() else { return clock.block_on(wait) };
        let waker = Waker::from(Arc::new(Woken { stage: self.clone(), thread: me }));
        let mut context = Context::from_waker(&waker);
        while wait.as_mut().poll(&mut context).is_pending() {
            if !self.block(me) {
                clock.sleep(Duration::from_secs(1));
            }
        }
    }
}
