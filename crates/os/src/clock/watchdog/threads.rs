//! The threads that run watched work. One that has nothing to do is kept for a while, because to start a thread costs more
//! than most work.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread waits for the next job before it ends.
const IDLE: Duration = Duration::from_secs(10);

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// As many threads as jobs run at once, and those that have become idle in the last seconds.
pub(super) struct Threads {
    state: Mutex<State>,
    job_waits: Condvar,
}

struct State {
    /// The jobs that no thread has taken yet. Each has a thread that will: an idle one, or one that starts.
    jobs: VecDeque<Job>,
    /// How many threads wait for a job.
    idle: usize,
}

impl Threads {
    pub(super) const fn new() -> Self {
        Self { state: Mutex::new(State { jobs: VecDeque::new(), idle: 0 }), job_waits: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `job`, which must not panic, on another thread. Returns it if the system cannot create one.
    pub(super) fn run(&'static self, job: Job) -> Result<(), Job> {
        let mut state = self.state();
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle {
            self.job_waits.notify_one();
            return Ok(());
        }
        // Under the lock, so that the last job is this one.
        let started = thread::Builder::new().name("device-query".to_owned()).spawn(|| self.run_jobs());
        match started {
            Ok(_) => Ok(()),
            Err(_) => state.jobs.pop_back().map_or(Ok(()), Err),
        }
    }

    /// Runs jobs until none has come for a while.
    fn run_jobs(&self) {
        let mut state = self.state();
        loop {
            while let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state();
            }
            state.idle += 1;
            let (woken, waited) = self
                .job_waits
                .wait_timeout_while(state, IDLE, |state| state.jobs.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};

    use super::Threads;

    /// Runs a job that sends the id of its thread and ends when the returned sender is dropped.
    fn run(threads: &'static Threads) -> (mpsc::Receiver<ThreadId>, mpsc::Sender<()>) {
        let (send, receive) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let job = move || {
            send.send(thread::current().id()).unwrap();
            let _ = ended.recv();
        };
        assert!(threads.run(Box::new(job)).is_ok(), "no thread");
        (receive, end)
    }

    fn wait_for_idle(threads: &Threads, count: usize) {
        while threads.state().idle < count {
            thread::yield_now();
        }
    }

    #[test]
    fn each_job_has_a_thread_of_its_own_and_the_next_jobs_have_the_same() {
        static THREADS: Threads = Threads::new();
        let mut first: Vec<_> = (0..4).map(|_| run(&THREADS)).collect();
        // They all run at once.
        let ids: Vec<_> = first.iter().map(|(id, _)| id.recv().unwrap()).collect();
        assert!(ids.iter().enumerate().all(|(index, id)| !ids[..index].contains(id)), "{ids:?}");
        first.truncate(1);
        wait_for_idle(&THREADS, 3);
        let next: Vec<_> = (0..3).map(|_| run(&THREADS)).collect();
        for (id, _) in &next {
            assert!(ids[1..].contains(&id.recv().unwrap()));
        }
        let (id, _end) = run(&THREADS);
        assert!(!ids.contains(&id.recv().unwrap()), "four jobs keep four threads busy");
    }
}
