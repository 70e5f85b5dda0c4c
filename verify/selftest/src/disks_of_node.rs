//! The disks of this machine as csi-proxy's RPCs, the devices and the storage provider show them,
//! with a form in place of what identifies a disk.
//!
//! A driver finds its disk by these texts, and the texts differ from cloud to cloud. Reading them
//! changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use os::abi::{
    CODE_SET_ASCII, CODE_SET_BINARY, FIRMWARE_SMBIOS, StorageDeviceDescriptor,
    StorageDeviceIdDescriptor, StorageIdentifier, StoragePropertyQuery,
};
use os::{Access, Handle, Instance, Namespace, NtPath, Open, Options, Os, OsError, OsResult};
use serde::{Deserialize, Serialize};
use storage_ops::{DiskNumber, Error, ListDiskIds, ListDiskLocations, Node};
use zerocopy::FromBytes;

use crate::form;

/// The type of an identifier in NAA format.
const NAA: u32 = 3;
/// The asset tag of the chassis that every machine of Azure has. A machine of Hyper-V, whose disks
/// look the same, has another one.
const AZURE: &[u8] = b"7783-7084-3265-9085-8269-3286-77";

/// The disks of a machine. A failed call is recorded by its code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DisksOfNode {
    /// Whether the machine is one of Azure, by the asset tag of its chassis.
    pub on_azure: bool,
    /// The calls for all disks that failed, each with its code.
    pub errors: BTreeMap<String, String>,
    /// The disks.
    pub disks: Vec<RecordedDisk>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedDisk {
    /// The number of the disk.
    pub number: u32,
    /// The answer of `ListDiskIDs`.
    pub ids: Option<RecordedIds>,
    /// The answer of `ListDiskLocations`.
    pub location: Option<RecordedLocation>,
    /// The descriptor of the device.
    pub device: Result<RecordedDevice, String>,
    /// The identifiers of page 83.
    pub page83: Result<Vec<RecordedIdentifier>, String>,
    /// The object of the storage provider.
    pub msft_disk: Option<RecordedMsftDisk>,
}

/// The answer of `ListDiskIDs`, as forms.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedIds {
    /// The page 83 identifier.
    pub page83: String,
    /// The serial number.
    pub serial_number: String,
}

/// The answer of `ListDiskLocations`. Its parts are numbers or empty.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedLocation {
    /// The adapter.
    pub adapter: String,
    /// The bus.
    pub bus: String,
    /// The target.
    pub target: String,
    /// The logical unit.
    pub lun_id: String,
}

/// The descriptor of a device (`STORAGE_DEVICE_DESCRIPTOR`). A text that is missing is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedDevice {
    /// The bus (`STORAGE_BUS_TYPE`).
    pub bus: u32,
    /// The vendor.
    pub vendor: Option<String>,
    /// The product.
    pub product: Option<String>,
    /// The form of the revision.
    pub revision: Option<String>,
    /// The form of the serial number.
    pub serial: Option<String>,
}

/// An identifier of page 83 (`STORAGE_IDENTIFIER`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedIdentifier {
    /// The code set: 1 binary, 2 ASCII, 3 UTF-8.
    pub code_set: u32,
    /// The type: 1 of a vendor, 2 EUI-64, 3 NAA, 8 SCSI name string.
    pub kind: u32,
    /// What it identifies: 0 the device, 1 the port, 2 the target.
    pub association: u32,
    /// The form of the identifier, in hexadecimal if it is not ASCII.
    pub form: String,
}

/// The properties of an `MSFT_Disk`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedMsftDisk {
    /// The name.
    pub friendly_name: Option<String>,
    /// The manufacturer.
    pub manufacturer: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The location; `a path` for a file.
    pub location: Option<String>,
    /// The format of the unique id.
    pub unique_id_format: Option<u32>,
    /// The form of the unique id.
    pub unique_id: Option<String>,
    /// The form of the serial number.
    pub serial_number: Option<String>,
    /// The bus.
    pub bus_type: Option<u32>,
    /// Whether Windows was started from the disk.
    pub is_boot: Option<bool>,
    /// The number of partitions.
    pub partitions: Option<u32>,
}

/// Records the disks of the machine behind `os`, on which `node` operates.
pub fn recorded_disks(node: &Node, os: &dyn Os) -> DisksOfNode {
    let mut errors = BTreeMap::new();
    let mut listed = |call: &str, code: String| {
        errors.insert(call.to_owned(), code);
    };
    let ids = node
        .run(&ListDiskIds)
        .map_err(|error| listed("ListDiskIDs", code_of(&error)))
        .unwrap_or_default();
    let locations = node
        .run(&ListDiskLocations)
        .map_err(|error| listed("ListDiskLocations", code_of(&error)))
        .unwrap_or_default();
    let deadline = os.clock().now() + node.config().timeouts.query;
    let provider = os
        .wmi()
        .query(Namespace::Storage, "SELECT * FROM MSFT_Disk", deadline)
        .map_err(|code| listed("MSFT_Disk", name_of(code)))
        .unwrap_or_default();
    let provider: BTreeMap<_, _> = provider
        .iter()
        .filter_map(|disk| Some((DiskNumber(disk.u32("Number")?), disk)))
        .collect();
    let numbers: BTreeSet<DiskNumber> = ids
        .keys()
        .chain(locations.keys())
        .chain(provider.keys())
        .copied()
        .collect();
    let disk = |number: DiskNumber| {
        let opened = open(os, number);
        let descriptor =
            |id| facts::property(opened.as_deref().map_err(|code| *code)?, id, facts::ENOUGH);
        RecordedDisk {
            number: number.0,
            ids: ids.get(&number).map(|ids| RecordedIds {
                page83: form::of_id(&ids.page83),
                serial_number: form::of_id(&ids.serial),
            }),
            location: locations.get(&number).map(|location| RecordedLocation {
                adapter: location.adapter.clone(),
                bus: location.bus.clone(),
                target: location.target.clone(),
                lun_id: location.lun.clone(),
            }),
            device: descriptor(StoragePropertyQuery::DEVICE)
                .and_then(|descriptor| device(&descriptor))
                .map_err(name_of),
            page83: descriptor(StoragePropertyQuery::DEVICE_ID)
                .and_then(|descriptor| identifiers(&descriptor))
                .map_err(name_of),
            msft_disk: provider.get(&number).map(|disk| msft_disk(disk)),
        }
    };
    DisksOfNode {
        on_azure: is_on_azure(os),
        disks: numbers.into_iter().map(disk).collect(),
        errors,
    }
}

fn code_of(error: &Error) -> String {
    error
        .code()
        .map_or_else(|| format!("{:?}", error.kind()), name_of)
}

fn name_of(code: OsError) -> String {
    format!("{code:?}")
}

fn is_on_azure(os: &dyn Os) -> bool {
    let mut table = vec![0; facts::ENOUGH];
    os.firmware_table(FIRMWARE_SMBIOS, 0, &mut table).is_ok()
        && table.windows(AZURE.len()).any(|part| part == AZURE)
}

fn open(os: &dyn Os, number: DiskNumber) -> OsResult<Box<dyn Handle>> {
    let how = Open::existing(Access::empty(), Options::empty());
    os.open(&NtPath::disk(number.0), &how)
}

fn device(descriptor: &[u8]) -> OsResult<RecordedDevice> {
    let (head, _) =
        StorageDeviceDescriptor::read_from_prefix(descriptor).map_err(|_| OsError::BAD_LENGTH)?;
    let text = |offset: u32| {
        let start = usize::try_from(offset).ok().filter(|start| *start > 0)?;
        let text = descriptor.get(start..)?.split(|byte| *byte == 0).next()?;
        Some(latin(text))
    };
    Ok(RecordedDevice {
        bus: head.bus_type,
        vendor: text(head.vendor_id_offset).map(|text| form::of_name(&text)),
        product: text(head.product_id_offset).map(|text| form::of_name(&text)),
        revision: text(head.product_revision_offset).map(|text| form::of_name(&text)),
        serial: text(head.serial_number_offset).map(|text| form::of_id(&text)),
    })
}

/// Returns the identifiers in a descriptor, up to the first one that does not lie in it.
fn identifiers(descriptor: &[u8]) -> OsResult<Vec<RecordedIdentifier>> {
    let (head, mut rest) =
        StorageDeviceIdDescriptor::read_from_prefix(descriptor).map_err(|_| OsError::BAD_LENGTH)?;
    let mut found = Vec::new();
    for _ in 0..head.number_of_identifiers {
        let Ok((identifier, bytes)) = StorageIdentifier::read_from_prefix(rest) else {
            break;
        };
        let Some(bytes) = bytes.get(..usize::from(identifier.identifier_size)) else {
            break;
        };
        let form = match (identifier.code_set, identifier.identifier_type) {
            (CODE_SET_ASCII, _) => form::of_id(latin(bytes).trim_end_matches('\0')),
            (CODE_SET_BINARY, NAA) => form::of_naa(&hex(bytes)),
            _ => form::of_id(&hex(bytes)),
        };
        found.push(RecordedIdentifier {
            code_set: identifier.code_set,
            kind: identifier.identifier_type,
            association: identifier.association,
            form,
        });
        match rest.get(usize::from(identifier.next_offset)..) {
            Some(next) if identifier.next_offset > 0 => rest = next,
            _ => break,
        }
    }
    Ok(found)
}

fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn msft_disk(disk: &Instance) -> RecordedMsftDisk {
    let name = |property| disk.text(property).map(form::of_name);
    let id = |property| disk.text(property).map(form::of_id);
    RecordedMsftDisk {
        friendly_name: name("FriendlyName"),
        manufacturer: name("Manufacturer"),
        model: name("Model"),
        location: disk.text("Location").map(form::of_location),
        unique_id_format: disk.u32("UniqueIdFormat"),
        unique_id: id("UniqueId"),
        serial_number: id("SerialNumber"),
        bus_type: disk.u32("BusType"),
        is_boot: disk.bool("IsBoot"),
        partitions: disk.u32("NumberOfPartitions"),
    }
}
