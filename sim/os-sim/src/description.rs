//! A description of a node: what a TOML file says, and what the builder collects.

mod from_description;

use std::fmt;

use os::abi::BusType;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::clock::timing::Timing;
use crate::hex;
use crate::iscsi::{Portal, Target};
use crate::services::ServiceModel;
use crate::smb::Server;

/// A node: its disks, files, services and the servers around it.
///
/// The system disk, number 0, is always there and is not described.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Description {
    /// The serial number in the firmware's tables, if there is one.
    pub bios_serial: Option<String>,
    /// How long things take.
    pub timing: Timing,
    /// The disks besides the system disk.
    #[serde(rename = "disk")]
    pub disks: Vec<DiskDescription>,
    /// Files, directories, links and mount points, made one after the other.
    #[serde(rename = "file")]
    pub files: Vec<FileDescription>,
    /// The services.
    #[serde(rename = "service")]
    pub services: Vec<ServiceModel>,
    /// The SMB servers on the network.
    #[serde(rename = "smb_server")]
    pub smb_servers: Vec<Server>,
    /// The iSCSI portals on the network.
    #[serde(rename = "iscsi_portal")]
    pub iscsi_portals: Vec<Portal>,
    /// The iSCSI targets at them.
    #[serde(rename = "iscsi_target")]
    pub iscsi_targets: Vec<Target>,
}

/// A disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskDescription {
    /// Bytes when it was partitioned, or text such as `10 GiB`.
    #[serde(deserialize_with = "size")]
    pub size: u64,
    /// The size it has grown to since.
    #[serde(default, deserialize_with = "some_size")]
    pub grown_to: Option<u64>,
    /// Its number; the next free one if none is given.
    #[serde(default)]
    pub number: Option<u32>,
    /// The bus it is on (`STORAGE_BUS_TYPE`), by name or number.
    #[serde(default = "sas", deserialize_with = "bus")]
    pub bus: u32,
    /// `MSFT_Disk.Location`; made of its number if none is given.
    #[serde(default)]
    pub location: Option<String>,
    /// The serial number; made up if none is given.
    #[serde(default)]
    pub serial: Option<String>,
    /// The page-83 identifier.
    #[serde(default)]
    pub page83: Page83,
    /// Offline.
    #[serde(default)]
    pub offline: bool,
    /// Read-only.
    #[serde(default)]
    pub read_only: bool,
    /// What is on it.
    #[serde(default)]
    pub content: Content,
    /// The file system on its volume.
    #[serde(default)]
    pub file_system: Option<String>,
    /// The size its file system has stayed at, where growing it was interrupted; that of its partition if none is given.
    #[serde(default, deserialize_with = "some_size")]
    pub file_system_size: Option<u64>,
    /// Whether its volume can be read.
    #[serde(default)]
    pub volume: VolumeHealth,
    /// Where else its volume lies.
    #[serde(default)]
    pub spans: Vec<Span>,
}

/// A further extent of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The number of the disk it is on.
    pub disk: u32,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// A disk's page-83 identifiers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Page83 {
    /// A binary one that no other disk has.
    #[default]
    Unique,
    /// The device does not know the page.
    None,
    /// A vendor's text.
    Ascii(String),
    /// Bytes; in a file, hexadecimal.
    #[serde(deserialize_with = "hex::deserialize")]
    Binary(Vec<u8>),
}

/// What is on a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Nothing.
    #[default]
    Raw,
    /// An MBR with one basic partition.
    Mbr,
    /// A GPT with the reserved partition alone.
    Gpt,
    /// A GPT with the reserved partition and one of basic data.
    Partitioned,
    /// A file system without a partition table.
    Superfloppy,
}

/// Whether a volume's file system can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeHealth {
    /// It can.
    #[default]
    Readable,
    /// BitLocker has locked it.
    Locked,
    /// The disk answers with I/O errors.
    Unreadable,
    /// The medium names a file system that cannot be mounted.
    Unmountable,
}

/// A file, directory, link or mount point.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileDescription {
    /// A directory, with those above it.
    Directory {
        /// Where.
        path: String,
    },
    /// A file, with the directories above it.
    File {
        /// Where.
        path: String,
        /// What is in it.
        #[serde(default, deserialize_with = "text")]
        content: Vec<u8>,
    },
    /// A symbolic link.
    Symlink {
        /// Where.
        path: String,
        /// Where to.
        target: String,
    },
    /// A junction.
    Junction {
        /// Where.
        path: String,
        /// Where to.
        target: String,
    },
    /// A mount point of a disk's last volume; the directory is made.
    Mount {
        /// Where.
        path: String,
        /// The disk's number.
        disk: u32,
    },
}

/// Why a description does not describe a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError(pub(crate) String);

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the description of the node is not valid: {}", self.0)
    }
}

impl std::error::Error for DescriptionError {}

impl Description {
    /// Reads a description from TOML.
    pub fn from_toml(text: &str) -> Result<Self, DescriptionError> {
        // The message alone: the rest would show the line, which may hold a password.
        toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
            DescriptionError(format!("line {line}: {}", error.message()))
        })
    }
}

impl DiskDescription {
    /// A raw disk of `bytes`, online and writable.
    pub fn new(bytes: u64) -> Self {
        Self {
            size: bytes,
            grown_to: None,
            number: None,
            bus: sas(),
            location: None,
            serial: None,
            page83: Page83::Unique,
            offline: false,
            read_only: false,
            content: Content::Raw,
            file_system: None,
            file_system_size: None,
            volume: VolumeHealth::Readable,
            spans: Vec::new(),
        }
    }
}

fn sas() -> u32 {
    BusType::SAS.0
}

const BUSES: [(&str, BusType); 7] = [
    ("scsi", BusType::SCSI),
    ("iscsi", BusType::ISCSI),
    ("sas", BusType::SAS),
    ("sata", BusType::SATA),
    ("vhd", BusType::FILE_BACKED_VIRTUAL),
    ("spaces", BusType::SPACES),
    ("nvme", BusType::NVME),
];

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

fn bus<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match NumberOrText::deserialize(from)? {
        NumberOrText::Number(number) => u32::try_from(number).map_err(D::Error::custom),
        NumberOrText::Text(name) => {
            let known = BUSES.iter().find(|(known, _)| *known == name);
            known.map(|(_, bus)| bus.0).ok_or_else(|| D::Error::custom(format!("no such bus: {name}")))
        }
    }
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = match NumberOrText::deserialize(from)? {
        NumberOrText::Number(bytes) => return Ok(bytes),
        NumberOrText::Text(text) => text,
    };
    let unit = [(" KiB", 10), (" MiB", 20), (" GiB", 30), (" TiB", 40)];
    let parsed = unit.iter().find_map(|(unit, shift)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(1 << shift)
    });
    parsed.ok_or_else(|| D::Error::custom(format!("not a size such as \"10 GiB\": {text}")))
}

fn some_size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    size(from).map(Some)
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    String::deserialize(from).map(String::into_bytes)
}
