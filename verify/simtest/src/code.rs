//! Which errors strike which call: those that Windows is known to answer it with.

use faults::Call;
use os::OsError;

use OsError as E;

/// The errors that `call` is made to fail with.
pub fn errors_of(call: &Call) -> &'static [OsError] {
    match &*call.primitive {
        "open" | "open_child" => OPENING,
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
            E::WAIT_TIMEOUT,
            E::WBEM_FAILED,
            E::WBEM_NOT_FOUND,
            E::WBEM_INVALID_CLASS,
            E::WBEM_INVALID_NAMESPACE,
            E::WBEM_TRANSPORT_FAILURE,
            E::RPC_SERVER_UNAVAILABLE,
            E::RPC_CALL_FAILED,
            E::ACCESS_DENIED,
        ],
        "flush" => &[
            E::INVALID_FUNCTION,
            E::ACCESS_DENIED,
            E::WRITE_PROTECT,
            E::NOT_READY,
            E::IO_DEVICE,
            E::DEVICE_NOT_CONNECTED,
        ],
        "list" => &[E::IO_DEVICE, E::FILE_CORRUPT, E::NO_MORE_FILES, E::BAD_NETPATH, E::LOGON_FAILURE],
        "final_path" => &[E::PATH_NOT_FOUND, E::FILE_NOT_FOUND, E::IO_DEVICE],
        name if name.starts_with("wmi call") => {
            &[E::WBEM_FAILED, E::WBEM_NOT_FOUND, E::RPC_SERVER_UNAVAILABLE, E::RPC_CALL_FAILED, E::ACCESS_DENIED]
        }
        name if name.starts_with("service ") => &[E::ACCESS_DENIED, E::RPC_CALL_FAILED],
        name if name.starts_with("control ") => errors_of_control(&name["control ".len()..]),
        name if name.starts_with("query_fs") => {
            &[E::UNRECOGNIZED_VOLUME, E::FVE_LOCKED_VOLUME, E::IO_DEVICE, E::FILE_CORRUPT, E::CRC]
        }
        name if name.starts_with("query ") => &[E::INVALID_PARAMETER, E::IO_DEVICE, E::FILE_CORRUPT, E::DELETE_PENDING],
        name if name.starts_with("set ") => &[
            E::INVALID_FUNCTION,
            E::NOT_SUPPORTED,
            E::INVALID_PARAMETER,
            E::ACCESS_DENIED,
            E::DIR_NOT_EMPTY,
            E::SHARING_VIOLATION,
            E::WRITE_PROTECT,
            E::IO_DEVICE,
        ],
        // Whatever is new here is at least struck by something.
        _ => &[E::GEN_FAILURE, E::ACCESS_DENIED],
    }
}

/// What opening a file, directory, volume, disk or share fails with.
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
    E::UNRECOGNIZED_VOLUME,
    E::IO_DEVICE,
    E::DEVICE_NOT_CONNECTED,
    E::FILE_CORRUPT,
    E::FVE_LOCKED_VOLUME,
    E::DISK_FULL,
];

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

/// The return values that a WMI method is made to answer with: its class's own.
pub fn returns_of(call: &Call) -> &'static [u32] {
    let Some(method) = call.primitive.strip_prefix("wmi call ") else { return &[] };
    if method.starts_with("MSFT_Smb") {
        // Win32: access denied, not found on the network, logon failures, another user's session.
        return &[5, 53, 67, 86, 1219, 1326];
    }
    if method.starts_with("MSFT_iSCSI") {
        // No connection, wrong secret, already there, session busy.
        return &[0xefff_0003, 0xefff_0009, 0xefff_0016, 0xefff_0024];
    }
    // Not supported, timeout, failed, parameter, in use, access denied, stale cache, initialised already,
    // too small, clustered, path not assigned.
    &[1, 3, 4, 5, 6, 40001, 40003, 41001, 41014, 41018, 42002]
}

/// Whether an operation may take `code` for an answer to `call`, and go on from there: that something is not there,
/// or there already, that a device does not know a request, that a volume has no file system. Any other code is a
/// failure, and an operation that fails for it names it.
pub fn is_answer(call: &Call, code: u32) -> bool {
    if call.primitive.starts_with("wmi call ") && returns_of(call).contains(&code) {
        // Stale cache, initialised already, path not assigned; a session that is there already.
        return [40003, 41001, 42002, 0xefff_0016].contains(&code);
    }
    let answers: &[OsError] = match &*call.primitive {
        "open" | "open_child" => &[
            E::FILE_NOT_FOUND,
            E::PATH_NOT_FOUND,
            E::NOT_READY,
            E::BAD_NETPATH,
            E::DELETE_PENDING,
            E::DEVICE_NOT_CONNECTED,
            E::ALREADY_EXISTS,
            E::SHARING_VIOLATION,
            E::UNRECOGNIZED_VOLUME,
        ],
        "service start" | "service stop" => {
            &[E::SERVICE_ALREADY_RUNNING, E::SERVICE_NOT_ACTIVE, E::SERVICE_CANNOT_ACCEPT_CTRL]
        }
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
        name if name.starts_with("query ") => &[E::DELETE_PENDING],
        "flush" => &[E::WRITE_PROTECT],
        _ => &[],
    };
    answers.iter().any(|answer| answer.0 == code)
}
