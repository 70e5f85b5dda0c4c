//! The firmware's SMBIOS table, from which the BIOS serial number is read.
//!
//! A structure is a head (type, length, handle), its fields, and then its strings, each ending with a zero byte and
//! all of them with one more. A field that is a string holds its number among those, counted from 1; 0 is none.

use os::abi::RawSmbios;
use zerocopy::IntoBytes;

/// Where a System Information structure has the number of its serial number's string.
const SERIAL_FIELD: usize = 7;

/// The table of a machine with this serial number, as `firmware_table` gives it.
///
/// Without a serial number the structure is there, but its field holds 0.
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
    raw(&[structure(0, &bios, &["Simulated", "1.0"]), structure(1, &fields, &system), structure(127, &[], &[])])
}

/// The table of a machine that has no System Information structure at all.
pub fn table_without_system() -> Vec<u8> {
    raw(&[structure(0, &[1], &["Simulated"]), structure(127, &[], &[])])
}

/// A structure's head: type, length, handle.
const HEAD: usize = 4;

/// One structure of `kind`, with its strings.
pub fn structure(kind: u8, fields: &[u8], strings: &[&str]) -> Vec<u8> {
    let length = u8::try_from(HEAD + fields.len()).expect("a structure is at most 255 bytes long");
    // The handle only has to be unique, which the type is here.
    let mut bytes = vec![kind, length, kind, 0];
    bytes.extend_from_slice(fields);
    for string in strings {
        bytes.extend_from_slice(string.as_bytes());
        bytes.push(0);
    }
    // Without strings there are two zero bytes all the same.
    let end: &[u8] = if strings.is_empty() { &[0, 0] } else { &[0] };
    bytes.extend_from_slice(end);
    bytes
}

/// Structures, one after the other, behind the head that Windows puts before them.
pub fn raw(structures: &[Vec<u8>]) -> Vec<u8> {
    let table = structures.concat();
    let length = u32::try_from(table.len()).expect("a table is at most 4 GiB long");
    let head = RawSmbios { calling_method: 0, major: 3, minor: 2, dmi_revision: 0, length };
    let mut bytes = head.as_bytes().to_vec();
    bytes.extend_from_slice(&table);
    bytes
}

#[cfg(test)]
mod tests {
    use super::{raw, structure, table, table_without_system};

    /// A reader of its own, after the specification: the serial string of the first structure of type 1.
    fn serial(raw: &[u8]) -> Option<String> {
        let length = u32::from_le_bytes(raw[4..8].try_into().expect("four bytes"));
        let mut rest = &raw[8..];
        assert_eq!(rest.len(), usize::try_from(length).expect("a length"));
        loop {
            let (kind, formatted) = (rest[0], usize::from(rest[1]));
            let end = formatted + rest[formatted..].windows(2).position(|pair| pair == [0, 0]).expect("an end");
            let mut strings = rest[formatted..end].split(|byte| *byte == 0);
            match kind {
                127 => return None,
                1 => {
                    let number = usize::from(rest[7]).checked_sub(1)?;
                    return strings.nth(number).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                }
                _ => rest = &rest[end + 2..],
            }
        }
    }

    #[test]
    fn the_serial_number_is_read_back_with_its_blanks() {
        let text = "VMware-42 2d 0f  8a ";
        assert_eq!(serial(&table(Some(text))).as_deref(), Some(text));
    }

    #[test]
    fn a_machine_may_have_no_serial_number_or_no_structure_for_it() {
        assert_eq!(serial(&table(None)), None);
        assert_eq!(serial(&table_without_system()), None);
    }

    #[test]
    fn a_structure_without_strings_ends_with_two_zero_bytes() {
        assert_eq!(structure(127, &[], &[]), [127, 4, 127, 0, 0, 0]);
        assert_eq!(structure(1, &[9], &["ab"]), [1, 5, 1, 0, 9, b'a', b'b', 0, 0]);
        assert_eq!(raw(&[])[4..], [0, 0, 0, 0]);
    }
}
