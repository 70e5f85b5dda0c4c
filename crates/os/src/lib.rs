//! The primitives of Windows that csi-proxy uses, as traits.
//!
//! A primitive is one system call, as a Windows programmer knows it, and has no policy. The order
//! of calls, waiting, retries and the decoding of buffers are all in the crate `storage-ops`, which
//! runs unchanged on two implementations of these traits: `os-win32` makes the calls, and `os-sim`
//! simulates a Windows node.
//!
//! Buffers pass this interface as bytes in Windows' own layout ([`abi`]). Names are WTF-16. Errors
//! are the codes that Windows returned ([`OsError`]).

// The modules, from the lowest: `abi`, `error`, `lock`, `path`, `secret`, `clock`, `handle`, `service`,
// `wmi`.

pub mod abi;
mod clock;
mod error;
mod handle;
mod lock;
mod path;
mod secret;
mod service;
mod wmi;

pub use clock::{Clock, Time, WatchedWork};
pub use error::{OsError, OsResult};
pub use handle::{Access, Disposition, FileInfo, FsInfo, Handle, Open, Options, PathForm, Share};
pub use lock::lock;
pub use path::NtPath;
pub use secret::Secret;
pub use service::{Service, ServiceAccess, ServiceConfig};
pub use uuid::Uuid;
pub use widestring::{U16Str, U16String};
pub use wmi::{
    CallStatus, Instance, MAX_OBJECTS, MethodCall, Namespace, PendingCall, Returned, Value, Wmi,
    class_of,
};

/// The calls of one Windows node that storage operations need.
///
/// Every call blocks its thread until Windows has answered. No call is retried.
pub trait Os: Send + Sync {
    /// Opens a file, directory, volume or disk by its absolute NT path, or creates a file or
    /// directory.
    ///
    /// Errors: `FILE_NOT_FOUND`, or `PATH_NOT_FOUND` if a directory of the path does not exist;
    /// `ALREADY_EXISTS` if the call should create an object that exists; `DIRECTORY` or
    /// `ACCESS_DENIED` if the object is not of the kind that [`Open::options`] requires;
    /// `SHARING_VIOLATION`; `DELETE_PENDING`.
    /// <https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntcreatefile>
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>>;

    /// `NtQueryFullAttributesFile` with `OBJ_DONT_REPARSE`: returns the attributes of the object at
    /// an absolute NT path, without a handle and without following a link. A link in the last
    /// component is the object itself.
    ///
    /// `path` begins with the name of a device, such as `\Device\HarddiskVolume3\`: a drive letter
    /// below `\??\` is a link of the object manager. A system that does not know the flag may
    /// follow links, or answer `INVALID_PARAMETER`.
    ///
    /// Errors: as [`Self::open`]; `REPARSE_POINT_ENCOUNTERED` if a link would have to be followed.
    /// <https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/nf-wdm-zwqueryfullattributesfile>
    fn attributes(&self, path: &NtPath) -> OsResult<u32>;

    /// Returns the paths (`\\?\scsi#disk&ven_...#{...}`) of all device interfaces of `class` that
    /// are present.
    ///
    /// Errors: `GEN_FAILURE` for a `CONFIGRET` that has no Win32 code.
    /// <https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_get_device_interface_listw>
    fn device_interfaces(&self, class: Uuid) -> OsResult<Vec<U16String>>;

    /// Enumerates the children of the device of `interface` again, and returns when the enumeration
    /// has ended.
    ///
    /// Errors: `FILE_NOT_FOUND` if the interface does not exist; `ACCESS_DENIED`; `GEN_FAILURE` for
    /// a `CONFIGRET` that has no Win32 code.
    /// <https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_reenumerate_devnode>
    fn reenumerate(&self, interface: &U16Str) -> OsResult<()>;

    /// Returns the names (`\\?\Volume{...}\`) of all volumes, in no particular order.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-findfirstvolumew>
    fn volumes(&self) -> OsResult<Vec<U16String>>;

    /// Returns the drive letters and mounted folders that the mount manager has for `volume`
    /// (`\\?\Volume{...}\`), each with a final backslash.
    ///
    /// Errors: `FILE_NOT_FOUND` if the volume does not exist; `INVALID_NAME` or `INVALID_PARAMETER`
    /// if `volume` is not the name of a volume.
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumepathnamesforvolumenamew>
    fn volume_paths(&self, volume: &U16Str) -> OsResult<Vec<U16String>>;

    /// Mounts `volume` (`\\?\Volume{...}\`) at the empty directory `directory`: `X:\dir\`, with a
    /// final backslash. No document says whether a path that begins with `\\?\` is accepted.
    ///
    /// Errors: `DIR_NOT_EMPTY`, also for a mounted folder; an undocumented code if the directory is
    /// not on a local NTFS volume.
    /// <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw>
    fn set_volume_mount_point(&self, directory: &U16Str, volume: &U16Str) -> OsResult<()>;

    /// Removes the mount point at `directory` (as in [`Self::set_volume_mount_point`]) and deletes
    /// it from the mount manager's database. The directory stays.
    ///
    /// Changes nothing if no volume is mounted there. No document says whether the call then fails
    /// (`NOT_A_REPARSE_POINT`).
    /// <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-deletevolumemountpointw>
    fn delete_volume_mount_point(&self, directory: &U16Str) -> OsResult<()>;

    /// Opens the service `name`.
    ///
    /// Errors: `SERVICE_DOES_NOT_EXIST`, `INVALID_NAME`, `ACCESS_DENIED`.
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-openservicew>
    fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>>;

    /// Reads a firmware table and returns its size in bytes. If the table is larger than `output`,
    /// nothing is written.
    ///
    /// Errors: `INVALID_FUNCTION` if the provider does not exist.
    /// <https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getsystemfirmwaretable>
    fn firmware_table(&self, provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize>;

    /// Returns the text `value` of the registry key `key`, a path below `HKEY_LOCAL_MACHINE`.
    ///
    /// Errors: `FILE_NOT_FOUND` if the key or the value does not exist; an undocumented code if the
    /// value is not a text.
    /// <https://learn.microsoft.com/windows/win32/api/winreg/nf-winreg-reggetvaluew>
    fn registry_text(&self, key: &U16Str, value: &U16Str) -> OsResult<U16String>;

    /// Sets the text `value` of the registry key `key`, a path below `HKEY_LOCAL_MACHINE`.
    ///
    /// Creates each missing key of the path as a volatile key: Windows forgets the key and its
    /// values when Windows is shut down or restarted.
    /// <https://learn.microsoft.com/windows/win32/api/winreg/nf-winreg-regcreatekeyexw>
    fn set_volatile_text(&self, key: &U16Str, value: &U16Str, text: &U16Str) -> OsResult<()>;

    /// Deletes `value` of the registry key `key`, a path below `HKEY_LOCAL_MACHINE`.
    ///
    /// Errors: `FILE_NOT_FOUND` if the key or the value does not exist.
    /// <https://learn.microsoft.com/windows/win32/api/winreg/nf-winreg-regdeletekeyvaluew>
    fn delete_registry_value(&self, key: &U16Str, value: &U16Str) -> OsResult<()>;

    /// Returns the access to Windows Management Instrumentation (WMI).
    fn wmi(&self) -> &dyn Wmi;

    /// Returns the clock. Storage operations read no other clock and wait only through this one.
    fn clock(&self) -> &dyn Clock;
}
