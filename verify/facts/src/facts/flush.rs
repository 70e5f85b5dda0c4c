//! Flushing: `FLUSH`.

use os::{Access, NtPath, Open, Options, OsError};

use crate::fact::Fact;
use crate::node::VolumeKind;

/// `FILE_APPEND_DATA`.
const APPEND_DATA: Access = Access::from_bits_retain(0x0004);

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FLUSH-01", |node| {
        let directory = node.directory();
        directory.write("file", b"content");
        let flush = |access| directory.existing("file", access, Options::empty()).expect("the file opens").flush();
        for access in [Access::WRITE_DATA, APPEND_DATA, Access::GENERIC_WRITE] {
            assert_eq!(flush(access), Ok(()), "{access:?}");
        }
        for access in [Access::READ_DATA, Access::READ_ATTRIBUTES, Access::GENERIC_READ] {
            assert_eq!(flush(access), Err(OsError::ACCESS_DENIED), "{access:?}");
        }
    }),
    Fact::new("FLUSH-02", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let flush = |access| {
            let how = Open::existing(access, Options::empty());
            node.os().open(&NtPath::volume(volume.id), &how).expect("the volume opens").flush()
        };
        assert_eq!(flush(Access::GENERIC_READ | Access::GENERIC_WRITE), Ok(()));
        assert_eq!(flush(Access::GENERIC_READ), Err(OsError::ACCESS_DENIED));
    }),
    Fact::new("FLUSH-04", |node| {
        let volume = node.volume(VolumeKind::Unreadable);
        let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
        let flushed = volume.open(node.os(), access).expect("the volume opens").flush();
        let codes = [OsError::CRC, OsError::GEN_FAILURE, OsError::IO_DEVICE];
        assert!(flushed.is_err_and(|code| codes.contains(&code)), "{flushed:?}");
    }),
];
