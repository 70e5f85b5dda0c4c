//! The error codes of Windows.

use std::fmt;

/// The result of a primitive.
pub type OsResult<T> = Result<T, OsError>;

/// An error code that Windows returned.
///
/// All of Windows' kinds of codes share this one number space:
///
/// - a Win32 error code is kept;
/// - an `HRESULT` of the facility `FACILITY_WIN32` is converted to its Win32 code; any other, such
///   as WMI's `0x8004....`, is kept, as is a code of the iSCSI initiator, `0xefff....`;
/// - an `NTSTATUS` is converted as `RtlNtStatusToDosError` converts it, except
///   `STATUS_DELETE_PENDING`: that function returns "access denied" for it, and this type has
///   [`Self::DELETE_PENDING`];
/// - codes of `os` itself, which Windows never returns, have the customer bit of an `HRESULT`:
///   `0xa004....`.
///
/// `Display` writes a short form of Microsoft's message, with the code:
/// `the directory is not empty (145)`.
///
/// <https://learn.microsoft.com/windows/win32/debug/system-error-codes>
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OsError(pub u32);

macro_rules! codes {
    ($($name:ident = $code:literal, $message:literal;)*) => {
        impl OsError {
            $(#[doc = concat!("`", stringify!($code), "`: ", $message, ".")] pub const $name: Self = Self($code);)*

            fn message(self) -> Option<&'static str> {
                Some(match self { $(Self::$name => $message,)* _ => return None })
            }

            fn name(self) -> Option<&'static str> {
                Some(match self { $(Self::$name => stringify!($name),)* _ => return None })
            }

            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the constant of this name.
            pub fn named(name: &str) -> Option<Self> {
                Some(match name { $(stringify!($name) => Self::$name,)* _ => return None })
            }
        }
    };
}

codes! {
    INVALID_FUNCTION = 1, "the device does not support this request";
    FILE_NOT_FOUND = 2, "the system cannot find the file specified";
    PATH_NOT_FOUND = 3, "the system cannot find the path specified";
    ACCESS_DENIED = 5, "access is denied";
    INVALID_HANDLE = 6, "the handle is invalid";
    NOT_ENOUGH_MEMORY = 8, "not enough memory resources are available";
    NO_MORE_FILES = 18, "there are no more files";
    WRITE_PROTECT = 19, "the media is write protected";
    NOT_READY = 21, "the device is not ready";
    CRC = 23, "data error (cyclic redundancy check)";
    BAD_LENGTH = 24, "the length of a buffer is wrong";
    GEN_FAILURE = 31, "the device is not functioning";
    SHARING_VIOLATION = 32, "the file is being used by another process";
    LOCK_VIOLATION = 33, "another process has locked a portion of the file";
    HANDLE_EOF = 38, "the end of the file has been reached";
    NOT_SUPPORTED = 50, "the request is not supported";
    BAD_NETPATH = 53, "the network path was not found";
    DEV_NOT_EXIST = 55, "the network resource or device is no longer available";
    BAD_NET_NAME = 67, "the network name cannot be found";
    INVALID_PASSWORD = 86, "the network password is not correct";
    INVALID_PARAMETER = 87, "a parameter is incorrect";
    DISK_FULL = 112, "there is not enough space on the disk";
    CALL_NOT_IMPLEMENTED = 120, "this function is not supported on this system";
    SEM_TIMEOUT = 121, "the semaphore timeout period has expired";
    INSUFFICIENT_BUFFER = 122, "the buffer is too small";
    INVALID_NAME = 123, "the syntax of the name is incorrect";
    DIR_NOT_EMPTY = 145, "the directory is not empty";
    BUSY = 170, "the requested resource is in use";
    ALREADY_EXISTS = 183, "the file already exists";
    FILENAME_EXCED_RANGE = 206, "the file name is too long";
    MORE_DATA = 234, "more data is available";
    WAIT_TIMEOUT = 258, "the wait operation timed out";
    DIRECTORY = 267, "not a directory";
    DELETE_PENDING = 303, "the file is being deleted";
    NO_SUCH_DEVICE = 433, "the device does not exist";
    OPLOCK_BREAK_IN_PROGRESS = 742, "another process has not yet given up its opportunistic lock \
                                     on the file";
    OPERATION_ABORTED = 995, "the I/O operation was aborted";
    UNRECOGNIZED_VOLUME = 1005, "the volume does not contain a recognized file system";
    FILE_INVALID = 1006, "the volume has changed, and the open file is no longer valid";
    DEPENDENT_SERVICES_RUNNING = 1051, "other running services depend on the service";
    INVALID_SERVICE_CONTROL = 1052, "the service does not accept the control";
    SERVICE_REQUEST_TIMEOUT = 1053, "the service did not respond in time";
    SERVICE_DATABASE_LOCKED = 1055, "the service database is locked";
    SERVICE_ALREADY_RUNNING = 1056, "the service is already running";
    SERVICE_DISABLED = 1058, "the service is disabled";
    SERVICE_DOES_NOT_EXIST = 1060, "the service does not exist";
    SERVICE_CANNOT_ACCEPT_CTRL = 1061, "the service cannot accept control messages at this time";
    SERVICE_NOT_ACTIVE = 1062, "the service is not running";
    IO_DEVICE = 1117, "the device reported an I/O error";
    DEVICE_NOT_CONNECTED = 1167, "the device is not connected";
    CONNECTION_UNAVAIL = 1201, "the remembered connection is not connected";
    SESSION_CREDENTIAL_CONFLICT = 1219, "the server or share is already connected under another \
                                         user name";
    NO_SUCH_LOGON_SESSION = 1312, "the logon session does not exist";
    PRIVILEGE_NOT_HELD = 1314, "a required privilege is not held";
    LOGON_FAILURE = 1326, "the user name or password is incorrect";
    ACCOUNT_RESTRICTION = 1327, "account restrictions prevent the user from logging on";
    FILE_CORRUPT = 1392, "the file or directory is corrupted and unreadable";
    DEVICE_REMOVED = 1617, "the device has been removed";
    RPC_SERVER_UNAVAILABLE = 1722, "the RPC server is unavailable";
    RPC_CALL_FAILED = 1726, "the remote procedure call failed";
    INVALID_USER_BUFFER = 1784, "the buffer supplied to the function is not valid";
    CANT_ACCESS_FILE = 1920, "nothing handles the tag of the reparse point";
    CANT_RESOLVE_FILENAME = 1921, "the system cannot resolve the path; its links may form a loop";
    OPEN_FILES = 2401, "files are open on the connection";
    NOT_A_REPARSE_POINT = 4390, "the file or directory is not a reparse point";
    REPARSE_ATTRIBUTE_CONFLICT = 4391, "the reparse point belongs to another application";
    INVALID_REPARSE_DATA = 4392, "the data of the reparse point is not valid";
    REPARSE_TAG_INVALID = 4393, "the tag of the reparse point is not valid";
    REPARSE_TAG_MISMATCH = 4394, "the reparse point has a different tag";
    REPARSE_POINT_ENCOUNTERED = 4395, "a reparse point is on the path";
    WBEM_FAILED = 0x8004_1001, "WMI reported a generic failure";
    WBEM_NOT_FOUND = 0x8004_1002, "WMI cannot find the object";
    WBEM_INVALID_PARAMETER = 0x8004_1008, "WMI received an invalid parameter";
    WBEM_INVALID_NAMESPACE = 0x8004_100e, "the WMI namespace does not exist";
    WBEM_INVALID_CLASS = 0x8004_1010, "the WMI class does not exist";
    WBEM_TRANSPORT_FAILURE = 0x8004_1015, "the WMI service cannot be reached";
    WBEM_INVALID_QUERY = 0x8004_1017, "the WMI query is not valid";
    WBEM_INVALID_METHOD = 0x8004_102e, "the WMI method does not exist";
    WBEM_CALL_CANCELLED = 0x8004_1032, "the WMI call was cancelled";
    WBEM_SHUTTING_DOWN = 0x8004_1033, "the WMI service is shutting down";
    WBEM_SERVER_TOO_BUSY = 0x8004_1045, "the WMI service is too busy";
    WBEM_PROVIDER_SUSPENDED = 0x8004_1081, "the WMI provider is suspended";
    WMI_QUEUE_FULL = 0xa004_0001, "too many requests wait for a connection to WMI";
    WMI_TIMED_OUT = 0xa004_0002, "WMI did not start or answer the request in time";
    WMI_TOO_MANY_OBJECTS = 0xa004_0003, "WMI has more than 4096 objects of this kind";
    FVE_LOCKED_VOLUME = 0x8031_0000, "the volume is locked by BitLocker";
    ISDSC_CONNECTION_FAILED = 0xefff_0003, "the iSCSI portal cannot be reached";
    ISDSC_AUTHENTICATION_FAILURE = 0xefff_0009, "the iSCSI authentication failed";
    ISDSC_INVALID_SESSION_ID = 0xefff_001c, "the iSCSI session does not exist";
    ISDSC_SESSION_BUSY = 0xefff_001f, "the iSCSI session is busy";
    ISDSC_TARGET_NOT_FOUND = 0xefff_0029, "the iSCSI target is not known";
    ISDSC_SERVICE_NOT_RUNNING = 0xefff_003e, "the iSCSI initiator service is not running";
    ISDSC_TARGET_ALREADY_LOGGED_IN = 0xefff_003f, "the iSCSI target is already logged in";
    ISDSC_DEVICE_BUSY_ON_SESSION = 0xefff_0040, "a device of the iSCSI session is in use";
    ISDSC_PORTAL_NOT_FOUND = 0xefff_0043, "the iSCSI portal is not known";
    ISDSC_SHORT_CHAP_SECRET = 0xefff_0048, "the CHAP secret is too short";
    ISDSC_INVALID_CHAP_SECRET = 0xefff_004a, "the CHAP secret is not valid";
}

impl OsError {
    /// Converts a failed `HRESULT`: one of `FACILITY_WIN32` to its Win32 code, any other unchanged.
    pub const fn from_hresult(code: u32) -> Self {
        const FACILITY_WIN32: u32 = 0x8007_0000;
        if code & 0xffff_0000 == FACILITY_WIN32 {
            Self(code & 0xffff)
        } else {
            Self(code)
        }
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.message(), self.0) {
            (Some(message), code @ 0x8000_0000..) => write!(f, "{message} (0x{code:08x})"),
            (Some(message), code) => write!(f, "{message} ({code})"),
            (None, code @ 0x8000_0000..) => write!(f, "Windows error 0x{code:08x}"),
            (None, code) => write!(f, "Windows error {code}"),
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
    fn an_hresult_of_win32_is_converted_to_its_win32_code_and_others_are_kept() {
        assert_eq!(
            OsError::from_hresult(0x8007_06ba),
            OsError::RPC_SERVER_UNAVAILABLE
        );
        assert_eq!(
            OsError::from_hresult(0x8004_1010),
            OsError::WBEM_INVALID_CLASS
        );
    }

    #[test]
    fn the_message_of_every_code_is_collected() {
        for code in OsError::ALL {
            texts::seen!(code.to_string());
        }
    }

    #[test]
    fn an_error_is_displayed_as_its_message_and_its_code() {
        assert_eq!(
            OsError::DIR_NOT_EMPTY.to_string(),
            "the directory is not empty (145)"
        );
        assert_eq!(OsError(4711).to_string(), "Windows error 4711");
        assert_eq!(
            OsError::WBEM_FAILED.to_string(),
            "WMI reported a generic failure (0x80041001)"
        );
        assert_eq!(format!("{:?}", OsError::BUSY), "BUSY");
    }
}
