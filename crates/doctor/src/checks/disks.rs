//! The disks: offline ones, read-only ones, and those that cannot be read.

use std::collections::BTreeMap;

use storage_ops::inspect::{DiskReadings, Inspector, VolumeReadings};
use storage_ops::{DiskNumber, VolumeId};

use crate::examination::Examination;
use crate::words::counted;

const CHECK: &str = "Disks";

/// Returns the numbers of each group of disks that have the same page 83 identifier or, without
/// one, the same serial number.
fn with_same_identifier(disks: &[DiskReadings]) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for disk in disks {
        let identifiers = [disk.page83.as_ref(), disk.serial.as_ref()];
        let mut known = identifiers.into_iter().flatten().map(|text| text.trim());
        if let Some(identifier) = known.find(|text| !text.is_empty()) {
            let numbers = groups.entry(identifier).or_default();
            numbers.push(disk.number.0.to_string());
        }
    }
    let shared = groups.into_values().filter(|numbers| numbers.len() > 1);
    shared.map(|numbers| numbers.join(" and ")).collect()
}

/// Returns the NTFS volumes whose number of clusters does not let them use their disk, with the
/// largest size of each and the size of its disk.
fn limited_volumes(disks: &[DiskReadings], inspector: &Inspector) -> Vec<(VolumeId, u64, u64)> {
    let size_of = |number: DiskNumber| {
        let disk = disks.iter().find(|disk| disk.number == number)?;
        disk.size.as_ref().ok().copied()
    };
    // The smallest clusters have 512 bytes.
    if !disks
        .iter()
        .any(|disk| disk.size.as_ref().is_ok_and(|size| *size >> 41 > 0))
    {
        return Vec::new();
    }
    let limited = |volume: VolumeReadings| {
        let limit = volume.ntfs_limit.ok()??;
        let size = size_of(*volume.disks.ok()?.first()?)?;
        (size > limit).then_some((volume.id, limit, size))
    };
    let volumes = inspector.volumes().unwrap_or_default();
    volumes.into_iter().filter_map(limited).collect()
}

pub(super) fn check(examination: &mut Examination<'_>) {
    let report = &mut examination.report;
    let (disks, unopened) = match examination.inspector.disks() {
        Ok(found) => found,
        Err(error) => return report.unchecked(CHECK, "the disks", &error, error.code()),
    };
    if let Some(code) = unopened {
        report.unchecked(CHECK, "a disk", code, Some(code));
    }
    let mut usable = 0;
    for disk in &disks {
        let number = disk.number;
        match &disk.attributes {
            Ok((false, false)) => usable += 1,
            Ok((is_offline, is_read_only)) => {
                let state = match (is_offline, is_read_only) {
                    (true, true) => "offline and read-only",
                    (true, false) => "offline",
                    _ => "read-only",
                };
                let is = if *is_offline {
                    "brings it online"
                } else {
                    "makes it writable"
                };
                report.warning(
                    CHECK,
                    format!("{number} is {state}"),
                    format!(
                        "a driver {is} when a pod needs it (PartitionDisk or SetDiskState); \
                         otherwise leave it as it is"
                    ),
                );
            }
            Err(error) => {
                report.unchecked(CHECK, format!("the state of {number}"), error, error.code());
            }
        }
        match (&disk.size, disk.mbr_size) {
            (Err(error), _) => {
                report.unchecked(CHECK, format!("the size of {number}"), error, error.code());
            }
            (Ok(size), Some(mbr_size)) if *size > mbr_size => report.warning(
                CHECK,
                format!("{number} has {size} bytes, and its MBR can describe {mbr_size} of them"),
                "move the data to a disk with a GPT if its volume must grow further",
            ),
            (Ok(_), _) => {}
        }
    }
    for group in with_same_identifier(&disks) {
        report.warning(
            CHECK,
            format!("disks {group} have one identifier"),
            "if they are paths to one LUN, install MPIO before a pod uses the LUN, because writing \
             through both destroys its file system; if one is a copy, give it an identifier of its \
             own",
        );
    }
    for (volume, limit, size) in limited_volumes(&disks, &examination.inspector) {
        report.warning(
            CHECK,
            format!(
                "volume {volume} cannot grow beyond {limit} bytes, and its disk has {size}: NTFS has \
                 at most 4294967295 clusters"
            ),
            "move the data to a volume with larger clusters (-format-allocation-unit)",
        );
    }
    report.ok(
        CHECK,
        format!("{} online and writable", counted(usable, "disk")),
    );
}
