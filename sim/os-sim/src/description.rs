//! The description of a node, which a node file in TOML contains and the builder collects.

mod check;
mod difference;
mod from_description;
mod from_state;
pub(crate) mod quantity;

use std::fmt;

use os::Uuid;
use os::abi::BusType;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::timing::Timing;
use crate::description::quantity::NumberOrText;
use crate::disks::{OFFLINE_BY_POLICY, PRODUCT, VENDOR};
use crate::hex;
use crate::iscsi::{Portal, Target};
use crate::services::ServiceModel;
use crate::smb::{Mapping, Server};

/// A node: its disks, files and services, and the servers on its network.
///
/// Every node has the system disk, number 0. It is not described.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Description {
    /// The serial number in the firmware's tables. Default: none.
    pub bios_serial: Option<String>,
    /// Whether a volume that arrives stays offline unless it has a mount point (`mountvol /N`).
    pub no_automount: bool,
    /// How long operations take.
    pub timing: Timing,
    /// The disks other than the system disk.
    #[serde(rename = "disk")]
    pub disks: Vec<DiskDescription>,
    /// Files, directories, links and mount points, created in this order.
    #[serde(rename = "file")]
    pub files: Vec<FileDescription>,
    /// The services.
    #[serde(rename = "service")]
    pub services: Vec<ServiceModel>,
    /// The SMB servers on the network.
    #[serde(rename = "smb_server")]
    pub smb_servers: Vec<Server>,
    /// The persistent SMB mappings of the node.
    #[serde(rename = "smb_mapping")]
    pub smb_mappings: Vec<Mapping>,
    /// The iSCSI portals on the network.
    #[serde(rename = "iscsi_portal")]
    pub iscsi_portals: Vec<Portal>,
    /// The iSCSI targets at the portals.
    #[serde(rename = "iscsi_target")]
    pub iscsi_targets: Vec<Target>,
}

/// A disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskDescription {
    /// The size in bytes when the disk was partitioned. A node file may have a text such as
    /// `10 GiB`.
    #[serde(with = "quantity::size")]
    pub size: u64,
    /// The size in bytes that the disk has grown to since.
    #[serde(with = "quantity::some_size")]
    pub grown_to: Option<u64>,
    /// The number of the disk. Default: the lowest free number.
    pub number: Option<u32>,
    /// The bus that the disk is on, by name (`scsi`, `iscsi`, `sas`, `sata`, `vhd`, `spaces`,
    /// `nvme`) or by number (`STORAGE_BUS_TYPE`). Default: `sas`.
    #[serde(with = "bus")]
    pub bus: u32,
    /// The location (`MSFT_Disk.Location`). Default: a location whose LUN is the number of the
    /// disk.
    pub location: Option<String>,
    /// The vendor, as the device reports it.
    pub vendor: String,
    /// The product, as the device reports it.
    pub product: String,
    /// The serial number. An empty text means no serial number. Default: a generated number.
    pub serial: Option<String>,
    /// The serial number that the storage provider reports (`MSFT_Disk.SerialNumber`). Default:
    /// `serial`.
    pub provider_serial: Option<String>,
    /// The identifier of page 83.
    pub page83: Page83,
    /// The size of a logical sector in bytes: 512, or 4096 for a 4Kn disk.
    pub sector_size: u32,
    /// Whether the disk is offline.
    pub offline: bool,
    /// Why the disk is offline (`MSFT_Disk.OfflineReason`). Default: 1, a policy.
    pub offline_reason: u32,
    /// How many times a policy takes the disk offline again after it was brought online.
    pub offline_again: u32,
    /// Whether the disk is read-only.
    pub read_only: bool,
    /// The partition table and partitions.
    pub content: Content,
    /// The GPT identifier of the disk, whose first eight digits are the signature of an MBR.
    /// Default: a generated one. Windows leaves the second of two disks with one signature offline.
    pub signature: Option<Uuid>,
    /// The number of an earlier disk, or of an attached one, of which this disk is a copy:
    /// signature, partitions and files, as after restoring a snapshot.
    #[serde(skip_serializing)]
    pub copy_of: Option<u32>,
    /// The file system on the volume, such as `NTFS`. On a raw disk a file system that Windows does
    /// not know, such as `ext4`.
    pub file_system: Option<String>,
    /// The size of the file system in bytes, if it is smaller than the partition because growing it
    /// was interrupted.
    #[serde(with = "quantity::some_size")]
    pub file_system_size: Option<u64>,
    /// The size of the data partition in bytes. Default: the largest possible size.
    #[serde(with = "quantity::some_size")]
    pub partition_size: Option<u64>,
    /// The size in bytes of a recovery partition right behind the data partition. Default: none.
    #[serde(with = "quantity::some_size")]
    pub recovery_partition: Option<u64>,
    /// Whether the volume can be read.
    pub volume: VolumeHealth,
    /// The drive letter of the volume. Default: none.
    pub letter: Option<char>,
    /// The GUID of the volume. Default: a generated GUID.
    pub volume_id: Option<Uuid>,
    /// The extents of the volume on other disks.
    pub spans: Vec<Span>,
}

/// An extent of a volume on another disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The number of the disk.
    pub disk: u32,
    /// Its offset in bytes.
    #[serde(with = "quantity::size")]
    pub offset: u64,
    /// Its length in bytes.
    #[serde(with = "quantity::size")]
    pub length: u64,
}

/// The page-83 identifier of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Page83 {
    /// A binary identifier that no other disk has.
    #[default]
    Unique,
    /// The device does not support the page.
    None,
    /// A vendor-specific text.
    Ascii(String),
    /// Bytes, which a file gives in hexadecimal.
    #[serde(with = "hex")]
    Binary(Vec<u8>),
}

/// The partition table and partitions of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// No partition table.
    #[default]
    Raw,
    /// An MBR with one partition.
    Mbr,
    /// A GPT with only the Microsoft reserved partition.
    Gpt,
    /// A GPT with the Microsoft reserved partition and a basic data partition.
    Partitioned,
    /// A file system from the first sector on, without a partition table.
    Superfloppy,
}

/// Whether the file system of a volume can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeHealth {
    /// It can be read.
    #[default]
    Readable,
    /// The volume is locked by BitLocker.
    Locked,
    /// Reading fails with I/O errors.
    Unreadable,
    /// The medium names a file system that Windows cannot mount.
    Unmountable,
}

/// A file, directory, link or mount point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileDescription {
    /// A directory and its missing parents.
    Directory {
        /// The path.
        path: String,
    },
    /// A file and its missing parent directories.
    File {
        /// The path.
        path: String,
        /// Its content: a text, or bytes in hexadecimal as `{ hex = "00ff" }`.
        #[serde(default, with = "content")]
        content: Vec<u8>,
    },
    /// A symbolic link and its missing parent directories.
    Symlink {
        /// The path.
        path: String,
        /// The target of the link.
        target: String,
    },
    /// A junction and its missing parent directories.
    Junction {
        /// The path.
        path: String,
        /// The target of the link.
        target: String,
    },
    /// The last volume of a disk, mounted at a directory that is created.
    Mount {
        /// The path.
        path: String,
        /// The disk's number.
        disk: u32,
    },
}

impl FileDescription {
    /// Returns the path of the file, directory, link or mount point.
    pub fn path(&self) -> &str {
        match self {
            Self::Directory { path }
            | Self::File { path, .. }
            | Self::Symlink { path, .. }
            | Self::Junction { path, .. }
            | Self::Mount { path, .. } => path,
        }
    }
}

/// The reason why no node can be created from a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError(pub(crate) String);

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the description of the node is not valid: {}", self.0)
    }
}

impl std::error::Error for DescriptionError {}

impl Description {
    /// Parses a description in TOML, and refuses unknown keys and contradictions.
    pub fn from_toml(text: &str) -> Result<Self, DescriptionError> {
        let description = Self::parse(text)?;
        description.check_portals(text)?;
        description.check_mappings(text)?;
        Ok(description)
    }

    /// Parses a description without checking that it has the portals of its targets.
    pub(crate) fn parse(text: &str) -> Result<Self, DescriptionError> {
        // The full text of the error quotes the line, which may contain a password.
        let description: Self = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            DescriptionError(format!("line {line}: {}", error.message()))
        })?;
        description.check(text)?;
        Ok(description)
    }
}

impl Default for DiskDescription {
    fn default() -> Self {
        Self {
            size: 0,
            grown_to: None,
            number: None,
            bus: BusType::SAS.0,
            location: None,
            vendor: VENDOR.to_owned(),
            product: PRODUCT.to_owned(),
            serial: None,
            provider_serial: None,
            page83: Page83::Unique,
            sector_size: 512,
            offline: false,
            offline_reason: OFFLINE_BY_POLICY,
            offline_again: 0,
            read_only: false,
            content: Content::Raw,
            signature: None,
            copy_of: None,
            file_system: None,
            file_system_size: None,
            partition_size: None,
            recovery_partition: None,
            volume: VolumeHealth::Readable,
            letter: None,
            volume_id: None,
            spans: Vec::new(),
        }
    }
}

impl DiskDescription {
    /// Returns a raw disk of `bytes` that is online and writable.
    pub fn new(bytes: u64) -> Self {
        Self {
            size: bytes,
            ..Self::default()
        }
    }
}

/// Reads and writes a bus: a name or a number.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
mod bus {
    use super::{BusType, Deserialize, Deserializer, NumberOrText, Serialize, Serializer};
    use serde::de::Error;

    const NAMES: [(&str, BusType); 7] = [
        ("scsi", BusType::SCSI),
        ("iscsi", BusType::ISCSI),
        ("sas", BusType::SAS),
        ("sata", BusType::SATA),
        ("vhd", BusType::FILE_BACKED_VIRTUAL),
        ("spaces", BusType::SPACES),
        ("nvme", BusType::NVME),
    ];

    pub(super) fn serialize<S: Serializer>(number: &u32, to: S) -> Result<S::Ok, S::Error> {
        match NAMES.iter().find(|(_, bus)| bus.0 == *number) {
            Some((name, _)) => name.serialize(to),
            None => number.serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        let name = match NumberOrText::deserialize(from)? {
            NumberOrText::Number(number) => return u32::try_from(number).map_err(D::Error::custom),
            NumberOrText::Text(name) => name,
        };
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, bus)| bus.0).ok_or_else(|| {
            let names = NAMES.map(|(known, _)| known).join(", ");
            D::Error::custom(format!("unknown bus {name:?}: use {names} or a number"))
        })
    }
}

/// Reads and writes the content of a file: a text, or bytes in hexadecimal.
mod content {
    use super::{Deserialize, Deserializer, Serialize, Serializer, hex};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum FileContent {
        Text(String),
        Bytes(Hex),
    }

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Hex {
        #[serde(with = "hex")]
        hex: Vec<u8>,
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        match str::from_utf8(bytes) {
            Ok(text) => text.serialize(to),
            Err(_) => Hex {
                hex: bytes.to_vec(),
            }
            .serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        Ok(match FileContent::deserialize(from)? {
            FileContent::Text(text) => text.into_bytes(),
            FileContent::Bytes(Hex { hex }) => hex,
        })
    }
}
