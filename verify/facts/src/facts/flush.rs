//! Flushing: `FLUSH`.

use os::{Access, Options, OsError};

use super::calls::{APPEND_DATA, assert_fails};
use super::devices::{FAILING, READ_WRITE};
use crate::fact::Fact;
use crate::node::VolumeKind;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FLUSH-01", |node| {
        let directory = node.directory_with_file();
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
        let flush = |access| volume.open(node.os(), access).expect("the volume opens").flush();
        assert_eq!(flush(READ_WRITE), Ok(()));
        assert_eq!(flush(Access::GENERIC_READ), Err(OsError::ACCESS_DENIED));
    }),
    Fact::new("FLUSH-04", |node| {
        let volume = node.volume(VolumeKind::Unreadable);
        let flushed = volume.open(node.os(), READ_WRITE).expect("the volume opens").flush();
        assert_fails(flushed, &FAILING);
    }),
];
