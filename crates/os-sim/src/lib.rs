//! A simulated Windows node.

pub mod fault;
pub mod iscsi;
pub mod method;
pub mod probe;
pub mod race;
pub mod service;
pub mod smb;
pub mod smbios;
pub mod trace;
pub mod wql;
