//! The calls whose costs are counted, and the node that answers them.

use std::error::Error;

use api::disk::v1::ListDiskIDsRequest;
use api::filesystem::v1::{IsSymlinkRequest, PathExistsRequest};
use api::volume::v1::{GetVolumeStatsRequest, ListVolumesOnDiskRequest};
use os_sim::Sim;
use prost::Message;

const EXISTING: &str = r"C:\var\lib\kubelet\plugins\driver";
const MISSING: &str = r"C:\var\lib\kubelet\plugins\missing";
const REFUSED: &str = r"C:\Windows\System32";
const FILESYSTEM: &str = "v1.Filesystem";
const GIB: u64 = 1 << 30;

/// A call that a driver makes again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name of the call in the table.
    pub name: &'static str,
    /// The service, such as `v1.Filesystem`.
    pub service: &'static str,
    /// The name of the RPC.
    pub rpc: &'static str,
    /// The encoded request.
    pub request: Vec<u8>,
    /// Whether the call succeeds.
    pub succeeds: bool,
}

impl Call {
    /// Returns a call that succeeds.
    pub fn new(
        name: &'static str,
        service: &'static str,
        rpc: &'static str,
        request: &impl Message,
    ) -> Self {
        Self {
            name,
            service,
            rpc,
            request: request.encode_to_vec(),
            succeeds: true,
        }
    }

    /// Returns the call that drivers make most, of a path that exists.
    pub fn path_exists() -> Self {
        Self::path_exists_of("PathExists, existing", EXISTING)
    }

    fn path_exists_of(name: &'static str, path: &str) -> Self {
        let path = path.to_owned();
        Self::new(name, FILESYSTEM, "PathExists", &PathExistsRequest { path })
    }

    /// Returns all calls.
    pub fn all() -> Result<Vec<Self>, Box<dyn Error>> {
        let (volume, disk) = ("v1.Volume", "v1.Disk");
        let volume_id = node()
            .volume_on(1)
            .ok_or("no volume found on disk 1")?
            .name();
        Ok(vec![
            Self::path_exists_of("PathExists, missing", MISSING),
            Self::path_exists(),
            Self {
                succeeds: false,
                ..Self::path_exists_of("PathExists, refused", REFUSED)
            },
            Self::new(
                "IsSymlink",
                FILESYSTEM,
                "IsSymlink",
                &IsSymlinkRequest {
                    path: EXISTING.to_owned(),
                },
            ),
            Self::new(
                "GetVolumeStats",
                volume,
                "GetVolumeStats",
                &GetVolumeStatsRequest { volume_id },
            ),
            Self::new(
                "ListVolumesOnDisk",
                volume,
                "ListVolumesOnDisk",
                &ListVolumesOnDiskRequest {
                    disk_number: 1,
                    partition_number: 0,
                },
            ),
            Self::new("ListDiskIDs", disk, "ListDiskIDs", &ListDiskIDsRequest {}),
        ])
    }
}

/// Returns the simulated node: the system disk, and two disks with a volume each.
pub fn node() -> Sim {
    let node = os_sim::node().dir(EXISTING);
    let node = node.disk(10 * GIB).partitioned().formatted("NTFS");
    node.disk(10 * GIB).partitioned().formatted("NTFS").build()
}
