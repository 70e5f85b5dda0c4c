//! The disks for tests that this program makes: VHD files, and the variable that names them to the
//! checks.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{env, io, process};

use facts::{DiskIdentity, GROWN_SIZE};
use os::Os;
use os::abi::BusType;

use crate::vhd::Vhd;

/// The kinds of disks, by their names in the variable (verify/facts/src/local.rs), and the size of
/// their sectors in bytes. A check partitions and formats its disk.
const KINDS: [(&str, u32); 9] = [
    ("DISK_RAW", 512),
    ("DISK_MBR", 512),
    ("DISK_FOURKN", 4096),
    ("VOLUME_NTFS", 512),
    ("VOLUME_FAT32", 512),
    ("VOLUME_REFS", 512),
    ("VOLUME_RAW", 512),
    ("VOLUME_NTFS4KN", 4096),
    (GROWN, 512),
];
const GROWN: &str = "VOLUME_GROWN";
/// The size in MiB. ReFS needs more than 1 GiB.
const SIZE: u32 = 4096;
/// Where the files are. Only administrators can write there: diskpart does what a script in this
/// folder says.
const FOLDER: &str = r"C:\Program Files\csi-proxy-selftest";

/// The disks for tests. Dropping them detaches the disks and removes their files.
pub(crate) struct Disks {
    /// The text of the variable that names the disks.
    pub(crate) variable: String,
    /// Where the files of a run are.
    pub(crate) folder: PathBuf,
    files: Vec<Vhd>,
    lock: Option<File>,
}

impl Disks {
    /// Returns no disks, for a system that has none, or brings its own.
    pub(crate) fn none() -> Self {
        Self {
            variable: String::new(),
            folder: env::temp_dir(),
            files: Vec::new(),
            lock: None,
        }
    }

    /// Creates a disk for each kind, and removes those of an earlier run that was ended. A disk
    /// that cannot be created, or whose number is not certain, is left out: its checks do not run.
    pub(crate) fn create(os: &dyn Os) -> io::Result<Self> {
        let folder = PathBuf::from(FOLDER);
        // Only administrators may create folders in Program Files, so one that exists is of an
        // earlier run.
        match facts::create_folder(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("cannot create {FOLDER}: {error}"),
                ));
            }
            _ => {}
        }
        let lock = File::create(folder.join("lock"))?;
        lock.try_lock().map_err(|error| {
            io::Error::other(format!("another csi-proxy-selftest runs: {error}"))
        })?;
        let mut disks = Self {
            variable: String::new(),
            folder,
            files: Vec::new(),
            lock: Some(lock),
        };
        for file in fs::read_dir(&disks.folder)? {
            let file = file?.path();
            if file
                .extension()
                .is_some_and(|extension| extension == "vhdx")
            {
                drop(Vhd(file));
            }
        }
        // A size that no other disk is likely to have.
        let size = SIZE + process::id() % 1000;
        for (name, sectors) in KINDS {
            match create_one(os, &disks.folder, name, size, sectors) {
                Ok((file, identity)) => disks.add(name, file, identity),
                // Without Hyper-V, or for a reason that diskpart has given.
                Err(why) => println!("no disk for {name}: {why}"),
            }
        }
        Ok(disks)
    }

    fn add(&mut self, name: &str, file: Vhd, mut identity: DiskIdentity) {
        if name == GROWN {
            identity.size = i64::from(GROWN_SIZE) << 20;
        }
        let _ = writeln!(self.variable, "{name}\t{}\t{identity:?}", file.0.display());
        self.files.push(file);
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        self.files.clear();
        if self.lock.take().is_some() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn create_one(
    os: &dyn Os,
    folder: &Path,
    name: &str,
    size: u32,
    sectors: u32,
) -> Result<(Vhd, DiskIdentity), String> {
    let others = DiskIdentity::all(os);
    let file = Vhd::create(folder, &name.to_lowercase(), size, sectors)?;
    let number = file.number()?;
    Ok((file, proven(os, number, size, &others)?))
}

/// Returns the identity of the disk with a number, if it is a disk of this program: no disk had its
/// number or its identity before, it has the size in MiB, and consists of a file.
fn proven(
    os: &dyn Os,
    number: u32,
    size: u32,
    others: &[(u32, DiskIdentity)],
) -> Result<DiskIdentity, String> {
    let mut own = DiskIdentity::all(os);
    own.retain(|(found, identity)| {
        *found == number
            && others
                .iter()
                .all(|(other, of_other)| other != found && of_other != identity)
            && identity.bus == BusType::FILE_BACKED_VIRTUAL.0
            && identity.size == i64::from(size) << 20
    });
    let own = own.pop().map(|(_, identity)| identity);
    own.ok_or_else(|| format!("disk {number} is not certain to be the new one, and is not touched"))
}

#[cfg(test)]
mod tests {
    use facts::DiskIdentity;
    use os::abi::BusType;

    use super::{KINDS, proven};

    #[test]
    fn the_facts_know_each_kind_of_disk() {
        let local = include_str!("../../facts/src/local.rs");
        for (kind, _) in KINDS {
            assert!(
                local.contains(&format!("`{kind}`")),
                "verify/facts/src/local.rs does not name {kind}"
            );
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
        assert_eq!(proven(os, 1, 4097, &others), Ok(all[1].1.clone()));
        let renumbered = (7, all[1].1.clone());
        for (number, size, others) in [
            (1, 4097, &all[..]),
            (1, 4097, &[renumbered]),
            (1, 4098, &[]),
            (2, 4097, &[]),
            (0, 4097, &[]),
            (7, 4097, &[]),
        ] {
            proven(os, number, size, others).unwrap_err();
        }
    }
}
