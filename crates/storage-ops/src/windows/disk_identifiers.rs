//! What tells one disk from another: page-83 identifiers, serial numbers, locations.

use os::Handle;
use os::OsResult;
use os::abi::{
    ASSOCIATION_DEVICE, CODE_SET_ASCII, CODE_SET_BINARY, ControlCode, StorageDescriptorHead, StorageDeviceDescriptor,
    StorageDeviceIdDescriptor, StorageIdentifier, StoragePropertyQuery,
};
use zerocopy::IntoBytes;

use crate::windows::buffer;
use crate::windows::error_class::ErrorClass;

/// Room for any descriptor seen so far.
const DESCRIPTOR: usize = 4096;

/// The largest descriptor that is believed.
const LARGEST: usize = 1 << 20;

/// The page-83 identifier of the disk behind `handle`: the first that names the device itself, ASCII as it stands
/// or binary as lower-case hex. Empty where there is none, never all blanks.
pub(crate) fn page83(handle: &dyn Handle) -> OsResult<String> {
    Ok(descriptor(handle, StoragePropertyQuery::DEVICE_ID)?.as_deref().and_then(parse_page83).unwrap_or_default())
}

/// The serial number of the disk behind `handle` as Windows reports it, untrimmed. Empty where there is none.
pub(crate) fn serial(handle: &dyn Handle) -> OsResult<String> {
    Ok(descriptor(handle, StoragePropertyQuery::DEVICE)?.as_deref().and_then(parse_serial).unwrap_or_default())
}

/// The descriptor of a property, or none where the device has no such property.
fn descriptor(handle: &dyn Handle, property_id: u32) -> OsResult<Option<Vec<u8>>> {
    let query = StoragePropertyQuery { property_id, ..StoragePropertyQuery::default() };
    let mut room = DESCRIPTOR;
    loop {
        let mut answer = vec![0; room];
        let filled = match handle.control(ControlCode::STORAGE_QUERY_PROPERTY, query.as_bytes(), &mut answer) {
            Err(code) if ErrorClass::UnsupportedOrInvalid.contains(code) => return Ok(None),
            outcome => outcome?,
        };
        answer.truncate(filled);
        // A buffer too small is filled as far as it goes; the head says how much there is.
        let whole = buffer::at::<StorageDescriptorHead>(&answer, 0).map_or(0, |head| head.size);
        match usize::try_from(whole) {
            Ok(whole) if whole > room && whole <= LARGEST => room = whole,
            _ => return Ok(Some(answer)),
        }
    }
}

/// Reads a device id descriptor (vital product data page 83 as Windows hands it on).
pub(crate) fn parse_page83(descriptor: &[u8]) -> Option<String> {
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

/// Reads the serial number out of a device descriptor.
pub(crate) fn parse_serial(descriptor: &[u8]) -> Option<String> {
    let head: StorageDeviceDescriptor = buffer::at(descriptor, 0)?;
    let start = match head.serial_number_offset {
        0 | u32::MAX => return None,
        start => usize::try_from(start).ok()?,
    };
    let bytes = descriptor.get(start..)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Some(text(&bytes[..end]))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|half| char::from(DIGITS[usize::from(half)])).collect()
}

/// What should be ASCII, made valid text in any case; zero bytes at the end are filling.
fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect::<String>().trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{parse_page83, parse_serial};

    proptest::proptest! {
        #[test]
        fn descriptors_of_any_kind_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = parse_page83(&bytes);
            let _ = parse_serial(&bytes);
        }
    }
}
