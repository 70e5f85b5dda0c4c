//! WMI, and the storage provider and the iSCSI initiator of Windows behind it.

mod comparison;
pub(crate) mod instances;
pub(crate) mod msft_iscsi;
pub(crate) mod msft_storage;
pub(crate) mod report;
mod return_values;
pub(crate) mod wmi;
