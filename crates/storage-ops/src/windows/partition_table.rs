//! Partition tables.

use os::Uuid;
use os::abi::{BASIC_DATA, DriveLayout, MSFT_RESERVED, PartitionEntry, PartitionStyle};

use crate::windows::buffer;

/// A mebibyte, the alignment of partitions.
pub(crate) const MIB: u64 = 1 << 20;

/// The types of MBR partitions for which Windows creates volumes: variants of FAT, NTFS and exFAT.
const MBR_DATA: [u8; 7] = [0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e];

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) number: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) kind: PartitionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionKind {
    /// A basic data partition.
    Data,
    /// A Microsoft reserved partition, which never has a volume.
    Reserved,
    /// Any other: EFI, recovery, extended, or that of another operating system.
    Other,
}

/// The partition table of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartitionTable {
    Raw,
    Mbr(Vec<Partition>),
    Gpt(Vec<Partition>),
}

impl PartitionTable {
    /// All partitions, in the order of their offsets.
    pub(crate) fn partitions(&self) -> &[Partition] {
        match self {
            Self::Raw => &[],
            Self::Mbr(partitions) | Self::Gpt(partitions) => partitions,
        }
    }

    /// The basic data partitions.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Partition> {
        self.partitions().iter().filter(|partition| partition.kind == PartitionKind::Data)
    }

    /// Whether the disk has a partition other than the reserved one.
    pub(crate) fn is_partitioned(&self) -> bool {
        self.partitions().iter().any(|partition| partition.kind != PartitionKind::Reserved)
    }

    /// Whether the volume at `offset` is on the partition `number`, or on any partition if `number` is 0.
    pub(crate) fn holds(&self, number: u32, offset: u64) -> bool {
        match self {
            // A disk without a partition table may be one volume as a whole.
            Self::Raw => number == 0,
            Self::Mbr(partitions) | Self::Gpt(partitions) => partitions
                .iter()
                .any(|partition| partition.offset == offset && (number == 0 || partition.number == number)),
        }
    }

    /// Decodes a `DRIVE_LAYOUT_INFORMATION_EX`. Returns `None` if it is malformed.
    pub(crate) fn parse(buffer: &[u8]) -> Option<Self> {
        let head: DriveLayout = buffer::at(buffer, 0)?;
        let style = PartitionStyle(head.style);
        let mut partitions = Vec::new();
        for index in 0..usize::try_from(head.partition_count).ok()? {
            let offset = index.checked_mul(size_of::<PartitionEntry>())?.checked_add(size_of::<DriveLayout>())?;
            let entry: PartitionEntry = buffer::at(buffer, offset)?;
            let kind = match style {
                PartitionStyle::MBR if entry.mbr_type() == 0 => continue,
                PartitionStyle::MBR if MBR_DATA.contains(&entry.mbr_type()) => PartitionKind::Data,
                PartitionStyle::MBR => PartitionKind::Other,
                _ if entry.gpt_type() == Uuid::nil() => continue,
                _ if entry.gpt_type() == MSFT_RESERVED => PartitionKind::Reserved,
                _ if entry.gpt_type() == BASIC_DATA => PartitionKind::Data,
                _ => PartitionKind::Other,
            };
            let (offset, length) = (u64::try_from(entry.offset).ok()?, u64::try_from(entry.length).ok()?);
            partitions.push(Partition { number: entry.number, offset, length, kind });
        }
        partitions.sort_unstable_by_key(|partition| partition.offset);
        match style {
            PartitionStyle::RAW => Some(Self::Raw),
            PartitionStyle::MBR => Some(Self::Mbr(partitions)),
            PartitionStyle::GPT => Some(Self::Gpt(partitions)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use os::Uuid;
    use os::abi::{BASIC_DATA, DriveLayout, MSFT_RESERVED, PartitionEntry, PartitionStyle, gpt_entry, gpt_layout};
    use zerocopy::IntoBytes;

    use super::{MIB, Partition, PartitionKind, PartitionTable};

    const EFI: Uuid = Uuid::from_u128(0xc12a_7328_f81f_11d2_ba4b_00a0_c93e_c93b);

    fn decoded(style: PartitionStyle, entries: &[PartitionEntry]) -> Option<PartitionTable> {
        let partition_count = u32::try_from(entries.len()).unwrap();
        let head = DriveLayout { style: style.0, ..gpt_layout(Uuid::nil(), 0, 0, partition_count) };
        PartitionTable::parse(&[head.as_bytes(), entries.as_bytes()].concat())
    }

    /// The partition `number`, which begins at that many mebibytes and is one mebibyte long.
    fn entry(number: u32, partition_type: [u8; 16]) -> PartitionEntry {
        let (offset, length) = (i64::from(number) << 20, 1 << 20);
        PartitionEntry { partition_type, ..gpt_entry(number, Uuid::nil(), Uuid::nil(), offset, length) }
    }

    fn partition(number: u32, kind: PartitionKind) -> Partition {
        Partition { number, offset: u64::from(number) * MIB, length: MIB, kind }
    }

    #[test]
    fn a_volume_is_on_the_partition_at_its_offset_or_on_a_disk_without_a_partition_table() {
        let partitions = vec![partition(1, PartitionKind::Data), partition(2, PartitionKind::Data)];
        for table in [PartitionTable::Gpt(partitions.clone()), PartitionTable::Mbr(partitions)] {
            assert!(table.holds(0, MIB) && table.holds(0, 2 * MIB) && !table.holds(0, 3 * MIB));
            assert!(table.holds(1, MIB) && table.holds(2, 2 * MIB));
            assert!(!table.holds(1, 2 * MIB) && !table.holds(2, MIB) && !table.holds(3, MIB));
        }
        assert!(PartitionTable::Raw.holds(0, 0) && !PartitionTable::Raw.holds(1, 0));
    }

    #[test]
    fn the_entries_of_a_gpt_are_decoded_by_type_and_sorted_by_offset() {
        let types = [EFI, MSFT_RESERVED, BASIC_DATA, Uuid::nil()].map(|kind| kind.to_bytes_le());
        let entries = [entry(4, types[2]), entry(1, types[0]), entry(2, types[1]), entry(3, types[3])];
        let (efi, reserved) = (partition(1, PartitionKind::Other), partition(2, PartitionKind::Reserved));
        let expected = PartitionTable::Gpt(vec![efi, reserved, partition(4, PartitionKind::Data)]);
        assert_eq!(decoded(PartitionStyle::GPT, &entries), Some(expected));
    }

    #[test]
    fn the_entries_of_an_mbr_are_decoded_by_type() {
        let of = |mbr: u8| [mbr, 0x80, 1, 0, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let entries = [
            entry(1, of(0x07)),
            entry(2, of(0x0c)),
            entry(3, of(0x83)),
            entry(0, of(0)),
            // In an MBR entry these bytes have another meaning.
            entry(4, MSFT_RESERVED.to_bytes_le()),
        ];
        let kinds = [PartitionKind::Data, PartitionKind::Data, PartitionKind::Other, PartitionKind::Other];
        let expected = (1..).zip(kinds).map(|(number, kind)| partition(number, kind)).collect();
        assert_eq!(decoded(PartitionStyle::MBR, &entries), Some(PartitionTable::Mbr(expected)));
    }

    #[test]
    fn a_disk_with_only_a_reserved_partition_or_an_empty_entry_is_not_partitioned() {
        let is_partitioned = |style, entry| decoded(style, &[entry]).unwrap().is_partitioned();
        assert!(is_partitioned(PartitionStyle::GPT, entry(1, EFI.to_bytes_le())));
        assert!(is_partitioned(PartitionStyle::GPT, entry(1, BASIC_DATA.to_bytes_le())));
        assert!(!is_partitioned(PartitionStyle::GPT, entry(1, MSFT_RESERVED.to_bytes_le())));
        assert!(!is_partitioned(PartitionStyle::GPT, entry(1, [0; 16])));
        assert!(!is_partitioned(PartitionStyle::MBR, entry(0, [0; 16])));
        assert_eq!(decoded(PartitionStyle(3), &[]), None, "an unknown style is not an empty disk");
    }

    proptest::proptest! {
        #[test]
        fn decoding_any_layout_does_not_panic(mut bytes: Vec<u8>, style in 0u32..3, count in 0u32..5) {
            if bytes.len() >= 8 {
                bytes[..4].copy_from_slice(&style.to_le_bytes());
                bytes[4..8].copy_from_slice(&count.to_le_bytes());
            }
            let _ = PartitionTable::parse(&bytes);
        }
    }
}
