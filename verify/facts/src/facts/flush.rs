//! Flushing: `FLUSH`.

use os::{Access, OsError};

use super::calls::assert_fails;
use super::devices::{FAILING, READ_WRITE};
use crate::fact::Fact;
use crate::node::VolumeKind;

pub(crate) const FACTS: &[Fact] = &[
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
