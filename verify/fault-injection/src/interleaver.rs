//! A deterministic scheduler: of all threads that run operations on a node, exactly one runs, until
//! its next call.
//!
//! A [`Schedule`] decides the order, so an interleaving can be repeated. A thread that waits for a
//! lock passes its turn. If all threads wait, only the passage of time can wake one, so simulated
//! time is advanced.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use faults::{Call, FaultAction, Layer, Layered, Probe};
use os::{Clock, Os, WatchedWork};

thread_local! {
    /// The index of this thread, if an interleaver runs it.
    static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Decides which thread runs next.
pub trait Schedule: Send {
    /// Returns one of `ready`, which is not empty. `begun` is how many calls each thread has begun.
    fn next(&mut self, ready: &[usize], begun: &[usize]) -> usize;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Ready,
    Blocked,
    Finished,
}

struct State {
    schedule: Box<dyn Schedule>,
    turn: Option<usize>,
    threads: Vec<ThreadState>,
    begun: Vec<usize>,
}

impl State {
    fn threads_in(&self, state: ThreadState) -> Vec<usize> {
        (0..self.threads.len())
            .filter(|thread| self.threads[*thread] == state)
            .collect()
    }

    fn pass_turn(&mut self) {
        let mut ready = self.threads_in(ThreadState::Ready);
        if ready.is_empty() {
            // The thread that is chosen advances simulated time.
            ready = self.threads_in(ThreadState::Blocked);
        }
        self.turn = if ready.is_empty() {
            None
        } else {
            Some(self.schedule.next(&ready, &self.begun))
        };
    }
}

/// Runs threads one at a time, in the order of a schedule.
#[derive(Clone)]
pub struct Interleaver(Arc<(Mutex<State>, Condvar)>);

impl Interleaver {
    /// Creates an interleaver of `threads` threads, none of which has started.
    pub fn new(threads: usize, schedule: impl Schedule + 'static) -> Self {
        let all_ready = vec![ThreadState::Ready; threads];
        let mut state = State {
            schedule: Box::new(schedule),
            turn: None,
            threads: all_ready,
            begun: vec![0; threads],
        };
        state.pass_turn();
        Self(Arc::new((Mutex::new(state), Condvar::new())))
    }

    /// Runs each of `tasks` on its own thread, and returns their results in the same order.
    pub fn run<T: Send>(&self, tasks: Vec<Box<dyn FnOnce() -> T + Send + '_>>) -> Vec<T> {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (me, task) in tasks.into_iter().enumerate() {
                threads.push(scope.spawn(move || {
                    THREAD.set(Some(me));
                    self.wait_for_turn(self.state(), me);
                    let result = task();
                    let mut state = self.state();
                    state.threads[me] = ThreadState::Finished;
                    state.pass_turn();
                    self.0.1.notify_all();
                    result
                }));
            }
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a task catches its panics"))
                .collect()
        })
    }

    /// Returns `inner` with a clock that passes the turn instead of blocking.
    pub fn wrap(&self, inner: Arc<dyn Os>) -> Arc<dyn Os> {
        Arc::new(Layered::around(inner, self.clone()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        os::lock(&self.0.0)
    }

    fn wait_for_turn(&self, state: MutexGuard<'_, State>, me: usize) {
        drop(
            self.0
                .1
                .wait_while(state, |state| state.turn != Some(me))
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Passes the turn, and waits until this thread may begin its next call.
    fn step(&self, me: usize) {
        let mut state = self.state();
        state.pass_turn();
        self.0.1.notify_all();
        self.wait_for_turn(state, me);
        self.state().begun[me] += 1;
    }

    /// Passes the turn until this thread is woken. Returns false if all threads are blocked.
    fn block(&self, me: usize) -> bool {
        let mut state = self.state();
        state.threads[me] = ThreadState::Blocked;
        state.pass_turn();
        self.0.1.notify_all();
        self.wait_for_turn(state, me);
        let mut state = self.state();
        let woken = state.threads[me] == ThreadState::Ready;
        state.threads[me] = ThreadState::Ready;
        woken
    }
}

impl Probe for Interleaver {
    fn before(&self, _call: &Call) -> FaultAction {
        if let Some(me) = THREAD.get() {
            self.step(me);
        }
        FaultAction::Go
    }
}

struct ThreadWaker {
    interleaver: Interleaver,
    thread: usize,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        let mut state = self.interleaver.state();
        if state.threads[self.thread] == ThreadState::Blocked {
            state.threads[self.thread] = ThreadState::Ready;
        }
    }
}

impl Layer for Interleaver {
    fn block_on(&self, clock: &dyn Clock, mut wait: Pin<&mut dyn Future<Output = ()>>) {
        let Some(me) = THREAD.get() else {
            return clock.block_on(wait);
        };
        let waker = Waker::from(Arc::new(ThreadWaker {
            interleaver: self.clone(),
            thread: me,
        }));
        let mut context = Context::from_waker(&waker);
        while wait.as_mut().poll(&mut context).is_pending() {
            if !self.block(me) {
                clock.sleep(Duration::from_secs(1));
            }
        }
    }

    /// The thread that runs `work` takes this thread's turns while this thread waits: on this clock
    /// no thread is left behind.
    fn run_watched(&self, clock: &dyn Clock, patience: Duration, work: WatchedWork) -> bool {
        let me = THREAD.get();
        clock.run_watched(
            patience,
            Box::new(move |step_ended| {
                THREAD.set(me);
                work(step_ended);
            }),
        )
    }
}
