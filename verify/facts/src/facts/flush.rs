//! Flushing: `FLUSH`.

use os::{Access, NtPath, Open, Options, OsError};

use crate::fact::Fact;
use crate::node::VolumeKind;

/// `FILE_APPEND_DATA`.
const APPEND_DATA: Access = Access::from_bits_retain(0x0004);

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "FLUSH-01",
        "Flushing a file needs FILE_WRITE_DATA or FILE_APPEND_DATA, and fails with ACCESS_DENIED (5) on a handle \
         that can only read.",
        "WF test_flush_buffers_file",
        |node| {
            let directory = node.directory();
            directory.write("file", b"content");
            let flush = |access| directory.existing("file", access, Options::empty()).expect("the file opens").flush();
            for access in [Access::WRITE_DATA, APPEND_DATA, Access::GENERIC_WRITE] {
                assert_eq!(flush(access), Ok(()), "{access:?}");
            }
            for access in [Access::READ_DATA, Access::READ_ATTRIBUTES, Access::GENERIC_READ] {
                assert_eq!(flush(access), Err(OsError::ACCESS_DENIED), "{access:?}");
            }
        },
    ),
    Fact::published(
        "FLUSH-02",
        "Flushing a volume needs GENERIC_WRITE on its name without a final backslash, and fails with ACCESS_DENIED \
         (5) on a handle with GENERIC_READ only.",
        "SDK FlushFileBuffers",
        |node| {
            let volume = node.volume(VolumeKind::Ntfs);
            let flush = |access| {
                let how = Open::existing(access, Options::empty());
                node.os().open(&NtPath::volume(volume.id), &how).expect("the volume opens").flush()
            };
            assert_eq!(flush(Access::GENERIC_READ | Access::GENERIC_WRITE), Ok(()));
            assert_eq!(flush(Access::GENERIC_READ), Err(OsError::ACCESS_DENIED));
        },
    ),
    Fact::assumed(
        "FLUSH-04",
        "Flushing a volume on a failing disk fails with CRC (23), GEN_FAILURE (31) or IO_DEVICE (1117).",
        "The code is that of the device. WriteVolumeCache and UnmountVolume fail with every code except \
         WRITE_PROTECT.",
        |node| {
            let volume = node.volume(VolumeKind::Unreadable);
            let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
            let flushed = volume.open(node.os(), access).expect("the volume opens").flush();
            let codes = [OsError::CRC, OsError::GEN_FAILURE, OsError::IO_DEVICE];
            assert!(flushed.is_err_and(|code| codes.contains(&code)), "{flushed:?}");
        },
    ),
];
