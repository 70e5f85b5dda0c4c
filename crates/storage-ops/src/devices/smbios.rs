//! The serial number of the machine in the SMBIOS tables.
//!
//! <https://www.dmtf.org/standards/smbios>

use os::abi::{FIRMWARE_SMBIOS, RawSmbios};
use os::{Os, OsResult};

use crate::devices::buffer;

/// The type of the structure "system information".
const SYSTEM: u8 = 1;
/// The type of the structure that ends the table.
const END: u8 = 127;
/// The offset, in "system information", of the index of the serial number in the list of strings.
const SERIAL_INDEX: usize = 7;
/// The length of the header of a structure: type, length, handle.
const HEADER: usize = 4;

/// Reads the serial number in the firmware's table. Returns `None` if the table has none.
pub(crate) fn read_serial(os: &dyn Os) -> OsResult<Option<String>> {
    let mut table = vec![0; 4096];
    // The first call may return only the size; the table does not change while the system runs.
    for _ in 0..2 {
        match os.firmware_table(FIRMWARE_SMBIOS, 0, &mut table)? {
            size if size <= table.len() => return Ok(serial(&table[..size])),
            size => table = vec![0; size.min(buffer::MAX_SIZE)],
        }
    }
    Ok(None)
}

/// Returns the serial number, verbatim; `None` if there is no serial number or the table is
/// malformed.
pub(crate) fn serial(raw: &[u8]) -> Option<String> {
    let head: RawSmbios = buffer::at(raw, 0)?;
    let table = raw.get(size_of::<RawSmbios>()..)?;
    let mut rest = table
        .get(..usize::try_from(head.length).ok()?)
        .unwrap_or(table);
    loop {
        let (kind, length) = (*rest.first()?, usize::from(*rest.get(1)?));
        if kind == END || length < HEADER {
            return None;
        }
        let (formatted, strings) = rest.split_at_checked(length)?;
        if kind == SYSTEM {
            let index = usize::from(*formatted.get(SERIAL_INDEX)?).checked_sub(1)?;
            let set = &strings[..end_of(strings)?];
            let text = set
                .split(|byte| *byte == 0)
                .nth(index)
                .filter(|text| !text.is_empty())?;
            return Some(text.iter().map(|byte| char::from(*byte)).collect());
        }
        rest = &strings[end_of(strings)?..];
    }
}

/// Returns the length of the strings of a structure, with the two zero bytes that end them.
fn end_of(strings: &[u8]) -> Option<usize> {
    strings
        .windows(2)
        .position(|pair| pair == [0, 0])
        .map(|at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::serial;

    fn table(structures: &[&[u8]]) -> Vec<u8> {
        let body = structures.concat();
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        [&[0, 2, 8, 0][..], &length, &body].concat()
    }

    const BIOS: &[u8] = b"\x00\x05\x00\x00\x01Phoenix\0\0";
    const END: &[u8] = b"\x7f\x04\xff\xff\0\0";

    #[test]
    fn contract_30_the_serial_number_is_verbatim() {
        let system =
            b"\x01\x08\x01\x00\x01\x02\x00\x03VMware, Inc.\0VMware7,1\0VMware-56 4d 0d  4e\0\0";
        assert_eq!(
            serial(&table(&[BIOS, system, END])).as_deref(),
            Some("VMware-56 4d 0d  4e")
        );
    }

    #[test]
    fn a_table_without_a_serial_number_has_none() {
        let no_index = b"\x01\x08\x01\x00\x01\x00\x00\x00Maker\0\0";
        let short = b"\x01\x06\x01\x00\x01\x00Maker\0\0";
        let dangling = b"\x01\x08\x01\x00\x01\x00\x00\x09Maker\0\0";
        for structures in [
            &[BIOS, END][..],
            &[BIOS, no_index, END],
            &[short, END],
            &[dangling, END],
            &[],
        ] {
            assert_eq!(serial(&table(structures)), None);
        }
    }

    const SYSTEM: &[u8] = b"\x01\x08\x01\x00\x00\x00\x00\x01serial\0\0";

    #[test]
    fn a_structure_may_be_a_header_and_nothing_is_read_behind_a_malformed_one_or_the_end() {
        let bare = b"\x80\x04\x00\x00\0\0";
        assert_eq!(
            serial(&table(&[bare, SYSTEM, END])).as_deref(),
            Some("serial")
        );
        for length in 0..4 {
            assert_eq!(
                serial(&table(&[&[0x80, length, 0, 0, 0, 0], SYSTEM, END])),
                None,
                "{length}"
            );
        }
        assert_eq!(serial(&table(&[BIOS, END, SYSTEM])), None);
    }
}
