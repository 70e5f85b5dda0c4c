//! The disks for tests that this program makes: VHDX files, and the variable that names them to the
//! checks.
//!
//! diskpart attaches and prepares the disks. Its scripts name the file, and never the number of a
//! disk, which means another disk as soon as the first one has gone.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{self, Command};
use std::time::{Duration, Instant};

use facts::{DiskIdentity, FOLDER, GROWN_SIZE, SCRIPT, code_of, system_program};
use os::Os;

use crate::{Evidence, Machine};

/// The kinds of disks, by their names in the variable (verify/facts/src/local.rs), the size of
/// their sectors in bytes, and their size in MiB. A check partitions and formats its disk. ReFS
/// needs more than 1 GiB.
const KINDS: [(&str, u32, u32); 10] = [
    ("DISK_RAW", 512, 4096),
    ("DISK_MBR", 512, 4200),
    ("DISK_FOURKN", 4096, 4300),
    ("VOLUME_NTFS", 512, 4400),
    ("VOLUME_FAT32", 512, 4500),
    ("VOLUME_REFS", 512, 4600),
    ("VOLUME_RAW", 512, 4700),
    ("VOLUME_SMALLRAW", 512, 900),
    ("VOLUME_NTFS4KN", 4096, 4800),
    (GROWN, 512, 4900),
];
const GROWN: &str = "VOLUME_GROWN";
/// How often a new disk is searched, with a second between the searches.
const SEARCHES: u32 = 10;
/// The key of the registry in which the checks write.
const KEY: &str = r"HKLM\SOFTWARE\csi-proxy-facts";

/// The folder of all files for tests, which this process alone uses.
pub(crate) struct Folder<'a> {
    machine: &'a dyn Machine,
    lock: File,
}

impl<'a> Folder<'a> {
    /// The kinds of errors after which nothing may be done.
    pub(crate) const REFUSALS: [io::ErrorKind; 2] =
        [io::ErrorKind::PermissionDenied, io::ErrorKind::WouldBlock];

    /// Creates the folder, or opens that of an earlier run.
    pub(crate) fn open(machine: &'a dyn Machine) -> io::Result<Self> {
        let folder = Path::new(FOLDER);
        let created = match machine.create_folder(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        };
        let locked = created.and_then(|()| machine.lock(&folder.join("lock")));
        locked
            .map(|lock| Self { machine, lock })
            .map_err(|error| match error.kind() {
                kind @ io::ErrorKind::WouldBlock => {
                    io::Error::new(kind, "Another csi-proxy-selftest is running")
                }
                kind @ io::ErrorKind::PermissionDenied => io::Error::new(
                    kind,
                    format!("Run this program as administrator: access to {FOLDER} is denied"),
                ),
                kind => io::Error::new(kind, format!("create the folder: {}", code_of(&error))),
            })
    }

    /// Removes what this or an earlier run has left in the folder, by the names that the self-test
    /// uses, and adds what cannot be removed to the errors.
    pub(crate) fn clean(&self, errors: &mut Vec<String>) {
        let found = match self.machine.list(Path::new(FOLDER)) {
            Ok(found) => found,
            Err(error) => {
                errors.push(format!("list the folder: {}", code_of(&error)));
                return;
            }
        };
        let (disks, others): (Vec<_>, Vec<_>) = found
            .into_iter()
            .filter(|path| is_known(path))
            .partition(|path| path.extension() == Some(OsStr::new("vhdx")));
        let mut script = String::new();
        for disk in &disks {
            let _ = write!(
                script,
                "select vdisk file=\"{}\" noerr\ndetach vdisk noerr\n",
                disk.display()
            );
        }
        if !script.is_empty()
            && let Err(why) = self.diskpart(&script)
        {
            errors.push(format!("detach the disks: {why}"));
        }
        for path in disks.iter().chain(&others) {
            if let Err(error) = self.machine.remove(path) {
                let name = path.file_name().unwrap_or_default().display();
                errors.push(format!("remove {name}: {}", code_of(&error)));
            }
        }
    }

    /// Removes the folder if nothing else is in it, and what the checks have written in the
    /// registry.
    pub(crate) fn remove(self, errors: &mut Vec<String>) {
        self.clean(errors);
        // It fails if the key does not exist.
        let reg = system_program("reg.exe").map(Command::new);
        let _ = reg.and_then(|mut reg| {
            let reg = reg.args(["delete", KEY, "/f"]);
            self.machine.run(reg, Duration::from_mins(1))
        });
        drop(self.lock);
        let folder = Path::new(FOLDER);
        let removed = self.machine.remove(&folder.join("lock"));
        if let Err(error) = removed.and_then(|()| self.machine.remove_empty(folder))
            && error.kind() != io::ErrorKind::DirectoryNotEmpty
        {
            errors.push(format!("remove the folder: {}", code_of(&error)));
        }
    }

    /// Creates a disk for each kind, and returns the text of the variable that names the disks. A
    /// disk that cannot be created, or is not certain to be the new one, is left out: its checks do
    /// not run.
    pub(crate) fn create_disks(
        &self,
        os: &dyn Os,
        end: Instant,
        evidence: &mut Evidence,
    ) -> String {
        let mut disks = String::new();
        for (name, sector_size, size) in KINDS {
            if Instant::now() >= end {
                evidence
                    .no_disks
                    .insert(name.to_owned(), "no time".to_owned());
                continue;
            }
            let file = Path::new(FOLDER).join(format!("{}.vhdx", name.to_lowercase()));
            // A size that a disk of somebody else is not likely to have.
            let size = size + process::id() % 100;
            match self.create_disk(os, &file, size, sector_size) {
                Ok(mut identity) => {
                    if name == GROWN {
                        identity.size = i64::from(GROWN_SIZE) << 20;
                    }
                    let _ = writeln!(disks, "{name}\t{}\t{identity:?}", file.display());
                    self.machine.show(&format!("Created the disk {name}"));
                }
                Err(why) => {
                    self.machine.show(&format!("No disk {name}: {why}"));
                    evidence.no_disks.insert(name.to_owned(), why);
                }
            }
        }
        disks
    }

    fn create_disk(
        &self,
        os: &dyn Os,
        file: &Path,
        size: u32,
        sector_size: u32,
    ) -> Result<DiskIdentity, String> {
        let before = DiskIdentity::of_files(os);
        let file_name = file.display();
        if let Err(error) =
            self.machine
                .create_virtual_disk(file, u64::from(size) << 20, sector_size)
        {
            let first = format!("create: {}", code_of(&error));
            // diskpart creates disks with sectors of 512 bytes only.
            if sector_size != 512 {
                return Err(first);
            }
            let script =
                format!("create vdisk file=\"{file_name}\" maximum={size} type=expandable\n");
            self.diskpart(&script)
                .map_err(|why| format!("{first}, {why}"))?;
        }
        self.diskpart(&format!(
            "select vdisk file=\"{file_name}\"\nattach vdisk\n"
        ))
        .map_err(|why| format!("attach: {why}"))?;
        for _ in 0..SEARCHES {
            if let Some(found) = proven(os, size, &before) {
                return Ok(found);
            }
            // A disk arrives some time after its file is attached.
            self.machine.sleep(Duration::from_secs(1));
        }
        Err("identify: no disk is certain to be the new one".to_owned())
    }

    /// Runs a script, prints what diskpart printed if it did not succeed, and returns how it ended.
    fn diskpart(&self, script: &str) -> Result<(), String> {
        let ended = self.machine.diskpart(Path::new(FOLDER), script);
        let ended = ended.map_err(|error| format!("diskpart: {}", code_of(&error)))?;
        ended.failure.map_or(Ok(()), |failure| {
            self.machine
                .show(&format!("{}{}", ended.printed, ended.errors));
            Err(format!("diskpart {failure}"))
        })
    }
}

/// Returns whether the self-test uses the name of this file or folder.
fn is_known(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    let is_numbered = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    let of_disk = name.strip_suffix(".vhdx");
    let of_script = name
        .strip_prefix(SCRIPT)
        .and_then(|name| name.strip_suffix(".txt"));
    of_disk.is_some_and(|kind| KINDS.iter().any(|known| known.0.to_lowercase() == kind))
        || of_script.is_some_and(is_numbered)
        || name.strip_prefix("facts-").is_some_and(is_numbered)
}

/// Returns the identity of the only disk that can be the new one: it consists of a file, has the
/// size in MiB, and no disk of a file had its number or its identity before.
fn proven(os: &dyn Os, size: u32, before: &[(u32, DiskIdentity)]) -> Option<DiskIdentity> {
    let mut own = DiskIdentity::of_files(os);
    own.retain(|(number, identity)| {
        identity.size == i64::from(size) << 20
            && before
                .iter()
                .all(|(other, of_other)| other != number && of_other != identity)
    });
    let (_, identity) = own.pop()?;
    own.is_empty().then_some(identity)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use facts::{DiskIdentity, DiskKind, VolumeKind, diskpart_script};
    use os::abi::BusType;

    use super::{KINDS, is_known, proven};

    #[test]
    fn a_check_finds_and_prepares_each_kind_of_disk() {
        let kinds = [
            format!("DISK_{:?}", DiskKind::Raw),
            format!("DISK_{:?}", DiskKind::Mbr),
            format!("DISK_{:?}", DiskKind::FourKn),
            format!("VOLUME_{:?}", VolumeKind::Ntfs),
            format!("VOLUME_{:?}", VolumeKind::Fat32),
            format!("VOLUME_{:?}", VolumeKind::Refs),
            format!("VOLUME_{:?}", VolumeKind::Raw),
            format!("VOLUME_{:?}", VolumeKind::SmallRaw),
            format!("VOLUME_{:?}", VolumeKind::Ntfs4Kn),
            format!("VOLUME_{:?}", VolumeKind::Grown),
        ];
        let mut sizes = KINDS.map(|(.., size)| size);
        sizes.sort_unstable();
        let differ = sizes.windows(2).all(|pair| pair[0] + 99 < pair[1]);
        assert!(differ, "no two disks have one size: {sizes:?}");
        for ((kind, ..), expected) in KINDS.iter().zip(kinds) {
            assert_eq!(*kind, expected.to_uppercase());
            assert!(
                diskpart_script(kind, Path::new("own.vhdx")).is_some(),
                "{kind}"
            );
        }
    }

    #[test]
    fn only_names_of_the_self_test_are_known() {
        for known in ["disk_raw.vhdx", "diskpart-17.txt", "facts-17-0"] {
            assert!(is_known(Path::new(known)), "{known}");
        }
        for other in [
            "lock",
            "csi-proxy-selftest.exe",
            "my.vhdx",
            "diskpart-notes.txt",
            "diskpart-.txt",
            "facts-mine",
            "facts-",
            "selftest.json",
        ] {
            assert!(!is_known(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn a_disk_is_own_only_if_it_is_new_and_consists_of_a_file_of_the_size() {
        let file = BusType::FILE_BACKED_VIRTUAL;
        let sim = os_sim::node()
            .disk(4097 << 20)
            .bus(file)
            .disk(4098 << 20)
            .bus(file)
            .disk(4099 << 20)
            .build();
        let os = &*sim.process();
        let all = DiskIdentity::of_files(os);
        let numbers: Vec<u32> = all.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 2]);
        let before = &all[1..];
        assert_eq!(proven(os, 4097, before), Some(all[0].1.clone()));
        let other_number = [(7, all[0].1.clone())];
        let other_disk = [(1, all[1].1.clone())];
        for (size, before) in [
            (4097, &all[..]),
            (4097, &other_number),
            (4097, &other_disk),
            (4096, before),
            (4099, before),
        ] {
            assert_eq!(proven(os, size, before), None);
        }
        let twice = os_sim::node()
            .disk(4097 << 20)
            .bus(file)
            .disk(4097 << 20)
            .bus(file)
            .build();
        assert_eq!(proven(&*twice.process(), 4097, &[]), None);
    }
}
