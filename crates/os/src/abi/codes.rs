//! The control codes of devices and file systems.

use std::fmt;

/// An I/O control code, made of device type, access, function and method (`CTL_CODE`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ControlCode(pub u32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl ControlCode {
            $($(#[$doc])* pub const $name: Self = Self($code);)*

            /// All codes that csi-proxy sends, with their names.
            pub const ALL: &[(&'static str, Self)] = &[$((stringify!($name), Self::$name)),*];
        }
    };
}

codes! {
    /// Returns [`super::StorageDeviceNumber`].
    STORAGE_GET_DEVICE_NUMBER = 0x002d_1080;
    /// Takes [`super::StoragePropertyQuery`] and returns the descriptor of the property.
    STORAGE_QUERY_PROPERTY = 0x002d_1400;
    /// Returns [`super::DiskGeometryEx`].
    DISK_GET_DRIVE_GEOMETRY_EX = 0x0007_00a0;
    /// Returns [`super::LengthInformation`].
    DISK_GET_LENGTH_INFO = 0x0007_405c;
    /// Returns [`super::DiskAttributes`].
    DISK_GET_DISK_ATTRIBUTES = 0x0007_00f0;
    /// Takes [`super::SetDiskAttributes`].
    DISK_SET_DISK_ATTRIBUTES = 0x0007_c0f4;
    /// Returns [`super::DriveLayout`] and its [`super::PartitionEntry`]s.
    DISK_GET_DRIVE_LAYOUT_EX = 0x0007_0050;
    /// Makes Windows read the size and the partitions of the disk again.
    DISK_UPDATE_PROPERTIES = 0x0007_0140;
    /// Returns [`super::VolumeDiskExtents`].
    VOLUME_GET_VOLUME_DISK_EXTENTS = 0x0056_0000;
    /// Takes the new total number of sectors as an `i64` and extends the file system to it.
    FSCTL_EXTEND_VOLUME = 0x0009_00f0;
    /// Locks the volume until the handle is closed. Fails if the volume is in use.
    FSCTL_LOCK_VOLUME = 0x0009_0018;
    /// Returns the file system recognition structure of a volume whose file system Windows does not
    /// recognize.
    FSCTL_QUERY_FILE_SYSTEM_RECOGNITION = 0x0009_024c;
    /// Returns [`super::ReparseHead`] and the data of its tag.
    FSCTL_GET_REPARSE_POINT = 0x0009_00a8;
    /// Takes [`super::ReparseHead`] and the data of its tag.
    FSCTL_SET_REPARSE_POINT = 0x0009_00a4;
}

impl ControlCode {
    /// Returns whether the code needs a handle with the right to read data.
    pub const fn needs_read(self) -> bool {
        self.0 & 0x4000 != 0
    }

    /// Returns whether the code needs a handle with the right to write data.
    pub const fn needs_write(self) -> bool {
        self.0 & 0x8000 != 0
    }
}

impl fmt::Debug for ControlCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::ALL.iter().find(|(_, code)| code == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "0x{:08x}", self.0),
        }
    }
}
