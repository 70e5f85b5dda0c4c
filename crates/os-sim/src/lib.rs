//! A simulated Windows node.

pub mod fault;
pub mod probe;
pub mod race;
pub mod service;
pub mod smbios;
pub mod trace;
pub mod wql;
