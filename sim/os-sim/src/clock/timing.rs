//! How long operations take on a simulated node.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::description::quantity;

macro_rules! timing {
    ($($(#[$doc:meta])* $operation:ident = $default:expr,)*) => {
        /// How long operations take, in simulated time. Operations without a field take no time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Timing {
            $($(#[$doc])* #[serde(with = "quantity::duration")] pub $operation: Duration,)*
        }

        impl Timing {
            /// Everything happens at once.
            pub const NONE: Self = Self { $($operation: Duration::ZERO,)* };
        }

        impl Default for Timing {
            fn default() -> Self {
                Self { $($operation: $default,)* }
            }
        }
    };
}

// Each operation, and how long it takes if the node file does not say.
timing! {
    /// From the creation of a partition, or from its disk coming online, to the arrival of its
    /// volume.
    volume_arrival = Duration::from_millis(150),
    /// From the arrival of a new volume to the time at which it can be written.
    new_volume = Duration::from_millis(300),
    /// From the detection of a disk, or the arrival of a volume, to the time at which the storage
    /// provider knows it.
    provider = Duration::from_millis(250),
    /// A WMI query.
    query = Duration::ZERO,
    /// `MSFT_Disk.Initialize` and `Clear`.
    initialize = Duration::from_millis(500),
    /// `MSFT_Disk.CreatePartition`.
    create_partition = Duration::from_secs(1),
    /// `MSFT_Volume.Format`.
    format = Duration::from_secs(2),
    /// `MSFT_Partition.Resize`.
    resize = Duration::from_millis(500),
    /// `MSFT_Disk.Online`, `Offline` and `SetAttributes`.
    set_online = Duration::from_millis(100),
    /// From a disk coming online to the time at which a policy takes it offline again.
    policy = Duration::from_millis(50),
    /// `UpdateHostStorageCache`, and a rescan of a storage port.
    rescan = Duration::from_millis(200),
    /// How long Windows waits for an SMB server that does not answer.
    smb_timeout = Duration::from_secs(30),
    /// How long Windows waits for an iSCSI portal that does not answer.
    iscsi_timeout = Duration::from_secs(15),
}
