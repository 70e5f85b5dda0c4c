//! A node that answers one thing with other bytes than it should.

use std::collections::BTreeMap;
use std::sync::Arc;

use os::abi::{ControlCode, FIRMWARE_SMBIOS, StoragePropertyQuery};
use os::{
    CallStatus, Clock, FileInfo, FsInfo, Handle, Instance, Namespace, NtPath, Open, Os, OsError, OsResult, PathForm,
    Service, ServiceAccess, Time, U16Str, U16String, Uuid, Value, Wmi,
};
use zerocopy::IntoBytes;

/// What is answered with other bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// `IOCTL_STORAGE_QUERY_PROPERTY` of page 83.
    Page83,
    /// `IOCTL_STORAGE_QUERY_PROPERTY` of the device.
    DeviceDescriptor,
    /// `IOCTL_DISK_GET_DRIVE_LAYOUT_EX`.
    DriveLayout,
    /// `IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS`.
    Extents,
    /// `FSCTL_GET_REPARSE_POINT`.
    ReparsePoint,
    /// The entries of a directory.
    Listing,
    /// A file system's name and size.
    FileSystem,
    /// What is on a volume, from its first byte on; beyond the bytes it is blank.
    Content,
    /// The firmware's SMBIOS table.
    Smbios,
    /// The location of a disk in WMI, as text.
    Location,
}

/// A node that answers one thing with the same bytes every time, as Windows hands such bytes over: as much as there
/// is room for, or an error if there is too little.
pub struct CorruptingOs {
    node: Arc<dyn Os>,
    lies: Lies,
    wmi: LyingWmi,
}

#[derive(Clone)]
struct Lies {
    about: Corruption,
    bytes: Arc<[u8]>,
}

impl CorruptingOs {
    /// Answers `about` with `bytes`, all else as `node` does.
    pub fn new(node: Arc<dyn Os>, about: Corruption, bytes: &[u8]) -> Self {
        let lies = Lies { about, bytes: bytes.into() };
        Self { wmi: LyingWmi { node: Arc::clone(&node), lies: lies.clone() }, node, lies }
    }
}

impl Lies {
    fn tell_about(&self, code: ControlCode, input: &[u8]) -> bool {
        let asks_for = |property: u32| input.get(..4) == Some(property.as_bytes());
        match self.about {
            Corruption::Page83 => {
                code == ControlCode::STORAGE_QUERY_PROPERTY && asks_for(StoragePropertyQuery::DEVICE_ID)
            }
            Corruption::DeviceDescriptor => {
                code == ControlCode::STORAGE_QUERY_PROPERTY && asks_for(StoragePropertyQuery::DEVICE)
            }
            Corruption::DriveLayout => code == ControlCode::DISK_GET_DRIVE_LAYOUT_EX,
            Corruption::Extents => code == ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS,
            Corruption::ReparsePoint => code == ControlCode::FSCTL_GET_REPARSE_POINT,
            Corruption::Listing
            | Corruption::FileSystem
            | Corruption::Content
            | Corruption::Smbios
            | Corruption::Location => false,
        }
    }

    /// Fills as much of `output` as there is.
    fn fill(&self, output: &mut [u8]) -> usize {
        let length = self.bytes.len().min(output.len());
        output[..length].copy_from_slice(&self.bytes[..length]);
        length
    }

    fn control(&self, output: &mut [u8]) -> OsResult<usize> {
        let cut = self.bytes.len() > output.len();
        let filled = self.fill(output);
        match self.about {
            Corruption::DriveLayout if cut => Err(OsError::INSUFFICIENT_BUFFER),
            Corruption::Extents | Corruption::ReparsePoint if cut => Err(OsError::MORE_DATA),
            _ => Ok(filled),
        }
    }
}

impl Os for CorruptingOs {
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(LyingHandle::wrap(self.node.open(path, how)?, &self.lies))
    }

    fn device_interfaces(&self, class: Uuid) -> OsResult<Vec<U16String>> {
        self.node.device_interfaces(class)
    }

    fn reenumerate(&self, interface: &U16Str) -> OsResult<()> {
        self.node.reenumerate(interface)
    }

    fn volumes(&self) -> OsResult<Vec<U16String>> {
        self.node.volumes()
    }

    fn volume_paths(&self, volume: &U16Str) -> OsResult<Vec<U16String>> {
        self.node.volume_paths(volume)
    }

    fn set_volume_mount_point(&self, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
        self.node.set_volume_mount_point(directory, volume)
    }

    fn delete_volume_mount_point(&self, directory: &U16Str) -> OsResult<()> {
        self.node.delete_volume_mount_point(directory)
    }

    fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>> {
        self.node.open_service(name, access)
    }

    fn firmware_table(&self, provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
        if self.lies.about != Corruption::Smbios || provider != FIRMWARE_SMBIOS {
            return self.node.firmware_table(provider, table, output);
        }
        if self.lies.bytes.len() <= output.len() {
            self.lies.fill(output);
        }
        Ok(self.lies.bytes.len())
    }

    fn wmi(&self) -> &dyn Wmi {
        &self.wmi
    }

    fn clock(&self) -> &dyn Clock {
        self.node.clock()
    }
}

struct LyingHandle {
    handle: Box<dyn Handle>,
    lies: Lies,
}

impl LyingHandle {
    fn wrap(handle: Box<dyn Handle>, lies: &Lies) -> Box<dyn Handle> {
        Box::new(Self { handle, lies: lies.clone() })
    }
}

impl Handle for LyingHandle {
    fn open_child(&self, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        // What the seam demands of a caller: below this, Windows would follow whatever the name says.
        let separator = |unit: &u16| [u16::from(b'\\'), u16::from(b'/'), 0].contains(unit);
        let dots = name.as_slice().iter().all(|unit| *unit == u16::from(b'.')) && name.len() <= 2;
        let whole = !dots && !name.as_slice().iter().any(separator);
        assert!(whole, "a child is opened by {:?}, which is no component", name.to_string_lossy());
        Ok(Self::wrap(self.handle.open_child(name, how)?, &self.lies))
    }

    fn control(&self, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
        if self.lies.tell_about(code, input) {
            return self.lies.control(output);
        }
        self.handle.control(code, input, output)
    }

    fn query(&self, class: FileInfo, output: &mut [u8]) -> OsResult<()> {
        self.handle.query(class, output)
    }

    fn set(&self, class: FileInfo, input: &[u8]) -> OsResult<()> {
        self.handle.set(class, input)
    }

    fn query_fs(&self, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        if self.lies.about != Corruption::FileSystem {
            return self.handle.query_fs(class, output);
        }
        Ok(self.lies.fill(output))
    }

    fn list(&self, restart: bool, output: &mut [u8]) -> OsResult<()> {
        if self.lies.about != Corruption::Listing {
            return self.handle.list(restart, output);
        }
        if !restart {
            return Err(OsError::NO_MORE_FILES);
        }
        self.lies.fill(output);
        Ok(())
    }

    fn final_path(&self, form: PathForm) -> OsResult<U16String> {
        self.handle.final_path(form)
    }

    fn read(&self, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        if self.lies.about != Corruption::Content {
            return self.handle.read(offset, output);
        }
        output.fill(0);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.lies.bytes.len());
        let some = &self.lies.bytes[start..];
        let length = some.len().min(output.len());
        output[..length].copy_from_slice(&some[..length]);
        Ok(output.len())
    }

    fn flush(&self) -> OsResult<()> {
        self.handle.flush()
    }
}

struct LyingWmi {
    node: Arc<dyn Os>,
    lies: Lies,
}

impl Wmi for LyingWmi {
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        if self.lies.about != Corruption::Location {
            return self.node.wmi().query(namespace, wql, deadline);
        }
        let text = String::from_utf8_lossy(&self.lies.bytes).into_owned();
        let disk = [("Number", Value::U32(1)), ("Location", Value::Text(text))];
        let properties: BTreeMap<_, _> = disk.map(|(name, value)| (name.to_owned(), value)).into();
        Ok(vec![Instance { path: "MSFT_Disk.ObjectId=\"1\"".to_owned(), properties }])
    }

    fn call(
        &self,
        namespace: Namespace,
        path: &str,
        method: &str,
        arguments: &[(&str, Value)],
        deadline: Time,
    ) -> OsResult<CallStatus> {
        self.node.wmi().call(namespace, path, method, arguments, deadline)
    }
}
