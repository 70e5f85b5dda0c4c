//! The identifiers of disks: SCSI page 83 identifiers and serial numbers.

use os::abi::{
    ASSOCIATION_DEVICE, BusType, CODE_SET_ASCII, CODE_SET_BINARY, ControlCode,
    StorageDescriptorHead, StorageDeviceDescriptor, StorageDeviceIdDescriptor, StorageIdentifier,
    StoragePropertyQuery,
};
use os::{Handle, OsError, OsResult};
use zerocopy::IntoBytes;

use crate::devices::buffer;
use crate::error_class::ErrorClass;

/// The size of the first buffer, which holds any usual descriptor.
const DESCRIPTOR_SIZE: usize = 4096;

/// Returns the page 83 identifier of the disk behind `handle`: the first one that identifies the
/// device itself, as ASCII text or, if it is binary, in lower-case hex. Empty if the disk has none;
/// never all spaces.
pub(crate) fn page83(handle: &dyn Handle) -> OsResult<String> {
    let found = decoded(handle, StoragePropertyQuery::DEVICE_ID, parse_page83);
    found
        .map(Option::unwrap_or_default)
        .or_else(none_if_unsupported)
}

/// Returns the serial number of the disk behind `handle` as Windows reports it, untrimmed. Empty if
/// the disk has none. A device without the property fails.
pub(crate) fn serial(handle: &dyn Handle) -> OsResult<String> {
    decoded(handle, StoragePropertyQuery::DEVICE, parse_serial).map(Option::unwrap_or_default)
}

/// Returns whether the disk behind `handle` is known to be a mounted file, such as the scratch
/// space of a container.
pub(crate) fn is_file_backed(handle: &dyn Handle) -> bool {
    decoded(handle, StoragePropertyQuery::DEVICE, |descriptor| {
        buffer::at::<StorageDeviceDescriptor>(descriptor, 0).map(|head| head.bus_type)
    }) == Ok(Some(BusType::FILE_BACKED_VIRTUAL.0))
}

/// Returns an empty identifier if `code` states that the device does not have the property.
pub(crate) fn none_if_unsupported(code: OsError) -> OsResult<String> {
    if ErrorClass::UnsupportedOrInvalid.contains(code) {
        Ok(String::new())
    } else {
        Err(code)
    }
}

/// Queries the descriptor of a property, and decodes it.
fn decoded<T>(
    handle: &dyn Handle,
    property_id: u32,
    decode: fn(&[u8]) -> Option<T>,
) -> OsResult<Option<T>> {
    let query = StoragePropertyQuery {
        property_id,
        ..StoragePropertyQuery::default()
    };
    let mut usual = [0; DESCRIPTOR_SIZE];
    let mut large = Vec::new();
    loop {
        let answer = if large.is_empty() {
            &mut usual[..]
        } else {
            &mut large
        };
        let size = answer.len();
        let filled = handle.control(
            ControlCode::STORAGE_QUERY_PROPERTY,
            query.as_bytes(),
            answer,
        )?;
        let answer = &answer[..filled.min(size)];
        // If the buffer is too small, Windows fills it with the first bytes of the descriptor; the
        // header has the full size.
        let whole = buffer::at::<StorageDescriptorHead>(answer, 0).map_or(0, |head| head.size);
        match usize::try_from(whole) {
            Ok(whole) if whole > size && whole <= buffer::MAX_SIZE => large = vec![0; whole],
            _ => return Ok(decode(answer)),
        }
    }
}

/// Decodes a device id descriptor: page 83 of the vital product data, as Windows returns it.
fn parse_page83(descriptor: &[u8]) -> Option<String> {
    let head: StorageDeviceIdDescriptor = buffer::at(descriptor, 0)?;
    let mut offset = size_of::<StorageDeviceIdDescriptor>();
    for _ in 0..head.number_of_identifiers {
        let identifier: StorageIdentifier = buffer::at(descriptor, offset)?;
        let start = offset + size_of::<StorageIdentifier>();
        let bytes = descriptor.get(start..start + usize::from(identifier.identifier_size))?;
        let text = match identifier.code_set {
            _ if identifier.association != ASSOCIATION_DEVICE => String::new(),
            CODE_SET_BINARY => hex(bytes),
            CODE_SET_ASCII => text(bytes),
            _ => String::new(),
        };
        if !text.trim().is_empty() {
            return Some(text);
        }
        match identifier.next_offset {
            0 => return None,
            step => offset += usize::from(step),
        }
    }
    None
}

/// Decodes the serial number in a device descriptor.
fn parse_serial(descriptor: &[u8]) -> Option<String> {
    let head: StorageDeviceDescriptor = buffer::at(descriptor, 0)?;
    let start = match head.serial_number_offset {
        0 | u32::MAX => return None,
        start => usize::try_from(start).ok()?,
    };
    let bytes = descriptor.get(start..)?;
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    Some(text(&bytes[..end]))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|half| char::from(DIGITS[usize::from(half)]))
        .collect()
}

/// Decodes ASCII text. Any other byte is decoded as Latin-1. Zero bytes at the end are padding.
fn text(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| char::from(*byte))
        .collect::<String>()
        .trim_end_matches('\0')
        .to_owned()
}
