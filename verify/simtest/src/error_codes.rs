//! The errors that each call is made to fail with: those that Windows is known to return for it.

use faults::Call;
use os::OsError;

use OsError as E;

/// Returns the errors that `call` is made to fail with.
pub fn errors_of(call: &Call) -> &'static [OsError] {
    match &*call.primitive {
        "open" if call.object.contains(r"\UNC\") => OPENING_ON_SERVER,
        "open" | "open_child" | "open_below" => OPENING,
        "volumes" => &[E::NOT_ENOUGH_MEMORY, E::NO_MORE_FILES, E::GEN_FAILURE],
        "device_interfaces" => &[E::INSUFFICIENT_BUFFER, E::GEN_FAILURE],
        "reenumerate" => &[E::FILE_NOT_FOUND, E::ACCESS_DENIED, E::GEN_FAILURE],
        "set_volume_mount_point" => &[
            E::FILE_NOT_FOUND,
            E::ACCESS_DENIED,
            E::SHARING_VIOLATION,
            E::INVALID_PARAMETER,
            E::INVALID_NAME,
            E::DIR_NOT_EMPTY,
        ],
        "delete_volume_mount_point" => &[
            E::FILE_NOT_FOUND,
            E::PATH_NOT_FOUND,
            E::ACCESS_DENIED,
            E::INVALID_PARAMETER,
            E::NOT_A_REPARSE_POINT,
            E::SHARING_VIOLATION,
        ],
        "open_service" => &[E::SERVICE_DOES_NOT_EXIST, E::ACCESS_DENIED, E::RPC_SERVER_UNAVAILABLE],
        "service start" => &[
            E::SERVICE_ALREADY_RUNNING,
            E::SERVICE_DISABLED,
            E::SERVICE_REQUEST_TIMEOUT,
            E::SERVICE_CANNOT_ACCEPT_CTRL,
            E::ACCESS_DENIED,
        ],
        "service stop" => &[
            E::DEPENDENT_SERVICES_RUNNING,
            E::SERVICE_CANNOT_ACCEPT_CTRL,
            E::SERVICE_NOT_ACTIVE,
            E::SERVICE_REQUEST_TIMEOUT,
            E::ACCESS_DENIED,
        ],
        "firmware_table" => &[E::INVALID_FUNCTION, E::NOT_SUPPORTED, E::ACCESS_DENIED],
        "wmi query" => &[
            E::WMI_TIMED_OUT,
            E::WBEM_FAILED,
            E::WBEM_NOT_FOUND,
            E::WBEM_INVALID_CLASS,
            E::WBEM_INVALID_NAMESPACE,
            E::WBEM_TRANSPORT_FAILURE,
            E::RPC_SERVER_UNAVAILABLE,
            E::RPC_CALL_FAILED,
            E::ACCESS_DENIED,
        ],
        "registry_text" | "set_volatile_text" | "delete_registry_value" => &[E::ACCESS_DENIED, E::NOT_ENOUGH_MEMORY],
        "flush" => &[
            E::INVALID_FUNCTION,
            E::ACCESS_DENIED,
            E::WRITE_PROTECT,
            E::NOT_READY,
            E::IO_DEVICE,
            E::DEVICE_NOT_CONNECTED,
        ],
        "list" => LISTING,
        "final_path" => &[E::PATH_NOT_FOUND, E::FILE_NOT_FOUND, E::IO_DEVICE],
        name if name.starts_with("wmi call") => errors_of_method(&name["wmi call ".len()..]),
        name if name.starts_with("service ") => &[E::ACCESS_DENIED, E::RPC_CALL_FAILED],
        name if name.starts_with("control ") => errors_of_control(&name["control ".len()..]),
        name if name.starts_with("query_fs") => &[
            E::UNRECOGNIZED_VOLUME,
            E::FVE_LOCKED_VOLUME,
            E::IO_DEVICE,
            E::FILE_CORRUPT,
            E::CRC,
            E::NOT_READY,
            E::NO_SUCH_DEVICE,
            E::FILE_INVALID,
        ],
        name if name.starts_with("query ") => &[
            E::INVALID_PARAMETER,
            E::IO_DEVICE,
            E::FILE_CORRUPT,
            E::DELETE_PENDING,
            E::NO_SUCH_DEVICE,
            E::FILE_INVALID,
        ],
        name if name.starts_with("set ") => &[
            E::INVALID_FUNCTION,
            E::NOT_SUPPORTED,
            E::INVALID_PARAMETER,
            E::ACCESS_DENIED,
            E::DIR_NOT_EMPTY,
            E::SHARING_VIOLATION,
            E::OPLOCK_BREAK_IN_PROGRESS,
            E::WRITE_PROTECT,
            E::IO_DEVICE,
            E::NO_SUCH_DEVICE,
            E::FILE_INVALID,
        ],
        // A primitive that is new and not yet listed fails with these.
        _ => &[E::GEN_FAILURE, E::ACCESS_DENIED],
    }
}

/// A Win32 error code that no document names.
const UNSEEN: OsError = OsError(0xe000_0abc);
/// An `HRESULT` that no document names.
const UNSEEN_HRESULT: OsError = OsError(0x8aaa_0abc);
/// A return value of a WMI method that no class documents.
pub const UNSEEN_RETURN: u32 = 48_999;

/// Returns an error of `call` that nobody has seen.
pub fn unseen_error_of(call: &Call) -> OsError {
    if call.primitive.starts_with("wmi ") { UNSEEN_HRESULT } else { UNSEEN }
}

/// The errors of opening a file, directory, volume, disk or share.
const OPENING: &[OsError] = &[
    E::FILE_NOT_FOUND,
    E::PATH_NOT_FOUND,
    E::ACCESS_DENIED,
    E::NOT_READY,
    E::CRC,
    E::SHARING_VIOLATION,
    E::BAD_NETPATH,
    E::ALREADY_EXISTS,
    E::DELETE_PENDING,
    E::OPLOCK_BREAK_IN_PROGRESS,
    E::UNRECOGNIZED_VOLUME,
    E::IO_DEVICE,
    E::DEVICE_NOT_CONNECTED,
    E::NO_SUCH_DEVICE,
    E::DEVICE_REMOVED,
    E::FILE_INVALID,
    E::FILE_CORRUPT,
    E::FVE_LOCKED_VOLUME,
    E::DISK_FULL,
];

/// The errors of opening a share or a path on it.
const OPENING_ON_SERVER: &[OsError] = &[
    E::FILE_NOT_FOUND,
    E::PATH_NOT_FOUND,
    E::ACCESS_DENIED,
    E::SHARING_VIOLATION,
    E::BAD_NETPATH,
    E::BAD_NET_NAME,
    E::INVALID_PASSWORD,
    E::SEM_TIMEOUT,
    E::LOGON_FAILURE,
    E::SESSION_CREDENTIAL_CONFLICT,
    E::ALREADY_EXISTS,
    E::DISK_FULL,
];

/// The errors of listing a directory.
const LISTING: &[OsError] = &[
    E::IO_DEVICE,
    E::FILE_CORRUPT,
    E::NO_MORE_FILES,
    E::MORE_DATA,
    E::BAD_NETPATH,
    E::LOGON_FAILURE,
    E::FILE_NOT_FOUND,
    E::NO_SUCH_DEVICE,
    E::FILE_INVALID,
];

/// The errors of a WMI method: those of WMI itself and, for classes that post their failures, those of the provider.
fn errors_of_method(method: &str) -> &'static [OsError] {
    if method.starts_with("MSFT_Smb") {
        return &[
            E::BAD_NETPATH,
            E::BAD_NET_NAME,
            E::INVALID_PASSWORD,
            E::OPEN_FILES,
            E::SESSION_CREDENTIAL_CONFLICT,
            E::NO_SUCH_LOGON_SESSION,
            E::LOGON_FAILURE,
            E::WBEM_FAILED,
            E::WBEM_NOT_FOUND,
            E::RPC_SERVER_UNAVAILABLE,
            E::RPC_CALL_FAILED,
            E::ACCESS_DENIED,
        ];
    }
    if method.starts_with("MSFT_iSCSI") {
        return &[
            E::ISDSC_CONNECTION_FAILED,
            E::ISDSC_AUTHENTICATION_FAILURE,
            E::ISDSC_INVALID_SESSION_ID,
            E::ISDSC_SESSION_BUSY,
            E::ISDSC_SERVICE_NOT_RUNNING,
            E::ISDSC_TARGET_ALREADY_LOGGED_IN,
            E::ISDSC_PORTAL_NOT_FOUND,
            E::WBEM_FAILED,
            E::WBEM_NOT_FOUND,
            E::RPC_SERVER_UNAVAILABLE,
            E::RPC_CALL_FAILED,
            E::ACCESS_DENIED,
        ];
    }
    &[E::WBEM_FAILED, E::WBEM_NOT_FOUND, E::RPC_SERVER_UNAVAILABLE, E::RPC_CALL_FAILED, E::ACCESS_DENIED]
}

fn errors_of_control(code: &str) -> &'static [OsError] {
    match code {
        "FSCTL_GET_REPARSE_POINT" => &[E::NOT_A_REPARSE_POINT, E::INVALID_FUNCTION, E::FILE_CORRUPT, E::IO_DEVICE],
        "FSCTL_SET_REPARSE_POINT" => &[
            E::PRIVILEGE_NOT_HELD,
            E::DIR_NOT_EMPTY,
            E::ACCESS_DENIED,
            E::INVALID_FUNCTION,
            E::DISK_FULL,
            E::REPARSE_TAG_MISMATCH,
            E::IO_DEVICE,
        ],
        "FSCTL_QUERY_FILE_SYSTEM_RECOGNITION" => &[
            E::UNRECOGNIZED_VOLUME,
            E::INVALID_FUNCTION,
            E::NOT_SUPPORTED,
            E::INSUFFICIENT_BUFFER,
            E::IO_DEVICE,
            E::CRC,
        ],
        "FSCTL_EXTEND_VOLUME" => &[E::INVALID_PARAMETER, E::ACCESS_DENIED, E::GEN_FAILURE, E::IO_DEVICE],
        "VOLUME_GET_VOLUME_DISK_EXTENTS" => &[
            E::INVALID_FUNCTION,
            E::NOT_READY,
            E::INVALID_PARAMETER,
            E::MORE_DATA,
            E::IO_DEVICE,
            E::DEVICE_NOT_CONNECTED,
        ],
        _ => &[
            E::INVALID_FUNCTION,
            E::ACCESS_DENIED,
            E::WRITE_PROTECT,
            E::NOT_READY,
            E::CRC,
            E::NOT_SUPPORTED,
            E::INVALID_PARAMETER,
            E::INSUFFICIENT_BUFFER,
            E::BUSY,
            E::MORE_DATA,
            E::IO_DEVICE,
            E::DEVICE_NOT_CONNECTED,
        ],
    }
}

/// Returns the return values that a WMI method is made to answer with: those that its class documents.
pub fn returns_of(call: &Call) -> &'static [u32] {
    let Some(method) = call.primitive.strip_prefix("wmi call ") else { return &[] };
    if method.starts_with("MSFT_Smb") {
        // Win32: access denied, not found on the network, logon failures, another user's session.
        return &[5, 53, 67, 86, 1219, 1326];
    }
    if method.starts_with("MSFT_iSCSI") {
        // No connection, wrong secret, session busy, already logged in.
        return &[0xefff_0003, 0xefff_0009, 0xefff_001f, 0xefff_003f];
    }
    // Not supported, timeout, failed, invalid parameter, in use, access denied, stale cache, not initialized, already
    // initialized, offline, too small, clustered, access path not assigned, volume read-only.
    &[1, 3, 4, 5, 6, 40001, 40003, 41000, 41001, 41003, 41014, 41018, 42002, 43006]
}

/// Returns whether `code` can be information for the caller of `call`, which may then continue: an object does not
/// exist, or exists already; a device does not know a request; a volume has no file system. Any other code is a failure,
/// and the operation's error must name it.
pub fn is_informative(call: &Call, code: u32) -> bool {
    if call.primitive.starts_with("wmi call ") && returns_of(call).contains(&code) {
        // Already initialized, access path not assigned, already logged in. An operation may repeat a call that returned
        // another code; if it then fails, the error must name the code.
        return [41001, 42002, 0xefff_003f].contains(&code);
    }
    let informative: &[OsError] = match &*call.primitive {
        "open" | "open_child" | "open_below" => &[
            E::FILE_NOT_FOUND,
            E::PATH_NOT_FOUND,
            E::NOT_READY,
            E::BAD_NETPATH,
            E::DELETE_PENDING,
            E::DEVICE_NOT_CONNECTED,
            E::NO_SUCH_DEVICE,
            E::DEVICE_REMOVED,
            E::ALREADY_EXISTS,
            E::SHARING_VIOLATION,
            E::OPLOCK_BREAK_IN_PROGRESS,
            E::UNRECOGNIZED_VOLUME,
        ],
        "service start" | "service stop" => {
            &[E::SERVICE_ALREADY_RUNNING, E::SERVICE_NOT_ACTIVE, E::SERVICE_CANNOT_ACCEPT_CTRL]
        }
        "wmi call MSFT_SmbGlobalMapping.Create" => &[E::NO_SUCH_LOGON_SESSION],
        "wmi call MSFT_iSCSITarget.Connect" => &[E::ISDSC_TARGET_ALREADY_LOGGED_IN],
        "wmi call MSFT_iSCSITarget.Disconnect" => &[E::ISDSC_SESSION_BUSY, E::ISDSC_INVALID_SESSION_ID],
        "wmi call MSFT_iSCSITargetPortal.Remove" => &[E::ISDSC_PORTAL_NOT_FOUND],
        // An operation logs that it cannot write the record of mappings.
        "set_volatile_text" | "delete_registry_value" => &[E::ACCESS_DENIED, E::NOT_ENOUGH_MEMORY],
        "list" => &[E::NO_MORE_FILES],
        "final_path" => &[E::FILE_NOT_FOUND, E::PATH_NOT_FOUND],
        "firmware_table" => &[E::INVALID_FUNCTION, E::NOT_SUPPORTED],
        "control FSCTL_QUERY_FILE_SYSTEM_RECOGNITION" => {
            &[E::UNRECOGNIZED_VOLUME, E::INVALID_FUNCTION, E::NOT_SUPPORTED, E::INSUFFICIENT_BUFFER]
        }
        "control STORAGE_GET_DEVICE_NUMBER" => &[E::NOT_READY, E::DEVICE_NOT_CONNECTED],
        "control VOLUME_GET_VOLUME_DISK_EXTENTS" => &[E::NOT_READY, E::DEVICE_NOT_CONNECTED, E::MORE_DATA],
        name if name.starts_with("control ") => {
            &[E::INVALID_FUNCTION, E::NOT_SUPPORTED, E::INVALID_PARAMETER, E::INSUFFICIENT_BUFFER, E::MORE_DATA]
        }
        name if name.starts_with("set ") => &[E::INVALID_FUNCTION, E::NOT_SUPPORTED, E::INVALID_PARAMETER],
        name if name.starts_with("query_fs") => &[E::UNRECOGNIZED_VOLUME],
        "query AttributeTag" => &[E::DELETE_PENDING, E::INVALID_PARAMETER],
        name if name.starts_with("query ") => &[E::DELETE_PENDING],
        "flush" => &[E::WRITE_PROTECT],
        _ => &[],
    };
    informative.iter().any(|error| error.0 == code)
}
