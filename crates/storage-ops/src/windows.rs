//! Windows' own formats and interfaces: device buffers, reparse points, SMBIOS tables, WMI and the storage provider.

pub(crate) mod buffer;
pub(crate) mod disk_device;
pub(crate) mod disk_identifiers;
pub(crate) mod error_class;
pub(crate) mod file_system_signatures;
pub(crate) mod msft_storage;
pub(crate) mod reparse_point;
pub(crate) mod smbios;
pub(crate) mod volume_device;
pub(crate) mod wmi;
