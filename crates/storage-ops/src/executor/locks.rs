//! Locks on the objects of a node, granted in the order of the requests.
//!
//! An operation requests all its locks at once: it joins the queue of each key in one step and runs when it is first in
//! all of them. Therefore operations cannot deadlock, and the requests for a key are granted in order. A lock belongs
//! to its [`Guard`] and not to a thread: a call of Windows that outlives the operation can keep the guard.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// An object that an operation locks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKey {
    /// A path, in the form of `HostPath::key`.
    Path(String),
    /// An SMB share, `\\host\share` in lower case.
    Share(String),
    /// An iSCSI target portal, `address:port` in lower case.
    TargetPortal(String),
    /// The iSCSI initiator's own settings.
    Initiator,
    /// A Windows service, by its name in lower case.
    Service(String),
    /// A disk, by its number, with all volumes on it.
    Disk(u32),
    /// The scan for new devices.
    Devices,
}

#[derive(Default)]
struct Table {
    queues: HashMap<LockKey, VecDeque<u64>>,
    wakers: HashMap<u64, Waker>,
    next: u64,
}

/// All locks of one node.
#[derive(Clone, Default)]
pub(crate) struct Locks(Arc<Mutex<Table>>);

impl Locks {
    /// Joins the queues of `keys`. The future is ready when the caller is first in all of them.
    pub(crate) fn acquire(&self, mut keys: Vec<LockKey>) -> Acquire {
        keys.sort_unstable();
        keys.dedup();
        let mut table = self.table();
        let id = table.next;
        table.next += 1;
        for key in &keys {
            table.queues.entry(key.clone()).or_default().push_back(id);
        }
        drop(table);
        Acquire(Some(Guard { locks: self.clone(), id, keys }))
    }

    /// Returns the number of keys that are locked or requested.
    pub(crate) fn len(&self) -> usize {
        self.table().queues.len()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // No code that holds the lock can panic between two related changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request for locks. Dropping it removes it from the queues.
pub(crate) struct Acquire(Option<Guard>);

impl Future for Acquire {
    type Output = Guard;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Guard> {
        let guard = self.0.take().expect("polled after it was ready");
        let mut table = guard.locks.table();
        let is_first = guard.keys.iter().all(|key| table.queues[key].front() == Some(&guard.id));
        if is_first {
            table.wakers.remove(&guard.id);
            drop(table);
            return Poll::Ready(guard);
        }
        table.wakers.insert(guard.id, context.waker().clone());
        drop(table);
        self.0 = Some(guard);
        Poll::Pending
    }
}

/// Acquired locks. Dropping the guard releases them and wakes the next request of each queue.
pub(crate) struct Guard {
    locks: Locks,
    id: u64,
    keys: Vec<LockKey>,
}

impl Guard {
    /// Returns whether `key` is locked.
    pub(crate) fn covers(&self, key: &LockKey) -> bool {
        self.keys.contains(key)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut table = self.locks.table();
        table.wakers.remove(&self.id);
        let mut woken = Vec::new();
        for key in &self.keys {
            let Some(queue) = table.queues.get_mut(key) else { continue };
            queue.retain(|id| *id != self.id);
            match queue.front().copied() {
                None => drop(table.queues.remove(key)),
                Some(next) => woken.extend(table.wakers.get(&next).cloned()),
            }
        }
        drop(table);
        woken.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::{LockKey, Locks};
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn ready<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn locks_are_granted_in_the_order_of_the_requests() {
        let locks = Locks::default();
        let disk = || vec![LockKey::Disk(1)];
        let (mut a, mut b, mut c) =
            (pin!(locks.acquire(disk())), pin!(locks.acquire(disk())), pin!(locks.acquire(disk())));
        assert_eq!(locks.len(), 1, "one key for all requests");
        let guard = ready(a.as_mut()).expect("the lock is free");
        assert!(ready(c.as_mut()).is_none() && ready(b.as_mut()).is_none());
        drop(guard);
        assert!(ready(c.as_mut()).is_none(), "b requested it before c");
        drop(ready(b.as_mut()).expect("it is b's turn"));
        assert!(ready(c.as_mut()).is_some());
        assert_eq!(locks.len(), 0);
    }

    #[test]
    fn overlapping_sets_in_any_order_do_not_deadlock() {
        let locks = Locks::default();
        let (path, disk) = (LockKey::Path("C:\\X".into()), LockKey::Disk(1));
        let mut a = pin!(locks.acquire(vec![path.clone(), disk.clone()]));
        let mut b = pin!(locks.acquire(vec![disk, path]));
        assert_eq!(locks.len(), 2);
        let guard = ready(a.as_mut()).expect("a is first in both queues");
        assert!(ready(b.as_mut()).is_none());
        drop(guard);
        assert!(ready(b.as_mut()).is_some());
    }

    #[test]
    fn a_dropped_request_leaves_the_queue() {
        let locks = Locks::default();
        let mut a = pin!(locks.acquire(vec![LockKey::Disk(1)]));
        let guard = ready(a.as_mut()).unwrap();
        drop(locks.acquire(vec![LockKey::Disk(1)]));
        drop(guard);
        assert_eq!(locks.len(), 0);
    }
}
