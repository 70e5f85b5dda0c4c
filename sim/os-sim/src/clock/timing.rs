//! How long operations take on a simulated node.

use std::time::Duration;

use serde::Deserialize;

/// How long operations take, in simulated time. Those without a field take none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// From the creation of a partition, or from its disk coming online, to the arrival of its volume.
    pub volume_arrival: Duration,
    /// From the arrival of a new volume to the time at which it can be written.
    pub new_volume: Duration,
    /// From the detection of a disk, or the arrival of a volume, to the time at which the storage provider knows it.
    pub provider: Duration,
    /// A WMI query.
    pub query: Duration,
    /// `MSFT_Disk.Initialize` and `Clear`.
    pub initialize: Duration,
    /// `MSFT_Disk.CreatePartition`.
    pub create_partition: Duration,
    /// `MSFT_Volume.Format`.
    pub format: Duration,
    /// `MSFT_Partition.Resize`.
    pub resize: Duration,
    /// `MSFT_Disk.Online`, `Offline` and `SetAttributes`.
    pub set_online: Duration,
    /// `UpdateHostStorageCache`, and a rescan of a storage port.
    pub rescan: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            volume_arrival: Duration::from_millis(150),
            new_volume: Duration::from_millis(300),
            provider: Duration::from_millis(250),
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
