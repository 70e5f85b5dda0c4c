//! The disks: offline ones, read-only ones, and those that cannot be read.

use std::collections::BTreeMap;

use storage_ops::inspect::DiskReadings;

use crate::Examination;
use crate::checks::counted;

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
        if let Err(error) = &disk.size {
            report.unchecked(CHECK, format!("the size of {number}"), error, error.code());
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
    report.ok(
        CHECK,
        format!("{} online and writable", counted(usable, "disk")),
    );
}
