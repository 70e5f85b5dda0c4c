//! The system: volatile registry keys (`REG`), names and addresses of the node (`NODE`), firmware
//! (`SMBIOS`).

use std::net::IpAddr;

use os::abi::{FIRMWARE_SMBIOS, RawSmbios};
use os::{Namespace, OsError, OsResult, U16String, Value};
use zerocopy::FromBytes;

use super::network::select;
use crate::fact::Fact;
use crate::node::{TestNode, missing};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("REG-01", |node| {
        let long = "x".repeat(2000);
        for text in ["found", "", &long] {
            set(node, text);
            assert_eq!(read(node, VALUE).as_deref(), Ok(text));
        }
        assert_eq!(delete(node), Ok(()));
    }),
    Fact::new("REG-02", |node| {
        set(node, "found");
        assert_eq!(read(node, VALUE).as_deref(), Ok("found"));
        node.restart();
        assert_eq!(read(node, VALUE), Err(OsError::FILE_NOT_FOUND));
    }),
    Fact::new("REG-03", |node| {
        set(node, "found");
        assert_eq!(delete(node), Ok(()));
        assert_eq!(
            (read(node, VALUE), delete(node)),
            (Err(OsError::FILE_NOT_FOUND), Err(OsError::FILE_NOT_FOUND))
        );
        let missing = wide(r"SOFTWARE\csi-proxy-facts\missing");
        assert_eq!(
            node.os().registry_text(&missing, &wide(VALUE)),
            Err(OsError::FILE_NOT_FOUND)
        );
        assert_eq!(
            node.os().delete_registry_value(&missing, &wide(VALUE)),
            Err(OsError::FILE_NOT_FOUND)
        );
    }),
    Fact::new("REG-04", |node| {
        set(node, "found");
        assert_eq!(read(node, &VALUE.to_uppercase()).as_deref(), Ok("found"));
        assert_eq!(delete(node), Ok(()));
    }),
    Fact::new("NODE-01", |node| {
        let name = |property: &str| {
            let rows = select(node, Namespace::CimV2, "SELECT * FROM Win32_ComputerSystem");
            assert_eq!(rows.len(), 1);
            rows[0].text(property).expect("a name").to_owned()
        };
        let shortened: String = name("DNSHostName").chars().take(15).collect();
        assert!(
            !shortened.is_empty() && name("Name").eq_ignore_ascii_case(&shortened),
            "{shortened}"
        );
    }),
    Fact::new("NODE-02", |node| {
        let wql = "SELECT * FROM Win32_NetworkAdapterConfiguration WHERE IPEnabled = TRUE";
        let mut count = 0;
        for row in select(node, Namespace::CimV2, wql) {
            assert_eq!(row.bool("IPEnabled"), Some(true));
            let Some(Value::Array(addresses)) = row.get("IPAddress") else {
                continue;
            };
            for address in addresses {
                let Value::Text(text) = address else {
                    panic!("{address:?} is not a text")
                };
                text.parse::<IpAddr>()
                    .unwrap_or_else(|_| panic!("{text} is not an address"));
                count += 1;
            }
        }
        assert!(count > 0, "the node has an address");
    }),
    Fact::new("SMBIOS-01", |node| {
        let size = table(node).len();
        let short = node
            .os()
            .firmware_table(FIRMWARE_SMBIOS, 0, &mut vec![0; size - 1])
            .expect("a size");
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
        let serial =
            serial_number(structures).unwrap_or_else(|| missing("a serial number in the firmware"));
        let bios = select(
            node,
            Namespace::CimV2,
            "SELECT SerialNumber FROM Win32_BIOS",
        );
        assert_eq!(bios[0].text("SerialNumber"), Some(&*serial));
    }),
    Fact::new("SMBIOS-04", |node| {
        let unknown = node.os().firmware_table(0x5858_5858, 0, &mut [0; 64]);
        assert_eq!(unknown, Err(OsError::INVALID_FUNCTION));
    }),
];

const KEY: &str = r"SOFTWARE\csi-proxy-facts\volatile";
const VALUE: &str = r"\\files\one";

fn wide(text: &str) -> U16String {
    U16String::from_str(text)
}

fn set(node: &dyn TestNode, text: &str) {
    node.os()
        .set_volatile_text(&wide(KEY), &wide(VALUE), &wide(text))
        .expect("the text is set");
}

fn read(node: &dyn TestNode, value: &str) -> OsResult<String> {
    node.os()
        .registry_text(&wide(KEY), &wide(value))
        .map(|text| text.to_string_lossy())
}

fn delete(node: &dyn TestNode) -> OsResult<()> {
    node.os().delete_registry_value(&wide(KEY), &wide(VALUE))
}

/// Returns the table of RSMB with its head.
fn table(node: &dyn TestNode) -> Vec<u8> {
    let size = node
        .os()
        .firmware_table(FIRMWARE_SMBIOS, 0, &mut [])
        .expect("the size of the table");
    let mut table = vec![0; size];
    assert_eq!(
        node.os().firmware_table(FIRMWARE_SMBIOS, 0, &mut table),
        Ok(size)
    );
    table
}

/// Returns the serial number in the first structure of type 1.
fn serial_number(mut structures: &[u8]) -> Option<String> {
    loop {
        let [kind, length, ..] = *structures else {
            return None;
        };
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
