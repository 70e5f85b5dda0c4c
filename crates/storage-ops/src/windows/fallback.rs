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

/// The values of the label `call`, in the order of the fallbacks and of the table in
/// docs/appendix-fallbacks.md, which describes them.
const CALLS: [&str; 20] = [
    "disk_list",
    "disk_state",
    "set_disk_state",
    "disk_size",
    "disk_update",
    "serial_number",
    "partition_table",
    "volume_disk",
    "volumes_of_disk",
    "volume_list",
    "volume_size",
    "file_system",
    "mount",
    "unmount",
    "flush",
    "target_volume",
    "bios_serial_number",
    "path_lookup",
    "create_link",
    "provider_cache",
];

impl Fallback {
    fn call(self) -> &'static str {
        CALLS[self as usize]
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
        counts
            .iter()
            .map(|((fallback, code), count)| FallbackCount {
                call: fallback.call(),
                code: *code,
                count: *count,
            })
            .collect()
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
        self.followed_by(format_args!("the fallback failed too: {}", failed.reason))
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
        assert_eq!(described, CALLS);
    }

    fn words(fallback: Fallback) -> String {
        format!("{fallback:?}").to_lowercase()
    }

    #[test]
    fn each_fallback_has_its_own_label_and_the_log_admits_a_line_for_each() {
        for (fallback, index) in [(Fallback::DiskList, 0), (Fallback::ProviderCache, 19)] {
            assert_eq!(words(fallback), CALLS[index].replace('_', ""));
            assert_eq!(fallback.call(), CALLS[index]);
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
