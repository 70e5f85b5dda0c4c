//! Everything that can be read both natively and through Windows' storage provider, side by side.
//!
//! csi-proxy reads natively and assumes that both readings agree. A node on which they differ is
//! worth a report.

use std::collections::{BTreeMap, BTreeSet};

use os::{Instance, Namespace, Os, OsError, U16String, Value};
use serde::{Serialize, Serializer};
use storage_ops::inspect::{DiskReadings, Inspector, VolumeReadings};
use storage_ops::{Config, DiskNumber, OperationError, OperationResult};

use crate::examination::query;
use crate::redaction::{NameKind, Names};
use crate::words::{enclosed, quoted};

/// How much the free space of a volume may change between the two readings.
const FREE_TOLERANCE: u64 = 64 << 20;

/// Whether two readings agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// They are equal.
    Same,
    /// They differ.
    Different,
    /// At least one of them failed.
    Unknown,
    /// csi-proxy reads the property through the provider only, because drivers depend on the
    /// provider's text.
    #[serde(rename = "one way")]
    OneWay,
}

/// One property, read natively and through the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The object, such as `disk 3`.
    pub object: String,
    /// The property.
    pub property: &'static str,
    /// The native reading, or why it failed.
    #[serde(serialize_with = "reading")]
    pub native: Result<String, String>,
    /// The reading through WMI, or why it failed.
    #[serde(serialize_with = "reading")]
    pub provider: Result<String, String>,
    /// Whether they agree.
    pub agreement: Agreement,
    /// How they differ, if names hide it.
    pub note: &'static str,
}

/// Writes a reading as `{"value": ...}` or `{"error": ...}`.
fn reading<S: Serializer>(reading: &Text, serializer: S) -> Result<S::Ok, S::Error> {
    match reading {
        Ok(value) => BTreeMap::from([("value", value)]),
        Err(error) => BTreeMap::from([("error", error)]),
    }
    .serialize(serializer)
}

/// All rows, in the order of the objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderComparison {
    /// The rows.
    pub rows: Vec<Row>,
}

impl ProviderComparison {
    /// Returns the rows with this agreement.
    pub fn rows_of(&self, agreement: Agreement) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(move |row| row.agreement == agreement)
    }
}

type Text = Result<String, String>;

/// The rows so far, and the names in them.
struct Comparison<'a> {
    rows: Vec<Row>,
    names: &'a Names,
}

pub(crate) fn compare(
    os: &dyn Os,
    inspector: &Inspector,
    config: &Config,
    names: &Names,
) -> ProviderComparison {
    let query = |namespace, wql: &str| {
        query(os, config, namespace, wql).map_err(|code| format!("the WMI query failed: {code}"))
    };
    let mut comparison = Comparison {
        rows: Vec::new(),
        names,
    };
    let disks = inspector.disks();
    let volumes = inspector.volumes().map_err(|error| text_of(&error));
    let provider_disks = query(Namespace::Storage, "SELECT * FROM MSFT_Disk");
    let partitions = query(Namespace::Storage, "SELECT * FROM MSFT_Partition");
    comparison.disks(inspector, disks, &provider_disks, &volumes, &partitions);
    comparison.volumes(
        &volumes,
        &query(Namespace::Storage, "SELECT * FROM MSFT_Volume"),
    );
    let firmware = inspector
        .firmware_serial()
        .map(Option::unwrap_or_default)
        .map_err(|error| text_of(&error));
    let bios = query(Namespace::CimV2, "SELECT SerialNumber FROM Win32_BIOS");
    let bios = bios.map(|found| {
        found
            .iter()
            .find_map(|bios| bios.text("SerialNumber"))
            .unwrap_or_default()
            .to_owned()
    });
    comparison.add(
        "machine",
        "serial number",
        firmware,
        bios,
        Some(NameKind::Serial),
    );
    ProviderComparison {
        rows: comparison.rows,
    }
}

fn text_of(error: &OperationError) -> String {
    enclosed(error)
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

impl Comparison<'_> {
    fn add(
        &mut self,
        object: &str,
        property: &'static str,
        native: Text,
        provider: Text,
        kind: Option<NameKind>,
    ) {
        self.add_if(
            object,
            property,
            native,
            provider,
            kind,
            |native, provider| native == provider,
        );
    }

    fn add_if(
        &mut self,
        object: &str,
        property: &'static str,
        native: Text,
        provider: Text,
        kind: Option<NameKind>,
        is_same: impl FnOnce(&str, &str) -> bool,
    ) {
        let (agreement, note) = match (&native, &provider) {
            (Ok(native), Ok(provider)) if is_same(native, provider) => (Agreement::Same, ""),
            (Ok(native), Ok(provider)) if native.trim().eq_ignore_ascii_case(provider.trim()) => (
                Agreement::Different,
                "only in case or in blanks at the ends",
            ),
            (Ok(_), Ok(_)) => (Agreement::Different, ""),
            _ => (Agreement::Unknown, ""),
        };
        let shown = |text: String| match kind {
            _ if text.trim().is_empty() && !text.is_empty() => format!("({} blanks)", text.len()),
            _ if text.is_empty() => "(none)".to_owned(),
            Some(kind) => quoted(&self.names.of(kind, &text)),
            None => quoted(&text),
        };
        let (native, provider) = (native.map(shown), provider.map(shown));
        self.rows.push(Row {
            object: object.to_owned(),
            property,
            native,
            provider,
            agreement,
            note,
        });
    }

    /// Adds for each object whether each way knows it, and returns the objects that both know, with
    /// their names. `all` is the row without any object: its name and its property.
    fn pairs<'r, K: Ord, N, P>(
        &mut self,
        all: (&str, &'static str),
        name: impl Fn(&K) -> String,
        native: &'r Result<BTreeMap<K, N>, String>,
        provider: &'r Result<BTreeMap<K, P>, String>,
    ) -> Vec<(String, &'r N, &'r P)> {
        let of_native = native.iter().flat_map(BTreeMap::keys);
        let keys: BTreeSet<&K> = of_native
            .chain(provider.iter().flat_map(BTreeMap::keys))
            .collect();
        if keys.is_empty() {
            let (object, property) = all;
            self.add(object, property, count(native), count(provider), None);
        }
        let mut pairs = Vec::new();
        for key in keys {
            let object = name(key);
            self.add(
                &object,
                "present",
                is_known(native, key),
                is_known(provider, key),
                None,
            );
            let (Ok(native), Ok(provider)) = (native, provider) else {
                continue;
            };
            if let (Some(native), Some(provider)) = (native.get(key), provider.get(key)) {
                pairs.push((object, native, provider));
            }
        }
        pairs
    }

    fn disks(
        &mut self,
        inspector: &Inspector,
        native: OperationResult<(Vec<DiskReadings>, Option<OsError>)>,
        provider: &Result<Vec<Instance>, String>,
        volumes: &Result<Vec<VolumeReadings>, String>,
        partitions: &Result<Vec<Instance>, String>,
    ) {
        let (native, unopened) = match native {
            Ok((disks, unopened)) => (Ok(disks), unopened),
            Err(error) => (Err(text_of(&error)), None),
        };
        if let Some(code) = unopened {
            self.add(
                "a disk",
                "present",
                Err(format!("a disk cannot be opened: {code}")),
                Ok(String::new()),
                None,
            );
        }
        let native = native.map(|disks| {
            disks
                .into_iter()
                .map(|disk| (disk.number.0, disk))
                .collect()
        });
        let provider = by_key(provider, |disk| disk.u32("Number"));
        let name = |number: &u32| DiskNumber(*number).to_string();
        for (object, device, instance) in self.pairs(("disks", "number"), name, &native, &provider)
        {
            self.disk(inspector, &object, device, instance);
            self.volumes_of(&object, device.number, volumes, partitions);
            self.partitions_of(&object, device, partitions);
        }
    }

    fn disk(
        &mut self,
        inspector: &Inspector,
        object: &str,
        device: &DiskReadings,
        instance: &Instance,
    ) {
        let text = |name: &str| -> Text { Ok(text(instance, name)) };
        let path = U16String::from_str(instance.text("Path").unwrap_or_default());
        let at_path = inspector.disk_at(&path).map_err(|error| text_of(&error));
        let at_path = at_path.map(|number| {
            number.map_or_else(|| "not a disk".to_owned(), |number| number.0.to_string())
        });
        self.add(
            object,
            "number by path",
            at_path,
            Ok(device.number.0.to_string()),
            None,
        );
        let attributes = device.attributes.as_ref().map_err(text_of);
        let state = |is_offline: bool| if is_offline { "offline" } else { "online" }.to_owned();
        let is_offline = instance
            .bool("IsOffline")
            .ok_or_else(|| "MSFT_Disk has no IsOffline".to_owned());
        let is_read_only = instance
            .bool("IsReadOnly")
            .ok_or_else(|| "MSFT_Disk has no IsReadOnly".to_owned());
        self.add(
            object,
            "state",
            attributes.clone().map(|(offline, _)| state(*offline)),
            is_offline.map(state),
            None,
        );
        self.add(
            object,
            "read-only",
            attributes.map(|(_, read_only)| yes(*read_only)),
            is_read_only.map(yes),
            None,
        );
        self.add(
            object,
            "size",
            device.size.as_ref().map(u64::to_string).map_err(text_of),
            text("Size"),
            None,
        );
        let serial = device.serial.clone().map_err(|error| text_of(&error));
        self.add(
            object,
            "serial number",
            serial,
            text("SerialNumber"),
            Some(NameKind::Serial),
        );
        let page83 = device.page83.clone().map_err(|error| text_of(&error));
        let location = text("Location").map(|text| {
            if text.is_empty() {
                "(none)".to_owned()
            } else {
                enclosed(text)
            }
        });
        self.rows.push(Row {
            object: object.to_owned(),
            property: "location",
            native: Err("read through the provider only".to_owned()),
            provider: location,
            agreement: Agreement::OneWay,
            note: "",
        });
        self.add_if(
            object,
            "page 83",
            page83,
            text("UniqueId"),
            Some(NameKind::Serial),
            is_same_identifier,
        );
    }

    fn partitions_of(
        &mut self,
        object: &str,
        device: &DiskReadings,
        provider: &Result<Vec<Instance>, String>,
    ) {
        let native = device.partitions.as_ref().map_err(text_of);
        let native =
            native.map(|partitions| partitions.iter().map(|own| (own.number, own)).collect());
        let provider = by_key(provider, |own| {
            let is_on_disk = own.u32("DiskNumber") == Some(device.number.0);
            own.u32("PartitionNumber").filter(|_| is_on_disk)
        });
        let name = |number: &u32| format!("{object}, partition {number}");
        for (partition, own, other) in
            self.pairs((object, "number of partitions"), name, &native, &provider)
        {
            self.add(
                &partition,
                "offset",
                Ok(own.offset.to_string()),
                Ok(text(other, "Offset")),
                None,
            );
            self.add(
                &partition,
                "size",
                Ok(own.length.to_string()),
                Ok(text(other, "Size")),
                None,
            );
        }
    }

    fn volumes_of(
        &mut self,
        object: &str,
        disk: DiskNumber,
        volumes: &Result<Vec<VolumeReadings>, String>,
        partitions: &Result<Vec<Instance>, String>,
    ) {
        let with_extents = |volumes: &Vec<VolumeReadings>| {
            let mut found = BTreeSet::new();
            for volume in volumes {
                match &volume.disks {
                    Ok(disks) if disks.contains(&disk) => {
                        found.insert(volume.id.to_string().to_lowercase());
                    }
                    Ok(_) => {}
                    Err(error) => {
                        return Err(format!(
                            "the disks of {} cannot be read: {}",
                            volume.id,
                            text_of(error)
                        ));
                    }
                }
            }
            Ok(found)
        };
        let native = volumes
            .as_ref()
            .map_err(Clone::clone)
            .and_then(with_extents);
        let provider = partitions.as_ref().map_err(Clone::clone).map(|partitions| {
            let of_disk = partitions
                .iter()
                .filter(|own| own.u32("DiskNumber") == Some(disk.0));
            let paths = of_disk.filter_map(|own| match own.get("AccessPaths") {
                Some(Value::Array(paths)) => Some(paths),
                _ => None,
            });
            let text = |path: &Value| {
                if let Value::Text(path) = path {
                    Some(path.to_lowercase())
                } else {
                    None
                }
            };
            let names = paths.flatten().filter_map(text);
            names
                .filter(|path| path.starts_with(r"\\?\volume{"))
                .collect::<BTreeSet<_>>()
        });
        let list = |found: BTreeSet<String>| found.into_iter().collect::<Vec<_>>().join(" ");
        self.add(
            object,
            "volumes",
            native.map(list),
            provider.map(list),
            None,
        );
    }

    fn volumes(
        &mut self,
        native: &Result<Vec<VolumeReadings>, String>,
        provider: &Result<Vec<Instance>, String>,
    ) {
        let native = native.as_ref().map_err(Clone::clone);
        let native = native.map(|volumes| {
            volumes
                .iter()
                .map(|own| (own.id.to_string().to_lowercase(), own))
                .collect()
        });
        let provider = by_key(provider, |other| other.text("Path").map(str::to_lowercase));
        let name = |id: &String| format!("volume {id}");
        for (object, own, other) in self.pairs(("volumes", "number"), name, &native, &provider) {
            self.volume(&object, own, other);
        }
    }

    fn volume(&mut self, object: &str, own: &VolumeReadings, other: &Instance) {
        // For a volume without a file system the provider answers 0.
        let space = match &own.space {
            Err(error) if error.code() == Some(OsError::UNRECOGNIZED_VOLUME) => Ok((0, 0)),
            space => space.as_ref().map(|space| *space).map_err(text_of),
        };
        let total = space.clone().map(|(total, _)| total.to_string());
        self.add(object, "size", total, Ok(text(other, "Size")), None);
        let free = space.map(|(_, free)| free.to_string());
        self.add_if(
            object,
            "free",
            free,
            Ok(text(other, "SizeRemaining")),
            None,
            is_nearly_same,
        );
        let file_system = own
            .file_system
            .as_ref()
            .map(|name| name.clone().unwrap_or_default())
            .map_err(text_of);
        let name = text(other, "FileSystem");
        let name = if name == "RAW" { String::new() } else { name };
        let formatted = own.formatted.as_ref().map(|is| yes(*is)).map_err(text_of);
        let provided = yes(!name.is_empty());
        self.add(object, "file system", file_system, Ok(name), None);
        self.add(object, "formatted", formatted, Ok(provided), None);
    }
}

/// Returns a text property; empty if the instance does not have it.
fn text(instance: &Instance, name: &str) -> String {
    instance.text(name).unwrap_or_default().to_owned()
}

/// Returns the instances that have a key, by it.
fn by_key<K: Ord>(
    found: &Result<Vec<Instance>, String>,
    key: impl Fn(&Instance) -> Option<K>,
) -> Result<BTreeMap<K, &Instance>, String> {
    let with_key = |instance| Some((key(instance)?, instance));
    found
        .as_ref()
        .map(|found| found.iter().filter_map(with_key).collect())
        .map_err(Clone::clone)
}

/// Returns the number of known objects.
fn count<K, V>(known: &Result<BTreeMap<K, V>, String>) -> Text {
    known
        .as_ref()
        .map(|known| known.len().to_string())
        .map_err(Clone::clone)
}

fn is_known<K: Ord, V>(known: &Result<BTreeMap<K, V>, String>, key: &K) -> Text {
    known
        .as_ref()
        .map(|known| yes(known.contains_key(key)))
        .map_err(Clone::clone)
}

/// Returns whether two numbers of bytes, read one after the other, differ little.
fn is_nearly_same(native: &str, provider: &str) -> bool {
    let both = native.parse::<u64>().ok().zip(provider.parse().ok());
    both.is_some_and(|(native, provider)| native.abs_diff(provider) <= FREE_TOLERANCE)
}

/// Returns whether two texts are the same identifier: the provider writes the bytes of some in
/// hexadecimal.
fn is_same_identifier(native: &str, provider: &str) -> bool {
    let is_in_hex = || {
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        let mut bytes = provider.as_bytes().chunks(2).map(byte);
        provider.len() == 2 * native.len()
            && native.bytes().all(|own| bytes.next() == Some(Some(own)))
    };
    native.eq_ignore_ascii_case(provider) || is_in_hex()
}
