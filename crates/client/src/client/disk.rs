//! The disk group.

use std::collections::BTreeMap;
use std::fmt;

use api::Request as _;
use api::disk::v1;

use super::Client;
use super::rpc;
use crate::error::Error;

/// Disks of the node, each known by the number that Windows gives it.
#[derive(Clone, Debug)]
pub struct Disk(pub(crate) Client);

/// The number of a disk. It may change when the node restarts, so a driver finds the disk by an
/// identifier each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskNumber(pub u32);

impl fmt::Display for DiskNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The position of a disk on its bus, in decimal numbers as Windows reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DiskLocation {
    /// The adapter.
    pub adapter: String,
    /// The bus.
    pub bus: String,
    /// The target; empty for some NVMe disks.
    pub target: String,
    /// The logical unit number; empty for some NVMe disks.
    pub lun: String,
}

/// The identifiers of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DiskIds {
    /// The first page-83 designator of the device: a text unchanged, with inner spaces; bytes in
    /// lower-case hexadecimal. May be empty.
    pub page83: String,
    /// The serial number as Windows reports it. May be empty or blank.
    pub serial_number: String,
}

/// Whether Windows uses a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskState {
    /// Its volumes can be mounted. A disk that [`Disk::set_disk_state`] has brought online is
    /// writable too.
    Online,
    /// Windows does not access it.
    Offline,
}

impl Disk {
    /// Lists the location of each disk, by disk number. Mounted virtual disk files, and disks whose
    /// location has fewer than five parts, are left out.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    pub async fn list_disk_locations(&self) -> Result<BTreeMap<DiskNumber, DiskLocation>, Error> {
        let locations = self
            .0
            .read(v1::ListDiskLocationsRequest {})
            .await?
            .disk_locations;
        let location = |found: v1::DiskLocation| {
            let v1::DiskLocation {
                adapter,
                bus,
                target,
                lunid,
            } = found;
            DiskLocation {
                adapter,
                bus,
                target,
                lun: lunid,
            }
        };
        Ok(locations
            .into_iter()
            .map(|(disk, found)| (DiskNumber(disk), location(found)))
            .collect())
    }

    /// Lists the identifiers of each disk, by disk number.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    pub async fn list_disk_ids(&self) -> Result<BTreeMap<DiskNumber, DiskIds>, Error> {
        let ids = self.0.read(v1::ListDiskIDsRequest {}).await?.disk_ids;
        let of = |v1::DiskIDs {
                      page83,
                      serial_number,
                  }| DiskIds {
            page83,
            serial_number,
        };
        Ok(ids
            .into_iter()
            .map(|(disk, found)| (DiskNumber(disk), of(found)))
            .collect())
    }

    /// Returns the size of the disk in bytes, whether it is online or offline.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the disk does not exist.
    pub async fn get_disk_stats(&self, DiskNumber(disk_number): DiskNumber) -> Result<u64, Error> {
        let size = self
            .0
            .read(v1::GetDiskStatsRequest { disk_number })
            .await?
            .total_bytes;
        rpc::unsigned(v1::GetDiskStatsRequest::RPC, size)
    }

    /// Returns whether the disk is online.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the disk does not exist.
    pub async fn get_disk_state(
        &self,
        DiskNumber(disk_number): DiskNumber,
    ) -> Result<DiskState, Error> {
        let is_online = self
            .0
            .read(v1::GetDiskStateRequest { disk_number })
            .await?
            .is_online;
        Ok(if is_online {
            DiskState::Online
        } else {
            DiskState::Offline
        })
    }

    /// Brings the disk online and makes it writable, or takes it offline. A disk that is already in
    /// this state is left unchanged. When the disk comes online, returns when its volumes have
    /// arrived.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the disk does not exist;
    /// [`PermissionDenied`](crate::ErrorKind::PermissionDenied) if the node itself uses a disk that
    /// is to be taken offline.
    pub async fn set_disk_state(
        &self,
        DiskNumber(disk_number): DiskNumber,
        state: DiskState,
    ) -> Result<(), Error> {
        let is_online = state == DiskState::Online;
        self.0
            .change(v1::SetDiskStateRequest {
                disk_number,
                is_online,
            })
            .await
            .map(drop)
    }

    /// Gives an empty disk a GPT and one basic data partition of maximum size, without a drive
    /// letter. A disk that already has a data partition is left unchanged. If the disk is online,
    /// returns when the volume of the partition has arrived.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the disk does not exist;
    /// [`FailedPrecondition`](crate::ErrorKind::FailedPrecondition) if the disk has contents that
    /// are not a partition table.
    pub async fn partition_disk(&self, DiskNumber(disk_number): DiskNumber) -> Result<(), Error> {
        self.0
            .change(v1::PartitionDiskRequest { disk_number })
            .await
            .map(drop)
    }

    /// Makes Windows look for disks that were added, removed or resized.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    pub async fn rescan(&self) -> Result<(), Error> {
        self.0.change(v1::RescanRequest {}).await.map(drop)
    }
}
