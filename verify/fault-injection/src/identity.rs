//! Identity before destruction: right before a call that destroys data if it meets another disk or
//! volume, the operation has checked that it meets the one that it has looked at.
//!
//! Windows gives the number of a removed disk to the next one. Therefore an operation keeps its
//! disk open, and queries whether that disk still has its number. For a method of the storage
//! provider, the device at the path in the provider's instance must have that number too, or, if no
//! device is there, the disk the serial number of the instance. Windows gives the name of a volume
//! to no other one, so that only the disk of the volume is checked.

use faults::{Outcome, Record};

/// A call that identifies a disk or volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// The number of the disk that is kept open. The first query of a handle says only which disk
    /// was opened.
    HeldNumber,
    /// The device at the path in the provider's instance.
    ProviderPath,
    /// The serial number of the disk.
    SerialNumber,
    /// The disk of the volume.
    DiskOfVolume,
}

const OF_PROVIDER: [Check; 3] = [Check::HeldNumber, Check::ProviderPath, Check::SerialNumber];

/// The destructive calls, each with the checks that it needs. The signature of a disk is changed
/// only by Windows itself, when a disk comes online that has the signature of another one.
const DESTRUCTIVE: [(&str, &[Check]); 5] = [
    ("wmi call MSFT_Disk.Initialize", &OF_PROVIDER),
    ("wmi call MSFT_Disk.CreatePartition", &OF_PROVIDER),
    ("wmi call MSFT_Partition.Resize", &[Check::HeldNumber]),
    ("wmi call MSFT_Volume.Format", &[Check::DiskOfVolume]),
    ("control DISK_SET_DISK_ATTRIBUTES", &[Check::HeldNumber]),
];

/// The calls that are made only after the driver of a disk has refused a change.
const OF_FALLBACK: [(&str, &[Check]); 3] = [
    ("wmi call MSFT_Disk.Online", &[Check::HeldNumber]),
    ("wmi call MSFT_Disk.Offline", &[Check::HeldNumber]),
    ("wmi call MSFT_Disk.SetAttributes", &[Check::HeldNumber]),
];

/// The changes that a check outlasts: no other disk or volume arrives because of them.
const HARMLESS: [&str; 3] = [
    // Windows reads the disk again.
    "control DISK_UPDATE_PROPERTIES",
    // The volume is unlocked at once.
    "control FSCTL_LOCK_VOLUME",
    // The record in the registry that formatting begins.
    "set_volatile_text",
];

impl Check {
    /// Returns whether the call at `index` makes this check for a call on `object`.
    fn is_made(self, records: &[Record], index: usize, object: &str) -> bool {
        let Record { call, outcome } = &records[index];
        let is_of_object =
            !call.object.is_empty() && object.contains(call.object.trim_start_matches(r"\??\"));
        let is_of_disk = call.object.starts_with(r"\??\PhysicalDrive");
        let is_call = |primitive| call.primitive == primitive;
        let is_first_of_handle = || {
            let before = index.checked_sub(1).map(|before| &records[before].call);
            before.is_some_and(|before| before.primitive == "open" && before.object == call.object)
        };
        match self {
            Self::HeldNumber => {
                is_call("control STORAGE_GET_DEVICE_NUMBER")
                    && is_of_disk
                    // The path of an instance of the provider does not have the number.
                    && (!object.starts_with(r"\??\") || call.object == object)
                    && *outcome == Outcome::Done
                    && !is_first_of_handle()
            }
            Self::ProviderPath => is_call("open") && is_of_object && !is_of_disk,
            Self::SerialNumber => is_call("control STORAGE_QUERY_PROPERTY") && is_of_disk,
            Self::DiskOfVolume => {
                is_call("control VOLUME_GET_VOLUME_DISK_EXTENTS")
                    && is_of_object
                    && *outcome == Outcome::Done
            }
        }
    }
}

/// Returns the primitives of the destructive calls that an undisturbed run makes.
pub fn destructive_primitives() -> impl Iterator<Item = &'static str> {
    DESTRUCTIVE.iter().map(|(primitive, _)| *primitive)
}

/// Returns each destructive call before which a check is missing, or is followed by another change.
pub fn unchecked(records: &[Record]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let call = &record.call;
        let needed = DESTRUCTIVE
            .iter()
            .chain(&OF_FALLBACK)
            .filter(|(primitive, _)| call.primitive == *primitive)
            .flat_map(|(_, checks)| *checks);
        let since = records[..index]
            .iter()
            .rposition(is_change)
            .map_or(0, |change| change + 1);
        for check in needed {
            if !(since..index).any(|at| check.is_made(records, at, &call.object)) {
                let between: Vec<_> = records[since.saturating_sub(1)..index]
                    .iter()
                    .map(|between| &*between.call.primitive)
                    .collect();
                found.push(format!(
                    "{} without the check {check:?} since the last change: {between:?}",
                    call.primitive
                ));
            }
        }
    }
    found
}

fn is_change(record: &Record) -> bool {
    record.call.mutates && !HARMLESS.contains(&&*record.call.primitive)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use faults::{Probed, Record, Trace};

    use super::{DESTRUCTIVE, unchecked};
    use crate::scenarios;
    use crate::started_node::{Driver, StartedNode};

    fn records_of(name: &str) -> Vec<Record> {
        let all = scenarios::all();
        let scenario = all.iter().find(|scenario| scenario.to_string() == name);
        let scenario = scenario.expect("the scenario");
        let sim = (scenario.state.build)();
        let request = (scenario.spec.request)(&sim);
        let trace = Arc::new(Trace::recording());
        let os = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
        let config = (scenario.spec.config)();
        request.run(&StartedNode::new(&sim, os, config, Driver::Thread));
        trace.take()
    }

    #[test]
    fn a_missing_check_and_a_change_after_the_check_are_found() {
        for (scenario, primitive) in [
            ("PartitionDisk/raw", "wmi call MSFT_Disk.Initialize"),
            ("PartitionDisk/raw", "wmi call MSFT_Disk.CreatePartition"),
            ("FormatVolume/raw", "wmi call MSFT_Volume.Format"),
            (
                "SetDiskState(online)/raw, offline",
                "control DISK_SET_DISK_ATTRIBUTES",
            ),
        ] {
            let records = records_of(scenario);
            assert_eq!(unchecked(&records), [""; 0], "{scenario}");
            let destructive = records
                .iter()
                .position(|record| record.call.primitive == primitive)
                .expect("the call");
            let (_, checks) = DESTRUCTIVE
                .iter()
                .find(|(name, _)| *name == primitive)
                .expect("a row");
            for check in *checks {
                let mut without = records[..=destructive].to_vec();
                let object = records[destructive].call.object.clone();
                for index in (0..destructive).rev() {
                    if check.is_made(&records, index, &object) {
                        without.remove(index);
                    }
                }
                let found = unchecked(&without);
                let expected = format!("{primitive} without the check {check:?} ");
                assert!(
                    found.iter().any(|found| found.starts_with(&expected)),
                    "{found:?}"
                );
            }
            let mut with_change = records.clone();
            let mut change = records[destructive].clone();
            change.call.primitive = "wmi call MSFT_Disk.Refresh".into();
            with_change.insert(destructive, change);
            assert_eq!(unchecked(&with_change).len(), checks.len(), "{primitive}");
        }
    }
}
