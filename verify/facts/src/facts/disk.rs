//! Disks as devices: `DISK`.

use os::abi::{ControlCode, LengthInformation};
use os::{Access, NtPath, Open, Options, OsError};

use crate::fact::{Fact, Verdict};
use crate::node::{DiskKind, TestNode};

pub(crate) const FACTS: &[Fact] = &[Fact::published(
    "DISK-04",
    "IOCTL_DISK_GET_LENGTH_INFO with a short buffer fails with BUFFER_TOO_SMALL (122).",
    "CL disk.c; DDI IOCTL_DISK_GET_LENGTH_INFO",
    a_short_buffer_for_the_length_is_refused,
)];

fn a_short_buffer_for_the_length_is_refused(node: &dyn TestNode) -> Verdict {
    let disk = node.disk(DiskKind::Raw)?;
    let how = Open::existing(Access::GENERIC_READ, Options::empty());
    let handle = node.os().open(&NtPath::disk(disk.number), &how).expect("the disk opens");
    let mut output = [0; size_of::<LengthInformation>()];
    assert_eq!(handle.control(ControlCode::DISK_GET_LENGTH_INFO, &[], &mut output), Ok(output.len()));
    let short = handle.control(ControlCode::DISK_GET_LENGTH_INFO, &[], &mut output[..4]);
    assert_eq!(short, Err(OsError::INSUFFICIENT_BUFFER));
    Ok(())
}
