//! WMI, and the storage provider of Windows behind it.

pub(crate) mod msft_storage;
pub(crate) mod wmi;
