//! Fallbacks: the second call of an operation after Windows has answered the first one with a code
//! that says nothing about the object.
//!
//! A primary call is a call of a device or of the mount manager. Its fallback is, as a rule, what
//! the Go program does in production: the storage provider. Each use of a fallback is counted by
//! its code, and logged once, so that the metrics of many nodes show which primary call Windows
//! answers differently than expected.
//!
//! If the provider reports a file system or a partition, the object has one. If the provider
//! reports none, that is no evidence: only devices decide that a volume is not formatted, or a disk
//! not partitioned.

use std::collections::BTreeMap;

use os::OsError;

use crate::error::{ErrorKind, OperationError};
use crate::error_class::ErrorClass;
use crate::sync::{Mutex, lock};

/// The maximum number of codes that are counted apart for one fallback. Codes come from drivers, so
/// their number is not bounded.
const MAX_CODES: usize = 16;

/// A primary call and its fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Fallback {
    DiskList,
    DiskState,
    SetDiskState,
    DiskSize,
    DiskUpdate,
    SerialNumber,
    PartitionTable,
    VolumeDisk,
    VolumesOfDisk,
    VolumeList,
    VolumeSize,
    FileSystem,
    Mount,
    Unmount,
    Flush,
    TargetVolume,
    BiosSerialNumber,
    PathLookup,
    CreateLink,
    ProviderCache,
}

/// The fallbacks, each with the value of the label `call`. The table in docs/appendix-fallbacks.md
/// describes them in this order.
const CALLS: [(Fallback, &str); 20] = [
    (Fallback::DiskList, "disk_list"),
    (Fallback::DiskState, "disk_state"),
    (Fallback::SetDiskState, "set_disk_state"),
    (Fallback::DiskSize, "disk_size"),
    (Fallback::DiskUpdate, "disk_update"),
    (Fallback::SerialNumber, "serial_number"),
    (Fallback::PartitionTable, "partition_table"),
    (Fallback::VolumeDisk, "volume_disk"),
    (Fallback::VolumesOfDisk, "volumes_of_disk"),
    (Fallback::VolumeList, "volume_list"),
    (Fallback::VolumeSize, "volume_size"),
    (Fallback::FileSystem, "file_system"),
    (Fallback::Mount, "mount"),
    (Fallback::Unmount, "unmount"),
    (Fallback::Flush, "flush"),
    (Fallback::TargetVolume, "target_volume"),
    (Fallback::BiosSerialNumber, "bios_serial_number"),
    (Fallback::PathLookup, "path_lookup"),
    (Fallback::CreateLink, "create_link"),
    (Fallback::ProviderCache, "provider_cache"),
];

impl Fallback {
    fn call(self) -> &'static str {
        CALLS[self as usize].1
    }
}

/// How often the fallback was taken after one answer of a primary call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackCount {
    /// The call, as in the table of docs/appendix-fallbacks.md.
    pub call: &'static str,
    /// The code of Windows, as it came; `None` for all codes beyond the first sixteen of the call.
    pub code: Option<u32>,
    /// The number of times.
    pub count: u64,
}

/// The counters of all fallbacks of a node.
#[derive(Default)]
pub(crate) struct Fallbacks(Mutex<Counts>);

/// Maps a fallback and a code, or `None` for all further codes, to the number of times.
type Counts = BTreeMap<(Fallback, Option<u32>), u64>;

impl Fallbacks {
    /// Counts a use of a fallback after `code`, and logs the first use. The log admits that many
    /// lines of one statement in a minute, so no line is dropped.
    pub(crate) fn record(&self, fallback: Fallback, code: OsError) {
        if self.count(fallback, code) {
            let call = fallback.call();
            tracing::warn!(
                call, %code,
                "Windows gave an unexpected answer, and a fallback was used; logged once"
            );
        }
    }

    /// Counts a use of a fallback after `code`. Returns whether it was the first one.
    pub(crate) fn count(&self, fallback: Fallback, code: OsError) -> bool {
        let mut counts = lock(&self.0);
        let key = (fallback, Some(code.0));
        let known = counts
            .keys()
            .filter(|(known, _)| *known == fallback)
            .count();
        let key = if counts.contains_key(&key) || known < MAX_CODES {
            key
        } else {
            (fallback, None)
        };
        let count = counts.entry(key).or_default();
        *count += 1;
        *count == 1
    }

    /// Returns all counters that are not zero.
    pub(crate) fn counts(&self) -> Vec<FallbackCount> {
        let counts = lock(&self.0);
        let count = |((fallback, code), count): (&(Fallback, Option<u32>), &u64)| FallbackCount {
            call: fallback.call(),
            code: *code,
            count: *count,
        };
        counts.iter().map(count).collect()
    }
}

impl OperationError {
    /// Returns the code of Windows if the error says nothing about the object. An error is
    /// conclusive, and no fallback is tried, if the object is gone, its medium fails, it has no
    /// file system, or the operation itself has found the reason.
    pub(crate) fn inconclusive(&self) -> Option<OsError> {
        let code = self.code.filter(|_| self.kind != ErrorKind::NotFound)?;
        let is_conclusive = [ErrorClass::DeviceRemoved, ErrorClass::MediumFailed]
            .iter()
            .any(|class| class.contains(code));
        (!is_conclusive && code != OsError::UNRECOGNIZED_VOLUME).then_some(code)
    }

    /// Adds the reason why the fallback failed too.
    pub(crate) fn with_failed_fallback(self, failed: &Self) -> Self {
        let reason = format!(
            "{}; the fallback failed too: {}",
            self.reason, failed.reason
        );
        Self { reason, ..self }
    }
}

#[cfg(test)]
mod tests {
    use os::OsError;

    use super::{CALLS, Fallback, FallbackCount, Fallbacks, MAX_CODES};

    #[test]
    fn the_documentation_describes_each_fallback_by_its_label() {
        let page = include_str!("../../../../docs/appendix-fallbacks.md");
        let table = page
            .lines()
            .skip_while(|line| !line.starts_with("| `call` |"))
            .skip(2);
        let rows = table.take_while(|line| line.starts_with('|'));
        let described: Vec<_> = rows.filter_map(|row| row.split('`').nth(1)).collect();
        assert_eq!(described, CALLS.map(|(_, call)| call));
    }

    #[test]
    fn each_fallback_has_a_label_of_its_own() {
        for (index, (fallback, call)) in CALLS.iter().enumerate() {
            assert_eq!(*fallback as usize, index);
            assert_eq!(
                CALLS.iter().filter(|(_, other)| other == call).count(),
                1,
                "{call}"
            );
        }
        assert!(
            CALLS.len() * (MAX_CODES + 1) <= 1000,
            "the lines that the log admits of one statement in a minute"
        );
    }

    #[test]
    fn the_codes_that_are_counted_apart_are_bounded() {
        let fallbacks = Fallbacks::default();
        for code in 0..100 {
            fallbacks.record(Fallback::Mount, OsError(code));
        }
        fallbacks.record(Fallback::Mount, OsError(3));
        fallbacks.record(Fallback::Unmount, OsError(1));
        let counts = fallbacks.counts();
        let of = |call, code| {
            counts
                .iter()
                .find(|count| count.call == call && count.code == code)
                .map(|count| count.count)
        };
        assert_eq!(counts.len(), MAX_CODES + 2);
        assert_eq!(of("mount", Some(3)), Some(2));
        assert_eq!(of("mount", None), Some(100 - MAX_CODES as u64));
        assert!(counts.contains(&FallbackCount {
            call: "unmount",
            code: Some(1),
            count: 1
        }));
    }
}
