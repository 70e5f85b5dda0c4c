//! The disks and volumes: those that are offline, read-only, cannot be read, cannot be told apart or
//! cannot be found by a driver.

use std::collections::BTreeMap;

use os::{Namespace, OsError};
use storage_ops::inspect::{DiskReadings, VolumeReadings};
use storage_ops::{DiskLocation, DiskNumber};

use crate::examination::{Examination, query};
use crate::finding::Report;
use crate::redaction::NameKind;
use crate::words::{counted, listed, quoted};

const CHECK: &str = "Disks";

/// What `MSFT_Disk.FriendlyName` contains for the remote disks of Azure's NVMe sizes.
/// <https://github.com/Azure/azure-vm-utils>, `80-azure-disk.rules`;
/// <https://github.com/kubernetes-sigs/azuredisk-csi-driver/issues/2365>
const AZURE_NVME: &str = "MSFT NVMe Accelerator";

/// Returns each group of disks that have the same page 83 identifier or, without one, the same
/// serial number.
fn with_same_identifier(disks: &[DiskReadings]) -> impl Iterator<Item = Vec<&DiskReadings>> {
    let mut groups: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for disk in disks {
        let identifiers = [disk.page83.as_ref(), disk.serial.as_ref()];
        let mut known = identifiers.into_iter().flatten().map(|text| text.trim());
        if let Some(identifier) = known.find(|text| !text.is_empty()) {
            groups.entry(identifier).or_default().push(disk);
        }
    }
    groups.into_values().filter(|disks| disks.len() > 1)
}

fn is_offline(disk: &DiskReadings) -> bool {
    matches!(disk.attributes, Ok((true, _)))
}

/// Returns the volumes, for further checks.
pub(super) fn check(examination: &mut Examination<'_>) -> Vec<VolumeReadings> {
    let Examination {
        inspector,
        names,
        report,
        settings,
        ..
    } = examination;
    let disks = match inspector.disks() {
        Ok((disks, unopened)) => {
            if let Some(code) = unopened {
                let seen = settings.seen_disks.iter();
                let unread: Vec<_> = seen
                    .filter(|seen| disks.iter().all(|disk| disk.number.0 != seen.disk))
                    .map(|seen| {
                        let serial = quoted(&names.of(NameKind::Serial, &seen.serial_number));
                        let ago = seen.seconds_ago;
                        format!("disk {} (seen {ago:.0} s ago as {serial})", seen.disk)
                    })
                    .collect();
                let what = match unread.as_slice() {
                    [] => "a disk".to_owned(),
                    unread => listed(unread),
                };
                report.unchecked(CHECK, what, code, Some(code));
            }
            check_disks(report, &disks);
            disks
        }
        Err(error) => {
            report.unchecked(CHECK, "the disks", &error, error.code());
            Vec::new()
        }
    };
    check_locations(examination);
    let Examination {
        inspector, report, ..
    } = examination;
    match inspector.volumes() {
        Ok(volumes) => {
            check_volumes(report, &volumes, &disks);
            volumes
        }
        Err(error) => {
            report.unchecked(CHECK, "the volumes", &error, error.code());
            Vec::new()
        }
    }
}

fn check_disks(report: &mut Report, disks: &[DiskReadings]) {
    let mut second_paths = Vec::new();
    for group in with_same_identifier(disks) {
        let numbers: Vec<_> = group.iter().map(|disk| disk.number.0.to_string()).collect();
        report.warning(
            CHECK,
            format!("disks {} have one identifier", numbers.join(" and ")),
            "if they are paths to one LUN, leave one of them offline and install MPIO before a pod \
             uses the LUN, because writing through both destroys its file system; if one is a copy, \
             give it an identifier of its own",
        );
        second_paths.extend(
            group
                .iter()
                .filter(|disk| is_offline(disk))
                .map(|disk| disk.number),
        );
    }
    let mut usable = 0;
    for disk in disks {
        let number = disk.number;
        match &disk.attributes {
            Ok((false, false)) => usable += 1,
            // Bringing it online may destroy its file system, so this is no task for a driver.
            Ok(_) if second_paths.contains(&number) => {}
            Ok((is_offline, is_read_only)) => {
                let (state, is) = match (is_offline, is_read_only) {
                    (true, true) => ("offline and read-only", "brings it online"),
                    (true, false) => ("offline", "brings it online"),
                    _ => ("read-only", "makes it writable"),
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
    report.ok(
        CHECK,
        format!("{} online and writable", counted(usable, "disk")),
    );
}

/// Checks whether Azure's driver can find its disks, for which it needs their LUNs.
fn check_locations(examination: &mut Examination<'_>) {
    let disks = match query(
        examination.os,
        &examination.settings.node,
        Namespace::Storage,
        "SELECT Number, Location, FriendlyName FROM MSFT_Disk",
    ) {
        Ok(disks) => disks,
        Err(code) => {
            let report = &mut examination.report;
            return report.unchecked(CHECK, "the locations of the disks", code, Some(code));
        }
    };
    for disk in &disks {
        let location = disk.text("Location").and_then(DiskLocation::parse);
        let name = disk.text("FriendlyName").unwrap_or_default();
        if let Some(number) = disk.u32("Number")
            && location.is_none_or(|location| location.lun.is_empty())
            && name.contains(AZURE_NVME)
        {
            examination.report.warning(
                CHECK,
                format!(
                    "{} is a disk of Azure on NVMe, for which Windows shows no LUN: azuredisk does \
                     not find it through csi-proxy",
                    DiskNumber(number)
                ),
                "run azuredisk's node plugin as a HostProcess container, which finds such disks by \
                 itself, or use a VM size with SCSI disks",
            );
        }
    }
}

fn check_volumes(report: &mut Report, volumes: &[VolumeReadings], disks: &[DiskReadings]) {
    let size_of = |number: DiskNumber| {
        let disk = disks.iter().find(|disk| disk.number == number)?;
        disk.size.as_ref().ok().copied()
    };
    for volume in volumes {
        let VolumeReadings { id, .. } = volume;
        let disk = volume.disks.as_ref().ok().and_then(|disks| disks.first());
        match &volume.formatted {
            // What has not answered is reported as a volume whose mount points are not known.
            Err(error) if error.code() == Some(OsError::SEM_TIMEOUT) => {}
            Err(error) if error.code() == Some(OsError::ACCESS_DENIED) => {
                report.unchecked(CHECK, format!("volume {id}"), error, error.code());
            }
            Err(error) => report.warning(
                CHECK,
                format!("no pod can use volume {id}: {error}"),
                "unlock the volume if BitLocker has locked it (manage-bde -unlock); otherwise check \
                 its disk and its file system (chkdsk). csi-proxy does not format it in this state",
            ),
            Ok(_) => {}
        }
        if let Ok(Some(limit)) = volume.ntfs_limit
            && let Some(size) = disk.copied().and_then(size_of)
            && size > limit
        {
            report.warning(
                CHECK,
                format!(
                    "volume {id} cannot grow beyond {limit} bytes, and its disk has {size}: NTFS has \
                     at most 4294967295 clusters"
                ),
                "move the data to a volume with larger clusters (-format-allocation-unit)",
            );
        }
    }
}
