//! Simulates the firmware's SMBIOS table, which has the BIOS serial number.
//!
//! A structure consists of a header (type, length, handle), its fields and its strings. A zero byte
//! ends each string, and another zero byte ends the list of strings. A string field holds the
//! number of its string, counted from 1, or 0.

use os::abi::RawSmbios;
use zerocopy::IntoBytes;

/// The offset of the serial number's field in a System Information structure.
const SERIAL_FIELD: usize = 7;

/// Returns the table of a machine with this serial number, as `firmware_table` returns it.
///
/// Without a serial number, the field of the structure is 0.
pub fn table(serial: Option<&str>) -> Vec<u8> {
    let mut system = vec!["Simulated", "Node", "1.0"];
    let mut fields = [0; 23];
    fields[..3].copy_from_slice(&[1, 2, 3]);
    if let Some(serial) = serial {
        system.push(serial);
        fields[SERIAL_FIELD - HEAD] = 4;
    }
    let mut bios = [0; 20];
    bios[..2].copy_from_slice(&[1, 2]);
    raw(&[
        structure(0, &bios, &["Simulated", "1.0"]),
        structure(1, &fields, &system),
        structure(127, &[], &[]),
    ])
}

/// The length of a structure's header: type, length and handle.
const HEAD: usize = 4;

/// Returns a structure of type `kind` with its strings.
pub fn structure(kind: u8, fields: &[u8], strings: &[&str]) -> Vec<u8> {
    let length = u8::try_from(HEAD + fields.len()).expect("a structure is at most 255 bytes long");
    // The handle must be unique. The type is, in the tables that are built here.
    let mut bytes = vec![kind, length, kind, 0];
    bytes.extend_from_slice(fields);
    for string in strings {
        bytes.extend_from_slice(string.as_bytes());
        bytes.push(0);
    }
    // A structure without strings also ends with two zero bytes.
    let end: &[u8] = if strings.is_empty() { &[0, 0] } else { &[0] };
    bytes.extend_from_slice(end);
    bytes
}

/// Returns a table of structures with the header that Windows puts before it.
pub fn raw(structures: &[Vec<u8>]) -> Vec<u8> {
    let table = structures.concat();
    let length = u32::try_from(table.len()).expect("a table is at most 4 GiB long");
    let head = RawSmbios {
        calling_method: 0,
        major: 3,
        minor: 2,
        dmi_revision: 0,
        length,
    };
    let mut bytes = head.as_bytes().to_vec();
    bytes.extend_from_slice(&table);
    bytes
}

#[cfg(test)]
mod tests {
    use super::{raw, structure};

    #[test]
    fn a_structure_without_strings_ends_with_two_zero_bytes() {
        assert_eq!(structure(127, &[], &[]), [127, 4, 127, 0, 0, 0]);
        assert_eq!(
            structure(1, &[9], &["ab"]),
            [1, 5, 1, 0, 9, b'a', b'b', 0, 0]
        );
        assert_eq!(raw(&[])[4..], [0, 0, 0, 0]);
    }
}
