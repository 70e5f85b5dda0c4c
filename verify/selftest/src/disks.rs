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
use std::time::Duration;

use facts::{DiskIdentity, FOLDER, GROWN_SIZE, SCRIPT, code_of, system_program};
use os::Os;
use os::abi::BusType;

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
        let fails = |what: &str, error: &io::Error| {
            io::Error::new(error.kind(), format!("{what} {FOLDER}: {}", code_of(error)))
        };
        match machine.create_folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(fails(
                    "Run this program as administrator. It cannot create",
                    &error,
                ));
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(fails("Cannot create", &error));
            }
            _ => {}
        }
        match machine.lock(&folder.join("lock")) {
            Ok(lock) => Ok(Self { machine, lock }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(io::Error::new(
                error.kind(),
                "Another csi-proxy-selftest is running",
            )),
            Err(error) => Err(fails("Cannot lock a file in", &error)),
        }
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

    /// Creates a disk for each kind. A disk that cannot be created, or is not certain to be the new
    /// one, is left out: its checks do not run.
    /// Returns the text of the variable that names the disks.
    pub(crate) fn create_disks(&self, os: &dyn Os, evidence: &mut Evidence) -> String {
        let mut disks = String::new();
        for (name, sector_size, size) in KINDS {
            let file = Path::new(FOLDER).join(format!("{}.vhdx", name.to_lowercase()));
            // A size that a disk of somebody else is not likely to have.
            let size = size + process::id() % 100;
            match self.create_disk(os, &file, size, sector_size) {
                Ok(mut identity) => {
                    if name == GROWN {
                        identity.size = i64::from(GROWN_SIZE) << 20;
                    }
                    let _ = writeln!(disks, "{name}\t{}\t{identity:?}", file.display());
                }
                Err(why) => {
                    println!("No disk {name}: {why}");
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
        let before = DiskIdentity::all(os);
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
        // Without the number, the new disk of this size must be the only one.
        let number = self.machine.disk_number(file).ok();
        for _ in 0..SEARCHES {
            if let Some(found) = proven(os, number, size, &before) {
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
            println!("{}{}", ended.printed, ended.errors);
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

/// Returns the identity of the only disk that can be the new one: no disk had its
/// number or its identity before, it has the size in MiB, it consists of a file, and has the number,
/// if that is known.
fn proven(
    os: &dyn Os,
    number: Option<u32>,
    size: u32,
    before: &[(u32, DiskIdentity)],
) -> Option<DiskIdentity> {
    let mut own = DiskIdentity::all(os);
    own.retain(|(found, identity)| {
        number.is_none_or(|number| *found == number)
            && before
                .iter()
                .all(|(other, of_other)| other != found && of_other != identity)
            && identity.bus == BusType::FILE_BACKED_VIRTUAL.0
            && identity.size == i64::from(size) << 20
    });
    let (_, identity) = own.pop()?;
    own.is_empty().then_some(identity)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use facts::DiskIdentity;
    use os::abi::BusType;

    use super::{KINDS, is_known, proven};

    #[test]
    fn the_facts_know_each_kind_of_disk() {
        let local = include_str!("../../facts/src/local.rs");
        for (kind, ..) in KINDS {
            assert!(
                local.contains(&format!("`{kind}`")),
                "verify/facts/src/local.rs does not name {kind}"
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
        let sim = os_sim::node()
            .disk(4097 << 20)
            .bus(BusType::FILE_BACKED_VIRTUAL)
            .disk(4097 << 20)
            .build();
        let os = &*sim.process();
        let all = DiskIdentity::all(os);
        let others = [0, 2].map(|number| all[number].clone());
        for number in [None, Some(1)] {
            assert_eq!(proven(os, number, 4097, &others), Some(all[1].1.clone()));
        }
        let renumbered = (7, all[1].1.clone());
        for (number, size, others) in [
            (Some(1), 4097, &all[..]),
            (Some(1), 4097, &[renumbered]),
            (Some(1), 4098, &[]),
            (Some(2), 4097, &[]),
            (Some(0), 4097, &[]),
            (Some(7), 4097, &[]),
            (None, 4097, &all[..]),
            (None, 4098, &[]),
        ] {
            assert_eq!(proven(os, number, size, others), None);
        }
    }
}
