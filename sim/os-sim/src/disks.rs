//! Simulates disks, partitions and volumes: their content, and the part of it that Windows has
//! detected.

pub(crate) mod disk_ioctls;
mod hotplug;
pub(crate) mod mount_manager;
pub(crate) mod signatures;
pub(crate) mod volume_ioctls;
pub(crate) mod volume_lock;

use std::time::Duration;

use os::abi::{ASSOCIATION_DEVICE, BASIC_DATA, DISK_INTERFACE, DiskAttributes, MSFT_RESERVED};
use os::{OsError, OsResult, Uuid};

use crate::description::{Span, VolumeHealth};
use crate::files::file_system::FileSystem;

/// The bytes in a logical sector of most disks.
pub(crate) const SECTOR: u64 = 512;
/// The alignment of partitions in bytes.
pub(crate) const ALIGNMENT: u64 = 1 << 20;
/// The size of the 128 entries of a GPT.
const GPT_ENTRIES: u64 = 128 * 128;
/// The end of the Microsoft reserved partition.
const RESERVED_END: u64 = 16 << 20;

/// The vendor and the product of most disks, as the device reports them.
pub(crate) const VENDOR: &str = "Msft    ";
pub(crate) const PRODUCT: &str = "Virtual Disk    ";

/// The values of `MSFT_Disk.OfflineReason` for a policy and for a collision of signatures.
pub(crate) const OFFLINE_BY_POLICY: u32 = 1;
pub(crate) const OFFLINE_BY_COLLISION: u32 = 4;

/// A disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub number: u32,
    /// The actual size of the disk in bytes.
    pub size: u64,
    /// The size that Windows last read from the disk.
    pub cached_size: u64,
    /// The size of a logical sector in bytes.
    pub sector: u64,
    /// `DiskAttributes::OFFLINE` and `READ_ONLY`.
    pub attributes: u64,
    /// Whether the running system is on it.
    pub system: bool,
    /// Whether Windows has detected the disk. A rescan sets it.
    pub visible: bool,
    /// Whether the storage provider knows the disk. The provider learns of a disk some time after
    /// Windows has detected it.
    pub known_to_provider: bool,
    /// Why the disk is offline, as `MSFT_Disk.OfflineReason` has it. Meaningless while the disk is
    /// online.
    pub offline_reason: u32,
    /// How many more times a policy takes the disk offline again after it was brought online.
    pub offline_again: u32,
    pub bus: u32,
    pub location: String,
    pub vendor: String,
    pub product: String,
    pub serial: Option<String>,
    /// The serial number that the storage provider reports. Default: `serial`.
    pub provider_serial: Option<String>,
    /// The identifiers of page 83; `None` if the device does not support the page.
    pub identifiers: Option<Vec<Identifier>>,
    /// The instance part of the disk's interface path.
    pub instance: String,
    pub layout: Layout,
    /// The file system, unknown to Windows, that begins in the first sector of a raw disk.
    pub foreign: Option<String>,
    pub partitions: Vec<Partition>,
    /// The data of the disk in the storage provider's cache.
    pub provider_cache: ProviderCache,
    /// The offsets of the partitions in the storage provider's cache, from which the provider
    /// computes how far a partition can grow. Assumed: the provider does not notice that another
    /// program deletes a partition by a control code.
    pub provider_offsets: Vec<u64>,
    /// The iSCSI logical unit of an iSCSI disk.
    pub lun_id: Option<Uuid>,
}

/// An identifier of page 83.
#[derive(Clone, Debug)]
pub(crate) struct Identifier {
    pub code_set: u32,
    pub kind: u32,
    pub association: u32,
    pub bytes: Vec<u8>,
}

impl Identifier {
    pub(crate) fn of_device(code_set: u32, kind: u32, bytes: Vec<u8>) -> Self {
        Self {
            code_set,
            kind,
            association: ASSOCIATION_DEVICE,
            bytes,
        }
    }
}

/// The partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Raw,
    Mbr {
        signature: u32,
    },
    /// `end` is the end of the usable range that the table records. On a grown disk it lies before
    /// the actual end.
    Gpt {
        id: Uuid,
        end: u64,
    },
    /// A file system from the first sector on, without a partition table.
    Superfloppy,
}

impl Layout {
    /// Returns the name that views and snapshots show.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Mbr { .. } => "mbr",
            Self::Gpt { .. } => "gpt",
            Self::Superfloppy => "superfloppy",
        }
    }
}

/// The data of a disk in the storage provider's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProviderCache {
    pub size: u64,
    pub attributes: u64,
}

/// A partition.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub number: u32,
    pub offset: u64,
    pub length: u64,
    pub kind: PartitionKind,
    pub id: Uuid,
    pub volume: Option<Volume>,
}

/// The type of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionKind {
    Gpt(Uuid),
    Mbr(u8),
}

/// The volume in a partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Volume {
    pub id: Uuid,
    /// Whether Windows shows the volume. It arrives some time after its disk came online.
    pub arrived: bool,
    /// Whether the mount manager has left the volume offline: the volume can be opened, but its I/O
    /// fails.
    pub offline: bool,
    /// Whether the storage provider knows the volume. The provider learns of a volume some time
    /// after its arrival.
    pub known_to_provider: bool,
    pub writability: Writability,
    pub health: VolumeHealth,
    pub file_system: Option<FileSystem>,
    /// The name of a file system on the medium that Windows cannot mount.
    pub recognised: Option<String>,
    /// How many times it was formatted.
    pub formats: u32,
    /// The extents on other disks, as disk number, offset and length.
    pub further_extents: Vec<Span>,
}

/// Whether a volume can be written. The volume of a new partition is read-only for some time after
/// its arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Writability {
    #[default]
    Writable,
    /// The volume is new and has not arrived.
    NotYet,
    /// The volume is new and can be written from this time on.
    From(Duration),
}

impl Disk {
    pub(crate) fn is_offline(&self) -> bool {
        self.attributes & DiskAttributes::OFFLINE != 0
    }

    /// Returns the GPT identifier or the MBR signature.
    pub(crate) fn signature(&self) -> Option<u128> {
        match self.layout {
            Layout::Gpt { id, .. } => Some(id.as_u128()),
            Layout::Mbr { signature } => Some(signature.into()),
            Layout::Raw | Layout::Superfloppy => None,
        }
    }

    /// Makes the disk offline, also for the storage provider, because another disk has its
    /// signature.
    pub(crate) fn take_offline(&mut self) {
        self.attributes |= DiskAttributes::OFFLINE;
        self.offline_reason = OFFLINE_BY_COLLISION;
        self.provider_cache.attributes = self.attributes;
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.attributes & DiskAttributes::READ_ONLY != 0
    }

    /// Returns the path of the disk's device interface.
    pub(crate) fn interface(&self) -> String {
        let bus = if self.bus == os::abi::BusType::NVME.0 {
            "nvme"
        } else {
            "scsi"
        };
        format!(
            r"\\?\{bus}#disk&ven_msft&prod_virtual_disk#{}#{{{DISK_INTERFACE}}}",
            self.instance
        )
    }

    /// Returns the first usable byte of a GPT disk: after the protective MBR, the header and the
    /// entries.
    pub(crate) fn gpt_first(&self) -> u64 {
        self.sector + self.backup_gpt()
    }

    /// Returns the end of the usable range of a GPT written now.
    pub(crate) fn gpt_end(&self) -> u64 {
        (self.cached_size - self.backup_gpt()) / self.sector * self.sector
    }

    /// Returns the size of the backup GPT at the end of the disk: the entries and the header.
    fn backup_gpt(&self) -> u64 {
        GPT_ENTRIES + self.sector
    }

    /// Returns the size that the partition table was written for.
    pub(crate) fn size_when_partitioned(&self) -> u64 {
        match self.layout {
            Layout::Gpt { end, .. } => end + self.backup_gpt(),
            Layout::Superfloppy => self.partitions.last().map_or(self.size, Partition::end),
            Layout::Raw | Layout::Mbr { .. } => self.size,
        }
    }

    /// Writes a GPT with only the Microsoft reserved partition.
    pub(crate) fn write_gpt(&mut self, disk_id: Uuid, reserved_id: Uuid) {
        self.layout = Layout::Gpt {
            id: disk_id,
            end: self.gpt_end(),
        };
        self.partitions = vec![Partition {
            number: 1,
            offset: self.gpt_first(),
            length: RESERVED_END - self.gpt_first(),
            kind: PartitionKind::Gpt(MSFT_RESERVED),
            id: reserved_id,
            volume: None,
        }];
        self.provider_reads_partitions();
    }

    /// Returns where a partition must end at the latest, according to the partition table.
    pub(crate) fn usable_end(&self) -> u64 {
        match self.layout {
            Layout::Gpt { end, .. } => end,
            Layout::Mbr { .. } => self.cached_size.min(2 << 40),
            Layout::Raw | Layout::Superfloppy => self.cached_size,
        }
    }

    /// Returns the largest aligned free range as offset and length.
    pub(crate) fn largest_gap(&self) -> Option<(u64, u64)> {
        let mut taken: Vec<(u64, u64)> = self
            .partitions
            .iter()
            .map(|part| (part.offset, part.end()))
            .collect();
        taken.sort_unstable();
        let end = self.usable_end() / ALIGNMENT * ALIGNMENT;
        taken.push((end, end));
        let mut from = ALIGNMENT;
        let mut best: Option<(u64, u64)> = None;
        for (begin, until) in taken {
            let start = from.next_multiple_of(ALIGNMENT);
            let length = begin.saturating_sub(start) / ALIGNMENT * ALIGNMENT;
            if length > best.map_or(0, |(_, length)| length) {
                best = Some((start, length));
            }
            from = from.max(until);
        }
        best
    }

    /// Returns the length to which the partition at `offset` could grow on a disk of `size` bytes,
    /// according to the partitions that the storage provider has cached.
    pub(crate) fn max_length_at(&self, offset: u64, size: u64) -> u64 {
        let next = self
            .provider_offsets
            .iter()
            .copied()
            .filter(|begin| *begin > offset)
            .min();
        let end = match self.layout {
            Layout::Gpt { .. } => size - self.backup_gpt(),
            // The numbers of sectors have 32 bits.
            Layout::Mbr { .. } => size.min(self.sector << 32),
            _ => size,
        };
        let end = next.unwrap_or(end).min(end) / ALIGNMENT * ALIGNMENT;
        end.saturating_sub(offset)
    }

    /// Adds a partition and returns its number.
    pub(crate) fn add_partition(
        &mut self,
        offset: u64,
        length: u64,
        kind: PartitionKind,
        id: Uuid,
    ) -> u32 {
        let free = |number: &u32| self.partitions.iter().all(|part| part.number != *number);
        let number = (1..u32::MAX).find(free).unwrap_or(u32::MAX);
        self.partitions.push(Partition {
            number,
            offset,
            length,
            kind,
            id,
            volume: None,
        });
        self.partitions.sort_by_key(|part| part.offset);
        self.provider_reads_partitions();
        number
    }

    /// Updates the partitions that the storage provider has cached.
    pub(crate) fn provider_reads_partitions(&mut self) {
        self.provider_offsets = self.partitions.iter().map(|part| part.offset).collect();
    }

    pub(crate) fn partition(&self, number: u32) -> Option<&Partition> {
        self.partitions.iter().find(|part| part.number == number)
    }

    pub(crate) fn partition_mut(&mut self, number: u32) -> Option<&mut Partition> {
        self.partitions
            .iter_mut()
            .find(|part| part.number == number)
    }

    pub(crate) fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.partitions
            .iter()
            .filter_map(|part| part.volume.as_ref())
    }

    pub(crate) fn volumes_mut(&mut self) -> impl Iterator<Item = &mut Volume> {
        self.partitions
            .iter_mut()
            .filter_map(|part| part.volume.as_mut())
    }

    /// Reads the size again, as `IOCTL_DISK_GET_LENGTH_INFO` and `IOCTL_DISK_UPDATE_PROPERTIES` do.
    pub(crate) fn read_capacity(&mut self) {
        self.cached_size = self.size;
    }

    /// Reads the size again and updates the storage provider's cache.
    pub(crate) fn refresh(&mut self) {
        self.read_capacity();
        self.provider_cache = ProviderCache {
            size: self.cached_size,
            attributes: self.attributes,
        };
        self.provider_reads_partitions();
    }

    /// Puts wrong data in the storage provider's cache.
    pub(crate) fn make_cache_stale(&mut self) {
        let attributes = self.attributes ^ (DiskAttributes::OFFLINE | DiskAttributes::READ_ONLY);
        self.provider_cache = ProviderCache {
            size: self.cached_size / 2,
            attributes,
        };
        self.provider_offsets.clear();
    }

    /// Returns whether the storage provider's cache is out of date.
    pub(crate) fn is_cache_stale(&self) -> bool {
        self.provider_cache
            != ProviderCache {
                size: self.cached_size,
                attributes: self.attributes,
            }
    }
}

impl Partition {
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// Returns whether Windows creates a volume for the partition.
    pub(crate) fn holds_volume(&self) -> bool {
        match self.kind {
            PartitionKind::Gpt(kind) => kind == BASIC_DATA,
            PartitionKind::Mbr(kind) => kind != 0,
        }
    }
}

impl Volume {
    pub(crate) fn new(id: Uuid) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    /// Returns the file system, or the error that reading the volume gives.
    pub(crate) fn mounted(&self) -> OsResult<&FileSystem> {
        if self.offline {
            return Err(OsError::NOT_READY);
        }
        match self.health {
            VolumeHealth::Locked => Err(OsError::FVE_LOCKED_VOLUME),
            VolumeHealth::Unreadable => Err(OsError::IO_DEVICE),
            VolumeHealth::Readable | VolumeHealth::Unmountable => self
                .file_system
                .as_ref()
                .ok_or(OsError::UNRECOGNIZED_VOLUME),
        }
    }
}

#[cfg(test)]
mod tests {
    use os::Uuid;

    use super::{ALIGNMENT, BASIC_DATA, Disk, PartitionKind};
    use crate::description::DiskDescription;
    use crate::state::State;

    fn example(size: u64) -> Disk {
        let mut state = State::default();
        let device = state
            .new_disk(&DiskDescription::new(size))
            .expect("the description is valid");
        state.disks[&device].clone()
    }

    #[test]
    fn the_gpt_of_a_disk_with_sectors_of_4096_bytes_takes_six_sectors_and_its_backup_five() {
        let mut disk = example(1 << 30);
        disk.sector = 4096;
        assert_eq!(
            (disk.gpt_first(), disk.gpt_end()),
            (6 * 4096, (1 << 30) - 5 * 4096)
        );
        disk.sector = 512;
        assert_eq!(
            (disk.gpt_first(), disk.gpt_end()),
            (34 * 512, (1 << 30) - 33 * 512)
        );
    }

    #[test]
    fn the_largest_gap_lies_between_the_reserved_partition_and_the_backup_gpt() {
        let mut disk = example(10 << 30);
        disk.write_gpt(Uuid::nil(), Uuid::nil());
        let (offset, length) = disk.largest_gap().unwrap();
        assert_eq!(offset, 16 << 20);
        assert_eq!(offset + length, (10 << 30) - ALIGNMENT);
        disk.add_partition(offset, length, PartitionKind::Gpt(BASIC_DATA), Uuid::nil());
        assert_eq!(disk.largest_gap(), None);
        assert_eq!(
            disk.max_length_at(offset, 20 << 30),
            (20 << 30) - ALIGNMENT - offset
        );
    }
}
