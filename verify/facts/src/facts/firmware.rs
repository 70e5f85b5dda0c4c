//! Firmware: `SMBIOS`.

use os::abi::{FIRMWARE_SMBIOS, RawSmbios};
use os::{Namespace, OsError};
use zerocopy::FromBytes;

use super::network::select;
use crate::fact::Fact;
use crate::node::{TestNode, missing};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("SMBIOS-01", |node| {
        let size = table(node).len();
        let short = node.os().firmware_table(FIRMWARE_SMBIOS, 0, &mut vec![0; size - 1]).expect("a size");
        assert!(short >= size, "{short} for a table of {size} bytes");
    }),
    Fact::new("SMBIOS-02", |node| {
        let table = table(node);
        assert_eq!(size_of::<RawSmbios>(), 8);
        let length = u32::from_le_bytes(table[4..8].try_into().expect("four bytes"));
        assert_eq!(length as usize, table.len() - 8);
        // The first structure says how long it is, and is in the table.
        assert!(table[9] >= 4 && usize::from(table[9]) < table.len() - 8);
    }),
    Fact::new("SMBIOS-03", |node| {
        let table = table(node);
        let (_, structures) = RawSmbios::read_from_prefix(&table).expect("a head");
        let serial = serial_number(structures).unwrap_or_else(|| missing("a serial number in the firmware"));
        let bios = select(node, Namespace::CimV2, "SELECT SerialNumber FROM Win32_BIOS");
        assert_eq!(bios[0].text("SerialNumber"), Some(&*serial));
    }),
    Fact::new("SMBIOS-04", |node| {
        let unknown = node.os().firmware_table(0x5858_5858, 0, &mut [0; 64]);
        assert_eq!(unknown, Err(OsError::INVALID_FUNCTION));
    }),
];

/// Returns the table of RSMB with its head.
fn table(node: &dyn TestNode) -> Vec<u8> {
    let size = node.os().firmware_table(FIRMWARE_SMBIOS, 0, &mut []).expect("the size of the table");
    let mut table = vec![0; size];
    assert_eq!(node.os().firmware_table(FIRMWARE_SMBIOS, 0, &mut table), Ok(size));
    table
}

/// Returns the serial number in the first structure of type 1.
fn serial_number(mut structures: &[u8]) -> Option<String> {
    loop {
        let [kind, length, ..] = *structures else { return None };
        let (formatted, rest) = structures.split_at_checked(usize::from(length))?;
        // Strings follow, each with a zero, and then another zero.
        let end = rest.windows(2).position(|pair| pair == [0, 0])?;
        if kind == 1 {
            let number = usize::from(*formatted.get(7)?).checked_sub(1)?;
            let text = rest[..end].split(|byte| *byte == 0).nth(number)?;
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        structures = &rest[end + 2..];
    }
}
