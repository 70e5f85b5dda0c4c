//! How long operations take on a simulated node.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::description::quantity;
use crate::{iscsi, smb};

/// How long operations take, in simulated time. Operations without a field take no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timing {
    /// From the creation of a partition, or from its disk coming online, to the arrival of its volume.
    #[serde(with = "quantity::duration")]
    pub volume_arrival: Duration,
    /// From the arrival of a new volume to the time at which it can be written.
    #[serde(with = "quantity::duration")]
    pub new_volume: Duration,
    /// From the detection of a disk, or the arrival of a volume, to the time at which the storage provider knows it.
    #[serde(with = "quantity::duration")]
    pub provider: Duration,
    /// A WMI query.
    #[serde(with = "quantity::duration")]
    pub query: Duration,
    /// `MSFT_Disk.Initialize` and `Clear`.
    #[serde(with = "quantity::duration")]
    pub initialize: Duration,
    /// `MSFT_Disk.CreatePartition`.
    #[serde(with = "quantity::duration")]
    pub create_partition: Duration,
    /// `MSFT_Volume.Format`.
    #[serde(with = "quantity::duration")]
    pub format: Duration,
    /// `MSFT_Partition.Resize`.
    #[serde(with = "quantity::duration")]
    pub resize: Duration,
    /// `MSFT_Disk.Online`, `Offline` and `SetAttributes`.
    #[serde(with = "quantity::duration")]
    pub set_online: Duration,
    /// `UpdateHostStorageCache`, and a rescan of a storage port.
    #[serde(with = "quantity::duration")]
    pub rescan: Duration,
    /// How long Windows waits for an SMB server that does not answer.
    #[serde(with = "quantity::duration")]
    pub smb_timeout: Duration,
    /// How long Windows waits for an iSCSI portal that does not answer.
    #[serde(with = "quantity::duration")]
    pub iscsi_timeout: Duration,
}

impl Timing {
    /// Everything happens at once.
    pub const NONE: Self = Self {
        volume_arrival: Duration::ZERO,
        new_volume: Duration::ZERO,
        provider: Duration::ZERO,
        query: Duration::ZERO,
        initialize: Duration::ZERO,
        create_partition: Duration::ZERO,
        format: Duration::ZERO,
        resize: Duration::ZERO,
        set_online: Duration::ZERO,
        rescan: Duration::ZERO,
        smb_timeout: Duration::ZERO,
        iscsi_timeout: Duration::ZERO,
    };
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
            smb_timeout: smb::CONNECT_TIMEOUT,
            iscsi_timeout: iscsi::CONNECT_TIMEOUT,
        }
    }
}
