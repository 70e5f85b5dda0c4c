//! A node that replaces one kind of answer with bytes that a test chooses.

use std::collections::BTreeMap;
use std::sync::Arc;

use os::abi::{ControlCode, FIRMWARE_SMBIOS, StoragePropertyQuery};
use os::{
    FsInfo, Handle, Instance, Namespace, Open, Os, OsError, OsResult, Time, U16Str, Value, Wmi,
};
use zerocopy::IntoBytes;

use crate::layer::{Layer, Layered};

/// The answer that is replaced.
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
    /// The content of a volume from its first byte on. The rest of the volume reads as zeros.
    Content,
    /// The firmware's SMBIOS table.
    Smbios,
    /// The location of a disk in WMI, as text.
    Location,
}

/// A node that replaces one kind of answer with the same bytes every time. As on Windows, the
/// caller receives the bytes that fit in the buffer, or an error if the buffer is too small for
/// that kind of answer.
pub type CorruptingOs = Layered<CorruptedAnswer>;

/// The layer of a [`CorruptingOs`].
pub struct CorruptedAnswer {
    corruption: Corruption,
    bytes: Box<[u8]>,
}

impl CorruptingOs {
    /// Replaces the answer `corruption` with `bytes` and forwards all other calls to `node`.
    pub fn new(node: Arc<dyn Os>, corruption: Corruption, bytes: &[u8]) -> Self {
        Self::around(
            node,
            CorruptedAnswer {
                corruption,
                bytes: bytes.into(),
            },
        )
    }
}

impl CorruptedAnswer {
    fn replaces(&self, code: ControlCode, input: &[u8]) -> bool {
        let queries = |property: u32| {
            code == ControlCode::STORAGE_QUERY_PROPERTY
                && input.get(..4) == Some(property.as_bytes())
        };
        match self.corruption {
            Corruption::Page83 => queries(StoragePropertyQuery::DEVICE_ID),
            Corruption::DeviceDescriptor => queries(StoragePropertyQuery::DEVICE),
            Corruption::DriveLayout => code == ControlCode::DISK_GET_DRIVE_LAYOUT_EX,
            Corruption::Extents => code == ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS,
            Corruption::ReparsePoint => code == ControlCode::FSCTL_GET_REPARSE_POINT,
            _ => false,
        }
    }

    /// Copies as many bytes as `output` holds.
    fn fill(&self, output: &mut [u8]) -> usize {
        let length = self.bytes.len().min(output.len());
        output[..length].copy_from_slice(&self.bytes[..length]);
        length
    }
}

/// Returns whether `name` is one component of a path.
fn is_component(name: &[u16]) -> bool {
    let separator = |unit: &u16| [u16::from(b'\\'), u16::from(b'/'), 0].contains(unit);
    // Also the empty name.
    let dots = name.iter().all(|unit| *unit == u16::from(b'.')) && name.len() <= 2;
    !dots && !name.iter().any(separator)
}

impl Layer for CorruptedAnswer {
    fn firmware_table(
        &self,
        node: &dyn Os,
        provider: u32,
        table: u32,
        output: &mut [u8],
    ) -> OsResult<usize> {
        if self.corruption != Corruption::Smbios || provider != FIRMWARE_SMBIOS {
            return node.firmware_table(provider, table, output);
        }
        if self.bytes.len() <= output.len() {
            self.fill(output);
        }
        Ok(self.bytes.len())
    }

    fn open_child(
        &self,
        parent: &dyn Handle,
        name: &U16Str,
        how: &Open,
    ) -> OsResult<Box<dyn Handle>> {
        // A corrupted listing may contain any name. Windows would follow a name that is a path.
        assert!(
            is_component(name.as_slice()),
            "the name of a child must be a single component: {:?}",
            name.to_string_lossy()
        );
        parent.open_child(name, how)
    }

    fn open_below(
        &self,
        parent: &dyn Handle,
        path: &U16Str,
        how: &Open,
    ) -> OsResult<Box<dyn Handle>> {
        let mut names = path.as_slice().split(|unit| *unit == u16::from(b'\\'));
        assert!(
            names.all(is_component),
            "each part of a relative path must be a single component: {:?}",
            path.to_string_lossy()
        );
        parent.open_below(path, how)
    }

    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        if !self.replaces(code, input) {
            return handle.control(code, input, output);
        }
        let is_cut = self.bytes.len() > output.len();
        let filled = self.fill(output);
        match self.corruption {
            Corruption::DriveLayout if is_cut => Err(OsError::INSUFFICIENT_BUFFER),
            Corruption::Extents | Corruption::ReparsePoint if is_cut => Err(OsError::MORE_DATA),
            _ => Ok(filled),
        }
    }

    fn query_fs(&self, handle: &dyn Handle, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        if self.corruption != Corruption::FileSystem {
            return handle.query_fs(class, output);
        }
        Ok(self.fill(output))
    }

    fn list(&self, handle: &dyn Handle, restart: bool, output: &mut [u8]) -> OsResult<()> {
        if self.corruption != Corruption::Listing {
            return handle.list(restart, output);
        }
        if !restart {
            return Err(OsError::NO_MORE_FILES);
        }
        self.fill(output);
        Ok(())
    }

    fn read(&self, handle: &dyn Handle, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        if self.corruption != Corruption::Content {
            return handle.read(offset, output);
        }
        output.fill(0);
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        let content = &self.bytes[start..];
        let length = content.len().min(output.len());
        output[..length].copy_from_slice(&content[..length]);
        Ok(output.len())
    }

    fn wmi_query(
        &self,
        wmi: &dyn Wmi,
        namespace: Namespace,
        wql: &str,
        deadline: Time,
    ) -> OsResult<Vec<Instance>> {
        if self.corruption != Corruption::Location {
            return wmi.query(namespace, wql, deadline);
        }
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        let disk = [("Number", Value::U32(1)), ("Location", Value::Text(text))];
        let properties: BTreeMap<_, _> = disk.map(|(name, value)| (name.to_owned(), value)).into();
        Ok(vec![Instance {
            path: "MSFT_Disk.ObjectId=\"1\"".to_owned(),
            properties,
        }])
    }
}
