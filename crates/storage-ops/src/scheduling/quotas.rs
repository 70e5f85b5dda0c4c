//! Quotas of the threads of a pool, for resources and for connections.

use std::collections::HashMap;
use std::hash::Hash;

use crate::scheduling::pool_kind::Resource;

/// The number of a connection to a server, or of another sender of requests. The quotas apply to
/// each number by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The resource and the connection that a thread works for. Without a resource or a connection, the
/// quota for it does not apply.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) resource: Option<Resource>,
    pub(crate) connection: Option<ConnectionId>,
    /// Whether the quotas do not apply, because the operation has begun a change. The thread counts
    /// nevertheless.
    pub(crate) is_exempt: bool,
}

/// How many threads of a pool are in use, and for whom.
///
/// A resource or connection without a thread may take any free thread. A resource that holds a
/// thread already may take further threads only from a quarter of the pool, which all such
/// resources share; a connection that holds a thread, only from half of the pool, which all such
/// connections share. So a few slow resources, or a few connections with many requests, leave
/// threads to other resources and connections.
///
/// The server's gate for calls leaves more, because it refuses a call that waits too long. Here an
/// operation waits, and the connection that has the fewest threads gets the next thread.
pub(crate) struct Usage {
    capacity: usize,
    in_use: usize,
    by_resource: Holdings<Resource>,
    by_connection: Holdings<ConnectionId>,
}

impl Usage {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            in_use: 0,
            by_resource: Holdings::new(capacity / 4),
            by_connection: Holdings::new(capacity / 2),
        }
    }

    /// Returns how many threads are in use.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Returns whether `holder` may have one more.
    pub(crate) fn admits(&self, holder: &Holder) -> bool {
        let is_within_quotas = || {
            self.by_resource.admits(holder.resource.as_ref())
                && self.by_connection.admits(holder.connection.as_ref())
        };
        self.in_use < self.capacity && (holder.is_exempt || is_within_quotas())
    }

    /// Returns what `holder` waits for, if it may have no thread of the pool with this name.
    pub(crate) fn wait(&self, holder: &Holder, pool: &str) -> String {
        let (who, held) = match &holder.resource {
            _ if self.in_use >= self.capacity => {
                return format!(
                    "waiting: all {} threads of pool {pool} are in use",
                    self.in_use
                );
            }
            _ if self.admits(holder) => return format!("waiting for a thread of pool {pool}"),
            Some(resource) if !self.by_resource.admits(Some(resource)) => {
                (resource.to_string(), self.by_resource.held(Some(resource)))
            }
            _ => ("the connection".to_owned(), self.of_connection(holder)),
        };
        format!(
            "waiting: {who} already uses its {held} of the {} threads of pool {pool}",
            self.capacity
        )
    }

    /// Returns how many threads the connection of `holder` has; 0 if the quotas do not apply to
    /// `holder`, which lets it go first.
    pub(crate) fn of_connection(&self, holder: &Holder) -> usize {
        if holder.is_exempt {
            0
        } else {
            self.by_connection.held(holder.connection.as_ref())
        }
    }

    pub(crate) fn add(&mut self, holder: &Holder) {
        self.in_use += 1;
        self.by_resource.add(holder.resource.as_ref());
        self.by_connection.add(holder.connection.as_ref());
    }

    pub(crate) fn remove(&mut self, holder: &Holder) {
        self.in_use -= 1;
        self.by_resource.remove(holder.resource.as_ref());
        self.by_connection.remove(holder.connection.as_ref());
    }
}

/// How many threads each holder has, and how many all holders have beyond the first of each.
struct Holdings<K> {
    held: HashMap<K, usize>,
    beyond_first: usize,
    capacity: usize,
}

impl<K: Clone + Eq + Hash> Holdings<K> {
    fn new(capacity: usize) -> Self {
        Self {
            held: HashMap::new(),
            beyond_first: 0,
            capacity,
        }
    }

    fn admits(&self, holder: Option<&K>) -> bool {
        self.beyond_first < self.capacity || self.held(holder) == 0
    }

    fn held(&self, holder: Option<&K>) -> usize {
        holder
            .and_then(|holder| self.held.get(holder))
            .copied()
            .unwrap_or_default()
    }

    fn add(&mut self, holder: Option<&K>) {
        let Some(holder) = holder else { return };
        let held = self.held.entry(holder.clone()).or_default();
        self.beyond_first += usize::from(*held > 0);
        *held += 1;
    }

    fn remove(&mut self, holder: Option<&K>) {
        let Some(holder) = holder else { return };
        let Some(held) = self.held.get_mut(holder) else {
            return;
        };
        *held -= 1;
        if *held == 0 {
            self.held.remove(holder);
        } else {
            self.beyond_first -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionId, Holder, Usage};
    use crate::scheduling::pool_kind::Resource;
    use crate::types::DiskNumber;

    fn holder(disk: u32, connection: u64) -> Holder {
        Holder {
            resource: Some(Resource::Disk(DiskNumber(disk))),
            connection: Some(ConnectionId(connection)),
            is_exempt: false,
        }
    }

    /// Adds as many as `usage` admits of `holder`, and returns how many.
    fn fill(usage: &mut Usage, holder: &Holder) -> usize {
        let mut count = 0;
        while usage.admits(holder) {
            usage.add(holder);
            count += 1;
        }
        count
    }

    #[test]
    fn two_connections_leave_something_to_the_others_however_many_resources_they_use() {
        let mut usage = Usage::new(16);
        let counts: [usize; 3] = [1, 2, 3].map(|connection| {
            (0..100)
                .map(|disk| fill(&mut usage, &holder(disk, connection)))
                .sum()
        });
        assert_eq!(counts, [9, 1, 1]);
    }

    fn wait(usage: &Usage, disk: u32, connection: u64) -> String {
        usage.wait(&holder(disk, connection), "disks")
    }

    #[test]
    fn the_words_for_a_wait_agree_with_the_numbers_of_the_pool() {
        let mut usage = Usage::new(16);
        fill(&mut usage, &holder(5, 1));
        assert_eq!(
            wait(&usage, 5, 2),
            "waiting: disk 5 already uses its 5 of the 16 threads of pool disks"
        );
        assert_eq!(wait(&usage, 6, 2), "waiting for a thread of pool disks");
        let exempt = Holder {
            is_exempt: true,
            ..holder(5, 2)
        };
        assert_eq!(
            usage.wait(&exempt, "disks"),
            "waiting for a thread of pool disks"
        );
        (100..200).for_each(|disk| _ = fill(&mut usage, &holder(disk, 1)));
        assert_eq!(
            wait(&usage, 7, 1),
            "waiting: the connection already uses its 9 of the 16 threads of pool disks"
        );
        (200..300).for_each(|disk| _ = fill(&mut usage, &holder(disk, disk.into())));
        assert_eq!(
            wait(&usage, 8, 3),
            "waiting: all 16 threads of pool disks are in use"
        );
    }

    #[test]
    fn what_is_removed_can_be_used_again() {
        let mut usage = Usage::new(16);
        for _ in 0..3 {
            assert_eq!(fill(&mut usage, &holder(1, 1)), 5);
            (0..5).for_each(|_| usage.remove(&holder(1, 1)));
        }
        assert_eq!(
            (
                usage.in_use,
                usage.by_connection.beyond_first,
                usage.by_resource.held.len()
            ),
            (0, 0, 0)
        );
        assert_eq!(
            fill(
                &mut usage,
                &Holder {
                    resource: None,
                    connection: None,
                    is_exempt: false
                }
            ),
            16
        );
    }
}
