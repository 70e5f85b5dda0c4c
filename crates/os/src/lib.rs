//! What Windows can do: the primitives csi-proxy stands on, as traits.
//!
//! A primitive is one thing a Windows programmer would recognise as a call. It has no policy: the order of
//! calls, waiting, retries and the parsing of buffers are all in the crate `node`, which runs unchanged on two
//! implementations of these traits, `os-win32` (the calls themselves) and `os-sim` (a simulated node).
//!
//! Buffers cross this seam as bytes, laid out as Windows lays them out ([`abi`]). Names are WTF-16. Errors are
//! the codes Windows gave ([`OsError`]).

pub mod abi;
mod clock;
mod error;
mod handle;
mod path;
mod secret;
mod service;
mod wmi;

pub use clock::{Clock, Time};
pub use error::{OsError, OsResult};
pub use handle::{Access, Disposition, FileInfo, FsInfo, Handle, Open, Options, PathForm, Share};
pub use path::NtPath;
pub use secret::Secret;
pub use service::{Service, ServiceAccess, ServiceConfig};
pub use uuid::Uuid;
pub use widestring::{U16Str, U16String};
pub use wmi::{CallStatus, Instance, Namespace, PendingCall, Returned, Value, Wmi};

/// One Windows node, as far as storage needs it.
///
/// All calls block. None is retried, and none waits for anything but the system.
pub trait Os: Send + Sync {
    /// Opens a file, directory, volume or disk by its absolute NT path (`NtCreateFile` without a root directory).
    ///
    /// <https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntcreatefile>
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>>;

    /// The paths (`\\?\scsi#disk&ven_...#{...}`) of all present device interfaces of `class`.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_get_device_interface_listw>
    fn device_interfaces(&self, class: Uuid) -> OsResult<Vec<U16String>>;

    /// Enumerates the children of the device behind `interface` again and returns when that is done.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_reenumerate_devnode>
    fn reenumerate(&self, interface: &U16Str) -> OsResult<()>;

    /// The names (`\\?\Volume{...}\`) of all volumes, in no order.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-findfirstvolumew>
    fn volumes(&self) -> OsResult<Vec<U16String>>;

    /// The drive letters and mounted folders by which the mount manager knows `volume` (`\\?\Volume{...}\`), each
    /// with a final backslash.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumepathnamesforvolumenamew>
    fn volume_paths(&self, volume: &U16Str) -> OsResult<Vec<U16String>>;

    /// Mounts `volume` (`\\?\Volume{...}\`) at the empty directory `directory` (with a final backslash).
    ///
    /// Errors: `DIR_NOT_EMPTY`; `INVALID_PARAMETER` for a directory that is not on a local NTFS volume.
    /// <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw>
    fn set_volume_mount_point(&self, directory: &U16Str, volume: &U16Str) -> OsResult<()>;

    /// Removes the mount point at `directory` (with a final backslash) and makes the mount manager forget it.
    ///
    /// Errors: `NOT_A_REPARSE_POINT` where no volume is mounted.
    /// <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-deletevolumemountpointw>
    fn delete_volume_mount_point(&self, directory: &U16Str) -> OsResult<()>;

    /// Opens the service `name`.
    ///
    /// Errors: `SERVICE_DOES_NOT_EXIST`, `INVALID_NAME`, `ACCESS_DENIED`.
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-openservicew>
    fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>>;

    /// Reads a firmware table and returns its size in bytes, which may be more than `output` holds: then
    /// nothing was written.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getsystemfirmwaretable>
    fn firmware_table(&self, provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize>;

    /// Windows Management Instrumentation.
    fn wmi(&self) -> &dyn Wmi;

    /// The only clock: every wait goes through it.
    fn clock(&self) -> &dyn Clock;
}
