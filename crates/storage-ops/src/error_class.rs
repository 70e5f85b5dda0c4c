//! The meaning of Windows error codes: one table for all operations.
//!
//! [`KINDS`] has the [`ErrorKind`] of a code that is reported unless an operation chooses a more
//! specific one, and [`ErrorClass`] has the codes that operations react to in the same way. Similar
//! classes differ on purpose; the documentation of a class gives the reason. Any other code is
//! [`ErrorKind::Internal`], which is reported as a defect of csi-proxy. Lists of codes are in the
//! order of the pages that [`OsError`] names.

use std::fmt;

use os::OsError;

use crate::error::{ErrorKind, OperationError};

use ErrorKind::{
    AlreadyExists, Busy, FailedPrecondition, Internal, InvalidArgument, NotFound, PermissionDenied,
};

/// Returns a list of codes by their names.
macro_rules! codes {
    ($($name:ident)*) => { &[$(os::OsError::$name),*] };
}
pub(crate) use codes;

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident: $($name:ident)*;)*) => {
        /// A set of codes that operations react to in the same way.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ErrorClass { $($(#[$doc])* $class,)* }

        impl ErrorClass {
            /// Returns whether `code` belongs to the class.
            pub(crate) fn contains(self, code: OsError) -> bool {
                let codes: &[OsError] = match self { $(Self::$class => codes! { $($name)* },)* };
                codes.contains(&code)
            }
        }
    };
}

classes! {
    /// A disk or volume, addressed as a device, has been removed.
    ///
    /// Does not contain `ERROR_NOT_READY`: a disk that is offline and a volume that is being
    /// formatted exist.
    DeviceRemoved:
        FILE_NOT_FOUND PATH_NOT_FOUND DEV_NOT_EXIST NO_SUCH_DEVICE DEVICE_NOT_CONNECTED
        DEVICE_REMOVED;
    /// The target of a link or mount point does not exist, whether it is a path, a server or a
    /// volume.
    ///
    /// Contains codes of the network and of deletion, which no device returns. Does not contain
    /// `ERROR_NOT_READY`: a volume that is not ready exists, and a mount point that leads to it is
    /// not stale.
    TargetMissing:
        FILE_NOT_FOUND PATH_NOT_FOUND BAD_NETPATH DEV_NOT_EXIST BAD_NET_NAME DELETE_PENDING
        NO_SUCH_DEVICE DEVICE_NOT_CONNECTED DEVICE_REMOVED CANT_RESOLVE_FILENAME;
    /// The target of a link is not a path that Windows can follow: links are not examined when they
    /// are created.
    ///
    /// Is of use only for a path that is valid itself.
    TargetInvalid: INVALID_NAME INVALID_REPARSE_DATA;
    /// An entry, opened by its name in an open directory, has been deleted or is being deleted.
    ///
    /// Does not contain `ERROR_PATH_NOT_FOUND`: relative to an open handle that code means that the
    /// parent is not a usable directory, not that the entry has been deleted.
    EntryDeleted: FILE_NOT_FOUND DELETE_PENDING;
    /// A directory, opened by its path, does not exist.
    DirectoryMissing: FILE_NOT_FOUND PATH_NOT_FOUND;
    /// A server refuses the user name, the password or the account.
    ///
    /// With any other code, the files that are open on an SMB mapping may become usable again.
    CredentialsRefused:
        INVALID_PASSWORD LOGON_FAILURE ACCOUNT_RESTRICTION INVALID_LOGON_HOURS INVALID_WORKSTATION
        PASSWORD_EXPIRED ACCOUNT_DISABLED PASSWORD_MUST_CHANGE ACCOUNT_LOCKED_OUT;
    /// A server cannot be reached: of the network, or of a server that is down, starts or is
    /// overloaded.
    ///
    /// Does not contain `ERROR_BAD_NET_NAME`, with which a server answers.
    ServerUnreachable:
        REM_NOT_LIST BAD_NETPATH NETWORK_BUSY DEV_NOT_EXIST ADAP_HDW_ERR UNEXP_NET_ERR
        NETNAME_DELETED SHARING_PAUSED REQ_NOT_ACCEP SEM_TIMEOUT NO_NETWORK CONNECTION_REFUSED
        GRACEFUL_DISCONNECT NETWORK_UNREACHABLE HOST_UNREACHABLE PROTOCOL_UNREACHABLE
        PORT_UNREACHABLE CONNECTION_ABORTED SERVER_SHUTDOWN_IN_PROGRESS HOST_DOWN;
    /// Another program has locked the volume, or has just formatted it.
    ///
    /// Contains `ERROR_NOT_READY`: a volume that is being formatted is dismounted and exists.
    VolumeChanging: ACCESS_DENIED NOT_READY SHARING_VIOLATION FILE_INVALID MEDIA_CHANGED;
    /// WMI did not accept the request in time; nothing was started.
    NotStarted: WMI_QUEUE_FULL WMI_TIMED_OUT;
    /// The connection to WMI failed; whether the method ran, or still runs, is unknown.
    ///
    /// Does not contain the codes that state that a call did not run (`RPC_S_CALL_FAILED_DNE`,
    /// `RPC_E_SERVER_DIED_DNE`).
    OutcomeUnknown:
        RPC_SERVER_UNAVAILABLE RPC_CALL_FAILED RPC_SERVER_DIED RPC_DISCONNECTED
        OBJECT_NOT_CONNECTED WBEM_TRANSPORT_FAILURE WBEM_CALL_CANCELLED WBEM_SHUTTING_DOWN;
    /// WMI has no such namespace, class or method: this Windows lacks the feature.
    NotInstalled: WBEM_INVALID_NAMESPACE WBEM_INVALID_CLASS WBEM_INVALID_METHOD;
    /// The device or file system does not implement the request.
    Unsupported: INVALID_FUNCTION NOT_SUPPORTED;
    /// Like [`Self::Unsupported`], for requests that select a property or an information class by
    /// number: drivers and file systems also refuse an unknown number with
    /// `ERROR_INVALID_PARAMETER`.
    UnsupportedOrInvalid: INVALID_FUNCTION NOT_SUPPORTED INVALID_PARAMETER;
    /// The output buffer is too small for the answer.
    BufferTooSmall: BAD_LENGTH INSUFFICIENT_BUFFER MORE_DATA;
    /// The medium of a device fails or is encrypted, for every program that reads it.
    MediumFailed:
        CRC SECTOR_NOT_FOUND WRITE_FAULT READ_FAULT SEM_TIMEOUT DEVICE_HARDWARE_ERROR IO_DEVICE
        DISK_OPERATION_FAILED FILE_CORRUPT DISK_CORRUPT FVE_LOCKED_VOLUME;
    /// The content of a device cannot be read: it fails, is not ready, denies the access or is
    /// encrypted.
    Unreadable:
        ACCESS_DENIED NOT_ENOUGH_MEMORY NOT_READY CRC SECTOR_NOT_FOUND WRITE_FAULT READ_FAULT
        GEN_FAILURE SHARING_VIOLATION SEM_TIMEOUT DEVICE_HARDWARE_ERROR IO_DEVICE
        DISK_OPERATION_FAILED FILE_CORRUPT DISK_CORRUPT NO_SYSTEM_RESOURCES FVE_LOCKED_VOLUME;
}

/// The kinds of the codes. A status of the iSCSI initiator that is not here is
/// [`FailedPrecondition`]: it tells of the target, the network or the settings of the node.
const KINDS: &[(ErrorKind, &[OsError])] = &[
    (
        InvalidArgument,
        codes! {
            INVALID_NAME FILENAME_EXCED_RANGE INVALID_COMPUTERNAME INVALID_DOMAINNAME
            INVALID_NETNAME INVALID_SHARENAME BAD_USERNAME ISDSC_SHORT_CHAP_SECRET
            ISDSC_INVALID_CHAP_SECRET ISDSC_INVALID_TARGET_CHAP_SECRET
            ISDSC_INVALID_INITIATOR_CHAP_SECRET ISDSC_INVALID_CHAP_USER_NAME
            ISDSC_INVALID_LOGON_AUTH_TYPE ISDSC_INVALID_ISCSI_NAME
        },
    ),
    (
        NotFound,
        codes! {
            FILE_NOT_FOUND PATH_NOT_FOUND DEV_NOT_EXIST BAD_NET_NAME DELETE_PENDING NO_SUCH_DEVICE
            DEVICE_NOT_CONNECTED DEVICE_REMOVED SERVICE_DOES_NOT_EXIST NOT_CONNECTED WBEM_NOT_FOUND
            ISDSC_NOT_FOUND ISDSC_TARGET_NOT_FOUND ISDSC_PORTAL_NOT_FOUND
        },
    ),
    (AlreadyExists, codes! { ALREADY_EXISTS ALREADY_ASSIGNED }),
    (Busy, codes! { OPLOCK_BREAK_IN_PROGRESS }),
    (
        PermissionDenied,
        codes! {
            ACCESS_DENIED INVALID_PASSWORD LOGON_FAILURE ACCOUNT_RESTRICTION INVALID_LOGON_HOURS
            INVALID_WORKSTATION PASSWORD_EXPIRED ACCOUNT_DISABLED PASSWORD_MUST_CHANGE
            ACCOUNT_LOCKED_OUT NETWORK_ACCESS_DENIED LOGIN_TIME_RESTRICTION LOGIN_WKSTA_RESTRICTION
            NOT_AUTHENTICATED NOT_LOGGED_ON SMB_GUEST_LOGON_BLOCKED
            SMB_GUEST_LOGON_BLOCKED_SIGNING_REQUIRED PRIVILEGE_NOT_HELD NONE_MAPPED
            LOGON_NOT_GRANTED TOO_MANY_CONTEXT_IDS LOGON_TYPE_NOT_GRANTED ACCOUNT_EXPIRED
            NOLOGON_INTERDOMAIN_TRUST_ACCOUNT NOLOGON_WORKSTATION_TRUST_ACCOUNT
            NOLOGON_SERVER_TRUST_ACCOUNT AUTHENTICATION_FIREWALL_FAILED NTLM_BLOCKED
            ACCOUNT_PASSWORD_EXPIRED WBEM_ACCESS_DENIED ISDSC_AUTHENTICATION_FAILURE
            ISDSC_AUTHORIZATION_FAILURE ISDSC_RESTRICTED_BY_GROUP_POLICY
        },
    ),
    (
        FailedPrecondition,
        codes! {
            NOT_ENOUGH_MEMORY NOT_READY CRC SECTOR_NOT_FOUND WRITE_FAULT READ_FAULT GEN_FAILURE
            SHARING_VIOLATION NOT_SUPPORTED REM_NOT_LIST BAD_NETPATH NETWORK_BUSY ADAP_HDW_ERR
            UNEXP_NET_ERR NETNAME_DELETED SHARING_PAUSED REQ_NOT_ACCEP SEM_TIMEOUT
            DEVICE_HARDWARE_ERROR FILE_INVALID MEDIA_CHANGED IO_DEVICE DISK_OPERATION_FAILED
            NO_NETWORK CONNECTION_REFUSED GRACEFUL_DISCONNECT NETWORK_UNREACHABLE HOST_UNREACHABLE
            PROTOCOL_UNREACHABLE PORT_UNREACHABLE CONNECTION_ABORTED SERVER_SHUTDOWN_IN_PROGRESS
            HOST_DOWN FILE_CORRUPT DISK_CORRUPT NO_SYSTEM_RESOURCES CANT_RESOLVE_FILENAME
            INVALID_REPARSE_DATA FVE_LOCKED_VOLUME WBEM_INVALID_NAMESPACE WBEM_INVALID_CLASS
            WBEM_INVALID_METHOD WMI_QUEUE_FULL
            // The state of files, disks and services.
            WRITE_PROTECT LOCK_VIOLATION DISK_FULL DIR_NOT_EMPTY BUSY DIRECTORY UNRECOGNIZED_VOLUME
            DEPENDENT_SERVICES_RUNNING INVALID_SERVICE_CONTROL SERVICE_DATABASE_LOCKED
            SERVICE_DISABLED SERVICE_CANNOT_ACCEPT_CTRL UNRECOGNIZED_MEDIA CANT_ACCESS_FILE
            NOT_A_REPARSE_POINT REPARSE_TAG_MISMATCH REPARSE_POINT_ENCOUNTERED
            // What the node, its network or a server is short of, or how they are set up.
            DUP_NAME TOO_MANY_CMDS BAD_NET_RESP BAD_REM_ADAP PRINTQ_FULL NO_SPOOL_SPACE
            PRINT_CANCELLED BAD_DEV_TYPE TOO_MANY_NAMES TOO_MANY_SESS REDIR_PAUSED
            OUT_OF_STRUCTURES NET_WRITE_FAULT SMB1_NOT_AVAILABLE NOT_ENOUGH_SERVER_MEMORY
            CONNECTION_UNAVAIL DEVICE_ALREADY_REMEMBERED NO_NET_OR_BAD_PATH CANNOT_OPEN_PROFILE
            BAD_PROFILE EXTENDED_ERROR SESSION_CREDENTIAL_CONFLICT REMOTE_SESSION_LIMIT_EXCEEDED
            CONNECTION_INVALID REQUEST_ABORTED RETRY CONNECTION_COUNT_LIMIT WORKING_SET_QUOTA
            TIMEOUT NOT_ENOUGH_QUOTA NET_NOT_STARTED WKSTA_NOT_STARTED OPEN_FILES
            ACTIVE_CONNECTIONS DEVICE_IN_USE
            // The domain, which neither accepts nor refuses the user.
            DOWNGRADE_DETECTED NO_LOGON_SERVERS NO_SUCH_LOGON_SESSION SERVER_DISABLED
            CANT_ACCESS_DOMAIN_INFO NO_SUCH_DOMAIN NO_USER_SESSION_KEY LICENSE_QUOTA_EXCEEDED
            WRONG_TARGET_NAME MUTUAL_AUTH_FAILED TIME_SKEW NO_TRUST_LSA_SECRET NO_TRUST_SAM_ACCOUNT
            TRUSTED_DOMAIN_FAILURE TRUSTED_RELATIONSHIP_FAILURE TRUST_FAILURE NETLOGON_NOT_STARTED
            DOMAIN_CONTROLLER_NOT_FOUND
            // The state of WMI.
            WBEM_OUT_OF_MEMORY WBEM_NOT_AVAILABLE WBEM_NOT_SUPPORTED WBEM_PROVIDER_NOT_FOUND
            WBEM_PROVIDER_LOAD_FAILURE WBEM_QUOTA_VIOLATION WBEM_SERVER_TOO_BUSY
            WBEM_PROVIDER_SUSPENDED WMI_TOO_MANY_OBJECTS
        },
    ),
];

/// The first code of a failed call of WMI or COM: an HRESULT.
pub(crate) const HRESULT_FAILURE: u32 = 0x8000_0000;

fn kind(code: OsError) -> ErrorKind {
    match KINDS.iter().find(|(_, codes)| codes.contains(&code)) {
        Some((kind, _)) => *kind,
        None if is_of_initiator(code) => FailedPrecondition,
        None => Internal,
    }
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

    use super::{ErrorClass, KINDS, kind};
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
    fn no_code_has_two_kinds_and_an_unknown_code_is_internal() {
        let codes = KINDS.iter().flat_map(|(_, codes)| codes.iter());
        let codes: Vec<u32> = codes.map(|code| code.0).collect();
        assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), codes.len());
        assert_eq!(kind(OsError(4711)), ErrorKind::Internal);
        assert!(!ErrorClass::DeviceRemoved.contains(OsError(4711)));
    }
}
