//! Queries of devices that do not return.
//!
//! Some operations ask every disk or volume of the node. One that no longer answers must not stop all of them: while an
//! earlier query of a device hangs, the device is not asked again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use os::{OsError, OsResult, Time};

use crate::windows::Host;

/// How long a query may take before the device counts as one that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The queries that are running: their numbers and when they began, by device.
#[derive(Default)]
pub(crate) struct DeviceQueries(Mutex<Running>);

#[derive(Default)]
struct Running {
    next_id: u64,
    by_device: HashMap<String, Vec<(u64, Time)>>,
}

impl DeviceQueries {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running query. Dropping it ends it.
pub(crate) struct DeviceQuery<'a> {
    queries: &'a DeviceQueries,
    device: String,
    id: u64,
}

impl Host {
    /// Begins a query of one of many devices. Fails with `SEM_TIMEOUT` while an earlier query of it hangs.
    pub(crate) fn begin_query(&self, device: String) -> OsResult<DeviceQuery<'_>> {
        let (queries, now) = (self.device_queries(), self.clock().now());
        let mut running = queries.running();
        let earlier = running.by_device.entry(device.clone()).or_default();
        if earlier.iter().any(|(_, since)| now - *since > PATIENCE) {
            tracing::warn!(device, "left out a device that does not answer an earlier query");
            return Err(OsError::SEM_TIMEOUT);
        }
        running.next_id += 1;
        let id = running.next_id;
        running.by_device.entry(device.clone()).or_default().push((id, now));
        Ok(DeviceQuery { queries, device, id })
    }
}

impl Drop for DeviceQuery<'_> {
    fn drop(&mut self) {
        let mut running = self.queries.running();
        let Some(of_device) = running.by_device.get_mut(&self.device) else { return };
        of_device.retain(|(id, _)| *id != self.id);
        if of_device.is_empty() {
            running.by_device.remove(&self.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use os::OsError;

    use crate::Timeouts;
    use crate::windows::Host;

    #[test]
    fn a_device_is_left_out_while_an_earlier_query_of_it_hangs() {
        let sim = os_sim::node().build();
        let host = Host::new(sim.process(), Timeouts::default());
        let query = |device: &str| host.begin_query(device.into());
        let (hung, quick) = (query("a").unwrap(), query("a").unwrap());
        drop(quick);
        assert!(query("a").is_ok(), "it may still answer");
        sim.advance(Duration::from_secs(6));
        assert_eq!(query("a").err(), Some(OsError::SEM_TIMEOUT));
        assert!(query("b").is_ok());
        drop(hung);
        assert!(query("a").is_ok());
        assert!(host.device_queries().running().by_device.is_empty());
    }
}
