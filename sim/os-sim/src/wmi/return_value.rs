//! The return values of the storage provider's methods.
//!
//! <https://learn.microsoft.com/windows-hardware/drivers/storage/storage-management-api-common-return-codes>

pub(crate) const DONE: u32 = 0;
pub(crate) const NOT_SUPPORTED: u32 = 1;
pub(crate) const FAILED: u32 = 4;
pub(crate) const INVALID_PARAMETER: u32 = 5;
pub(crate) const IN_USE: u32 = 6;
pub(crate) const SIZE_NOT_SUPPORTED: u32 = 4097;
pub(crate) const NO_SPACE: u32 = 40000;
pub(crate) const ACCESS_DENIED: u32 = 40001;
pub(crate) const STALE_CACHE: u32 = 40003;
pub(crate) const NOT_INITIALIZED: u32 = 41000;
pub(crate) const ALREADY_INITIALIZED: u32 = 41001;
pub(crate) const DISK_READ_ONLY: u32 = 41002;
pub(crate) const DISK_OFFLINE: u32 = 41003;
pub(crate) const CRITICAL_DISK: u32 = 41009;
pub(crate) const TOO_SMALL_FOR_GPT: u32 = 41014;
pub(crate) const INVALID_ACCESS_PATH: u32 = 42007;
pub(crate) const UNKNOWN_FILE_SYSTEM: u32 = 42009;
pub(crate) const SYSTEM_PARTITION: u32 = 42010;
pub(crate) const NO_DATA_PARTITION: u32 = 42011;
pub(crate) const BAD_CLUSTER_SIZE: u32 = 43000;
pub(crate) const FILE_SYSTEM_NOT_SUPPORTED: u32 = 43001;
pub(crate) const TOO_MANY_CLUSTERS: u32 = 43003;
pub(crate) const VOLUME_READ_ONLY: u32 = 43006;
