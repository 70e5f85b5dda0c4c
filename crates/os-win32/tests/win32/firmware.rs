//! Tests of firmware tables.

use std::time::Duration;

use csi_proxy_os_win32::Windows;
use os::abi::{FIRMWARE_SMBIOS, RawSmbios};
use os::{Namespace, Os as _};
use zerocopy::FromBytes as _;

use crate::scratch::turn;
use crate::skip::skipped_by_wine;

/// Returns the tables of SMBIOS, without the head.
fn smbios(windows: &Windows) -> Vec<u8> {
    let size = windows.firmware_table(FIRMWARE_SMBIOS, 0, &mut []).unwrap();
    let mut table = vec![0; size];
    assert_eq!(windows.firmware_table(FIRMWARE_SMBIOS, 0, &mut table), Ok(size));
    let (head, rest) = RawSmbios::read_from_prefix(&table).unwrap();
    assert_eq!(head.length as usize, rest.len());
    rest.to_vec()
}

/// Returns the serial number in the structure of type 1, if it has one.
fn serial_number(mut table: &[u8]) -> Option<String> {
    loop {
        let [kind, length, ..] = *table else { return None };
        let (formatted, rest) = table.split_at(usize::from(length));
        // Zero-terminated strings follow, and then another zero.
        let end = rest.windows(2).position(|pair| pair == [0, 0])?;
        if kind == 1 {
            let index = usize::from(formatted[7]);
            let text = rest[..end].split(|&byte| byte == 0).nth(index.checked_sub(1)?)?;
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        table = &rest[end + 2..];
    }
}

#[test]
fn a_table_that_does_not_fit_leaves_the_buffer_unchanged() {
    let windows = Windows::new();
    let mut small = [0xaa; 16];
    assert!(windows.firmware_table(FIRMWARE_SMBIOS, 0, &mut small).unwrap() > small.len());
    assert_eq!(small, [0xaa; 16]);
}

#[test]
fn a_provider_that_does_not_exist_is_an_error() {
    assert!(Windows::new().firmware_table(0x5858_5858, 0, &mut [0; 64]).is_err());
}

#[test]
fn the_serial_number_equals_that_of_wmi() {
    let windows = Windows::new();
    let Some(ours) = serial_number(&smbios(&windows)) else {
        return skipped_by_wine("this machine's SMBIOS has no serial number");
    };
    let _turn = turn();
    let deadline = windows.clock().now() + Duration::from_mins(1);
    let bios = windows.wmi().query(Namespace::CimV2, "SELECT SerialNumber FROM Win32_BIOS", deadline).unwrap();
    let theirs = bios[0].text("SerialNumber").expect("a serial number");
    if !smbios(&windows).split(|&byte| byte == 0).any(|text| text == theirs.as_bytes()) {
        return skipped_by_wine(&format!("Win32_BIOS answers {theirs:?}, which SMBIOS does not contain"));
    }
    assert_eq!(theirs, ours);
}
