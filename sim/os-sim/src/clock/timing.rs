//! How long operations take on a simulated node.

use std::time::Duration;

use serde::Deserialize;

/// How long operations take, in simulated time. Those without a field take none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// From the creation of a partition, or from its disk coming online, to the arrival of its volume.
    pub volume_arrival: Duration,
    /// A WMI query.
    pub query: Duration,
    /// `MSFT_Disk.Initialize`.
    pub initialize: Duration,
    /// `MSFT_Disk.CreatePartition`.
    pub create_partition: Duration,
    /// `MSFT_Volume.Format`.
    pub format: Duration,
    /// `MSFT_Partition.Resize`.
    pub resize: Duration,
    /// `MSFT_Disk.Online` and `Offline`.
    pub set_online: Duration,
    /// `UpdateHostStorageCache`, and a rescan of a storage port.
    pub rescan: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            volume_arrival: Duration::from_millis(150),
            query: Duration::ZERO,
            initialize: Duration::from_millis(500),
            create_partition: Duration::from_secs(1),
            format: Duration::from_secs(2),
            resize: Duration::from_millis(500),
            set_online: Duration::from_millis(100),
            rescan: Duration::from_millis(200),
        }
    }
}
