//! The simulated node beside csi-proxy: what kubelet, containers and the cloud do on it, and the states that a sequence
//! checks.

use csi_proxyctl::quantity::short_size;
use os::OsResult;
use os_sim::{Sim, VolumeView};

use super::sequence::{Check, FileKind, Operation};
use super::short_form::short;

/// What an operation did.
pub(super) struct Performed {
    /// The name of the operation.
    pub(super) name: &'static str,
    /// The path or disk.
    pub(super) about: String,
    /// The result in a few words, and whether it is the expected one; or why the operation failed.
    pub(super) result: Result<(String, bool), String>,
    /// The size of a disk that has grown.
    pub(super) size: Option<u64>,
}

/// Performs an operation on the node without csi-proxy.
pub(super) fn perform(sim: &Sim, operation: &Operation) -> Performed {
    let external = sim.external();
    let on = |name, path: &str, result: OsResult<(String, bool)>| Performed {
        name,
        about: short(path),
        result: result.map_err(|error| error.to_string()),
        size: None,
    };
    let done = |()| (String::new(), true);
    match operation {
        Operation::MkdirAll { path } => on("os.MkdirAll", path, external.mkdir_all(path).map(done)),
        Operation::WriteFile { path, data } => on("os.WriteFile", path, external.write(path, data).map(done)),
        Operation::ReadFile { path, want } => {
            let content = external.read(path).map(|data| String::from_utf8_lossy(&data).into_owned());
            on("os.ReadFile", path, content.map(|content| (format!("\"{content}\""), content == *want)))
        }
        Operation::ReadDir { path, contains } => {
            let names = external.read_dir(path);
            on("os.ReadDir", path, names.map(|names| (names.join(", "), names.contains(contains))))
        }
        Operation::Readlink { path, want } => {
            let target = external.read_link(path);
            on("os.Readlink", path, target.map(|target| (short(&target), target == *want)))
        }
        Operation::Lstat { path, want } => {
            let kind = match (external.exists(path), external.is_link(path)) {
                (false, _) => None,
                (true, true) => Some(FileKind::Link),
                (true, false) => Some(FileKind::Directory),
            };
            let word = kind.map_or("nothing", |kind| if kind == FileKind::Link { "link" } else { "directory" });
            on("os.Lstat", path, Ok((word.to_owned(), kind == Some(*want))))
        }
        Operation::GetDiskFreeSpaceEx { path } => {
            on("GetDiskFreeSpaceEx", path, external.df(path).map(|(total, _)| (short_size(total), total > 0)))
        }
        Operation::GrowDisk { disk, .. } => grow(sim, *disk),
    }
}

/// Grows a disk by half of its size.
fn grow(sim: &Sim, number: u32) -> Performed {
    let size = sim.disk(number).map(|disk| disk.size + disk.size / 2);
    let grown = size.filter(|size| sim.grow_disk(number, *size));
    Performed {
        name: "grows the disk",
        about: format!("disk {number}"),
        result: grown.map(|size| (short_size(size), true)).ok_or_else(|| "no such disk".to_owned()),
        size: grown,
    }
}

/// Returns what a check looks at, in words, and whether it holds.
pub(super) fn check(sim: &Sim, check: &Check) -> Vec<(String, bool)> {
    let external = sim.external();
    let volume = |disk: u32| sim.volume_on(disk);
    match check {
        Check::Staged { disk, path } => {
            let mounted = volume(*disk).is_some_and(|volume| volume.paths == [format!(r"{path}\")]);
            vec![(format!("mounted at {} and nowhere else", short(path)), mounted), formatted_once(volume(*disk))]
        }
        Check::Unstaged { disk, path } => {
            let unmounted = volume(*disk).is_some_and(|volume| volume.paths.is_empty());
            vec![("not mounted, and the directory is removed".to_owned(), unmounted && !external.exists(path))]
        }
        Check::FormattedOnce { disk } => vec![formatted_once(volume(*disk))],
        Check::Online { disk } => {
            vec![("the disk is online".to_owned(), sim.disk(*disk).is_some_and(|disk| !disk.offline))]
        }
        Check::Offline { disk } => {
            vec![("the disk is offline".to_owned(), sim.disk(*disk).is_some_and(|disk| disk.offline))]
        }
        Check::NoDisk { disk } => vec![("the disk disappeared with its session".to_owned(), sim.disk(*disk).is_none())],
        Check::FillsDisk { disk } => {
            let size = sim.disk(*disk).map_or(0, |disk| disk.size);
            let total = volume(*disk).map_or(0, |volume| volume.total);
            let fills = total <= size && size - total < 32 << 20;
            vec![(format!("the file system fills the disk: {}", short_size(total)), fills)]
        }
        Check::SizeAtLeast { bytes, requested } => {
            vec![("the disk has the requested size".to_owned(), bytes >= requested)]
        }
        Check::SizeInGib { bytes, requested } => {
            vec![("rounded up to GiB, it is the requested size".to_owned(), bytes.div_ceil(1 << 30) == requested >> 30)]
        }
        Check::Link { path, target } => {
            let has_target = external.read_link(path).is_ok_and(|have| have == *target);
            vec![(format!("{} is a link to {}", short(path), short(target)), has_target)]
        }
        Check::Absent { path } => vec![(format!("nothing exists at {}", short(path)), !external.exists(path))],
        Check::Mappings { remotes } => {
            let mapped: Vec<String> = sim.smb_mappings().iter().map(|mapping| mapping.remote.clone()).collect();
            let list = if remotes.is_empty() { "no share".to_owned() } else { format!("only {}", remotes.join(", ")) };
            vec![(format!("{list} is mapped"), mapped == *remotes)]
        }
        Check::MappingsEncrypted {} => {
            let encrypted = sim.smb_mappings().iter().all(|mapping| mapping.privacy);
            vec![("the mapping requires encryption".to_owned(), encrypted)]
        }
    }
}

fn formatted_once(volume: Option<VolumeView>) -> (String, bool) {
    let once = volume.is_some_and(|volume| volume.formats == 1 && volume.file_system.as_deref() == Some("NTFS"));
    ("NTFS, formatted once".to_owned(), once)
}
