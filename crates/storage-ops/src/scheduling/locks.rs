//! Locks on the objects of a node, granted in the order of the requests.
//!
//! An operation requests all its locks at once: it joins the queue of each key in one step and runs
//! when no earlier request in any of them conflicts with it. Therefore locks cannot deadlock (threads
//! cannot, because an operation that waits for a pool holds no thread), and conflicting requests for a key are granted in order. A lock on a path also covers everything
//! below it: it is exclusive for the path and shared for the directories above. A lock belongs to
//! its [`Guard`] and not to a thread: a call of Windows that outlives the operation can keep the
//! guard.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use crate::sync::{Arc, Mutex, lock};
use crate::types::DiskNumber;

/// An object that an operation locks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKey {
    /// A path with everything below it, in the form of `HostPath::key`.
    Path(String),
    /// An SMB share, `\\host\share` in lower case.
    Share(String),
    /// An iSCSI target portal, `address:port` in lower case.
    TargetPortal(String),
    /// An iSCSI target, by its name in lower case.
    Target(String),
    /// The iSCSI initiator's own settings.
    Initiator,
    /// A Windows service, by its name in lower case.
    Service(String),
    /// A disk, by its number, with all volumes on it.
    Disk(DiskNumber),
    /// The search for new disks: only one [`Rescan`](crate::Rescan) runs at a time.
    Rescan,
}

impl LockKey {
    /// Returns the directories above a path.
    fn parents(&self) -> impl Iterator<Item = Self> + use<'_> {
        let path = if let Self::Path(path) = self {
            path
        } else {
            ""
        };
        path.match_indices('\\')
            .map(|(end, _)| Self::Path(path[..end].to_owned()))
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "path {path}"),
            Self::Share(share) => write!(f, "share {share}"),
            Self::TargetPortal(portal) => write!(f, "target portal {portal}"),
            Self::Target(target) => write!(f, "target {target}"),
            Self::Initiator => f.write_str("iSCSI initiator"),
            Self::Service(service) => write!(f, "service {service}"),
            Self::Disk(number) => number.fmt(f),
            Self::Rescan => f.write_str("rescan"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LockMode {
    Shared,
    Exclusive,
}

/// The requests for one key, in order.
type Queue = VecDeque<(u64, LockMode)>;

/// Returns how many requests at the head of the queue are granted: one that is exclusive, or all
/// that are shared up to the first exclusive one.
fn granted(queue: &Queue) -> usize {
    match queue
        .iter()
        .position(|(_, mode)| *mode == LockMode::Exclusive)
    {
        Some(0) => 1,
        Some(shared) => shared,
        None => queue.len(),
    }
}

/// Removes the request `id` from the queue. Returns the requests that are granted by this: the
/// requests that were granted before have been woken already.
fn remove(queue: &mut Queue, id: u64) -> impl Iterator<Item = u64> {
    let mut granted_before = granted(queue);
    if let Some(at) = queue.iter().position(|(other, _)| *other == id) {
        queue.remove(at);
        granted_before -= usize::from(at < granted_before);
    }
    let newly_granted = queue.iter().take(granted(queue)).skip(granted_before);
    newly_granted.map(|(id, _)| *id)
}

/// On whose behalf locks are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The number of the request for the operation.
    pub(crate) request: u64,
    /// The number of the call that made it.
    pub(crate) call: Option<u64>,
}

#[derive(Default)]
struct Table {
    queues: HashMap<LockKey, Queue>,
    /// The owners of the requests in the queues, and whether the operation of an owner has ended.
    owners: HashMap<u64, (Owner, bool)>,
    wakers: HashMap<u64, Waker>,
    next: u64,
}

/// A request in the queue of a key.
pub(crate) struct QueuedRequest {
    pub(crate) number: u64,
    /// The number of the call that made it.
    pub(crate) call: Option<u64>,
    /// Whether its operation has ended.
    pub(crate) is_outlived: bool,
}

/// A key that requests have or wait for.
pub(crate) struct KeyUse {
    pub(crate) key: LockKey,
    pub(crate) granted: Vec<QueuedRequest>,
    pub(crate) waiting: Vec<QueuedRequest>,
    /// Whether the granted request excludes all others.
    pub(crate) is_exclusive: bool,
}

/// All locks of one node.
#[derive(Clone, Default)]
pub(crate) struct Locks(Arc<Mutex<Table>>);

impl Locks {
    /// Requests `keys` on behalf of no operation, as [`Self::acquire_for`] does.
    pub(crate) fn acquire(&self, keys: Vec<LockKey>) -> Acquire {
        self.join(None, keys)
    }

    /// Joins the queues of `keys`. The future is ready when the caller is granted all of them.
    pub(crate) fn acquire_for(&self, owner: Owner, keys: Vec<LockKey>) -> Acquire {
        self.join(Some(owner), keys)
    }

    fn join(&self, owner: Option<Owner>, keys: Vec<LockKey>) -> Acquire {
        let parents: Vec<LockKey> = keys.iter().flat_map(LockKey::parents).collect();
        let mut modes: BTreeMap<LockKey, LockMode> = parents
            .into_iter()
            .map(|key| (key, LockMode::Shared))
            .collect();
        modes.extend(keys.into_iter().map(|key| (key, LockMode::Exclusive)));
        let mut table = lock(&self.0);
        let id = table.next;
        table.next += 1;
        for (key, mode) in &modes {
            table
                .queues
                .entry(key.clone())
                .or_default()
                .push_back((id, *mode));
        }
        if let Some(owner) = owner {
            table.owners.insert(id, (owner, false));
        }
        drop(table);
        Acquire(Some(Guard {
            locks: self.clone(),
            id,
            owner,
            keys: modes,
        }))
    }

    /// Notes that the operation of `owner` has ended. Calls of Windows that outlive the operation
    /// still hold its locks.
    pub(crate) fn end(&self, owner: Owner) {
        let mut table = lock(&self.0);
        for (_, has_ended) in table
            .owners
            .values_mut()
            .filter(|(other, _)| *other == owner)
        {
            *has_ended = true;
        }
    }

    /// Returns the number of keys that are locked or requested.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).queues.len()
    }

    /// Returns whether a request has locked `key`, which is not a directory above a locked path.
    pub(crate) fn is_locked(&self, key: &LockKey) -> bool {
        lock(&self.0).queues.contains_key(key)
    }

    /// Returns all keys that are locked or requested, in order.
    pub(crate) fn in_use(&self) -> Vec<KeyUse> {
        let table = lock(&self.0);
        let one = |(key, queue): (&LockKey, &Queue)| {
            let request = |(id, _): &(u64, LockMode)| {
                let (call, is_outlived) = table
                    .owners
                    .get(id)
                    .map_or((None, false), |(owner, has_ended)| (owner.call, *has_ended));
                QueuedRequest {
                    number: *id,
                    call,
                    is_outlived,
                }
            };
            let mut granted: Vec<QueuedRequest> = queue.iter().map(request).collect();
            let waiting = granted.split_off(self::granted(queue));
            let is_exclusive = queue
                .front()
                .is_some_and(|(_, mode)| *mode == LockMode::Exclusive);
            KeyUse {
                key: key.clone(),
                granted,
                waiting,
                is_exclusive,
            }
        };
        let mut keys: Vec<KeyUse> = table.queues.iter().map(one).collect();
        drop(table);
        keys.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        keys
    }
}

/// A request for locks. Dropping it removes it from the queues.
pub(crate) struct Acquire(Option<Guard>);

impl Acquire {
    /// Returns the number of the request.
    pub(crate) fn number(&self) -> u64 {
        self.0.as_ref().expect("asked before it was ready").id
    }
}

impl Future for Acquire {
    type Output = Guard;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Guard> {
        let guard = self.0.take().expect("polled after it was ready");
        let mut table = lock(&guard.locks.0);
        let is_granted = guard.keys.keys().all(|key| {
            let queue = &table.queues[key];
            queue
                .iter()
                .take(granted(queue))
                .any(|(id, _)| *id == guard.id)
        });
        if is_granted {
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

/// Acquired locks. Dropping the guard releases them and wakes the requests that are then granted.
pub(crate) struct Guard {
    locks: Locks,
    id: u64,
    owner: Option<Owner>,
    keys: BTreeMap<LockKey, LockMode>,
}

impl Guard {
    /// Returns whether `key` is locked.
    pub(crate) fn covers(&self, key: &LockKey) -> bool {
        self.keys.get(key) == Some(&LockMode::Exclusive)
    }

    /// Returns the disk that is locked.
    pub(crate) fn disk(&self) -> Option<DiskNumber> {
        self.keys.keys().find_map(|key| match key {
            LockKey::Disk(number) => Some(*number),
            _ => None,
        })
    }

    /// Returns the locks of more keys, for the same owner, unless another request has or waits for
    /// one of them.
    pub(crate) fn try_acquire_more(&self, keys: Vec<LockKey>) -> Option<Self> {
        let acquire = pin!(self.locks.join(self.owner, keys));
        match acquire.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(guard) => Some(guard),
            Poll::Pending => None,
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut table = lock(&self.locks.0);
        table.wakers.remove(&self.id);
        table.owners.remove(&self.id);
        let mut woken = Vec::new();
        for key in self.keys.keys() {
            let Table { queues, wakers, .. } = &mut *table;
            let Some(queue) = queues.get_mut(key) else {
                continue;
            };
            let granted = remove(queue, self.id);
            woken.extend(granted.filter_map(|id| wakers.get(&id)).cloned());
            if queue.is_empty() {
                queues.remove(key);
            }
        }
        drop(table);
        woken.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::{LockKey, LockMode, Locks, Owner, Queue, lock, remove};
    use crate::types::DiskNumber;
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    fn ready<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn disk() -> Vec<LockKey> {
        vec![LockKey::Disk(DiskNumber(1))]
    }

    #[test]
    fn a_lock_that_is_free_is_taken_without_waiting_and_one_that_is_not_stays_as_it_is() {
        let locks = Locks::default();
        let acquired = pin!(locks.acquire(Vec::new()));
        let none = ready(acquired).expect("it has no keys");
        let guard = none.try_acquire_more(disk()).expect("the lock is free");
        assert!(none.try_acquire_more(disk()).is_none());
        drop(guard);
        assert_eq!(locks.len(), 0, "the failed attempt is not queued");
        assert!(none.try_acquire_more(disk()).is_some());
    }

    #[test]
    fn a_lock_belongs_to_its_next_owner_from_the_moment_that_it_is_released() {
        let locks = Locks::default();
        let owners = [1, 2].map(|call| Owner {
            request: call + 10,
            call: Some(call),
        });
        let [one, two] =
            owners.map(|owner| locks.acquire_for(owner, vec![LockKey::Disk(DiskNumber(1))]));
        let mut one = pin!(one);
        let guard = ready(one.as_mut()).expect("the lock is free");
        let calls = || {
            let [key] = &locks.in_use()[..] else {
                panic!("one key")
            };
            [&key.granted, &key.waiting]
                .map(|all| all.iter().filter_map(|one| one.call).collect::<Vec<_>>())
        };
        assert_eq!(calls(), [vec![1], vec![2]]);
        locks.end(owners[0]);
        assert!(
            locks.in_use()[0].granted[0].is_outlived && !locks.in_use()[0].waiting[0].is_outlived,
            "a call of Windows has kept it"
        );
        drop(guard);
        assert_eq!(
            calls(),
            [vec![2], vec![]],
            "also before the next owner has noticed it"
        );
        drop(two);
        assert!(locks.in_use().is_empty() && lock(&locks.0).owners.is_empty());
    }

    fn path(text: &str) -> Vec<LockKey> {
        vec![LockKey::Path(text.to_owned())]
    }

    #[test]
    fn a_path_is_locked_with_everything_below_it() {
        let locks = Locks::default();
        let mut one = pin!(locks.acquire(path(r"C:\A\ONE")));
        let mut two = pin!(locks.acquire(path(r"C:\A\TWO")));
        let (one, two) = (
            ready(one.as_mut()).expect("free"),
            ready(two.as_mut()).expect("beside the first"),
        );
        let mut parent = pin!(locks.acquire(path(r"C:\A")));
        let mut child = pin!(locks.acquire(path(r"C:\A\ONE\CHILD")));
        let mut other = pin!(locks.acquire(path(r"C:\AB")));
        assert!(
            ready(other.as_mut()).is_some(),
            "a name that only begins like the other"
        );
        drop(one);
        assert!(
            ready(parent.as_mut()).is_none(),
            "the other path is still locked"
        );
        drop(two);
        assert!(
            ready(child.as_mut()).is_none(),
            "the parent was requested earlier"
        );
        drop(ready(parent.as_mut()).expect("nothing below is locked"));
        assert!(ready(child.as_mut()).is_some());
        assert_eq!(locks.len(), 0);
    }

    fn mode(request: char) -> LockMode {
        match request {
            'S' => LockMode::Shared,
            _ => LockMode::Exclusive,
        }
    }

    #[test]
    fn the_removal_of_a_request_grants_only_requests_that_waited() {
        // Each request is shared (S) or exclusive (X), and its number is its position.
        for (requests, removed, granted) in [
            ("XSSX", 0, &[1, 2][..]),
            ("SXS", 0, &[1]),
            ("SSX", 0, &[]),
            ("SXSS", 1, &[2, 3]),
            ("XS", 1, &[]),
        ] {
            let mut queue: Queue = (0..).zip(requests.chars().map(mode)).collect();
            let newly_granted: Vec<_> = remove(&mut queue, removed).collect();
            assert_eq!(newly_granted, granted, "{requests} without {removed}");
        }
    }

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_the_requests_that_are_then_granted_are_woken() {
        let locks = Locks::default();
        let mut holder = pin!(locks.acquire(path(r"C:\A\ONE")));
        let holder = ready(holder.as_mut()).expect("free");
        let mut passer = pin!(locks.acquire(path(r"C:\A\TWO")));
        let passer = ready(passer.as_mut()).expect("beside the first");
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut waits: Vec<_> = (0..10)
            .map(|_| Box::pin(locks.acquire(path(r"C:\A\ONE"))))
            .collect();
        for wait in &mut waits {
            assert!(
                wait.as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        drop(passer);
        assert_eq!(
            count.0.load(Ordering::Relaxed),
            0,
            "the path beside it concerns none of them"
        );
        drop(holder);
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "the first of them");
    }
}
