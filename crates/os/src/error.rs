//! The error codes of Windows.

use std::borrow::Cow;
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
/// `Display` writes a short sentence and the code: `the directory is not empty (145)`. On Windows, a
/// code without a sentence here has the one of Windows, in the language of the system.
///
/// The codes that operations can meet have a sentence. These pages name them:
///
/// - <https://learn.microsoft.com/windows/win32/debug/system-error-codes>
/// - <https://learn.microsoft.com/windows/win32/api/winnetwk/nf-winnetwk-wnetaddconnection2w>
/// - <https://learn.microsoft.com/windows/win32/netmgmt/network-management-error-codes>
/// - <https://learn.microsoft.com/windows-server/storage/file-server/enable-insecure-guest-logons-smb2-and-smb3>
/// - <https://learn.microsoft.com/windows/win32/wmisdk/wmi-error-constants>
/// - <https://learn.microsoft.com/windows-hardware/drivers/storage/iscsi-status-qualifiers> (all)
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

            /// Returns whether this crate has words for the code: whether one of the pages names it.
            pub fn has_words(self) -> bool {
                self.message().is_some()
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
    SECTOR_NOT_FOUND = 27, "a sector of the disk was not found";
    WRITE_FAULT = 29, "writing to the device failed";
    READ_FAULT = 30, "reading from the device failed";
    GEN_FAILURE = 31, "the device is not functioning";
    SHARING_VIOLATION = 32, "the file is being used by another process";
    LOCK_VIOLATION = 33, "another process has locked a portion of the file";
    HANDLE_EOF = 38, "the end of the file has been reached";
    NOT_SUPPORTED = 50, "the request is not supported";
    REM_NOT_LIST = 51, "the server is busy, turned off or not on the network";
    DUP_NAME = 52, "another computer on the network has the same name";
    BAD_NETPATH = 53, "the network path was not found";
    NETWORK_BUSY = 54, "the network is busy";
    DEV_NOT_EXIST = 55, "the network resource or device is no longer available";
    TOO_MANY_CMDS = 56, "too many network requests are waiting";
    ADAP_HDW_ERR = 57, "a network adapter fails";
    BAD_NET_RESP = 58, "the server cannot perform the request";
    UNEXP_NET_ERR = 59, "an unexpected network error occurred";
    BAD_REM_ADAP = 60, "the network adapter of the server is not compatible";
    PRINTQ_FULL = 61, "the queue of the printer is full";
    NO_SPOOL_SPACE = 62, "the server has no space for files that wait to be printed";
    PRINT_CANCELLED = 63, "the file that waited to be printed was deleted";
    NETNAME_DELETED = 64, "the connection to the server was lost";
    NETWORK_ACCESS_DENIED = 65, "access to the network is denied";
    BAD_DEV_TYPE = 66, "the network resource is of another type";
    BAD_NET_NAME = 67, "the network name cannot be found";
    TOO_MANY_NAMES = 68, "too many network names are in use";
    TOO_MANY_SESS = 69, "too many network sessions are open";
    SHARING_PAUSED = 70, "the server is paused or starting";
    REQ_NOT_ACCEP = 71, "the server accepts no more connections at this time";
    REDIR_PAUSED = 72, "the network device is paused";
    OUT_OF_STRUCTURES = 84, "there is no memory for the request";
    ALREADY_ASSIGNED = 85, "the local name is already in use";
    INVALID_PASSWORD = 86, "the network password is not correct";
    INVALID_PARAMETER = 87, "a parameter is incorrect";
    NET_WRITE_FAULT = 88, "writing to the network failed";
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
    SMB1_NOT_AVAILABLE = 384, "the server offers only SMB 1, which this Windows does not use";
    NO_SUCH_DEVICE = 433, "the device does not exist";
    DEVICE_HARDWARE_ERROR = 483, "the hardware of the device fails";
    INVALID_ADDRESS = 487, "the address is not valid";
    OPLOCK_BREAK_IN_PROGRESS = 742,
        "another process has not yet given up its opportunistic lock on the file";
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
    MEDIA_CHANGED = 1110, "the medium may have been changed";
    IO_DEVICE = 1117, "the device reported an I/O error";
    DISK_OPERATION_FAILED = 1127, "a disk operation failed repeatedly";
    NOT_ENOUGH_SERVER_MEMORY = 1130, "the server has not enough memory";
    DEVICE_NOT_CONNECTED = 1167, "the device is not connected";
    BAD_DEVICE = 1200, "the device name is not valid";
    CONNECTION_UNAVAIL = 1201, "the remembered connection is not connected";
    DEVICE_ALREADY_REMEMBERED = 1202, "the local name is remembered for another network resource";
    NO_NET_OR_BAD_PATH = 1203, "no network component that runs accepts the path";
    BAD_PROVIDER = 1204, "the name of the network provider is not valid";
    CANNOT_OPEN_PROFILE = 1205, "the list of remembered connections cannot be opened";
    BAD_PROFILE = 1206, "the list of remembered connections is damaged";
    EXTENDED_ERROR = 1208, "a network component reported an error of its own";
    INVALID_COMPUTERNAME = 1210, "the form of the computer name is not valid";
    INVALID_DOMAINNAME = 1212, "the form of the domain name is not valid";
    INVALID_NETNAME = 1214, "the form of the network name is not valid";
    INVALID_SHARENAME = 1215, "the form of the share name is not valid";
    SESSION_CREDENTIAL_CONFLICT = 1219,
        "the server or share is already connected under another user name";
    REMOTE_SESSION_LIMIT_EXCEEDED = 1220, "the node has too many sessions with the server";
    NO_NETWORK = 1222, "the network is missing or not started";
    CANCELLED = 1223, "the request was cancelled";
    CONNECTION_REFUSED = 1225, "the server refused the connection";
    GRACEFUL_DISCONNECT = 1226, "the server closed the connection";
    CONNECTION_INVALID = 1229, "the network connection does not exist";
    NETWORK_UNREACHABLE = 1231, "the network of the server cannot be reached";
    HOST_UNREACHABLE = 1232, "the server cannot be reached";
    PROTOCOL_UNREACHABLE = 1233, "the server does not support the network protocol";
    PORT_UNREACHABLE = 1234, "nothing listens at the port of the server";
    REQUEST_ABORTED = 1235, "the network request was aborted";
    CONNECTION_ABORTED = 1236, "the network connection was aborted";
    RETRY = 1237, "the request failed for the moment";
    CONNECTION_COUNT_LIMIT = 1238, "the account has too many connections to the server";
    LOGIN_TIME_RESTRICTION = 1239, "the account may not log on at this time";
    LOGIN_WKSTA_RESTRICTION = 1240, "the account may not log on from this node";
    NOT_AUTHENTICATED = 1244, "the user is not authenticated";
    NOT_LOGGED_ON = 1245, "the user is not logged on to the network";
    SERVER_SHUTDOWN_IN_PROGRESS = 1255, "the server is shutting down";
    HOST_DOWN = 1256, "the server is down";
    DOWNGRADE_DETECTED = 1265, "no domain controller can be reached for the authentication";
    SMB_GUEST_LOGON_BLOCKED = 1272, "a policy of this node blocks access as a guest";
    NO_LOGON_SERVERS = 1311, "no logon server can be reached";
    NO_SUCH_LOGON_SESSION = 1312, "the logon session does not exist";
    PRIVILEGE_NOT_HELD = 1314, "a required privilege is not held";
    LOGON_FAILURE = 1326, "the user name or password is incorrect";
    ACCOUNT_RESTRICTION = 1327, "account restrictions prevent the user from logging on";
    INVALID_LOGON_HOURS = 1328, "the account may not log on at this time";
    INVALID_WORKSTATION = 1329, "the account may not log on from this computer";
    PASSWORD_EXPIRED = 1330, "the password of the account has expired";
    ACCOUNT_DISABLED = 1331, "the account is disabled";
    NONE_MAPPED = 1332, "the account is not known";
    SERVER_DISABLED = 1341, "the server is disabled";
    CANT_ACCESS_DOMAIN_INFO = 1351, "the domain controller does not answer or denies the access";
    NO_SUCH_DOMAIN = 1355, "the domain does not exist or cannot be reached";
    LOGON_NOT_GRANTED = 1380, "the account has no right to log on in this way";
    TOO_MANY_CONTEXT_IDS = 1384, "the account is a member of too many groups to log on";
    LOGON_TYPE_NOT_GRANTED = 1385,
        "the account has no right to log on to the computer from the network";
    FILE_CORRUPT = 1392, "the file or directory is corrupted and unreadable";
    DISK_CORRUPT = 1393, "the structure of the disk is corrupted and unreadable";
    NO_USER_SESSION_KEY = 1394,
        "the session with the server has no key, as a session of a guest";
    LICENSE_QUOTA_EXCEEDED = 1395, "the server has no license for more connections";
    WRONG_TARGET_NAME = 1396, "the name of the server is not the one of its account";
    MUTUAL_AUTH_FAILED = 1397, "the server could not prove its identity to the node";
    TIME_SKEW = 1398, "the clocks of the node and the server differ";
    NO_SYSTEM_RESOURCES = 1450, "the system has not enough resources";
    WORKING_SET_QUOTA = 1453, "the quota for memory is used up";
    TIMEOUT = 1460, "the time for the request has passed";
    DEVICE_REMOVED = 1617, "the device has been removed";
    RPC_SERVER_UNAVAILABLE = 1722, "the RPC server is unavailable";
    RPC_CALL_FAILED = 1726, "the remote procedure call failed";
    INVALID_USER_BUFFER = 1784, "the buffer supplied to the function is not valid";
    UNRECOGNIZED_MEDIA = 1785, "the medium is not recognized, and may not be formatted";
    NO_TRUST_LSA_SECRET = 1786, "the node has no secret for its domain";
    NO_TRUST_SAM_ACCOUNT = 1787, "the domain has no account for the node";
    TRUSTED_DOMAIN_FAILURE = 1788, "the trust between two domains failed";
    TRUSTED_RELATIONSHIP_FAILURE = 1789, "the trust between the node and its domain failed";
    TRUST_FAILURE = 1790, "the network logon failed";
    NETLOGON_NOT_STARTED = 1792, "the network logon service is not running";
    ACCOUNT_EXPIRED = 1793, "the account has expired";
    NOLOGON_INTERDOMAIN_TRUST_ACCOUNT = 1807, "the account is that of a trust between domains";
    NOLOGON_WORKSTATION_TRUST_ACCOUNT = 1808, "the account is that of a computer";
    NOLOGON_SERVER_TRUST_ACCOUNT = 1809, "the account is that of a domain controller";
    NOT_ENOUGH_QUOTA = 1816, "a quota of the node is used up";
    PASSWORD_MUST_CHANGE = 1907, "the password of the account must be changed";
    DOMAIN_CONTROLLER_NOT_FOUND = 1908, "no domain controller was found";
    ACCOUNT_LOCKED_OUT = 1909, "the account is locked";
    CANT_ACCESS_FILE = 1920, "nothing handles the tag of the reparse point";
    CANT_RESOLVE_FILENAME = 1921, "the system cannot resolve the path; its links may form a loop";
    AUTHENTICATION_FIREWALL_FAILED = 1935,
        "an authentication firewall keeps the account from the server";
    NTLM_BLOCKED = 1937, "the authentication by NTLM is disabled";
    NET_NOT_STARTED = 2102, "the network driver of this node is not installed";
    WKSTA_NOT_STARTED = 2138, "the service Workstation is not running";
    BAD_USERNAME = 2202, "the user name is not valid";
    ACCOUNT_PASSWORD_EXPIRED = 2242, "the password of the user has expired";
    NOT_CONNECTED = 2250, "the network connection does not exist any more";
    OPEN_FILES = 2401, "files are open on the connection";
    ACTIVE_CONNECTIONS = 2402, "connections are still active";
    DEVICE_IN_USE = 2404, "a process uses the network device";
    NOT_A_REPARSE_POINT = 4390, "the file or directory is not a reparse point";
    REPARSE_ATTRIBUTE_CONFLICT = 4391, "the reparse point belongs to another application";
    INVALID_REPARSE_DATA = 4392, "the data of the reparse point is not valid";
    REPARSE_TAG_INVALID = 4393, "the tag of the reparse point is not valid";
    REPARSE_TAG_MISMATCH = 4394, "the reparse point has a different tag";
    REPARSE_POINT_ENCOUNTERED = 4395, "a reparse point is on the path";
    RPC_SERVER_DIED = 0x8001_0007, "the process that served the call has ended";
    RPC_DISCONNECTED = 0x8001_0108, "the object has been disconnected from its clients";
    OBJECT_NOT_CONNECTED = 0x8004_01fd, "the object is not connected to its server";
    WBEM_FAILED = 0x8004_1001, "WMI reported a generic failure";
    WBEM_NOT_FOUND = 0x8004_1002, "WMI cannot find the object";
    WBEM_ACCESS_DENIED = 0x8004_1003, "WMI denied the access";
    WBEM_PROVIDER_FAILURE = 0x8004_1004, "the WMI provider failed";
    WBEM_OUT_OF_MEMORY = 0x8004_1006, "WMI has not enough memory";
    WBEM_INVALID_PARAMETER = 0x8004_1008, "WMI received an invalid parameter";
    WBEM_NOT_AVAILABLE = 0x8004_1009, "a resource that WMI needs is not available";
    WBEM_CRITICAL_ERROR = 0x8004_100a, "WMI reported a critical error";
    WBEM_NOT_SUPPORTED = 0x8004_100c, "WMI does not support the operation";
    WBEM_INVALID_NAMESPACE = 0x8004_100e, "the WMI namespace does not exist";
    WBEM_INVALID_CLASS = 0x8004_1010, "the WMI class does not exist";
    WBEM_PROVIDER_NOT_FOUND = 0x8004_1011, "the WMI provider is not registered";
    WBEM_PROVIDER_LOAD_FAILURE = 0x8004_1013, "the WMI provider cannot be loaded";
    WBEM_INITIALIZATION_FAILURE = 0x8004_1014, "a component of WMI could not start";
    WBEM_TRANSPORT_FAILURE = 0x8004_1015, "the WMI service cannot be reached";
    WBEM_INVALID_QUERY = 0x8004_1017, "the WMI query is not valid";
    WBEM_INVALID_METHOD = 0x8004_102e, "the WMI method does not exist";
    WBEM_CALL_CANCELLED = 0x8004_1032, "the WMI call was cancelled";
    WBEM_SHUTTING_DOWN = 0x8004_1033, "the WMI service is shutting down";
    WBEM_SERVER_TOO_BUSY = 0x8004_1045, "the WMI service is too busy";
    WBEM_QUOTA_VIOLATION = 0x8004_106c, "a quota of WMI is used up";
    WBEM_PROVIDER_SUSPENDED = 0x8004_1081, "the WMI provider is suspended";
    FVE_LOCKED_VOLUME = 0x8031_0000, "the volume is locked by BitLocker";
    WMI_QUEUE_FULL = 0xa004_0001, "too many requests wait for a connection to WMI";
    WMI_TIMED_OUT = 0xa004_0002, "WMI did not start or answer the request in time";
    WMI_TOO_MANY_OBJECTS = 0xa004_0003, "WMI has more than 4096 objects of this kind";
    ISDSC_OPERATION_REQUIRES_REBOOT = 0xafff_003b, "the iSCSI initiator requires a restart";
    SMB_GUEST_LOGON_BLOCKED_SIGNING_REQUIRED = 0xc05d_0003,
        "the server accepts the user only as a guest, and this node requires signing";
    ISDSC_NON_SPECIFIC_ERROR = 0xefff_0001, "the iSCSI initiator gives no reason";
    ISDSC_LOGIN_FAILED = 0xefff_0002, "the iSCSI login failed";
    ISDSC_CONNECTION_FAILED = 0xefff_0003, "the iSCSI portal cannot be reached";
    ISDSC_INITIATOR_NODE_ALREADY_EXISTS = 0xefff_0004, "the iSCSI initiator name already exists";
    ISDSC_INITIATOR_NODE_NOT_FOUND = 0xefff_0005, "the iSCSI initiator name does not exist";
    ISDSC_TARGET_MOVED_TEMPORARILY = 0xefff_0006,
        "the iSCSI target has moved to another portal for a time";
    ISDSC_TARGET_MOVED_PERMANENTLY = 0xefff_0007,
        "the iSCSI target has moved to another portal for good";
    ISDSC_INITIATOR_ERROR = 0xefff_0008, "the iSCSI target reported an error of the initiator";
    ISDSC_AUTHENTICATION_FAILURE = 0xefff_0009, "the iSCSI authentication failed";
    ISDSC_AUTHORIZATION_FAILURE = 0xefff_000a, "the iSCSI target does not allow this initiator";
    ISDSC_NOT_FOUND = 0xefff_000b, "the iSCSI portal does not have the target";
    ISDSC_TARGET_REMOVED = 0xefff_000c, "the iSCSI target was removed";
    ISDSC_UNSUPPORTED_VERSION = 0xefff_000d,
        "the iSCSI target does not support the version of the protocol";
    ISDSC_TOO_MANY_CONNECTIONS = 0xefff_000e, "the iSCSI target accepts no more connections";
    ISDSC_MISSING_PARAMETER = 0xefff_000f, "the iSCSI login lacks a parameter";
    ISDSC_CANT_INCLUDE_IN_SESSION = 0xefff_0010,
        "the iSCSI connection cannot be added to the session";
    ISDSC_SESSION_TYPE_NOT_SUPPORTED = 0xefff_0011,
        "the iSCSI target does not support the type of the session";
    ISDSC_TARGET_ERROR = 0xefff_0012, "the iSCSI target reported an error of its own";
    ISDSC_SERVICE_UNAVAILABLE = 0xefff_0013, "the iSCSI target is not ready";
    ISDSC_OUT_OF_RESOURCES = 0xefff_0014, "the iSCSI target has no resources for another session";
    ISDSC_CONNECTION_ALREADY_EXISTS = 0xefff_0015, "the iSCSI initiator already has the connection";
    ISDSC_SESSION_ALREADY_EXISTS = 0xefff_0016, "the iSCSI session already exists";
    ISDSC_INITIATOR_INSTANCE_NOT_FOUND = 0xefff_0017, "the iSCSI initiator does not exist";
    ISDSC_TARGET_ALREADY_EXISTS = 0xefff_0018, "the iSCSI target already exists";
    ISDSC_DRIVER_BUG = 0xefff_0019, "the driver of the iSCSI initiator behaved wrongly";
    ISDSC_INVALID_TEXT_KEY = 0xefff_001a, "a text key of the iSCSI protocol is not valid";
    ISDSC_INVALID_SENDTARGETS_TEXT = 0xefff_001b,
        "the iSCSI portal sent a list of targets that is not valid";
    ISDSC_INVALID_SESSION_ID = 0xefff_001c, "the iSCSI session does not exist";
    ISDSC_SCSI_REQUEST_FAILED = 0xefff_001d, "a SCSI request failed";
    ISDSC_TOO_MANY_SESSIONS = 0xefff_001e, "the iSCSI initiator has too many sessions";
    ISDSC_SESSION_BUSY = 0xefff_001f, "the iSCSI session is busy";
    ISDSC_TARGET_MAPPING_UNAVAILABLE = 0xefff_0020, "no mapping for the iSCSI target is available";
    ISDSC_ADDRESS_TYPE_NOT_SUPPORTED = 0xefff_0021,
        "the type of the iSCSI address is not supported";
    ISDSC_LOGON_FAILED = 0xefff_0022, "the logon to the iSCSI target failed";
    ISDSC_SEND_FAILED = 0xefff_0023, "sending to the iSCSI portal failed";
    ISDSC_TRANSPORT_ERROR = 0xefff_0024, "the connection to the iSCSI portal failed";
    ISDSC_VERSION_MISMATCH = 0xefff_0025, "the versions of the iSCSI protocol differ";
    ISDSC_TARGET_MAPPING_OUT_OF_RANGE = 0xefff_0026,
        "the iSCSI adapter cannot use the address of the target mapping";
    ISDSC_TARGET_PRESHAREDKEY_UNAVAILABLE = 0xefff_0027,
        "there is no IPsec key for the iSCSI target";
    ISDSC_TARGET_AUTHINFO_UNAVAILABLE = 0xefff_0028,
        "there are no credentials for the iSCSI target";
    ISDSC_TARGET_NOT_FOUND = 0xefff_0029, "the iSCSI target is not known";
    ISDSC_LOGIN_USER_INFO_BAD = 0xefff_002a, "a parameter of the iSCSI login is not valid";
    ISDSC_TARGET_MAPPING_EXISTS = 0xefff_002b, "the mapping of the iSCSI target already exists";
    ISDSC_HBA_SECURITY_CACHE_FULL = 0xefff_002c, "the iSCSI adapter has no space for more keys";
    ISDSC_INVALID_PORT_NUMBER = 0xefff_002d, "the iSCSI initiator does not have the port";
    ISDSC_OPERATION_NOT_ALL_SUCCESS = 0xefff_002e,
        "the operation failed for some of the iSCSI initiators";
    ISDSC_HBA_SECURITY_CACHE_NOT_SUPPORTED = 0xefff_002f, "the iSCSI adapter cannot store keys";
    ISDSC_IKE_ID_PAYLOAD_TYPE_NOT_SUPPORTED = 0xefff_0030,
        "the iSCSI initiator does not support the type of the IKE identification";
    ISDSC_IKE_ID_PAYLOAD_INCORRECT_SIZE = 0xefff_0031,
        "the IKE identification for iSCSI has a wrong size";
    ISDSC_TARGET_PORTAL_ALREADY_EXISTS = 0xefff_0032, "the iSCSI portal already exists";
    ISDSC_TARGET_ADDRESS_ALREADY_EXISTS = 0xefff_0033,
        "the address of the iSCSI target already exists";
    ISDSC_NO_AUTH_INFO_AVAILABLE = 0xefff_0034, "there is no IKE authentication for iSCSI";
    ISDSC_NO_TUNNEL_OUTER_MODE_ADDRESS = 0xefff_0035,
        "there is no outer address for the IPsec tunnel of iSCSI";
    ISDSC_CACHE_CORRUPTED = 0xefff_0036,
        "the stored credentials or tunnel addresses of iSCSI are damaged";
    ISDSC_REQUEST_NOT_SUPPORTED = 0xefff_0037, "the iSCSI initiator does not support the request";
    ISDSC_TARGET_OUT_OF_RESOURCES = 0xefff_0038,
        "the iSCSI target has no resources for the request";
    ISDSC_SERVICE_DID_NOT_RESPOND = 0xefff_0039,
        "the iSCSI initiator service did not answer its driver";
    ISDSC_ISNS_SERVER_NOT_FOUND = 0xefff_003a, "the iSNS server was not found";
    ISDSC_REQUIRES_REBOOT = 0xefff_003b,
        "the iSCSI initiator requires a restart to complete the operation";
    ISDSC_NO_PORTAL_SPECIFIED = 0xefff_003c, "no portal is known for the iSCSI login";
    ISDSC_CANT_REMOVE_LAST_CONNECTION = 0xefff_003d,
        "the last connection of an iSCSI session cannot be removed";
    ISDSC_SERVICE_NOT_RUNNING = 0xefff_003e, "the iSCSI initiator service is not running";
    ISDSC_TARGET_ALREADY_LOGGED_IN = 0xefff_003f, "the iSCSI target is already logged in";
    ISDSC_DEVICE_BUSY_ON_SESSION = 0xefff_0040, "a device of the iSCSI session is in use";
    ISDSC_COULD_NOT_SAVE_PERSISTENT_LOGIN_DATA = 0xefff_0041, "the iSCSI login could not be stored";
    ISDSC_COULD_NOT_REMOVE_PERSISTENT_LOGIN_DATA = 0xefff_0042,
        "the stored iSCSI login could not be removed";
    ISDSC_PORTAL_NOT_FOUND = 0xefff_0043, "the iSCSI portal is not known";
    ISDSC_INITIATOR_NOT_FOUND = 0xefff_0044, "the iSCSI initiator is not known";
    ISDSC_DISCOVERY_MECHANISM_NOT_FOUND = 0xefff_0045, "the iSCSI discovery is not known";
    ISDSC_IPSEC_NOT_SUPPORTED_ON_OS = 0xefff_0046, "this Windows does not support IPsec for iSCSI";
    ISDSC_PERSISTENT_LOGIN_TIMEOUT = 0xefff_0047,
        "the stored iSCSI logins did not complete in time";
    ISDSC_SHORT_CHAP_SECRET = 0xefff_0048, "the CHAP secret is too short";
    ISDSC_EVALUATION_PERIOD_EXPIRED = 0xefff_0049,
        "the evaluation period of the iSCSI service has expired";
    ISDSC_INVALID_CHAP_SECRET = 0xefff_004a, "the CHAP secret is not valid";
    ISDSC_INVALID_TARGET_CHAP_SECRET = 0xefff_004b, "the CHAP secret of the target is not valid";
    ISDSC_INVALID_INITIATOR_CHAP_SECRET = 0xefff_004c,
        "the CHAP secret of the initiator is not valid";
    ISDSC_INVALID_CHAP_USER_NAME = 0xefff_004d, "the CHAP user name is not valid";
    ISDSC_INVALID_LOGON_AUTH_TYPE = 0xefff_004e,
        "the type of the iSCSI authentication is not valid";
    ISDSC_INVALID_TARGET_MAPPING = 0xefff_004f, "the mapping of the iSCSI target is not valid";
    ISDSC_INVALID_TARGET_ID = 0xefff_0050,
        "the identifier in the mapping of the iSCSI target is not valid";
    ISDSC_INVALID_ISCSI_NAME = 0xefff_0051,
        "the iSCSI name is too long or has characters that are not valid";
    ISDSC_INCOMPATIBLE_ISNS_VERSION = 0xefff_0052,
        "the iSNS server has a version that is not compatible";
    ISDSC_FAILED_TO_CONFIGURE_IPSEC = 0xefff_0053,
        "IPsec could not be configured for the iSCSI connection";
    ISDSC_BUFFER_TOO_SMALL = 0xefff_0054, "a buffer for iSCSI is too small";
    ISDSC_INVALID_LOAD_BALANCE_POLICY = 0xefff_0055,
        "the load balance policy of the iSCSI session is not valid";
    ISDSC_INVALID_PARAMETER = 0xefff_0056, "a parameter for iSCSI is not valid";
    ISDSC_DUPLICATE_PATH_SPECIFIED = 0xefff_0057, "a path of the iSCSI session is given twice";
    ISDSC_PATH_COUNT_MISMATCH = 0xefff_0058, "the number of paths is not that of the iSCSI session";
    ISDSC_INVALID_PATH_ID = 0xefff_0059, "a path of the iSCSI session is not valid";
    ISDSC_MULTIPLE_PRIMARY_PATHS_SPECIFIED = 0xefff_005a,
        "the iSCSI session has more than one primary path";
    ISDSC_NO_PRIMARY_PATH_SPECIFIED = 0xefff_005b, "the iSCSI session has no primary path";
    ISDSC_DEVICE_ALREADY_PERSISTENTLY_BOUND = 0xefff_005c, "the iSCSI device is bound already";
    ISDSC_DEVICE_NOT_FOUND = 0xefff_005d, "the iSCSI device was not found";
    ISDSC_DEVICE_NOT_ISCSI_OR_PERSISTENT = 0xefff_005e,
        "the device does not belong to a stored iSCSI login";
    ISDSC_DNS_NAME_UNRESOLVED = 0xefff_005f, "the name of the iSCSI portal cannot be resolved";
    ISDSC_NO_CONNECTION_AVAILABLE = 0xefff_0060,
        "the iSCSI session has no connection for the request";
    ISDSC_LB_POLICY_NOT_SUPPORTED = 0xefff_0061,
        "the load balance policy of the iSCSI session is not supported";
    ISDSC_REMOVE_CONNECTION_IN_PROGRESS = 0xefff_0062,
        "a connection of the iSCSI session is being removed";
    ISDSC_INVALID_CONNECTION_ID = 0xefff_0063, "the iSCSI session does not have the connection";
    ISDSC_CANNOT_REMOVE_LEADING_CONNECTION = 0xefff_0064,
        "the first connection of an iSCSI session cannot be removed";
    ISDSC_RESTRICTED_BY_GROUP_POLICY = 0xefff_0065, "a group policy forbids the iSCSI operation";
    ISDSC_ISNS_FIREWALL_BLOCKED = 0xefff_0066, "the firewall of the node blocks iSNS";
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
        let message = self.message().map(Cow::Borrowed);
        match (message.or_else(|| imp::message(self.0)), self.0) {
            (Some(message), code @ 0x8000_0000..) => write!(f, "{message} (0x{code:08x})"),
            (Some(message), code) => write!(f, "{message} ({code})"),
            (None, code @ 0x8000_0000..) => write!(f, "Windows error 0x{code:08x}"),
            (None, code) => write!(f, "Windows error {code}"),
        }
    }
}

#[cfg(windows)]
mod imp {
    use std::borrow::Cow;
    use std::io;

    /// Returns the sentence of Windows for a code, on one line and without its full stop.
    ///
    /// `io::Error` calls `FormatMessageW`, and adds the code.
    pub(super) fn message(code: u32) -> Option<Cow<'static, str>> {
        let code = code.cast_signed();
        let text = io::Error::from_raw_os_error(code).to_string();
        let sentence = text.strip_suffix(&format!(" (os error {code})"))?;
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let line = words.join(" ");
        let has_failed = line.is_empty() || line.contains("FormatMessageW()");
        (!has_failed).then(|| line.trim_end_matches('.').to_owned().into())
    }
}

#[cfg(not(windows))]
mod imp {
    use std::borrow::Cow;

    /// Returns `None`: other systems do not know the codes of Windows.
    pub(super) fn message(_: u32) -> Option<Cow<'static, str>> {
        None
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
