//! Devices and file systems: the requests that Windows offers, with typed buffers, and the decoding
//! of the answers.
//!
//! This layer knows no storage provider, no thread and no lock.

pub(crate) mod buffer;
pub(crate) mod disk;
pub(crate) mod disk_identifiers;
pub(crate) mod file_system;
pub(crate) mod partition_table;
pub(crate) mod reparse_point;
pub(crate) mod smbios;
pub(crate) mod volume;

pub(crate) use disk::Disk;
pub(crate) use file_system::FileSystem;
pub use partition_table::Partition;
pub(crate) use partition_table::{PartitionKind, PartitionTable, TableStyle};
pub(crate) use reparse_point::Link;
