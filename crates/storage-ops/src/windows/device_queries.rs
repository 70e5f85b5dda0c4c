//! Queries of devices that do not return.
//!
//! Some operations ask every disk or volume of the node. One that no longer answers must not stop all of them, nor take a
//! thread of each: a device is asked one query at a time, and while an earlier query of it hangs, it is not asked again. So
//! such a device delays others for at most [`PATIENCE`], and then keeps one thread. The volumes of a disk count as one
//! device, because they hang together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use os::{Clock, OsError, OsResult, Time};
use tokio::sync::Notify;

use crate::types::{DiskNumber, VolumeId};
use crate::windows::Host;

/// How long a query may take before the device counts as one that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The queries that are running.
#[derive(Default)]
pub(crate) struct DeviceQueries {
    /// When the query of a device began.
    running: Mutex<HashMap<String, Time>>,
    /// Notified when a query ends.
    ended: Notify,
    /// The disk that each volume was on when it last answered.
    disks: Mutex<HashMap<VolumeId, DiskNumber>>,
}

impl DeviceQueries {
    fn running(&self) -> MutexGuard<'_, HashMap<String, Time>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the device that `volume` counts as.
    pub(crate) fn device_of(&self, volume: VolumeId) -> String {
        self.disks().get(&volume).map_or_else(|| volume.to_string(), |disk| format!("the volumes of {disk}"))
    }

    /// Records that `volume` is on the disk.
    pub(crate) fn record(&self, volume: VolumeId, disk: DiskNumber) {
        self.disks().insert(volume, disk);
    }

    /// Forgets all volumes but `existing`.
    pub(crate) fn forget_others(&self, existing: &[VolumeId]) {
        self.disks().retain(|volume, _| existing.contains(volume));
    }

    fn disks(&self) -> MutexGuard<'_, HashMap<VolumeId, DiskNumber>> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a query. If one of that device is running, returns when that one counts as hanging; fails with `SEM_TIMEOUT`
    /// if it does already.
    fn begin(&self, device: &str, clock: &dyn Clock) -> OsResult<Option<Time>> {
        let mut running = self.running();
        let now = clock.now();
        match running.entry(device.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(now);
                Ok(None)
            }
            Entry::Occupied(entry) if now - *entry.get() >= PATIENCE => Err(OsError::SEM_TIMEOUT),
            Entry::Occupied(entry) => Ok(Some(*entry.get() + PATIENCE)),
        }
    }
}

/// A running query. Dropping it ends it.
pub(crate) struct DeviceQuery<'a> {
    queries: &'a DeviceQueries,
    device: String,
}

impl Host {
    /// Begins a query of one of many devices when the earlier ones of it have ended. Fails with `SEM_TIMEOUT` if one of them
    /// hangs.
    pub(crate) fn begin_query(&self, device: String) -> OsResult<DeviceQuery<'_>> {
        let (queries, clock) = (self.device_queries(), self.clock());
        loop {
            let mut ended = pin!(queries.ended.notified());
            // Registers before the check, so that an end between the check and the wait is not missed.
            ended.as_mut().enable();
            let begun = queries.begin(&device, clock).inspect_err(|_| {
                tracing::warn!(device, "left out a device that does not answer an earlier query");
            });
            let Some(deadline) = begun? else { return Ok(DeviceQuery { queries, device }) };
            let wait = |context: &mut Context<'_>| {
                if clock.now() >= deadline { Poll::Ready(()) } else { ended.as_mut().poll(context) }
            };
            clock.block_on(pin!(poll_fn(wait)));
        }
    }
}

impl Drop for DeviceQuery<'_> {
    fn drop(&mut self) {
        self.queries.running().remove(&self.device);
        self.queries.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use os::OsError;

    use crate::Timeouts;
    use crate::windows::Host;

    #[test]
    fn a_device_is_left_out_while_an_earlier_query_of_it_hangs() {
        let sim = os_sim::node().build().held();
        let host = Host::new(sim.process(), Timeouts::default());
        let query = |device: &str| host.begin_query(device.into());
        drop(query("a").unwrap());
        let hung = query("a").unwrap();
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..8).map(|_| scope.spawn(|| query("a").err())).collect();
            sim.advance(Duration::from_secs(4));
            assert!(query("b").is_ok());
            sim.advance(Duration::from_secs(2));
            for one in waiting {
                assert_eq!(one.join().unwrap(), Some(OsError::SEM_TIMEOUT));
            }
        });
        assert_eq!(query("a").err(), Some(OsError::SEM_TIMEOUT));
        drop(hung);
        assert!(query("a").is_ok());
        assert!(host.device_queries().running().is_empty());
    }

    #[test]
    fn a_device_that_answers_slowly_is_asked_one_query_at_a_time_and_left_out_of_none() {
        let sim = os_sim::node().build();
        let host = Host::new(sim.process(), Timeouts::default());
        let running = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|| {
                    let _query = host.begin_query("a".into()).unwrap();
                    assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                    host.clock().sleep(Duration::from_secs(1));
                    thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!(host.device_queries().running().is_empty());
    }
}
