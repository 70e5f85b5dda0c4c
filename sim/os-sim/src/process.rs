//! The primitives of [`Os`] for one process, and its handles, which Windows closes when the process
//! ends.

use std::sync::Arc;

use os::abi::{
    AccessEntry, ControlCode, DISK_INTERFACE, FIRMWARE_SMBIOS, STORAGE_PORT_INTERFACE,
    SecurityDescriptor,
};
use os::{
    Clock, FileInfo, FsInfo, Handle, NtPath, Open, Os, OsError, OsResult, PathForm, Service,
    ServiceAccess, ServiceConfig, Time, U16Str, U16String, Uuid, Wmi,
};

use crate::clock::SharedState;
use crate::files::handles::ProcessId;
use crate::sim::Sim;
use crate::smbios;
use crate::state::State;
use crate::wmi::msft_storage::volume_path;

/// A process on the node. Dropping it closes its handles.
#[derive(Debug)]
pub(crate) struct Process {
    pub shared: Arc<SharedState>,
    pub id: ProcessId,
}

impl Process {
    pub(crate) fn new(shared: Arc<SharedState>) -> Self {
        let id = shared.with(State::fresh);
        Self { shared, id }
    }
}

/// Runs `act`, then waits for as long as the network or the owner of an oplock took.
fn waiting<R>(shared: &SharedState, act: impl FnOnce(&mut State) -> R) -> R {
    let (result, took) = shared.with(|state| (act(state), std::mem::take(&mut state.network_time)));
    if !took.is_zero() {
        shared.sleep(took);
    }
    result
}

impl Drop for Process {
    fn drop(&mut self) {
        self.shared.with(|state| state.end_process(self.id));
    }
}

impl Os for Sim {
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        let id = waiting(self.shared(), |state| {
            state.open(self.process.id, path.as_u16str().as_slice(), how, false)
        })?;
        Ok(Box::new(OpenHandle {
            shared: Arc::clone(self.shared()),
            id,
        }))
    }

    fn attributes(&self, path: &NtPath) -> OsResult<u32> {
        waiting(self.shared(), |state| {
            state.attributes(self.process.id, path.as_u16str().as_slice())
        })
    }

    fn device_interfaces(&self, class: Uuid) -> OsResult<Vec<U16String>> {
        Ok(self.with(|state| match class {
            DISK_INTERFACE => state
                .visible_disks()
                .map(|(_, disk)| U16String::from_str(&disk.interface()))
                .collect(),
            STORAGE_PORT_INTERFACE => vec![U16String::from_str(&storage_port())],
            _ => Vec::new(),
        }))
    }

    fn reenumerate(&self, interface: &U16Str) -> OsResult<()> {
        if !crate::files::file_name::same(interface.as_slice(), &storage_port()) {
            return Err(OsError::FILE_NOT_FOUND);
        }
        let takes = self.with(|state| state.timing.rescan);
        self.shared().sleep(takes);
        self.with(State::rescan);
        Ok(())
    }

    fn volumes(&self) -> OsResult<Vec<U16String>> {
        Ok(self.with(|state| {
            let mut ids: Vec<Uuid> = state
                .arrived_volumes()
                .map(|(_, volume)| volume.id)
                .collect();
            ids.sort_unstable();
            ids.into_iter()
                .map(|id| U16String::from_str(&volume_path(id)))
                .collect()
        }))
    }

    fn volume_paths(&self, volume: &U16Str) -> OsResult<Vec<U16String>> {
        self.with(|state| state.paths_of(volume))
    }

    fn set_volume_mount_point(&self, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
        waiting(self.shared(), |state| state.mount(directory, volume))
    }

    fn delete_volume_mount_point(&self, directory: &U16Str) -> OsResult<()> {
        waiting(self.shared(), |state| state.unmount(directory))
    }

    fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>> {
        let name = name.to_string_lossy();
        self.with(|state| state.services.open(&name, access))?;
        Ok(Box::new(OpenService {
            shared: Arc::clone(self.shared()),
            name,
            access,
        }))
    }

    fn firmware_table(&self, provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
        if provider != FIRMWARE_SMBIOS || table != 0 {
            return Err(OsError::INVALID_FUNCTION);
        }
        let bytes = self.with(|state| smbios::table(state.bios_serial.as_deref()));
        if let Some(output) = output.get_mut(..bytes.len()) {
            output.copy_from_slice(&bytes);
        }
        Ok(bytes.len())
    }

    fn registry_text(&self, key: &U16Str, value: &U16Str) -> OsResult<U16String> {
        self.with(|state| state.registry.text(key, value))
    }

    fn set_volatile_text(&self, key: &U16Str, value: &U16Str, text: &U16Str) -> OsResult<()> {
        self.with(|state| state.registry.set_volatile_text(key, value, text));
        Ok(())
    }

    fn delete_registry_value(&self, key: &U16Str, value: &U16Str) -> OsResult<()> {
        self.with(|state| state.registry.delete(key, value))
    }

    fn wmi(&self) -> &dyn Wmi {
        &**self.shared()
    }

    fn clock(&self) -> &dyn Clock {
        &**self.shared()
    }
}

/// Returns the device interface of the node's only storage port.
fn storage_port() -> String {
    format!(r"\\?\pci#ven_1414&dev_5353#3&267a616a&0&38#{{{STORAGE_PORT_INTERFACE}}}")
}

/// An open handle.
#[derive(Debug)]
struct OpenHandle {
    shared: Arc<SharedState>,
    id: u64,
}

impl OpenHandle {
    fn open_relative(
        &self,
        name: &U16Str,
        how: &Open,
        refuses_links: bool,
    ) -> OsResult<Box<dyn Handle>> {
        let id = waiting(&self.shared, |state| {
            state.open_relative(self.id, name, how, refuses_links)
        })?;
        Ok(Box::new(Self {
            shared: Arc::clone(&self.shared),
            id,
        }))
    }
}

impl Drop for OpenHandle {
    fn drop(&mut self) {
        self.shared.with(|state| state.close(self.id));
    }
}

impl Handle for OpenHandle {
    fn open_child(&self, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        self.open_relative(name, how, false)
    }

    fn open_below(&self, path: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        self.open_relative(path, how, true)
    }

    fn control(&self, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
        self.shared
            .with(|state| state.control(self.id, code, input, output))
    }

    fn query(&self, class: FileInfo, output: &mut [u8]) -> OsResult<()> {
        self.shared
            .with(|state| state.query_file(self.id, class, output))
    }

    fn set(&self, class: FileInfo, input: &[u8]) -> OsResult<()> {
        waiting(&self.shared, |state| state.set_file(self.id, class, input))
    }

    fn query_fs(&self, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        self.shared
            .with(|state| state.query_file_system(self.id, class, output))
    }

    fn list(&self, restart: bool, output: &mut [u8]) -> OsResult<()> {
        self.shared
            .with(|state| state.list_directory(self.id, restart, output))
    }

    fn final_path(&self, form: PathForm) -> OsResult<U16String> {
        self.shared.with(|state| state.final_path(self.id, form))
    }

    fn security_descriptor(&self) -> OsResult<SecurityDescriptor> {
        self.shared.with(|state| state.security_descriptor(self.id))
    }

    fn set_access_list(&self, entries: &[AccessEntry]) -> OsResult<()> {
        self.shared
            .with(|state| state.set_access_list(self.id, entries))
    }

    fn read(&self, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        self.shared
            .with(|state| state.read(self.id, offset, output))
    }

    fn flush(&self) -> OsResult<()> {
        self.shared.with(|state| state.flush(self.id))
    }
}

/// An open service.
struct OpenService {
    shared: Arc<SharedState>,
    name: String,
    access: ServiceAccess,
}

impl OpenService {
    /// Fails with `ACCESS_DENIED` unless the service was opened for `needed`.
    fn check(&self, needed: ServiceAccess) -> OsResult<()> {
        if self.access == needed {
            Ok(())
        } else {
            Err(OsError::ACCESS_DENIED)
        }
    }
}

impl Service for OpenService {
    fn config(&self) -> OsResult<ServiceConfig> {
        self.shared.with(|state| state.services.config(&self.name))
    }

    fn state(&self) -> OsResult<u32> {
        self.shared
            .with(|state| state.services.state(&self.name, Time(state.now)))
    }

    fn start(&self) -> OsResult<()> {
        self.check(ServiceAccess::Start)?;
        self.shared
            .with(|state| state.services.start(&self.name, Time(state.now)))
    }

    fn stop(&self) -> OsResult<()> {
        self.check(ServiceAccess::Stop)?;
        self.shared
            .with(|state| state.services.stop(&self.name, Time(state.now)))
    }

    fn active_dependents(&self) -> OsResult<Vec<U16String>> {
        self.check(ServiceAccess::Stop)?;
        self.shared.with(|state| {
            state
                .services
                .active_dependents(&self.name, Time(state.now))
        })
    }
}
