//! The storage operations, one module for each API group.

pub(crate) mod disk;
pub(crate) mod filesystem;
pub(crate) mod iscsi;
pub(crate) mod smb;
pub(crate) mod system;
pub(crate) mod volume;
