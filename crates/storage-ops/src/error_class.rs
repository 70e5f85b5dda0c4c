//! The meaning of Windows error codes: one table for all operations.
//!
//! Each row of [`TABLE`] has a code, the [`ErrorKind`] that is reported unless an operation chooses
//! a more specific one, and the [`ErrorClass`]es it belongs to. Similar classes differ on purpose;
//! the documentation of a class gives the reason. A code that is in no row is
//! [`ErrorKind::Internal`] and in no class.

use std::fmt;

use os::OsError;

use crate::error::{ErrorKind, OperationError};

use ErrorClass::{
    BufferTooSmall, CredentialsRefused, DeviceRemoved, DirectoryMissing, EntryDeleted,
    MediumFailed, NotInstalled, NotStarted, OutcomeUnknown, ServerUnreachable, TargetInvalid,
    TargetMissing, Unreadable, Unsupported, UnsupportedOrInvalid, VolumeChanging,
};
use ErrorKind::{
    AlreadyExists, Busy, FailedPrecondition, Internal, InvalidArgument, NotFound, PermissionDenied,
};

/// A set of codes that operations react to in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// A disk or volume, addressed as a device, has been removed.
    ///
    /// Does not contain `ERROR_NOT_READY`: a disk that is offline and a volume that is being
    /// formatted exist.
    DeviceRemoved,
    /// The target of a link or mount point does not exist, whether it is a path, a server or a
    /// volume.
    ///
    /// Contains codes of the network and of deletion, which no device returns. Does not contain
    /// `ERROR_NOT_READY`: a volume that is not ready exists, and a mount point that leads to it is
    /// not stale.
    TargetMissing,
    /// The target of a link is not a path that Windows can follow: links are not examined when they
    /// are created.
    ///
    /// Is of use only for a path that is valid itself.
    TargetInvalid,
    /// An entry, opened by its name in an open directory, has been deleted or is being deleted.
    ///
    /// Does not contain `ERROR_PATH_NOT_FOUND`: relative to an open handle that code means that the
    /// parent is not a usable directory, not that the entry has been deleted.
    EntryDeleted,
    /// A directory, opened by its path, does not exist.
    DirectoryMissing,
    /// A server refuses the user name, the password or the account.
    ///
    /// With any other code, the files that are open on an SMB mapping may become usable again.
    CredentialsRefused,
    /// A server cannot be reached: of the network, or of a server that is down, starts or is
    /// overloaded.
    ///
    /// Does not contain `ERROR_BAD_NET_NAME`, with which a server answers.
    ServerUnreachable,
    /// Another program has locked the volume, or has just formatted it.
    ///
    /// Contains `ERROR_NOT_READY`: a volume that is being formatted is dismounted and exists.
    VolumeChanging,
    /// WMI did not accept the request in time; nothing was started.
    NotStarted,
    /// The connection to WMI failed; whether the method ran, or still runs, is unknown.
    ///
    /// Does not contain the codes that state that a call did not run (`RPC_S_CALL_FAILED_DNE`,
    /// `RPC_E_SERVER_DIED_DNE`).
    OutcomeUnknown,
    /// WMI has no such namespace, class or method: this Windows lacks the feature.
    NotInstalled,
    /// The device or file system does not implement the request.
    Unsupported,
    /// Like [`Self::Unsupported`], for requests that select a property or an information class by
    /// number: drivers and file systems also refuse an unknown number with
    /// `ERROR_INVALID_PARAMETER`.
    UnsupportedOrInvalid,
    /// The output buffer is too small for the answer.
    BufferTooSmall,
    /// The medium of a device fails or is encrypted, for every program that reads it.
    MediumFailed,
    /// The content of a device cannot be read: it fails, is not ready, denies the access or is
    /// encrypted.
    Unreadable,
}

impl ErrorClass {
    /// Returns whether `code` belongs to the class.
    pub(crate) fn contains(self, code: OsError) -> bool {
        find(code).is_some_and(|row| row.classes.contains(&self))
    }
}

/// A code and its meaning.
struct Row {
    code: OsError,
    kind: ErrorKind,
    classes: &'static [ErrorClass],
}

const fn row(code: OsError, kind: ErrorKind, classes: &'static [ErrorClass]) -> Row {
    Row {
        code,
        kind,
        classes,
    }
}

/// The codes that operations distinguish, in the order of the pages on which Microsoft documents
/// them.
const TABLE: &[Row] = &[
    // <https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499->
    row(
        OsError::INVALID_FUNCTION,
        Internal,
        &[Unsupported, UnsupportedOrInvalid],
    ),
    row(
        OsError::FILE_NOT_FOUND,
        NotFound,
        &[DeviceRemoved, TargetMissing, EntryDeleted, DirectoryMissing],
    ),
    row(
        OsError::PATH_NOT_FOUND,
        NotFound,
        &[DeviceRemoved, TargetMissing, DirectoryMissing],
    ),
    row(
        OsError::ACCESS_DENIED,
        PermissionDenied,
        &[Unreadable, VolumeChanging],
    ),
    row(OsError::WRITE_PROTECT, FailedPrecondition, &[]),
    row(
        OsError::NOT_READY,
        FailedPrecondition,
        &[Unreadable, VolumeChanging],
    ),
    row(
        OsError::CRC,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(OsError::BAD_LENGTH, Internal, &[BufferTooSmall]),
    row(OsError(30), FailedPrecondition, &[MediumFailed, Unreadable]), // ERROR_READ_FAULT
    row(OsError::GEN_FAILURE, Internal, &[Unreadable]),
    row(
        OsError::SHARING_VIOLATION,
        FailedPrecondition,
        &[Unreadable, VolumeChanging],
    ),
    row(OsError::LOCK_VIOLATION, FailedPrecondition, &[]),
    row(
        OsError::NOT_SUPPORTED,
        FailedPrecondition,
        &[Unsupported, UnsupportedOrInvalid],
    ),
    row(OsError(51), FailedPrecondition, &[ServerUnreachable]), // ERROR_REM_NOT_LIST
    row(
        OsError::BAD_NETPATH,
        FailedPrecondition,
        &[TargetMissing, ServerUnreachable],
    ),
    row(
        OsError::DEV_NOT_EXIST,
        NotFound,
        &[DeviceRemoved, TargetMissing, ServerUnreachable],
    ),
    row(OsError(59), FailedPrecondition, &[ServerUnreachable]), // ERROR_UNEXP_NET_ERR
    row(OsError(64), FailedPrecondition, &[ServerUnreachable]), // ERROR_NETNAME_DELETED
    row(OsError::BAD_NET_NAME, NotFound, &[TargetMissing]),
    row(OsError(71), FailedPrecondition, &[ServerUnreachable]), // ERROR_REQ_NOT_ACCEP
    row(
        OsError::INVALID_PASSWORD,
        PermissionDenied,
        &[CredentialsRefused],
    ),
    row(
        OsError::INVALID_PARAMETER,
        Internal,
        &[UnsupportedOrInvalid],
    ),
    row(OsError::DISK_FULL, FailedPrecondition, &[]),
    row(
        OsError::SEM_TIMEOUT,
        FailedPrecondition,
        &[MediumFailed, Unreadable, ServerUnreachable],
    ),
    row(OsError::INSUFFICIENT_BUFFER, Internal, &[BufferTooSmall]),
    row(OsError::INVALID_NAME, InvalidArgument, &[TargetInvalid]),
    row(OsError::DIR_NOT_EMPTY, FailedPrecondition, &[]),
    row(OsError::BUSY, FailedPrecondition, &[]),
    row(OsError::ALREADY_EXISTS, AlreadyExists, &[]),
    row(OsError::FILENAME_EXCED_RANGE, InvalidArgument, &[]),
    row(OsError::MORE_DATA, Internal, &[BufferTooSmall]),
    row(OsError::DIRECTORY, FailedPrecondition, &[]),
    row(
        OsError::DELETE_PENDING,
        NotFound,
        &[TargetMissing, EntryDeleted],
    ),
    row(
        OsError::NO_SUCH_DEVICE,
        NotFound,
        &[DeviceRemoved, TargetMissing],
    ),
    // <https://learn.microsoft.com/windows/win32/debug/system-error-codes--500-999->
    row(OsError::OPLOCK_BREAK_IN_PROGRESS, Busy, &[]),
    // <https://learn.microsoft.com/windows/win32/debug/system-error-codes--1000-1299->
    row(OsError::UNRECOGNIZED_VOLUME, FailedPrecondition, &[]),
    row(OsError::FILE_INVALID, FailedPrecondition, &[VolumeChanging]),
    row(OsError::DEPENDENT_SERVICES_RUNNING, FailedPrecondition, &[]),
    row(OsError::INVALID_SERVICE_CONTROL, FailedPrecondition, &[]),
    row(OsError::SERVICE_DATABASE_LOCKED, FailedPrecondition, &[]),
    row(OsError::SERVICE_DISABLED, FailedPrecondition, &[]),
    row(OsError::SERVICE_DOES_NOT_EXIST, NotFound, &[]),
    row(OsError::SERVICE_CANNOT_ACCEPT_CTRL, FailedPrecondition, &[]),
    row(OsError(1110), Internal, &[VolumeChanging]), // ERROR_MEDIA_CHANGED
    row(
        OsError::IO_DEVICE,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(
        OsError::DEVICE_NOT_CONNECTED,
        NotFound,
        &[DeviceRemoved, TargetMissing],
    ),
    row(
        OsError::SESSION_CREDENTIAL_CONFLICT,
        FailedPrecondition,
        &[],
    ),
    row(OsError(1225), FailedPrecondition, &[ServerUnreachable]), // ERROR_CONNECTION_REFUSED
    row(OsError(1231), FailedPrecondition, &[ServerUnreachable]), // ERROR_NETWORK_UNREACHABLE
    row(OsError(1232), FailedPrecondition, &[ServerUnreachable]), // ERROR_HOST_UNREACHABLE
    row(OsError(1236), FailedPrecondition, &[ServerUnreachable]), // ERROR_CONNECTION_ABORTED
    row(OsError(1256), FailedPrecondition, &[ServerUnreachable]), // ERROR_HOST_DOWN
    // <https://learn.microsoft.com/windows/win32/debug/system-error-codes--1300-1699->
    row(OsError(1311), FailedPrecondition, &[]), // ERROR_NO_LOGON_SERVERS
    row(OsError::NO_SUCH_LOGON_SESSION, FailedPrecondition, &[]),
    row(OsError::PRIVILEGE_NOT_HELD, PermissionDenied, &[]),
    row(
        OsError::LOGON_FAILURE,
        PermissionDenied,
        &[CredentialsRefused],
    ),
    row(
        OsError::ACCOUNT_RESTRICTION,
        PermissionDenied,
        &[CredentialsRefused],
    ),
    row(OsError(1328), PermissionDenied, &[CredentialsRefused]), // ERROR_INVALID_LOGON_HOURS
    row(OsError(1329), PermissionDenied, &[CredentialsRefused]), // ERROR_INVALID_WORKSTATION
    row(OsError(1330), PermissionDenied, &[CredentialsRefused]), // ERROR_PASSWORD_EXPIRED
    row(OsError(1331), PermissionDenied, &[CredentialsRefused]), // ERROR_ACCOUNT_DISABLED
    row(
        OsError::FILE_CORRUPT,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(
        OsError(1393),
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ), // ERROR_DISK_CORRUPT
    row(
        OsError::DEVICE_REMOVED,
        NotFound,
        &[DeviceRemoved, TargetMissing],
    ),
    // <https://learn.microsoft.com/windows/win32/debug/system-error-codes--1700-3999->
    row(OsError::RPC_SERVER_UNAVAILABLE, Internal, &[OutcomeUnknown]),
    row(OsError::RPC_CALL_FAILED, Internal, &[OutcomeUnknown]),
    row(OsError(1907), PermissionDenied, &[CredentialsRefused]), // ERROR_PASSWORD_MUST_CHANGE
    row(OsError(1909), PermissionDenied, &[CredentialsRefused]), // ERROR_ACCOUNT_LOCKED_OUT
    row(OsError::CANT_ACCESS_FILE, FailedPrecondition, &[]),
    row(
        OsError::CANT_RESOLVE_FILENAME,
        FailedPrecondition,
        &[TargetMissing],
    ),
    row(OsError::OPEN_FILES, FailedPrecondition, &[]),
    // <https://learn.microsoft.com/windows/win32/debug/system-error-codes--4000-5999->
    row(OsError::NOT_A_REPARSE_POINT, FailedPrecondition, &[]),
    row(
        OsError::INVALID_REPARSE_DATA,
        FailedPrecondition,
        &[TargetInvalid],
    ),
    row(OsError::REPARSE_TAG_MISMATCH, FailedPrecondition, &[]),
    row(OsError::REPARSE_POINT_ENCOUNTERED, FailedPrecondition, &[]),
    // <https://learn.microsoft.com/windows/win32/com/com-error-codes-1> to 6
    row(OsError(0x8001_0007), Internal, &[OutcomeUnknown]), // RPC_E_SERVER_DIED
    row(OsError(0x8001_0108), Internal, &[OutcomeUnknown]), // RPC_E_DISCONNECTED
    row(OsError(0x8004_01fd), Internal, &[OutcomeUnknown]), // CO_E_OBJNOTCONNECTED
    row(
        OsError::FVE_LOCKED_VOLUME,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    // <https://learn.microsoft.com/windows/win32/wmisdk/wmi-error-constants>
    row(OsError::WBEM_NOT_FOUND, NotFound, &[]),
    row(
        OsError::WBEM_INVALID_NAMESPACE,
        FailedPrecondition,
        &[NotInstalled],
    ),
    row(
        OsError::WBEM_INVALID_CLASS,
        FailedPrecondition,
        &[NotInstalled],
    ),
    row(OsError::WBEM_TRANSPORT_FAILURE, Internal, &[OutcomeUnknown]),
    row(
        OsError::WBEM_INVALID_METHOD,
        FailedPrecondition,
        &[NotInstalled],
    ),
    row(OsError::WBEM_CALL_CANCELLED, Internal, &[OutcomeUnknown]),
    row(OsError::WBEM_SHUTTING_DOWN, Internal, &[OutcomeUnknown]),
    // Codes of `os` itself.
    row(OsError::WMI_QUEUE_FULL, FailedPrecondition, &[NotStarted]),
    row(OsError::WMI_TIMED_OUT, Internal, &[NotStarted]),
    row(OsError::WMI_TOO_MANY_OBJECTS, FailedPrecondition, &[]),
    // <https://learn.microsoft.com/windows-hardware/drivers/storage/iscsi-status-qualifiers>
    row(OsError::ISDSC_SERVICE_NOT_RUNNING, FailedPrecondition, &[]),
];

fn find(code: OsError) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.code == code)
}

fn kind(code: OsError) -> ErrorKind {
    find(code).map_or(Internal, |row| row.kind)
}

impl From<OsError> for OperationError {
    fn from(code: OsError) -> Self {
        Self {
            code: Some(code),
            ..Self::new(kind(code), code.to_string())
        }
    }
}

impl OperationError {
    /// Returns whether Windows returned the error with a code of `class`.
    pub(crate) fn is_of(&self, class: ErrorClass) -> bool {
        self.code.is_some_and(|code| class.contains(code))
    }

    /// Creates an error for `code`, with `context` in front of the description of the code.
    pub(crate) fn of(code: OsError, context: impl fmt::Display) -> Self {
        Self {
            code: Some(code),
            ..Self::new(kind(code), format!("{context}: {code}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use os::OsError;

    use super::{ErrorClass, TABLE, kind};
    use crate::error::ErrorKind;

    #[test]
    fn a_class_does_not_contain_the_codes_that_its_documentation_excludes() {
        for (class, codes) in [
            (ErrorClass::DeviceRemoved, &[OsError::NOT_READY][..]),
            (ErrorClass::TargetMissing, &[OsError::NOT_READY]),
            (ErrorClass::EntryDeleted, &[OsError::PATH_NOT_FOUND]),
            (ErrorClass::ServerUnreachable, &[OsError::BAD_NET_NAME]),
            (
                ErrorClass::OutcomeUnknown,
                &[OsError(1727), OsError(0x8001_0012)],
            ),
        ] {
            assert!(codes.iter().all(|code| !class.contains(*code)), "{class:?}");
        }
    }

    #[test]
    fn no_code_is_in_two_rows_and_an_unknown_code_is_internal() {
        let codes: BTreeSet<u32> = TABLE.iter().map(|row| row.code.0).collect();
        assert_eq!(codes.len(), TABLE.len());
        assert_eq!(kind(OsError(4711)), ErrorKind::Internal);
        assert!(!ErrorClass::DeviceRemoved.contains(OsError(4711)));
    }
}
