//! Disks, their partitions and the volumes on them: what is on the medium, and what Windows knows of it.

pub(crate) mod disk_ioctls;
mod hotplug;
pub(crate) mod mount_manager;
mod signatures;
pub(crate) mod volume_ioctls;

use os::abi::{ASSOCIATION_DEVICE, BASIC_DATA, DISK_INTERFACE, DiskAttributes, MSFT_RESERVED};
use os::{OsError, OsResult, Uuid};

use crate::files::file_system::FileSystem;

/// Bytes in a sector.
pub(crate) const SECTOR: u64 = 512;
/// What partitions are aligned to.
pub(crate) const ALIGNMENT: u64 = 1 << 20;
/// Where a GPT's usable range begins: protective MBR, header and 128 entries.
pub(crate) const GPT_FIRST: u64 = 34 * SECTOR;
/// What a GPT's spare copy takes at the end.
const GPT_SPARE: u64 = 33 * SECTOR;
/// The reserved partition ends here.
const RESERVED_END: u64 = 16 << 20;

/// A disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub number: u32,
    /// The LUN's real size.
    pub size: u64,
    /// The size that Windows read when it last looked.
    pub cached_size: u64,
    /// `DiskAttributes::OFFLINE`, `READ_ONLY`.
    pub attributes: u64,
    /// Holds the running system.
    pub system: bool,
    /// False until a rescan finds it.
    pub visible: bool,
    pub bus: u32,
    pub location: String,
    pub vendor: String,
    pub product: String,
    pub serial: Option<String>,
    /// Page 83; none if the device does not support it.
    pub identifiers: Option<Vec<Identifier>>,
    /// The device's instance in its interface path.
    pub instance: String,
    pub layout: Layout,
    pub partitions: Vec<Partition>,
    /// What the storage provider believes.
    pub provider_cache: ProviderCache,
    /// The medium of an iSCSI target's logical unit that this is.
    pub lun_id: Option<Uuid>,
}

/// A page-83 designator.
#[derive(Clone, Debug)]
pub(crate) struct Identifier {
    pub code_set: u32,
    pub kind: u32,
    pub association: u32,
    pub bytes: Vec<u8>,
}

impl Identifier {
    pub(crate) fn of_device(code_set: u32, kind: u32, bytes: Vec<u8>) -> Self {
        Self { code_set, kind, association: ASSOCIATION_DEVICE, bytes }
    }
}

/// The partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Raw,
    Mbr {
        signature: u32,
    },
    /// `end` is where the usable range ends, which a grown disk's old table does not know.
    Gpt {
        id: Uuid,
        end: u64,
    },
    /// No table: a file system from the first sector on.
    Superfloppy,
}

/// What the storage provider read when it last looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProviderCache {
    pub size: u64,
    pub attributes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub number: u32,
    pub offset: u64,
    pub length: u64,
    pub kind: PartitionKind,
    pub id: Uuid,
    pub volume: Option<Volume>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionKind {
    Gpt(Uuid),
    Mbr(u8),
}

/// A volume: what a partition holds.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub id: Uuid,
    /// Whether Windows shows it: its disk is online and it has arrived.
    pub arrived: bool,
    pub health: Health,
    pub file_system: Option<FileSystem>,
    /// The file system the medium names, where it cannot be mounted.
    pub recognised: Option<String>,
    /// How often it was formatted.
    pub formats: u32,
    /// Further extents, as disk number, offset and length.
    pub further_extents: Vec<(u32, u64, u64)>,
}

/// Whether a volume's content can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Readable,
    /// By BitLocker.
    Locked,
    /// I/O errors.
    Unreadable,
}

impl Disk {
    pub(crate) fn is_offline(&self) -> bool {
        self.attributes & DiskAttributes::OFFLINE != 0
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.attributes & DiskAttributes::READ_ONLY != 0
    }

    /// The path of its disk interface.
    pub(crate) fn interface(&self) -> String {
        let bus = if self.bus == os::abi::BusType::NVME.0 { "nvme" } else { "scsi" };
        let clean = |text: &str| text.trim().to_lowercase().replace(' ', "_");
        format!(
            r"\\?\{bus}#disk&ven_{}&prod_{}#{}#{{{DISK_INTERFACE}}}",
            clean(&self.vendor),
            clean(&self.product),
            self.instance
        )
    }

    /// Where the usable range of a table made now would end.
    pub(crate) fn gpt_end(&self) -> u64 {
        (self.cached_size - GPT_SPARE) / SECTOR * SECTOR
    }

    /// Writes a GPT with the reserved partition alone.
    pub(crate) fn write_gpt(&mut self, disk_id: Uuid, reserved_id: Uuid) {
        self.layout = Layout::Gpt { id: disk_id, end: self.gpt_end() };
        self.partitions = vec![Partition {
            number: 1,
            offset: GPT_FIRST,
            length: RESERVED_END - GPT_FIRST,
            kind: PartitionKind::Gpt(MSFT_RESERVED),
            id: reserved_id,
            volume: None,
        }];
    }

    /// The last byte a partition may reach, by the table that is there.
    pub(crate) fn usable_end(&self) -> u64 {
        match self.layout {
            Layout::Gpt { end, .. } => end,
            Layout::Mbr { .. } => self.cached_size.min(2 << 40),
            Layout::Raw | Layout::Superfloppy => self.cached_size,
        }
    }

    /// The largest aligned free range, as offset and length.
    pub(crate) fn largest_gap(&self) -> Option<(u64, u64)> {
        let mut taken: Vec<(u64, u64)> = self.partitions.iter().map(|part| (part.offset, part.end())).collect();
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

    /// How long the partition at `offset` could become if the table knew the disk's size `size`.
    pub(crate) fn max_length_at(&self, offset: u64, size: u64) -> u64 {
        let next = self.partitions.iter().map(|part| part.offset).filter(|begin| *begin > offset).min();
        let end = match self.layout {
            Layout::Gpt { .. } => size - GPT_SPARE,
            _ => size,
        };
        let end = next.unwrap_or(end).min(end) / ALIGNMENT * ALIGNMENT;
        end.saturating_sub(offset)
    }

    /// Adds a partition and returns its number.
    pub(crate) fn add_partition(&mut self, offset: u64, length: u64, kind: PartitionKind, id: Uuid) -> u32 {
        let free = |number: &u32| self.partitions.iter().all(|part| part.number != *number);
        let number = (1..u32::MAX).find(free).unwrap_or(u32::MAX);
        self.partitions.push(Partition { number, offset, length, kind, id, volume: None });
        self.partitions.sort_by_key(|part| part.offset);
        number
    }

    pub(crate) fn partition_mut(&mut self, number: u32) -> Option<&mut Partition> {
        self.partitions.iter_mut().find(|part| part.number == number)
    }

    pub(crate) fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.partitions.iter().filter_map(|part| part.volume.as_ref())
    }

    pub(crate) fn volumes_mut(&mut self) -> impl Iterator<Item = &mut Volume> {
        self.partitions.iter_mut().filter_map(|part| part.volume.as_mut())
    }

    /// Reads the size again, as a property update does.
    pub(crate) fn update_properties(&mut self) {
        self.cached_size = self.size;
    }

    /// Makes the provider look again.
    pub(crate) fn refresh(&mut self) {
        self.update_properties();
        self.provider_cache = ProviderCache { size: self.cached_size, attributes: self.attributes };
    }

    /// Whether the provider's view has been overtaken.
    pub(crate) fn is_stale(&self) -> bool {
        self.provider_cache != ProviderCache { size: self.cached_size, attributes: self.attributes }
    }
}

impl Partition {
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// Whether Windows makes a volume of it.
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
            arrived: false,
            health: Health::Readable,
            file_system: None,
            recognised: None,
            formats: 0,
            further_extents: Vec::new(),
        }
    }

    /// The file system, or why there is none to be had.
    pub(crate) fn mounted(&self) -> OsResult<&FileSystem> {
        match self.health {
            Health::Locked => Err(OsError::FVE_LOCKED_VOLUME),
            Health::Unreadable => Err(OsError::IO_DEVICE),
            Health::Readable => self.file_system.as_ref().ok_or(OsError::UNRECOGNIZED_VOLUME),
        }
    }
}

#[cfg(test)]
pub(crate) fn example(size: u64) -> Disk {
    Disk {
        number: 1,
        size,
        cached_size: size,
        attributes: 0,
        system: false,
        visible: true,
        bus: os::abi::BusType::SAS.0,
        location: String::new(),
        vendor: "Msft".into(),
        product: "Virtual Disk".into(),
        serial: None,
        identifiers: None,
        instance: "1".into(),
        layout: Layout::Raw,
        partitions: Vec::new(),
        provider_cache: ProviderCache { size, attributes: 0 },
        lun_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT, BASIC_DATA, PartitionKind, example};
    use os::Uuid;

    #[test]
    fn the_largest_partition_follows_the_reserved_one_and_leaves_the_spare_table() {
        let mut disk = example(10 << 30);
        disk.write_gpt(Uuid::nil(), Uuid::nil());
        let (offset, length) = disk.largest_gap().unwrap();
        assert_eq!(offset, 16 << 20);
        assert_eq!(offset + length, (10 << 30) - ALIGNMENT);
        disk.add_partition(offset, length, PartitionKind::Gpt(BASIC_DATA), Uuid::nil());
        assert_eq!(disk.largest_gap(), None);
        assert_eq!(disk.max_length_at(offset, 20 << 30), (20 << 30) - ALIGNMENT - offset);
    }
}
