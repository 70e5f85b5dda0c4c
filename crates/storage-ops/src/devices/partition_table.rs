//! Partition tables: the decoding of what a disk returns.

use os::Uuid;
use os::abi::{BASIC_DATA, DriveLayout, MSFT_RESERVED, PartitionEntry, PartitionStyle};

use crate::devices::buffer;

/// The types of MBR partitions for which Windows creates volumes: variants of FAT, NTFS and exFAT.
const MBR_DATA: [u8; 7] = [0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e];

/// The types of MBR partitions that a computer starts from: recovery and EFI system.
const MBR_SYSTEM: [u8; 2] = [0x27, 0xef];

/// The types of GPT partitions that a computer starts from: EFI system and recovery.
/// <https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-partition_information_gpt>
const GPT_SYSTEM: [Uuid; 2] = [
    Uuid::from_u128(0xc12a7328_f81f_11d2_ba4b_00a0c93ec93b),
    Uuid::from_u128(0xde94bba4_06d1_4d40_a16a_bfd50179d6ac),
];

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The number.
    pub number: u32,
    /// The offset in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    pub(crate) kind: PartitionKind,
    /// Whether a BIOS starts a computer from this partition, if the disk is the one to start from.
    pub(crate) is_active: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionKind {
    /// A basic data partition.
    Data,
    /// A Microsoft reserved partition, which never has a volume.
    Reserved,
    /// An EFI system or recovery partition.
    System,
    /// Any other partition, such as an extended one or one of another operating system.
    Other,
}

impl PartitionKind {
    /// Returns the kind of a GPT partition by its type.
    pub(crate) fn of_gpt(kind: Uuid) -> Self {
        match kind {
            MSFT_RESERVED => Self::Reserved,
            BASIC_DATA => Self::Data,
            kind if GPT_SYSTEM.contains(&kind) => Self::System,
            _ => Self::Other,
        }
    }

    /// Returns the kind of an MBR partition by its type.
    pub(crate) fn of_mbr(kind: u8) -> Self {
        match kind {
            kind if MBR_DATA.contains(&kind) => Self::Data,
            kind if MBR_SYSTEM.contains(&kind) => Self::System,
            _ => Self::Other,
        }
    }
}

/// The partition table of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionTable {
    pub(crate) style: TableStyle,
    /// In the order of their offsets.
    pub(crate) partitions: Vec<Partition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableStyle {
    /// The disk has no partition table.
    Raw,
    /// An MBR without partitions and without a signature. A driver may report a disk without a
    /// partition table like that.
    BlankMbr,
    Mbr,
    Gpt,
}

impl PartitionTable {
    /// Returns the basic data partitions.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Partition> {
        self.partitions
            .iter()
            .filter(|partition| partition.kind == PartitionKind::Data)
    }

    /// Returns whether the disk has a partition other than the reserved one.
    pub(crate) fn is_partitioned(&self) -> bool {
        self.partitions
            .iter()
            .any(|partition| partition.kind != PartitionKind::Reserved)
    }

    /// Returns whether the volume at `offset` is on the partition `number`, or on any partition if
    /// `number` is 0.
    pub(crate) fn holds(&self, number: u32, offset: u64) -> bool {
        if self.style == TableStyle::Raw {
            // The whole disk may be one volume.
            return number == 0;
        }
        let is_held = |partition: &Partition| number == 0 || partition.number == number;
        self.partitions
            .iter()
            .any(|partition| partition.offset == offset && is_held(partition))
    }

    /// Decodes a `DRIVE_LAYOUT_INFORMATION_EX`. Returns `None` if it is malformed.
    pub(crate) fn parse(buffer: &[u8]) -> Option<Self> {
        let head: DriveLayout = buffer::at(buffer, 0)?;
        let style = PartitionStyle(head.style);
        let mut partitions = Vec::new();
        for index in 0..usize::try_from(head.partition_count).ok()? {
            let offset = index
                .checked_mul(size_of::<PartitionEntry>())?
                .checked_add(size_of::<DriveLayout>())?;
            let entry: PartitionEntry = buffer::at(buffer, offset)?;
            let kind = match style {
                PartitionStyle::MBR if entry.mbr_type() == 0 => continue,
                PartitionStyle::MBR => PartitionKind::of_mbr(entry.mbr_type()),
                _ if entry.gpt_type() == Uuid::nil() => continue,
                _ => PartitionKind::of_gpt(entry.gpt_type()),
            };
            let (offset, length) = (
                u64::try_from(entry.offset).ok()?,
                u64::try_from(entry.length).ok()?,
            );
            let is_active = style == PartitionStyle::MBR && entry.mbr_is_active();
            partitions.push(Partition {
                number: entry.number,
                offset,
                length,
                kind,
                is_active,
            });
        }
        partitions.sort_unstable_by_key(|partition| partition.offset);
        match style {
            PartitionStyle::RAW => Some(Self {
                style: TableStyle::Raw,
                partitions: Vec::new(),
            }),
            PartitionStyle::MBR if partitions.is_empty() && head.disk_id[..4] == [0; 4] => {
                Some(Self {
                    style: TableStyle::BlankMbr,
                    partitions,
                })
            }
            PartitionStyle::MBR => Some(Self {
                style: TableStyle::Mbr,
                partitions,
            }),
            PartitionStyle::GPT => Some(Self {
                style: TableStyle::Gpt,
                partitions,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use os::Uuid;
    use os::abi::{
        BASIC_DATA, DriveLayout, MSFT_RESERVED, PartitionEntry, PartitionStyle, gpt_entry,
        gpt_layout,
    };
    use zerocopy::IntoBytes;

    use super::{Partition, PartitionKind, PartitionTable, TableStyle};
    use crate::devices::disk::MIB;

    const EFI: Uuid = Uuid::from_u128(0xc12a_7328_f81f_11d2_ba4b_00a0_c93e_c93b);

    fn decoded(style: PartitionStyle, entries: &[PartitionEntry]) -> Option<PartitionTable> {
        let partition_count = u32::try_from(entries.len()).unwrap();
        let head = DriveLayout {
            style: style.0,
            ..gpt_layout(Uuid::nil(), 0, 0, partition_count)
        };
        PartitionTable::parse(&[head.as_bytes(), entries.as_bytes()].concat())
    }

    /// Returns the partition `number`, which begins at that many mebibytes and is one mebibyte
    /// long.
    fn entry(number: u32, partition_type: [u8; 16]) -> PartitionEntry {
        let (offset, length) = (i64::from(number) << 20, 1 << 20);
        PartitionEntry {
            partition_type,
            ..gpt_entry(number, Uuid::nil(), Uuid::nil(), offset, length)
        }
    }

    fn partition(number: u32, kind: PartitionKind) -> Partition {
        Partition {
            number,
            offset: u64::from(number) * MIB,
            length: MIB,
            kind,
            is_active: false,
        }
    }

    #[test]
    fn the_entries_of_a_gpt_are_decoded_by_type_and_sorted_by_offset() {
        let types = [EFI, MSFT_RESERVED, BASIC_DATA, Uuid::nil()].map(|kind| kind.to_bytes_le());
        let entries = [
            entry(4, types[2]),
            entry(1, types[0]),
            entry(2, types[1]),
            entry(3, types[3]),
        ];
        let (efi, reserved) = (
            partition(1, PartitionKind::System),
            partition(2, PartitionKind::Reserved),
        );
        let partitions = vec![efi, reserved, partition(4, PartitionKind::Data)];
        let expected = PartitionTable {
            style: TableStyle::Gpt,
            partitions,
        };
        assert_eq!(decoded(PartitionStyle::GPT, &entries), Some(expected));
    }

    fn of(mbr: u8, boot: u8) -> [u8; 16] {
        [mbr, boot, 1, 0, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    }

    #[test]
    fn the_entries_of_an_mbr_are_decoded_by_type() {
        let entries = [
            entry(1, of(0x07, 0)),
            entry(2, of(0x0c, 1)),
            entry(3, of(0x83, 0)),
            entry(0, of(0, 0)),
            // In an MBR entry these bytes have another meaning.
            entry(4, MSFT_RESERVED.to_bytes_le()),
        ];
        let kinds = [
            PartitionKind::Data,
            PartitionKind::Data,
            PartitionKind::Other,
            PartitionKind::Other,
        ];
        let partitions = (1..)
            .zip(kinds)
            .map(|(number, kind)| {
                // In an entry of a GPT the second byte is a part of the type.
                let is_active = [2, 4].contains(&number);
                Partition {
                    is_active,
                    ..partition(number, kind)
                }
            })
            .collect();
        assert_eq!(
            decoded(PartitionStyle::MBR, &entries),
            Some(PartitionTable {
                style: TableStyle::Mbr,
                partitions
            })
        );
    }

    #[test]
    fn a_disk_with_only_a_reserved_partition_or_an_empty_entry_is_not_partitioned() {
        let is_partitioned = |style, entry| decoded(style, &[entry]).unwrap().is_partitioned();
        assert!(is_partitioned(
            PartitionStyle::GPT,
            entry(1, EFI.to_bytes_le())
        ));
        assert!(is_partitioned(
            PartitionStyle::GPT,
            entry(1, BASIC_DATA.to_bytes_le())
        ));
        assert!(!is_partitioned(
            PartitionStyle::GPT,
            entry(1, MSFT_RESERVED.to_bytes_le())
        ));
        assert!(!is_partitioned(PartitionStyle::GPT, entry(1, [0; 16])));
        assert!(!is_partitioned(PartitionStyle::MBR, entry(0, [0; 16])));
        assert_eq!(
            decoded(PartitionStyle::MBR, &[]).unwrap().style,
            TableStyle::BlankMbr
        );
        assert_eq!(
            decoded(PartitionStyle(3), &[]),
            None,
            "an unknown style is not an empty disk"
        );
    }
}
