//! Tests of the system and of this process: firmware tables, memory and handles.

use csi_proxy_os_win32::Windows;
use csi_proxy_os_win32::own_process::{cpu_time, handle_count, working_set};
use os::Os as _;
use os::abi::{FIRMWARE_SMBIOS, RawSmbios};
use zerocopy::FromBytes as _;

use crate::skip::skipped_by_wine;

#[test]
fn a_table_has_the_length_that_its_head_says() {
    let windows = Windows::new();
    let mut table = vec![0; windows.firmware_table(FIRMWARE_SMBIOS, 0, &mut []).unwrap()];
    assert_eq!(windows.firmware_table(FIRMWARE_SMBIOS, 0, &mut table), Ok(table.len()));
    let (head, rest) = RawSmbios::read_from_prefix(&table).unwrap();
    assert_eq!(head.length as usize, rest.len());
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
fn a_running_process_uses_memory_and_handles() {
    assert!(working_set().unwrap() > 1 << 16);
    let before = cpu_time().unwrap();
    assert!(cpu_time().unwrap() >= before);
    if handle_count().unwrap() == 0 {
        skipped_by_wine("the number of handles is always 0");
    }
}
