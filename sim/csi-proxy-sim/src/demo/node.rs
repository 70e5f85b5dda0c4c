//! The simulated node beside csi-proxy: what kubelet, containers and the cloud do on it, and the
//! states that a sequence checks.

use std::collections::BTreeSet;

use command_line::quantity::short_size;
use os::OsResult;
use os_sim::{Sim, VolumeView};

use super::sequence::{Check, FileKind, Operation, Text};
use super::short_form::short;

/// What an operation did.
pub(super) struct Performed {
    /// The name of the operation.
    pub(super) name: &'static str,
    /// The path or disk.
    pub(super) about: String,
    /// The result in a few words, and whether it is the expected one; or why the operation failed.
    pub(super) result: Result<(String, bool), String>,
}

/// Performs an operation on the node without csi-proxy.
pub(super) fn perform(sim: &Sim, operation: &Operation) -> Performed {
    let external = sim.external();
    let on = |name, path: &str, result: OsResult<(String, bool)>| Performed {
        name,
        about: short(path),
        result: result.map_err(|error| error.to_string()),
    };
    let done = |()| (String::new(), true);
    match operation {
        Operation::MkdirAll { path } => on("os.MkdirAll", path, external.mkdir_all(path).map(done)),
        Operation::WriteFile { path, data } => {
            on("os.WriteFile", path, external.write(path, data).map(done))
        }
        Operation::ReadFile { path, want } => {
            let content = external
                .read(path)
                .map(|data| String::from_utf8_lossy(&data).into_owned());
            on(
                "os.ReadFile",
                path,
                content.map(|content| (format!("\"{content}\""), content == *want)),
            )
        }
        Operation::ReadDir { path, contains } => {
            let names = external.read_dir(path);
            on(
                "os.ReadDir",
                path,
                names.map(|names| (names.join(", "), names.contains(contains))),
            )
        }
        Operation::Readlink { path, want } => {
            let target = external.read_link(path);
            on(
                "os.Readlink",
                path,
                target.map(|target| (short(&target), target == *want)),
            )
        }
        Operation::Lstat { path, want } => {
            let (kind, word) = match (external.exists(path), external.is_link(path)) {
                (false, _) => (None, "nothing"),
                (true, true) => (Some(FileKind::Link), "link"),
                (true, false) => (Some(FileKind::Directory), "directory"),
            };
            on("os.Lstat", path, Ok((word.to_owned(), kind == Some(*want))))
        }
        Operation::GetDiskFreeSpaceEx { path } => on(
            "GetDiskFreeSpaceEx",
            path,
            external
                .df(path)
                .map(|(total, _)| (short_size(total), total > 0)),
        ),
        Operation::GrowDisk {
            disk: Text(disk), ..
        } => {
            let size = size_of(sim, *disk) + size_of(sim, *disk) / 2;
            let result = (short_size(size), sim.grow_disk(*disk, size));
            Performed {
                name: "grows the disk",
                about: format!("disk {disk}"),
                result: Ok(result),
            }
        }
    }
}

/// Returns the size of a disk; 0 if the disk does not exist.
pub(super) fn size_of(sim: &Sim, disk: u32) -> u64 {
    sim.disk(disk).map_or(0, |disk| disk.size)
}

/// Returns what a check looks at, in words, and whether it holds.
///
/// `formatted` are the disks whose volumes had a file system before the sequence.
pub(super) fn check(sim: &Sim, formatted: &BTreeSet<u32>, check: &Check) -> (String, bool) {
    let external = sim.external();
    let is_offline = |disk| sim.disk(disk).map(|disk| disk.offline);
    match check {
        Check::Staged {
            disk: Text(disk),
            path,
        } => {
            let is_mounted = sim
                .volume_on(*disk)
                .is_some_and(|volume| volume.paths == [format!(r"{path}\")]);
            (
                format!("mounted at {} and nowhere else", short(path)),
                is_mounted,
            )
        }
        Check::Unstaged {
            disk: Text(disk),
            path,
        } => {
            let is_unmounted = sim
                .volume_on(*disk)
                .is_some_and(|volume| volume.paths.is_empty());
            (
                "not mounted, and the directory is removed".into(),
                is_unmounted && !external.exists(path),
            )
        }
        Check::FormattedOnce { disk: Text(disk) } => {
            let (what, formats) = if formatted.contains(disk) {
                ("NTFS, not formatted again", 0)
            } else {
                ("NTFS, formatted once", 1)
            };
            let is_ntfs = |volume: &VolumeView| volume.file_system.as_deref() == Some("NTFS");
            let is_formatted = sim
                .volume_on(*disk)
                .is_some_and(|volume| volume.formats == formats && is_ntfs(&volume));
            (what.into(), is_formatted)
        }
        Check::Online { disk: Text(disk) } => (
            "the disk is online".into(),
            is_offline(*disk) == Some(false),
        ),
        Check::Offline { disk: Text(disk) } => (
            "the disk is offline".into(),
            is_offline(*disk) == Some(true),
        ),
        Check::NoDisk { disk: Text(disk) } => (
            "the disk disappeared with its session".into(),
            sim.disk(*disk).is_none(),
        ),
        Check::FillsDisk { disk: Text(disk) } => {
            let (size, total) = (
                size_of(sim, *disk),
                sim.volume_on(*disk).map_or(0, |volume| volume.total),
            );
            let fills = total <= size && size - total < 32 << 20;
            (
                format!("the file system fills the disk: {}", short_size(total)),
                fills,
            )
        }
        Check::SizeAtLeast { bytes, requested } => (
            "the disk has the requested size".into(),
            bytes.0 >= requested.0,
        ),
        Check::SizeInGib { bytes, requested } => (
            "rounded up to GiB, it is the requested size".into(),
            bytes.0.div_ceil(1 << 30) == requested.0 >> 30,
        ),
        Check::BelowSizeInGib { bytes, requested } => (
            "rounded up to GiB, it is less than the requested size".into(),
            bytes.0.div_ceil(1 << 30) < requested.0 >> 30,
        ),
        Check::Link { path, target } => {
            let has_target = external.read_link(path).is_ok_and(|have| have == *target);
            (
                format!("{} is a link to {}", short(path), short(target)),
                has_target,
            )
        }
        Check::Absent { path } => (
            format!("nothing exists at {}", short(path)),
            !external.exists(path),
        ),
        Check::Mappings { remotes } => {
            let mapped: Vec<String> = sim
                .smb_mappings()
                .iter()
                .map(|mapping| mapping.remote.clone())
                .collect();
            let list = if remotes.is_empty() {
                "no share".to_owned()
            } else {
                format!("only {}", remotes.join(", "))
            };
            (format!("{list} is mapped"), mapped == *remotes)
        }
        Check::MappingsEncrypted {} => (
            "the mapping requires encryption".into(),
            sim.smb_mappings().iter().all(|mapping| mapping.privacy),
        ),
    }
}
