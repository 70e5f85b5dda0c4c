//! Fallbacks: what an operation does if Windows answers its first call with a code that says nothing about the object.
//!
//! A primary call is a call of a device or of the mount manager. Its fallback is, as a rule, what the Go program does in
//! production: the storage provider. Each use of a fallback is counted by its code, and logged once, so that the
//! metrics of many nodes show which primary call Windows answers differently than expected.
//!
//! The provider does not decide whether a volume is formatted, or a disk partitioned, with one exception: if it reports a
//! file system or a partition, there is one. That it reports none is no evidence.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use os::OsError;

use crate::error::{Kind, OperationError};
use crate::error_class::ErrorClass;

/// The maximum number of codes that are counted apart for one fallback. Codes come from drivers, so there may be any
/// number of them.
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

/// The answers that lead to most fallbacks: all but those of [`OperationError::is_conclusive`].
const INCONCLUSIVE: &str = "any other than that the object is gone or its medium fails";

/// A row of the table in docs/windows.md.
struct Row {
    fallback: Fallback,
    /// The value of the label `call`.
    call: &'static str,
    first: &'static str,
    answers: &'static str,
    second: &'static str,
}

const fn row(
    fallback: Fallback,
    call: &'static str,
    first: &'static str,
    answers: &'static str,
    second: &'static str,
) -> Row {
    Row { fallback, call, first, answers, second }
}

const TABLE: [Row; 20] = [
    row(Fallback::DiskList, "disk_list", "`CM_Get_Device_Interface_List`", INCONCLUSIVE, "`MSFT_Disk.Number`"),
    row(
        Fallback::DiskState,
        "disk_state",
        "`IOCTL_DISK_GET_DISK_ATTRIBUTES`",
        INCONCLUSIVE,
        "`MSFT_Disk.IsOffline` and `IsReadOnly`",
    ),
    row(
        Fallback::SetDiskState,
        "set_disk_state",
        "`IOCTL_DISK_SET_DISK_ATTRIBUTES`",
        "any other than that the disk is gone; 0 stands for a success that has changed nothing",
        "`MSFT_Disk.Online`, `Offline` and `SetAttributes`",
    ),
    row(
        Fallback::DiskSize,
        "disk_size",
        "`IOCTL_DISK_GET_LENGTH_INFO`, then `IOCTL_DISK_GET_DRIVE_GEOMETRY_EX`",
        INCONCLUSIVE,
        "`MSFT_Disk.Size`",
    ),
    row(
        Fallback::DiskUpdate,
        "disk_update",
        "`IOCTL_DISK_UPDATE_PROPERTIES`, before and after a partition grows",
        INCONCLUSIVE,
        "`MSFT_Disk.Refresh`",
    ),
    row(
        Fallback::SerialNumber,
        "serial_number",
        "`IOCTL_STORAGE_QUERY_PROPERTY`",
        INCONCLUSIVE,
        "`MSFT_Disk.SerialNumber`",
    ),
    row(
        Fallback::PartitionTable,
        "partition_table",
        "`IOCTL_DISK_GET_DRIVE_LAYOUT_EX`",
        INCONCLUSIVE,
        "`MSFT_Partition` of the disk. `PartitionDisk` takes only a partition that it reports for evidence",
    ),
    row(
        Fallback::VolumeDisk,
        "volume_disk",
        "`IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS`",
        INCONCLUSIVE,
        "`MSFT_Partition` of the `MSFT_Volume`; never for `FormatVolume`",
    ),
    row(
        Fallback::VolumesOfDisk,
        "volumes_of_disk",
        "`IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS` of all volumes",
        "any other than that the object is gone or its medium fails, or none in time (121), from a volume, if one is \
         missing on the disk",
        "`MSFT_Volume` of each `MSFT_Partition` of the disk",
    ),
    row(Fallback::VolumeList, "volume_list", "`FindFirstVolume`", INCONCLUSIVE, "`MSFT_Volume`, if it has the volume"),
    row(
        Fallback::VolumeSize,
        "volume_size",
        "`FileFsFullSizeInformation`",
        "any other than that the object is gone, its medium fails, or it has no file system",
        "`MSFT_Volume.Size` and `SizeRemaining`, if the size is not 0",
    ),
    row(
        Fallback::FileSystem,
        "file_system",
        "`FileFsAttributeInformation` and reading the first sectors",
        INCONCLUSIVE,
        "after 1, 50 or 87, opening the root directory, if that fails with 1005; `MSFT_Volume.FileSystemType`, if it names a \
         file system",
    ),
    row(
        Fallback::Mount,
        "mount",
        "`SetVolumeMountPoint`",
        "any other than that the directory is not empty or no directory, or the volume is gone, full or fails",
        "`MSFT_Partition.AddAccessPath`; after 32, `SetVolumeMountPoint` without a handle on the directory",
    ),
    row(
        Fallback::Unmount,
        "unmount",
        "`DeleteVolumeMountPoint`",
        "any, while the directory is still a mount point",
        "`MSFT_Partition.RemoveAccessPath`; after 32, `DeleteVolumeMountPoint` without a handle on the directory",
    ),
    row(Fallback::Flush, "flush", "`FlushFileBuffers` of the volume", INCONCLUSIVE, "`MSFT_Volume.Flush`"),
    row(
        Fallback::TargetVolume,
        "target_volume",
        "`GetFinalPathNameByHandle`",
        INCONCLUSIVE,
        "the reparse point of the path or of its target",
    ),
    row(
        Fallback::BiosSerialNumber,
        "bios_serial_number",
        "`GetSystemFirmwareTable`",
        "any",
        "`Win32_BIOS.SerialNumber`",
    ),
    row(
        Fallback::PathLookup,
        "path_lookup",
        "`NtCreateFile` with `OBJ_DONT_REPARSE`",
        "at start, any other than 4395 for a path through a link of Windows; 0 stands for a success, which means that the \
         link was followed. Later, that a parameter is not valid or not supported",
        "`NtCreateFile` for each component",
    ),
    row(
        Fallback::CreateLink,
        "create_link",
        "`FSCTL_SET_REPARSE_POINT` on a handle with `FILE_DELETE_ON_CLOSE`, and `FileDispositionInfoEx`, which keeps the link",
        "any other than that the account lacks the right (1314), the disk is full (112) or write-protected (19), or the name is too long (206)",
        "the same without `FILE_DELETE_ON_CLOSE`, as in Go's standard library; the object is deleted if it does not become \
         a link",
    ),
    row(
        Fallback::ProviderCache,
        "provider_cache",
        "`MSFT_Disk`, compared with the device before a change, and again after a refresh",
        "still another `Size` (1), `IsOffline` (2), `IsReadOnly` (3) or `PartitionStyle` (4) than that of the device, or one \
         of them is not reported (0). Each change of such a disk costs a refresh and a further query",
        "the change itself, which the provider may refuse",
    ),
];

impl Fallback {
    fn call(self) -> &'static str {
        TABLE.iter().find(|row| row.fallback == self).map_or("unknown", |row| row.call)
    }
}

/// Returns the table of all fallbacks, in Markdown.
pub fn fallback_table() -> String {
    let head = "| `call` | primary call | answers that lead to the fallback | fallback |\n|---|---|---|---|\n";
    let line = |row: &Row| format!("| `{}` | {} | {} | {} |\n", row.call, row.first, row.answers, row.second);
    TABLE.iter().map(line).fold(head.to_owned(), |table, line| table + &line)
}

/// How often the fallback was taken after one answer of a primary call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackCount {
    /// The call, as in the table of docs/windows.md.
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
    /// Counts a use of a fallback after `code`. Logs the first one: at most as many lines as the log admits of one
    /// statement in a minute, so that none is left out.
    pub(crate) fn record(&self, fallback: Fallback, code: OsError) {
        if self.count(fallback, code) {
            let call = fallback.call();
            tracing::warn!(call, %code, "Windows gave an unexpected answer, and a fallback was used; logged once");
        }
    }

    /// Counts a use of a fallback after `code`. Returns whether it was the first one.
    pub(crate) fn count(&self, fallback: Fallback, code: OsError) -> bool {
        let mut counts = self.lock();
        let key = (fallback, Some(code.0));
        let known = counts.keys().filter(|(known, _)| *known == fallback).count();
        let key = if counts.contains_key(&key) || known < MAX_CODES { key } else { (fallback, None) };
        let count = counts.entry(key).or_default();
        *count += 1;
        *count == 1
    }

    /// Returns all counters that are not zero.
    pub(crate) fn counts(&self) -> Vec<FallbackCount> {
        let counts = self.lock();
        let count = |((fallback, code), count): (&(Fallback, Option<u32>), &u64)| FallbackCount {
            call: fallback.call(),
            code: *code,
            count: *count,
        };
        counts.iter().map(count).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Fallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.counts()).finish()
    }
}

impl OperationError {
    /// Returns the code of Windows, unless the error says by itself what is wrong with the object: it is gone, its medium
    /// fails, it has no file system, or the operation has found out. Then no fallback is tried.
    pub(crate) fn inconclusive(&self) -> Option<OsError> {
        let code = self.code.filter(|_| self.kind != Kind::NotFound)?;
        let is_conclusive =
            [ErrorClass::DeviceRemoved, ErrorClass::MediumFailed].iter().any(|class| class.contains(code));
        (!is_conclusive && code != OsError::UNRECOGNIZED_VOLUME).then_some(code)
    }
}

impl OperationError {
    /// Adds the reason why the fallback failed too.
    pub(crate) fn with_failed_fallback(self, failed: &Self) -> Self {
        let reason = format!("{}; the fallback failed too: {}", self.reason, failed.reason);
        Self { reason, ..self }
    }
}

#[cfg(test)]
mod tests {
    use os::OsError;

    use super::{Fallback, FallbackCount, Fallbacks, MAX_CODES, TABLE, fallback_table};

    #[test]
    fn the_documentation_has_the_table_of_all_fallbacks() {
        let page = include_str!("../../../../docs/windows.md");
        assert!(page.contains(&fallback_table()), "docs/windows.md must contain:\n{}", fallback_table());
    }

    #[test]
    fn each_fallback_has_one_row_and_a_name_of_its_own() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.fallback as usize, index);
            assert_eq!(TABLE.iter().filter(|other| other.call == row.call).count(), 1, "{}", row.call);
        }
        assert_eq!(Fallback::ProviderCache as usize + 1, TABLE.len());
        assert!(TABLE.len() * (MAX_CODES + 1) <= 1000, "the lines that the log admits of one statement in a minute");
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
        let of =
            |call, code| counts.iter().find(|count| count.call == call && count.code == code).map(|count| count.count);
        assert_eq!(counts.len(), MAX_CODES + 2);
        assert_eq!(of("mount", Some(3)), Some(2));
        assert_eq!(of("mount", None), Some(100 - MAX_CODES as u64));
        assert!(counts.contains(&FallbackCount { call: "unmount", code: Some(1), count: 1 }));
    }
}
