//! The meaning of Windows error codes: one table for all operations.
//!
//! [`TABLE`] and [`KINDS`] have the [`ErrorKind`] of a code that is reported unless an operation
//! chooses a more specific one, and `TABLE` has the [`ErrorClass`]es that the code belongs to.
//! Similar classes differ on purpose; the documentation of a class gives the reason. Any other code
//! is [`ErrorKind::Internal`], which is reported as a defect of csi-proxy.

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

/// A code with the classes that it belongs to.
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

/// The codes that operations react to, in the order of the pages that [`OsError`] names.
const TABLE: &[Row] = &[
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
    row(
        OsError::NOT_ENOUGH_MEMORY,
        FailedPrecondition,
        &[Unreadable],
    ),
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
    row(
        OsError::SECTOR_NOT_FOUND,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(
        OsError::WRITE_FAULT,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(
        OsError::READ_FAULT,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(OsError::GEN_FAILURE, FailedPrecondition, &[Unreadable]),
    row(
        OsError::SHARING_VIOLATION,
        FailedPrecondition,
        &[Unreadable, VolumeChanging],
    ),
    row(
        OsError::NOT_SUPPORTED,
        FailedPrecondition,
        &[Unsupported, UnsupportedOrInvalid],
    ),
    row(
        OsError::REM_NOT_LIST,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::BAD_NETPATH,
        FailedPrecondition,
        &[TargetMissing, ServerUnreachable],
    ),
    row(
        OsError::NETWORK_BUSY,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::DEV_NOT_EXIST,
        NotFound,
        &[DeviceRemoved, TargetMissing, ServerUnreachable],
    ),
    row(
        OsError::ADAP_HDW_ERR,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::UNEXP_NET_ERR,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::NETNAME_DELETED,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(OsError::BAD_NET_NAME, NotFound, &[TargetMissing]),
    row(
        OsError::SHARING_PAUSED,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::REQ_NOT_ACCEP,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
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
    row(
        OsError::SEM_TIMEOUT,
        FailedPrecondition,
        &[MediumFailed, Unreadable, ServerUnreachable],
    ),
    row(OsError::INSUFFICIENT_BUFFER, Internal, &[BufferTooSmall]),
    row(OsError::INVALID_NAME, InvalidArgument, &[TargetInvalid]),
    row(OsError::MORE_DATA, Internal, &[BufferTooSmall]),
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
    row(
        OsError::DEVICE_HARDWARE_ERROR,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(OsError::FILE_INVALID, FailedPrecondition, &[VolumeChanging]),
    row(
        OsError::MEDIA_CHANGED,
        FailedPrecondition,
        &[VolumeChanging],
    ),
    row(
        OsError::IO_DEVICE,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(
        OsError::DISK_OPERATION_FAILED,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(
        OsError::DEVICE_NOT_CONNECTED,
        NotFound,
        &[DeviceRemoved, TargetMissing],
    ),
    row(
        OsError::NO_NETWORK,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::CONNECTION_REFUSED,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::GRACEFUL_DISCONNECT,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::NETWORK_UNREACHABLE,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::HOST_UNREACHABLE,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::PROTOCOL_UNREACHABLE,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::PORT_UNREACHABLE,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::CONNECTION_ABORTED,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(
        OsError::SERVER_SHUTDOWN_IN_PROGRESS,
        FailedPrecondition,
        &[ServerUnreachable],
    ),
    row(OsError::HOST_DOWN, FailedPrecondition, &[ServerUnreachable]),
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
    row(
        OsError::INVALID_LOGON_HOURS,
        PermissionDenied,
        &[CredentialsRefused],
    ),
    row(
        OsError::INVALID_WORKSTATION,
        PermissionDenied,
        &[CredentialsRefused],
    ),
    row(
        OsError::PASSWORD_EXPIRED,
        PermissionDenied,
        &[CredentialsRefused],
    ),
    row(
        OsError::ACCOUNT_DISABLED,
        PermissionDenied,
        &[CredentialsRefused],
    ),
    row(
        OsError::FILE_CORRUPT,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(
        OsError::DISK_CORRUPT,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
    row(
        OsError::NO_SYSTEM_RESOURCES,
        FailedPrecondition,
        &[Unreadable],
    ),
    row(
        OsError::DEVICE_REMOVED,
        NotFound,
        &[DeviceRemoved, TargetMissing],
    ),
    row(OsError::RPC_SERVER_UNAVAILABLE, Internal, &[OutcomeUnknown]),
    row(OsError::RPC_CALL_FAILED, Internal, &[OutcomeUnknown]),
    row(
        OsError::PASSWORD_MUST_CHANGE,
        PermissionDenied,
        &[CredentialsRefused],
    ),
    row(
        OsError::ACCOUNT_LOCKED_OUT,
        PermissionDenied,
        &[CredentialsRefused],
    ),
    row(
        OsError::CANT_RESOLVE_FILENAME,
        FailedPrecondition,
        &[TargetMissing],
    ),
    row(
        OsError::INVALID_REPARSE_DATA,
        FailedPrecondition,
        &[TargetInvalid],
    ),
    row(OsError::RPC_SERVER_DIED, Internal, &[OutcomeUnknown]),
    row(OsError::RPC_DISCONNECTED, Internal, &[OutcomeUnknown]),
    row(OsError::OBJECT_NOT_CONNECTED, Internal, &[OutcomeUnknown]),
    row(
        OsError::FVE_LOCKED_VOLUME,
        FailedPrecondition,
        &[MediumFailed, Unreadable],
    ),
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
    row(OsError::WMI_QUEUE_FULL, FailedPrecondition, &[NotStarted]),
    row(OsError::WMI_TIMED_OUT, Internal, &[NotStarted]),
];

/// The codes that are in no class, by their kind. A status of the iSCSI initiator that is not here
/// is [`FailedPrecondition`]: it tells of the target, the network or the settings of the node.
const KINDS: &[(ErrorKind, &[OsError])] = &[
    (
        InvalidArgument,
        &[
            OsError::FILENAME_EXCED_RANGE,
            OsError::INVALID_COMPUTERNAME,
            OsError::INVALID_DOMAINNAME,
            OsError::INVALID_NETNAME,
            OsError::INVALID_SHARENAME,
            OsError::BAD_USERNAME,
            OsError::ISDSC_SHORT_CHAP_SECRET,
            OsError::ISDSC_INVALID_CHAP_SECRET,
            OsError::ISDSC_INVALID_TARGET_CHAP_SECRET,
            OsError::ISDSC_INVALID_INITIATOR_CHAP_SECRET,
            OsError::ISDSC_INVALID_CHAP_USER_NAME,
            OsError::ISDSC_INVALID_LOGON_AUTH_TYPE,
            OsError::ISDSC_INVALID_ISCSI_NAME,
        ],
    ),
    (
        NotFound,
        &[
            OsError::SERVICE_DOES_NOT_EXIST,
            OsError::NOT_CONNECTED,
            OsError::WBEM_NOT_FOUND,
            OsError::ISDSC_NOT_FOUND,
            OsError::ISDSC_TARGET_NOT_FOUND,
            OsError::ISDSC_PORTAL_NOT_FOUND,
        ],
    ),
    (
        AlreadyExists,
        &[OsError::ALREADY_EXISTS, OsError::ALREADY_ASSIGNED],
    ),
    (Busy, &[OsError::OPLOCK_BREAK_IN_PROGRESS]),
    (
        PermissionDenied,
        &[
            OsError::NETWORK_ACCESS_DENIED,
            OsError::LOGIN_TIME_RESTRICTION,
            OsError::LOGIN_WKSTA_RESTRICTION,
            OsError::NOT_AUTHENTICATED,
            OsError::NOT_LOGGED_ON,
            OsError::SMB_GUEST_LOGON_BLOCKED,
            OsError::SMB_GUEST_LOGON_BLOCKED_SIGNING_REQUIRED,
            OsError::PRIVILEGE_NOT_HELD,
            OsError::NONE_MAPPED,
            OsError::LOGON_NOT_GRANTED,
            OsError::TOO_MANY_CONTEXT_IDS,
            OsError::LOGON_TYPE_NOT_GRANTED,
            OsError::ACCOUNT_EXPIRED,
            OsError::NOLOGON_INTERDOMAIN_TRUST_ACCOUNT,
            OsError::NOLOGON_WORKSTATION_TRUST_ACCOUNT,
            OsError::NOLOGON_SERVER_TRUST_ACCOUNT,
            OsError::AUTHENTICATION_FIREWALL_FAILED,
            OsError::NTLM_BLOCKED,
            OsError::ACCOUNT_PASSWORD_EXPIRED,
            OsError::WBEM_ACCESS_DENIED,
            OsError::ISDSC_AUTHENTICATION_FAILURE,
            OsError::ISDSC_AUTHORIZATION_FAILURE,
            OsError::ISDSC_RESTRICTED_BY_GROUP_POLICY,
        ],
    ),
    (
        FailedPrecondition,
        &[
            // The state of files, disks and services.
            OsError::WRITE_PROTECT,
            OsError::LOCK_VIOLATION,
            OsError::DISK_FULL,
            OsError::DIR_NOT_EMPTY,
            OsError::BUSY,
            OsError::DIRECTORY,
            OsError::UNRECOGNIZED_VOLUME,
            OsError::DEPENDENT_SERVICES_RUNNING,
            OsError::INVALID_SERVICE_CONTROL,
            OsError::SERVICE_DATABASE_LOCKED,
            OsError::SERVICE_DISABLED,
            OsError::SERVICE_CANNOT_ACCEPT_CTRL,
            OsError::UNRECOGNIZED_MEDIA,
            OsError::CANT_ACCESS_FILE,
            OsError::NOT_A_REPARSE_POINT,
            OsError::REPARSE_TAG_MISMATCH,
            OsError::REPARSE_POINT_ENCOUNTERED,
            // What the node, its network or a server is short of, or how they are set up.
            OsError::DUP_NAME,
            OsError::TOO_MANY_CMDS,
            OsError::BAD_NET_RESP,
            OsError::BAD_REM_ADAP,
            OsError::PRINTQ_FULL,
            OsError::NO_SPOOL_SPACE,
            OsError::PRINT_CANCELLED,
            OsError::BAD_DEV_TYPE,
            OsError::TOO_MANY_NAMES,
            OsError::TOO_MANY_SESS,
            OsError::REDIR_PAUSED,
            OsError::OUT_OF_STRUCTURES,
            OsError::NET_WRITE_FAULT,
            OsError::SMB1_NOT_AVAILABLE,
            OsError::NOT_ENOUGH_SERVER_MEMORY,
            OsError::CONNECTION_UNAVAIL,
            OsError::DEVICE_ALREADY_REMEMBERED,
            OsError::NO_NET_OR_BAD_PATH,
            OsError::CANNOT_OPEN_PROFILE,
            OsError::BAD_PROFILE,
            OsError::EXTENDED_ERROR,
            OsError::SESSION_CREDENTIAL_CONFLICT,
            OsError::REMOTE_SESSION_LIMIT_EXCEEDED,
            OsError::CONNECTION_INVALID,
            OsError::REQUEST_ABORTED,
            OsError::RETRY,
            OsError::CONNECTION_COUNT_LIMIT,
            OsError::WORKING_SET_QUOTA,
            OsError::TIMEOUT,
            OsError::NOT_ENOUGH_QUOTA,
            OsError::NET_NOT_STARTED,
            OsError::WKSTA_NOT_STARTED,
            OsError::OPEN_FILES,
            OsError::ACTIVE_CONNECTIONS,
            OsError::DEVICE_IN_USE,
            // The domain, which neither accepts nor refuses the user.
            OsError::DOWNGRADE_DETECTED,
            OsError::NO_LOGON_SERVERS,
            OsError::NO_SUCH_LOGON_SESSION,
            OsError::SERVER_DISABLED,
            OsError::CANT_ACCESS_DOMAIN_INFO,
            OsError::NO_SUCH_DOMAIN,
            OsError::NO_USER_SESSION_KEY,
            OsError::LICENSE_QUOTA_EXCEEDED,
            OsError::WRONG_TARGET_NAME,
            OsError::MUTUAL_AUTH_FAILED,
            OsError::TIME_SKEW,
            OsError::NO_TRUST_LSA_SECRET,
            OsError::NO_TRUST_SAM_ACCOUNT,
            OsError::TRUSTED_DOMAIN_FAILURE,
            OsError::TRUSTED_RELATIONSHIP_FAILURE,
            OsError::TRUST_FAILURE,
            OsError::NETLOGON_NOT_STARTED,
            OsError::DOMAIN_CONTROLLER_NOT_FOUND,
            // The state of WMI.
            OsError::WBEM_OUT_OF_MEMORY,
            OsError::WBEM_NOT_AVAILABLE,
            OsError::WBEM_NOT_SUPPORTED,
            OsError::WBEM_PROVIDER_NOT_FOUND,
            OsError::WBEM_PROVIDER_LOAD_FAILURE,
            OsError::WBEM_QUOTA_VIOLATION,
            OsError::WBEM_SERVER_TOO_BUSY,
            OsError::WBEM_PROVIDER_SUSPENDED,
            OsError::WMI_TOO_MANY_OBJECTS,
        ],
    ),
];

/// The first code of a failed call of WMI or COM: an HRESULT.
pub(crate) const HRESULT_FAILURE: u32 = 0x8000_0000;

fn find(code: OsError) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.code == code)
}

fn kind(code: OsError) -> ErrorKind {
    let classless = || KINDS.iter().find(|(_, codes)| codes.contains(&code));
    find(code)
        .map(|row| row.kind)
        .or_else(|| classless().map(|(kind, _)| *kind))
        .unwrap_or(if is_of_initiator(code) {
            FailedPrecondition
        } else {
            Internal
        })
}

/// Returns whether the code is a system error code that no page names for the calls of csi-proxy:
/// none that blames an argument, and none of COM or WMI.
pub(crate) fn is_unlisted(code: OsError) -> bool {
    code.0 < HRESULT_FAILURE && !code.has_words()
}

/// Returns whether the code is a status of the iSCSI initiator (`ISDSC_...`).
pub(crate) fn is_of_initiator(code: OsError) -> bool {
    code == OsError::ISDSC_OPERATION_REQUIRES_REBOOT || code.0 >> 16 == 0xefff
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

    use super::{ErrorClass, KINDS, TABLE, kind};
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
        let classless = KINDS.iter().flat_map(|(_, codes)| codes.iter());
        let codes: Vec<OsError> = TABLE.iter().map(|row| row.code).collect();
        let codes: Vec<u32> = codes.iter().chain(classless).map(|code| code.0).collect();
        assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), codes.len());
        assert_eq!(kind(OsError(4711)), ErrorKind::Internal);
        assert!(!ErrorClass::DeviceRemoved.contains(OsError(4711)));
    }
}
