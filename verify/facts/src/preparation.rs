//! Preparation of the disks for tests on Windows: each check finds its disk as if no check had used
//! it before.

use std::path::Path;
use std::process::{self, Command};
use std::time::Duration;
use std::{fs, io, thread};

use crate::isolated::{Ended, run};
use crate::local::system_program;

/// The beginning of the names of diskpart's scripts.
pub const SCRIPT: &str = "diskpart-";

/// How long diskpart may take, which the first time starts a service.
const LONGEST_DISKPART: Duration = Duration::from_mins(3);
/// ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION and ERROR_USER_MAPPED_FILE,
/// by which Windows says that a file is open elsewhere.
const HELD: [i32; 4] = [5, 32, 33, 1224];

/// The size in MiB to which the disk of `VOLUME_GROWN` grows.
pub const GROWN_SIZE: u32 = 8192;

/// Returns the diskpart script that turns the disk of a VHD file into one of a kind, such as
/// `DISK_RAW` or `VOLUME_REFS`. The script destroys all data on the disk. It names the file and
/// never the number of the disk: a number means another disk as soon as the first one has gone.
/// Attaching the disk also selects it. Returns `None` for a kind that diskpart cannot create.
pub fn diskpart_script(kind: &str, file: &Path) -> Option<String> {
    let rest: &[&str] = match kind {
        "DISK_RAW" | "DISK_FOURKN" => &[],
        "DISK_MBR" => &["convert mbr", "create partition primary"],
        "VOLUME_RAW" | "VOLUME_SMALLRAW" => &["convert gpt", "create partition primary"],
        "VOLUME_NTFS" | "VOLUME_NTFS4KN" | "VOLUME_GROWN" => &[
            "convert gpt",
            "create partition primary",
            "format fs=ntfs quick",
        ],
        "VOLUME_FAT32" => &[
            "convert gpt",
            "create partition primary",
            "format fs=fat32 quick",
        ],
        "VOLUME_REFS" => &[
            "convert gpt",
            "create partition primary",
            "format fs=refs quick",
        ],
        _ => return None,
    };
    let file = format!("select vdisk file=\"{}\"", file.display());
    // An offline or read-only disk cannot be cleaned. Lines with `noerr` fail where there is
    // nothing to change.
    let writable = ["attributes disk clear readonly noerr", "online disk noerr"];
    let first = [
        &[&file, "detach vdisk noerr", "attach vdisk"],
        &writable[..],
        &["clean"],
    ]
    .concat();
    let mut lines = [&first, rest].concat();
    // A file can grow only while it is detached.
    let grow = format!("expand vdisk maximum={GROWN_SIZE}");
    if kind == "VOLUME_GROWN" {
        lines.extend(
            ["detach vdisk", &grow, "attach vdisk"]
                .into_iter()
                .chain(writable),
        );
    }
    Some(lines.join("\n") + "\n")
}

/// Runs a diskpart script, which stops at the first line that fails. Whoever can write in `folder`
/// decides what diskpart does to which disk.
pub fn diskpart(folder: &Path, script: &str) -> io::Result<Ended> {
    let file = folder.join(format!("{SCRIPT}{}.txt", process::id()));
    while_held(|| fs::write(&file, script))?;
    let mut diskpart = Command::new(system_program("diskpart.exe")?);
    let ended = run(diskpart.arg("/s").arg(&file), LONGEST_DISKPART);
    let _ = fs::remove_file(&file);
    ended
}

/// Repeats an operation on a file for some seconds while another program, such as a virus scanner,
/// has the file open.
pub fn while_held<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..20 {
        match operation() {
            Err(error) if HELD.contains(&error.raw_os_error().unwrap_or_default()) => {
                thread::sleep(Duration::from_millis(200));
            }
            result => return result,
        }
    }
    operation()
}

/// Returns the file and the identity of a disk for tests in the text of the variable
/// [`DISKS`](crate::DISKS). A disk without an identity is not used.
pub fn named_disk<'a>(disks: &'a str, kind: &str) -> Option<(&'a Path, &'a str)> {
    let mut named = disks.lines().filter_map(|line| {
        line.strip_prefix(kind)?
            .strip_prefix('\t')?
            .split_once('\t')
    });
    named
        .next()
        .map(|(file, identity)| (Path::new(file), identity))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{diskpart_script, named_disk};

    #[test]
    fn a_disk_is_prepared_by_its_file_as_if_no_check_had_used_it() {
        let script = |kind| diskpart_script(kind, Path::new("own.vhdx"));
        let clean = "select vdisk file=\"own.vhdx\"\ndetach vdisk noerr\nattach vdisk\n\
                     attributes disk clear readonly noerr\nonline disk noerr\nclean\n";
        assert_eq!(script("DISK_RAW").as_deref(), Some(clean));
        let refs = format!("{clean}convert gpt\ncreate partition primary\nformat fs=refs quick\n");
        assert_eq!(script("VOLUME_REFS"), Some(refs));
        assert_eq!(script("DISK_NOPAGE83"), None);
    }

    #[test]
    fn a_disk_for_tests_has_a_file_and_an_identity() {
        let disks = "DISK_RAW\ta.vhdx\tDiskIdentity\nDISK_MBR\t3\nDISK_FOURKN";
        assert_eq!(
            named_disk(disks, "DISK_RAW"),
            Some((Path::new("a.vhdx"), "DiskIdentity"))
        );
        assert!(
            ["DISK_MBR", "DISK_FOURKN", "DISK"]
                .iter()
                .all(|kind| named_disk(disks, kind).is_none())
        );
    }
}
