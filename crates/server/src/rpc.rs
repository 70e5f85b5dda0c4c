//! From an HTTP/2 request to an operation and back: routing, decoding, running, encoding.

pub(crate) mod call;
pub(crate) mod convert;
pub(crate) mod disk;
pub(crate) mod filesystem;
pub(crate) mod handlers;
pub(crate) mod iscsi;
pub(crate) mod router;
pub(crate) mod smb;
pub(crate) mod status;
pub(crate) mod system;
pub(crate) mod volume;
