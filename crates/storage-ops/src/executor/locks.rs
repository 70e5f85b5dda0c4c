//! Locks on the objects of a node, waited for in the order of arrival.
//!
//! An operation takes all its locks at once: it joins the queues of all its objects in one step and runs when it
//! heads them all. So no two operations can wait for each other, and none is overtaken. A lock is not bound to a
//! thread: it goes where its [`Guard`] goes, and stays with a job of Windows that outlives the operation.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What operations exclude each other on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKey {
    /// A path, in one spelling.
    Path(String),
    /// An SMB share, `\\host\share` in lower case.
    Share(String),
    /// An iSCSI target portal, `address:port` in lower case.
    TargetPortal(String),
    /// The iSCSI initiator's own settings.
    Initiator,
    /// A Windows service, in lower case.
    Service(String),
    /// A disk and all volumes on it.
    Disk(u32),
    /// The search for new devices.
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
    /// Joins the queues of `objects`; the future is ready when the caller heads them all.
    pub(crate) fn acquire(&self, mut objects: Vec<LockKey>) -> Acquire {
        objects.sort_unstable();
        objects.dedup();
        let mut table = self.table();
        let id = table.next;
        table.next += 1;
        for object in &objects {
            table.queues.entry(object.clone()).or_default().push_back(id);
        }
        drop(table);
        Acquire(Some(Guard { locks: self.clone(), id, objects }))
    }

    /// How many objects are locked or waited for.
    pub(crate) fn held(&self) -> usize {
        self.table().queues.len()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing in here can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waiting for locks; dropping it leaves the queues.
pub(crate) struct Acquire(Option<Guard>);

impl Future for Acquire {
    type Output = Guard;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Guard> {
        let guard = self.0.take().expect("polled after it was ready");
        let mut table = guard.locks.table();
        let heads_all = guard.objects.iter().all(|object| table.queues[object].front() == Some(&guard.id));
        if heads_all {
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

/// Locks held; dropping it lets the next in each queue go on.
pub(crate) struct Guard {
    locks: Locks,
    id: u64,
    objects: Vec<LockKey>,
}

impl Guard {
    /// Whether `object` is among the locked.
    pub(crate) fn covers(&self, object: &LockKey) -> bool {
        self.objects.contains(object)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut table = self.locks.table();
        table.wakers.remove(&self.id);
        let mut woken = Vec::new();
        for object in &self.objects {
            let Some(queue) = table.queues.get_mut(object) else { continue };
            queue.retain(|id| *id != self.id);
            match queue.front().copied() {
                None => drop(table.queues.remove(object)),
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
    fn a_lock_is_given_in_the_order_of_arrival() {
        let locks = Locks::default();
        let disk = || vec![LockKey::Disk(1)];
        let (mut a, mut b, mut c) =
            (pin!(locks.acquire(disk())), pin!(locks.acquire(disk())), pin!(locks.acquire(disk())));
        assert_eq!(locks.held(), 1, "one object, however many wait for it");
        let guard = ready(a.as_mut()).expect("nobody holds it");
        assert!(ready(c.as_mut()).is_none() && ready(b.as_mut()).is_none());
        drop(guard);
        assert!(ready(c.as_mut()).is_none(), "b came first");
        drop(ready(b.as_mut()).expect("it is b's turn"));
        assert!(ready(c.as_mut()).is_some());
        assert_eq!(locks.held(), 0);
    }

    #[test]
    fn overlapping_sets_in_any_order_do_not_deadlock() {
        let locks = Locks::default();
        let (path, disk) = (LockKey::Path("C:\\X".into()), LockKey::Disk(1));
        let mut a = pin!(locks.acquire(vec![path.clone(), disk.clone()]));
        let mut b = pin!(locks.acquire(vec![disk, path]));
        assert_eq!(locks.held(), 2);
        let guard = ready(a.as_mut()).expect("a heads both queues");
        assert!(ready(b.as_mut()).is_none());
        drop(guard);
        assert!(ready(b.as_mut()).is_some());
    }

    #[test]
    fn whoever_stops_waiting_leaves_the_queue() {
        let locks = Locks::default();
        let mut a = pin!(locks.acquire(vec![LockKey::Disk(1)]));
        let guard = ready(a.as_mut()).unwrap();
        drop(locks.acquire(vec![LockKey::Disk(1)]));
        drop(guard);
        assert_eq!(locks.held(), 0);
    }
}
