//! Whether the task of a connection has been woken, and waits to run.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

/// Is set when a task is woken, and cleared when it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Woken(Arc<AtomicBool>);

/// The waker of a task, which sets its flag too.
struct FlaggingWaker {
    woken: Woken,
    task: Waker,
}

impl Wake for FlaggingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.0.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl Woken {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Waits for `future`, and sets the flag for each time that it wakes its task.
    pub(crate) async fn watch<F: Future + Unpin>(&self, mut future: F) -> F::Output {
        let mut flagging: Option<(Waker, Waker)> = None;
        poll_fn(|cx| {
            let (_, waker) = match flagging.take() {
                Some(known) if known.0.will_wake(cx.waker()) => flagging.insert(known),
                _ => {
                    let task = cx.waker().clone();
                    let waker = Waker::from(Arc::new(FlaggingWaker { woken: self.clone(), task: task.clone() }));
                    flagging.insert((task, waker))
                }
            };
            self.0.store(false, Ordering::Release);
            Pin::new(&mut future).poll(&mut Context::from_waker(waker))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::Woken;

    #[test]
    fn a_task_counts_as_woken_until_it_runs() {
        let woken = Woken::default();
        let mut wakers = Vec::new();
        let mut watched = pin!(woken.watch(poll_fn(|cx| {
            assert!(!woken.get(), "it runs");
            wakers.push(cx.waker().clone());
            if wakers.len() < 3 { Poll::Pending } else { Poll::Ready(wakers.clone()) }
        })));
        let context = &mut Context::from_waker(Waker::noop());
        assert!(watched.as_mut().poll(context).is_pending());
        assert!(watched.as_mut().poll(context).is_pending());
        let Poll::Ready(wakers) = watched.as_mut().poll(context) else { panic!("it is ready") };
        assert!(!woken.get());
        wakers[0].wake_by_ref();
        assert!(woken.get());
    }
}
