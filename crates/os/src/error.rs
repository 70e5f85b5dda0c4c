//! The codes Windows answers with.

use std::fmt;

/// What a primitive returns.
pub type OsResult<T> = Result<T, OsError>;

/// An error code as Windows gave it.
///
/// One number space: Win32 codes are small; an `HRESULT` of the Win32 facility is given as that Win32 code, any
/// other (WMI's `0x8004....`) as it is; an `NTSTATUS` is translated as `RtlNtStatusToDosError` does, but for
/// `STATUS_DELETE_PENDING`, which that function blurs into "access denied" and which is `DELETE_PENDING` here.
///
/// <https://learn.microsoft.com/windows/win32/debug/system-error-codes>
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OsError(pub u32);

macro_rules! codes {
    ($($name:ident = $code:literal, $words:literal;)*) => {
        impl OsError {
            $(#[doc = concat!("`", stringify!($code), "`: ", $words, ".")] pub const $name: Self = Self($code);)*

            fn words(self) -> Option<&'static str> {
                Some(match self { $(Self::$name => $words,)* _ => return None })
            }

            fn name(self) -> Option<&'static str> {
                Some(match self { $(Self::$name => stringify!($name),)* _ => return None })
            }
        }
    };
}

codes! {
    INVALID_FUNCTION = 1, "the device does not know this request";
    FILE_NOT_FOUND = 2, "not found";
    PATH_NOT_FOUND = 3, "the path does not exist";
    ACCESS_DENIED = 5, "access is denied";
    INVALID_HANDLE = 6, "the handle is invalid";
    NOT_ENOUGH_MEMORY = 8, "not enough memory";
    NO_MORE_FILES = 18, "there are no more files";
    WRITE_PROTECT = 19, "the medium is write-protected";
    NOT_READY = 21, "the device is not ready";
    CRC = 23, "data error (cyclic redundancy check)";
    GEN_FAILURE = 31, "the device does not work";
    SHARING_VIOLATION = 32, "in use by another process";
    LOCK_VIOLATION = 33, "locked by another process";
    HANDLE_EOF = 38, "the end of the file is reached";
    NOT_SUPPORTED = 50, "not supported";
    BAD_NETPATH = 53, "the network path was not found";
    BAD_NET_NAME = 67, "the network name was not found";
    INVALID_PASSWORD = 86, "the network password is wrong";
    INVALID_PARAMETER = 87, "a parameter is wrong";
    DEV_NOT_EXIST = 55, "the device is no longer there";
    DISK_FULL = 112, "the disk is full";
    CALL_NOT_IMPLEMENTED = 120, "this system does not have the function";
    SEM_TIMEOUT = 121, "the time ran out";
    INSUFFICIENT_BUFFER = 122, "the buffer is too small";
    INVALID_NAME = 123, "the name is not valid";
    DIR_NOT_EMPTY = 145, "the directory is not empty";
    BUSY = 170, "the device is in use";
    ALREADY_EXISTS = 183, "it exists already";
    FILENAME_EXCED_RANGE = 206, "the name is too long";
    MORE_DATA = 234, "more data is available";
    WAIT_TIMEOUT = 258, "the time ran out";
    DIRECTORY = 267, "not a directory";
    DELETE_PENDING = 303, "it is being deleted";
    NO_SUCH_DEVICE = 433, "the device does not exist";
    OPERATION_ABORTED = 995, "the operation was aborted";
    UNRECOGNIZED_VOLUME = 1005, "the volume has no file system that Windows knows";
    DEPENDENT_SERVICES_RUNNING = 1051, "services that depend on it are running";
    SERVICE_REQUEST_TIMEOUT = 1053, "the service did not answer in time";
    SERVICE_DATABASE_LOCKED = 1055, "the services are locked while one of them starts";
    SERVICE_ALREADY_RUNNING = 1056, "the service is running already";
    SERVICE_DISABLED = 1058, "the service is disabled";
    SERVICE_DOES_NOT_EXIST = 1060, "there is no such service";
    SERVICE_CANNOT_ACCEPT_CTRL = 1061, "the service cannot accept the request now";
    SERVICE_NOT_ACTIVE = 1062, "the service is not running";
    IO_DEVICE = 1117, "the device reports an I/O error";
    DEVICE_NOT_CONNECTED = 1167, "the device is not there";
    SESSION_CREDENTIAL_CONFLICT = 1219, "another user is connected to the same server or share";
    NO_SUCH_LOGON_SESSION = 1312, "the logon session does not exist";
    PRIVILEGE_NOT_HELD = 1314, "a needed privilege is missing";
    LOGON_FAILURE = 1326, "the user name or password is wrong";
    ACCOUNT_RESTRICTION = 1327, "the account may not log on";
    FILE_CORRUPT = 1392, "the file or directory is damaged";
    CONNECTION_UNAVAIL = 1201, "the remembered connection is not connected";
    CANT_RESOLVE_FILENAME = 1921, "the links of the path lead in a circle or to nothing";
    NOT_A_REPARSE_POINT = 4390, "not a link or mount point";
    REPARSE_TAG_MISMATCH = 4394, "a link of another kind";
    REPARSE_POINT_ENCOUNTERED = 4395, "a link or mount point is in the way";
    FVE_LOCKED_VOLUME = 0x8031_0000, "the volume is locked by BitLocker";
    WBEM_FAILED = 0x8004_1001, "WMI failed";
    WBEM_NOT_FOUND = 0x8004_1002, "WMI found no such object";
    WBEM_INVALID_NAMESPACE = 0x8004_100e, "there is no such WMI namespace";
    WBEM_INVALID_CLASS = 0x8004_1010, "there is no such WMI class";
    WBEM_INVALID_QUERY = 0x8004_1017, "the WMI query is not valid";
    WBEM_INVALID_METHOD = 0x8004_102e, "there is no such WMI method";
    WBEM_TRANSPORT_FAILURE = 0x8004_1015, "the WMI service cannot be reached";
    RPC_SERVER_UNAVAILABLE = 1722, "the RPC server is unavailable";
    RPC_CALL_FAILED = 1726, "the remote procedure call failed";
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.words(), self.0) {
            (Some(words), code @ 0x8000_0000..) => write!(f, "{words} (0x{code:08x})"),
            (Some(words), code) => write!(f, "{words} ({code})"),
            (None, code @ 0x8000_0000..) => write!(f, "Windows answered 0x{code:08x}"),
            (None, code) => write!(f, "Windows answered error {code}"),
        }
    }
}

impl fmt::Debug for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "OsError(0x{:x})", self.0),
        }
    }
}

impl std::error::Error for OsError {}

#[cfg(test)]
mod tests {
    use super::OsError;

    #[test]
    fn an_error_says_what_it_is_with_its_code() {
        assert_eq!(OsError::DIR_NOT_EMPTY.to_string(), "the directory is not empty (145)");
        assert_eq!(OsError(4711).to_string(), "Windows answered error 4711");
        assert_eq!(OsError::WBEM_FAILED.to_string(), "WMI failed (0x80041001)");
        assert_eq!(format!("{:?}", OsError::BUSY), "BUSY");
    }
}
