//! The calls of Windows that csi-proxy uses.
//!
//! `Windows` implements the traits of the crate `os`: each method makes one system call or one COM
//! call. The crate `storage-ops` decides which calls to make, in which order, and what an error
//! means. The daemon also uses `pipe` (the named pipes that clients connect to), `event_log`,
//! `file_security` (access control lists of files), `system` (the version and the folder of Windows), `service` (the list of services) and
//! `own_process`. Only programs for tests use the features `process-usage`, with which `process`
//! measures another process, and `virtual-disk`, with which `virtual_disk` creates disks. On other
//! systems this crate is empty.
//!
//! Two exceptions to "one call": `wmi` keeps a pool of threads, because a COM call cannot be
//! cancelled, and `cancellation` limits the time of a deletion.
//!
//! All unsafe code of the workspace is in this crate, in three steps: the raw call; a type that
//! owns what the call returned and releases it when dropped; a safe function that returns a
//! `Result`.
#![cfg(windows)]
#![allow(
    unsafe_code,
    reason = "this crate is where Windows is called; everywhere else it is denied"
)]

// The modules, from the lowest: `buffer`, `error`, `cancellation`, `clock`, `device_interface`,
// `event_log`, `security_descriptor`, `file_security`, `handle`, `mount_manager`, `own_process`, `pipe`,
// `privilege`, `process`, `registry`, `service`, `system`, `virtual_disk`, `wmi`.

mod buffer;
mod cancellation;
mod clock;
mod device_interface;
mod error;
pub mod event_log;
pub mod file_security;
mod handle;
mod mount_manager;
pub mod own_process;
pub mod pipe;
mod privilege;
#[cfg(feature = "process-usage")]
pub mod process;
mod registry;
mod security_descriptor;
pub mod service;
pub mod system;
#[cfg(feature = "virtual-disk")]
pub mod virtual_disk;
mod wmi;

use os::{
    Clock, Handle, NtPath, Open, Os, OsResult, Service, ServiceAccess, U16Str, U16String, Uuid, Wmi,
};

use crate::clock::Monotonic;
use crate::wmi::Pools;

/// The Windows node on which this program runs.
pub struct Windows {
    clock: Monotonic,
    wmi: Pools,
}

impl Windows {
    /// Returns access to the node. Does not open or connect to anything yet.
    ///
    /// Enables the privileges that the calls need for the whole process, if the account has them:
    /// to create symbolic links, to extend volumes and to enumerate devices again. They are
    /// disabled in the token of an administrator or of LocalSystem.
    pub fn new() -> Self {
        // For an account without the privilege, the call that needs it fails.
        for privilege in [
            privilege::CREATE_SYMBOLIC_LINK,
            privilege::LOAD_DRIVER,
            privilege::MANAGE_VOLUME,
        ] {
            let _ = privilege::enable(privilege);
        }
        let clock = Monotonic::start();
        Self {
            clock,
            wmi: Pools::new(clock),
        }
    }
}

impl Default for Windows {
    fn default() -> Self {
        Self::new()
    }
}

impl Os for Windows {
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(Box::new(handle::open(None, path.as_u16str(), how, 0)?))
    }

    fn attributes(&self, path: &NtPath) -> OsResult<u32> {
        handle::attributes(path)
    }

    fn device_interfaces(&self, class: Uuid) -> OsResult<Vec<U16String>> {
        device_interface::interfaces(class)
    }

    fn reenumerate(&self, interface: &U16Str) -> OsResult<()> {
        device_interface::reenumerate(interface)
    }

    fn volumes(&self) -> OsResult<Vec<U16String>> {
        mount_manager::volumes()
    }

    fn volume_paths(&self, volume: &U16Str) -> OsResult<Vec<U16String>> {
        mount_manager::volume_paths(volume)
    }

    fn set_volume_mount_point(&self, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
        mount_manager::set_mount_point(directory, volume)
    }

    fn delete_volume_mount_point(&self, directory: &U16Str) -> OsResult<()> {
        mount_manager::delete_mount_point(directory)
    }

    fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>> {
        Ok(Box::new(service::open(name, access)?))
    }

    fn firmware_table(&self, provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
        system::firmware_table(provider, table, output)
    }

    fn registry_text(&self, key: &U16Str, value: &U16Str) -> OsResult<U16String> {
        registry::text(key, value)
    }

    fn set_volatile_text(&self, key: &U16Str, value: &U16Str, text: &U16Str) -> OsResult<()> {
        registry::set_volatile_text(key, value, text)
    }

    fn delete_registry_value(&self, key: &U16Str, value: &U16Str) -> OsResult<()> {
        registry::delete(key, value)
    }

    fn wmi(&self) -> &dyn Wmi {
        &self.wmi
    }

    fn clock(&self) -> &dyn Clock {
        &self.clock
    }
}
