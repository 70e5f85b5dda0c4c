//! The control codes of disks. The output buffers are laid out as Windows lays them out.

use os::abi::{
    CODE_SET_ASCII, ControlCode, DEVICE_TYPE_DISK, DiskAttributes, DiskGeometryEx, DriveLayout,
    LengthInformation, PartitionEntry, PartitionStyle, SetDiskAttributes, StorageDescriptorHead,
    StorageDeviceDescriptor, StorageDeviceIdDescriptor, StorageDeviceNumber, StorageIdentifier,
    StoragePropertyQuery, gpt_entry, gpt_layout,
};
use os::{Access, OsError, OsResult, Uuid};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::disks::{Disk, Layout, Partition, PartitionKind};
use crate::state::{DeviceId, State};

impl State {
    /// Fails with `ACCESS_DENIED` if the control code needs access rights that the handle lacks.
    pub(crate) fn check_code(&self, handle: u64, code: ControlCode) -> OsResult<()> {
        let access = self.opened(handle)?.access;
        let read = !code.needs_read() || access.contains(Access::READ_DATA);
        let write = !code.needs_write() || access.contains(Access::WRITE_DATA);
        if read && write {
            Ok(())
        } else {
            Err(OsError::ACCESS_DENIED)
        }
    }

    pub(crate) fn control_disk(
        &mut self,
        device: DeviceId,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        let disk = self.disk(device)?;
        match code {
            ControlCode::STORAGE_GET_DEVICE_NUMBER => put(output, &device_number(disk)),
            ControlCode::STORAGE_QUERY_PROPERTY => property(disk, input, output),
            ControlCode::DISK_GET_DRIVE_GEOMETRY_EX => put(output, &geometry(disk)),
            ControlCode::DISK_GET_LENGTH_INFO => {
                let length = LengthInformation {
                    length: signed(disk.size),
                };
                let filled = put(output, &length)?;
                self.disk_mut(device)?.read_capacity();
                Ok(filled)
            }
            ControlCode::DISK_GET_DISK_ATTRIBUTES => put(
                output,
                &DiskAttributes {
                    version: 16,
                    reserved: 0,
                    attributes: disk.attributes,
                },
            ),
            ControlCode::DISK_SET_DISK_ATTRIBUTES => self.set_disk_attributes(device, input),
            ControlCode::DISK_GET_DRIVE_LAYOUT_EX => layout(disk, output),
            ControlCode::DISK_UPDATE_PROPERTIES => {
                self.disk_mut(device)?.read_capacity();
                Ok(0)
            }
            _ => Err(OsError::INVALID_FUNCTION),
        }
    }

    fn set_disk_attributes(&mut self, device: DeviceId, input: &[u8]) -> OsResult<usize> {
        // Microsoft documents the size of `GET_DISK_ATTRIBUTES`. Programs also pass the size of
        // `SET_DISK_ATTRIBUTES`.
        const VERSIONS: [u32; 2] = [16, 40];
        const KNOWN: u64 = DiskAttributes::OFFLINE | DiskAttributes::READ_ONLY;
        let (wanted, _) =
            SetDiskAttributes::read_from_prefix(input).map_err(|_| OsError::INVALID_PARAMETER)?;
        if !VERSIONS.contains(&wanted.version)
            || wanted.attributes_mask & !KNOWN != 0
            || wanted.attributes & !KNOWN != 0
        {
            return Err(OsError::INVALID_PARAMETER);
        }
        let disk = self.disk(device)?;
        let attributes =
            disk.attributes & !wanted.attributes_mask | wanted.attributes & wanted.attributes_mask;
        if disk.system && attributes != 0 {
            return Err(OsError::BUSY);
        }
        if attributes != disk.attributes {
            self.set_attributes(device, attributes);
        }
        Ok(0)
    }
}

/// Copies a structure to the output.
pub(crate) fn put<T: IntoBytes + Immutable + ?Sized>(
    output: &mut [u8],
    structure: &T,
) -> OsResult<usize> {
    let bytes = structure.as_bytes();
    output
        .get_mut(..bytes.len())
        .ok_or(OsError::INSUFFICIENT_BUFFER)?
        .copy_from_slice(bytes);
    Ok(bytes.len())
}

/// Returns a size as the control codes represent it.
pub(crate) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn device_number(disk: &Disk) -> StorageDeviceNumber {
    StorageDeviceNumber {
        device_type: DEVICE_TYPE_DISK,
        device_number: disk.number,
        partition_number: 0,
    }
}

fn geometry(disk: &Disk) -> DiskGeometryEx {
    DiskGeometryEx {
        cylinders: signed(disk.cached_size / (255 * 63 * disk.sector)),
        media_type: 12,
        tracks_per_cylinder: 255,
        sectors_per_track: 63,
        bytes_per_sector: u32::try_from(disk.sector).unwrap_or(u32::MAX),
        disk_size: signed(disk.cached_size),
    }
}

/// Answers a property query with as much of the descriptor as fits in the output.
pub(crate) fn property(disk: &Disk, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
    let (query, _) =
        StoragePropertyQuery::read_from_prefix(input).map_err(|_| OsError::BAD_LENGTH)?;
    let descriptor = match query.property_id {
        StoragePropertyQuery::DEVICE => device_descriptor(disk),
        StoragePropertyQuery::DEVICE_ID => id_descriptor(disk).ok_or(OsError::INVALID_FUNCTION)?,
        _ => return Err(OsError::NOT_SUPPORTED),
    };
    match query.query_type {
        0 if output.len() < size_of::<StorageDescriptorHead>() => Err(OsError::INSUFFICIENT_BUFFER),
        0 => {
            let length = descriptor.len().min(output.len());
            output[..length].copy_from_slice(&descriptor[..length]);
            Ok(length)
        }
        // PropertyExistsQuery: success means that the device has the property.
        1 => Ok(0),
        _ => Err(OsError::INVALID_PARAMETER),
    }
}

fn device_descriptor(disk: &Disk) -> Vec<u8> {
    let mut strings = Vec::new();
    let mut append = |text: &str| {
        let offset = size_of::<StorageDeviceDescriptor>() + strings.len();
        strings.extend_from_slice(text.as_bytes());
        strings.push(0);
        count(offset)
    };
    let mut descriptor = StorageDeviceDescriptor {
        head: StorageDescriptorHead {
            version: count(size_of::<StorageDeviceDescriptor>() + 4),
            size: 0,
        },
        device_type: 0,
        device_type_modifier: 0,
        removable_media: 0,
        command_queueing: 1,
        vendor_id_offset: append(&disk.vendor),
        product_id_offset: append(&disk.product),
        product_revision_offset: append("1.0 "),
        serial_number_offset: disk.serial.as_deref().map_or(0, append),
        bus_type: disk.bus,
        raw_properties_length: 0,
    };
    descriptor.head.size = count(size_of::<StorageDeviceDescriptor>() + strings.len());
    [descriptor.as_bytes(), &strings].concat()
}

fn id_descriptor(disk: &Disk) -> Option<Vec<u8>> {
    let identifiers = disk.identifiers.as_ref()?;
    let mut body = Vec::new();
    for (index, identifier) in identifiers.iter().enumerate() {
        // Identifiers are aligned to four bytes.
        let length = (size_of::<StorageIdentifier>() + identifier.bytes.len()).next_multiple_of(4);
        let last = index + 1 == identifiers.len();
        let head = StorageIdentifier {
            code_set: identifier.code_set,
            identifier_type: identifier.kind,
            identifier_size: u16::try_from(identifier.bytes.len()).ok()?,
            next_offset: if last { 0 } else { u16::try_from(length).ok()? },
            association: identifier.association,
        };
        let begin = body.len();
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&identifier.bytes);
        body.resize(
            begin + length,
            if identifier.code_set == CODE_SET_ASCII {
                0
            } else {
                0xff
            },
        );
    }
    let descriptor = StorageDeviceIdDescriptor {
        head: StorageDescriptorHead {
            version: count(size_of::<StorageDeviceIdDescriptor>() + 4),
            size: count(size_of::<StorageDeviceIdDescriptor>() + body.len()),
        },
        number_of_identifiers: count(identifiers.len()),
    };
    Some([descriptor.as_bytes(), &body].concat())
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Writes the partition table. Writes nothing if the output is too small.
fn layout(disk: &Disk, output: &mut [u8]) -> OsResult<usize> {
    let mut entries: Vec<PartitionEntry> = disk.partitions.iter().map(entry).collect();
    let head = match disk.layout {
        Layout::Gpt { id, end } => {
            let first = disk.gpt_first();
            gpt_layout(id, signed(first), signed(end - first), count(entries.len()))
        }
        Layout::Raw => bare_layout(PartitionStyle::RAW, 0, 0),
        Layout::Mbr { .. } | Layout::Superfloppy => {
            // Windows reports an MBR with one partition for a disk without a table that has a file
            // system.
            let signature = if let Layout::Mbr { signature } = disk.layout {
                signature
            } else {
                0
            };
            // Windows reports the entries of an MBR in multiples of four.
            let empty = PartitionEntry {
                style: PartitionStyle::MBR.0,
                ..PartitionEntry::new_zeroed()
            };
            entries.resize(entries.len().max(1).next_multiple_of(4), empty);
            bare_layout(PartitionStyle::MBR, signature, count(entries.len()))
        }
    };
    put(output, &*[head.as_bytes(), entries.as_bytes()].concat())
}

fn bare_layout(style: PartitionStyle, signature: u32, partition_count: u32) -> DriveLayout {
    let mut disk_id = [0; 16];
    disk_id[..4].copy_from_slice(&signature.to_le_bytes());
    DriveLayout {
        style: style.0,
        partition_count,
        disk_id,
        ..DriveLayout::new_zeroed()
    }
}

/// Returns the entry of a partition.
fn entry(part: &Partition) -> PartitionEntry {
    let (offset, length) = (signed(part.offset), signed(part.length));
    match part.kind {
        PartitionKind::Gpt(kind) => gpt_entry(part.number, kind, part.id, offset, length),
        PartitionKind::Mbr(kind) => {
            let mut entry = gpt_entry(part.number, Uuid::nil(), Uuid::nil(), offset, length);
            entry.style = PartitionStyle::MBR.0;
            entry.partition_type[0] = kind;
            entry.partition_type[2] = 1;
            entry
        }
    }
}
