//! The return values of the storage provider's methods.

use os::OsError;

use crate::error::{ErrorKind, OperationError};

use ErrorKind::{Busy, FailedPrecondition, Internal, PermissionDenied, StillRunning};

/// The return values that operations distinguish.
pub(crate) mod code {
    use os::OsError;

    pub(crate) const NOT_SUPPORTED: OsError = OsError(1);
    pub(crate) const INVALID_PARAMETER: OsError = OsError(5);
    pub(crate) const IN_USE: OsError = OsError(6);
    pub(crate) const SIZE_NOT_SUPPORTED: OsError = OsError(4097);
    pub(crate) const DEVICE_BUSY: OsError = OsError(4099);
    pub(crate) const NO_SPACE: OsError = OsError(40000);
    pub(crate) const ACCESS_DENIED: OsError = OsError(40001);
    pub(crate) const STALE_CACHE: OsError = OsError(40003);
    pub(crate) const NOT_INITIALIZED: OsError = OsError(41000);
    pub(crate) const ALREADY_INITIALIZED: OsError = OsError(41001);
    pub(crate) const DISK_READ_ONLY: OsError = OsError(41002);
    pub(crate) const DISK_OFFLINE: OsError = OsError(41003);
    /// The partition was created, but no access path was assigned. None was requested.
    pub(crate) const PATH_NOT_ASSIGNED: OsError = OsError(42002);
    pub(crate) const VOLUME_READ_ONLY: OsError = OsError(43006);
}

const CLUSTERED: &str = "the disk belongs to a cluster";
const NODE_USES: &str = "the disk is one that the node itself uses";
const FORMAT_FLAGS: &str =
    "-format-file-system or -format-allocation-unit does not suit the volume";
const NOT_VALID: &str = "a parameter is not valid";
const NO_REASON: &str = "the provider gives no reason";
const SNAPSHOT_FAILED: &str = "a snapshot for a scan of the volume failed";

/// Each return value that the pages of the methods of `MSFT_Disk`, `MSFT_Partition` and
/// `MSFT_Volume` name, in ascending order. [`Internal`] are those that name a parameter, which
/// csi-proxy chooses, and those that give no reason.
///
/// <https://learn.microsoft.com/windows-hardware/drivers/storage/storage-management-api-common-return-codes>
/// <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-disk>
/// <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-partition>
/// <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume>
const RETURN_VALUES: &[(u32, ErrorKind, &str)] = &[
    (
        1,
        FailedPrecondition,
        "the provider does not support the operation",
    ),
    (2, Internal, NO_REASON),
    (3, StillRunning, "the provider timed out"),
    (4, Internal, NO_REASON),
    (5, Internal, NOT_VALID),
    (6, Busy, "the object is in use"),
    (
        7,
        FailedPrecondition,
        "a 32-bit program cannot do this on a 64-bit system",
    ),
    (
        8,
        FailedPrecondition,
        "the provider does not find the object",
    ),
    (4096, StillRunning, "the provider goes on with a job"),
    (4097, FailedPrecondition, "the size is not supported"),
    (4098, Internal, "the time-out is not supported"),
    (4099, Busy, "the object is in use"),
    (40000, FailedPrecondition, "there is not enough free space"),
    (40001, PermissionDenied, "access is denied"),
    (
        40002,
        FailedPrecondition,
        "the system has not enough resources",
    ),
    (
        40003,
        FailedPrecondition,
        "the cache of the provider is out of date",
    ),
    (40004, FailedPrecondition, "the disk reported an I/O error"),
    (40005, Internal, "the size is missing, or given twice"),
    (
        40006,
        FailedPrecondition,
        "the object is not in the cache of the provider",
    ),
    (40007, FailedPrecondition, "the hardware of the disk fails"),
    (40018, FailedPrecondition, CLUSTERED),
    (41000, FailedPrecondition, "the disk has no partition table"),
    (
        41001,
        FailedPrecondition,
        "the disk has a partition table already",
    ),
    (41002, FailedPrecondition, "the disk is read-only"),
    (41003, FailedPrecondition, "the disk is offline"),
    (
        41004,
        FailedPrecondition,
        "the disk has as many partitions as its table can hold",
    ),
    (
        41005,
        Internal,
        "the alignment of the partition is not valid",
    ),
    (
        41006,
        Internal,
        "a parameter does not suit the type of the partition",
    ),
    (
        41007,
        FailedPrecondition,
        "the disk has partitions of the manufacturer",
    ),
    (41008, FailedPrecondition, "the disk has data partitions"),
    (41009, PermissionDenied, NODE_USES),
    (41010, Internal, "the type of the partition is not valid"),
    (
        41011,
        FailedPrecondition,
        "a disk with an MBR has at most 2 TiB for partitions",
    ),
    (41012, Internal, "the offset of the partition is not valid"),
    (
        41013,
        FailedPrecondition,
        "the partition table of a disk with partitions cannot be converted",
    ),
    (41014, FailedPrecondition, "the disk is too small for a GPT"),
    (41015, FailedPrecondition, "there is no medium in the drive"),
    (41016, Internal, "the offset of the partition is not valid"),
    (41017, Internal, "the layout of the partitions is not valid"),
    (41018, FailedPrecondition, CLUSTERED),
    (41019, FailedPrecondition, CLUSTERED),
    (
        42000,
        FailedPrecondition,
        "the partition was deleted, but its access paths remain",
    ),
    (
        42001,
        FailedPrecondition,
        "the extended partition has partitions",
    ),
    (42002, FailedPrecondition, "the access path is in use"),
    (42004, Internal, "a hidden partition has no access paths"),
    (
        42005,
        FailedPrecondition,
        "the GUID path of a volume cannot be removed",
    ),
    (
        42006,
        PermissionDenied,
        "the node itself uses the drive letter",
    ),
    (42007, FailedPrecondition, "the access path is not valid"),
    (
        42008,
        FailedPrecondition,
        "the volume has errors, so its partition cannot shrink",
    ),
    (
        42009,
        FailedPrecondition,
        "the file system cannot be resized",
    ),
    (42010, PermissionDenied, NODE_USES),
    (
        42011,
        FailedPrecondition,
        "the partition is not one for data",
    ),
    (
        42012,
        FailedPrecondition,
        "the partition has a drive letter already",
    ),
    (
        42013,
        FailedPrecondition,
        "partitions of this type have no drive letter",
    ),
    (43000, FailedPrecondition, FORMAT_FLAGS),
    (43001, FailedPrecondition, FORMAT_FLAGS),
    (
        43002,
        FailedPrecondition,
        "the volume does not allow a quick format",
    ),
    (43003, FailedPrecondition, FORMAT_FLAGS),
    (
        43004,
        FailedPrecondition,
        "the version of UDF is not supported",
    ),
    (43005, FailedPrecondition, FORMAT_FLAGS),
    (43006, FailedPrecondition, "the disk is read-only"),
    (43007, FailedPrecondition, "the repair of the volume failed"),
    (43008, FailedPrecondition, "the scan of the volume failed"),
    (43009, FailedPrecondition, SNAPSHOT_FAILED),
    (43010, Busy, "a scan of the volume is running"),
    (43011, FailedPrecondition, SNAPSHOT_FAILED),
    (43012, FailedPrecondition, SNAPSHOT_FAILED),
    (
        43013,
        FailedPrecondition,
        "the volume cannot be opened for direct access",
    ),
    (
        43014,
        FailedPrecondition,
        "the file system of the volume cannot be determined",
    ),
    (
        43015,
        FailedPrecondition,
        "a group policy forbids the change",
    ),
    (
        43016,
        FailedPrecondition,
        "a setting in the registry forbids the change",
    ),
    (
        43020,
        FailedPrecondition,
        "this Windows lacks the feature for deduplication",
    ),
    (43021, FailedPrecondition, "the volume has no deduplication"),
    (
        46000,
        FailedPrecondition,
        "the storage provider cannot be reached",
    ),
    (
        46001,
        FailedPrecondition,
        "the storage provider cannot reach the storage subsystem",
    ),
    (48007, FailedPrecondition, "the storage pool is read-only"),
    (
        59000,
        FailedPrecondition,
        "the health resource of the cluster cannot be reached",
    ),
];

/// The first return value of the provider's own. No code of Windows is this high and has no
/// `HRESULT` bits, and none is a value between 4096 and 4099.
const OWN: u32 = 40000;

fn find(code: OsError) -> Option<&'static (u32, ErrorKind, &'static str)> {
    RETURN_VALUES.iter().find(|(value, ..)| *value == code.0)
}

/// Returns whether an error of a call can only be a return value of the provider. The lowest return
/// values are also codes of Windows, with another meaning.
pub(crate) fn is_of_provider(code: OsError) -> bool {
    code.0 >= 4096 && find(code).is_some()
}

/// Returns the error for a return value of `method`.
pub(crate) fn method_error(method: &str, code: OsError) -> OperationError {
    let (kind, reason) = match find(code) {
        Some((_, kind, reason)) => (*kind, format!(": {reason}")),
        // The values of storage pools and virtual disks, and those of later versions.
        None if code.0 >= OWN => (FailedPrecondition, String::new()),
        None => (Internal, String::new()),
    };
    let value = code.0;
    let reason = format!("the storage provider's {method} failed{reason} ({value})");
    OperationError {
        code: Some(code),
        ..OperationError::new(kind, reason)
    }
}

#[cfg(test)]
mod tests {
    use os::OsError;

    use super::{RETURN_VALUES, method_error};
    use crate::error::ErrorKind;

    #[test]
    fn each_return_value_is_in_one_row_and_an_unknown_one_is_reported_by_its_number() {
        assert!(RETURN_VALUES.is_sorted_by(|one, next| one.0 < next.0));
        for (code, kind) in [
            (9, ErrorKind::Internal),
            (50003, ErrorKind::FailedPrecondition),
        ] {
            let error = method_error("Format", OsError(code));
            assert_eq!((error.kind, error.code), (kind, Some(OsError(code))));
            assert_eq!(
                error.to_string(),
                format!("the storage provider's Format failed ({code})")
            );
        }
    }
}
