//! The disks for tests that this program makes: VHD files, and the variables that name them to the checks.

use std::{env, process};

use facts::DiskIdentity;
use os::Os;
use os::abi::BusType;

use crate::vhd::Vhd;

/// The kinds of disks, by the end of the variable that names each one (verify/facts/src/local.rs), and the size of their
/// sectors in bytes. A check partitions and formats its disk.
const KINDS: [(&str, u32); 8] = [
    ("DISK_RAW", 512),
    ("DISK_MBR", 512),
    ("DISK_FOURKN", 4096),
    ("VOLUME_NTFS", 512),
    ("VOLUME_FAT32", 512),
    ("VOLUME_REFS", 512),
    ("VOLUME_RAW", 512),
    ("VOLUME_NTFS4KN", 4096),
];
/// The size in MiB. ReFS needs more than 1 GiB.
const SIZE: u32 = 4096;
/// No machine has a disk with a higher number.
const MOST_DISKS: u32 = 512;

/// The disks for tests. Dropping them detaches the disks and removes their files.
#[derive(Default)]
pub(crate) struct Disks {
    /// The variables that name the disks: verify/facts/src/local.rs.
    pub(crate) variables: Vec<(String, String)>,
    files: Vec<Vhd>,
}

/// Creates a disk for each kind. A disk that cannot be created, or whose number is not certain, is left out: its checks do
/// not run.
pub(crate) fn create(os: &dyn Os) -> Disks {
    let mut disks = Disks::default();
    // A size that no other disk is likely to have.
    let size = SIZE + process::id() % 1000;
    for (name, sectors) in KINDS {
        let others: Vec<u32> = (0..MOST_DISKS).filter(|number| DiskIdentity::of(os, *number).is_ok()).collect();
        let file = format!("csi-proxy-selftest-{}-{}", process::id(), name.to_lowercase());
        let file = match Vhd::create(&env::temp_dir(), &file, size, sectors) {
            Ok(Some(file)) => file,
            // Without Hyper-V, or for a reason that diskpart has given.
            not_created => {
                println!("no disk for {name}: {:?}", not_created.err());
                continue;
            }
        };
        match file.number().and_then(|number| Ok((number, proven(os, number, size, &others)?))) {
            Ok((number, identity)) => disks.name(name, number, &identity),
            Err(why) => println!("no disk for {name}: {why}"),
        }
        disks.files.push(file);
    }
    disks
}

impl Disks {
    /// Names a disk to the checks. The disk with NTFS is also the one whose partition can grow: each check partitions its
    /// disk first.
    fn name(&mut self, name: &str, number: u32, identity: &DiskIdentity) {
        let half = (name == "VOLUME_NTFS").then_some("VOLUME_HALF");
        for name in [name].into_iter().chain(half) {
            self.variables.push((format!("CSI_PROXY_FACTS_{name}"), number.to_string()));
            self.variables.push((format!("CSI_PROXY_FACTS_IDENTITY_{name}"), format!("{identity:?}")));
        }
    }
}

/// Returns the identity of the disk with a number, if it is a disk of this program: it was not there before, has the size
/// in MiB, and consists of a file.
fn proven(os: &dyn Os, number: u32, size: u32, others: &[u32]) -> Result<DiskIdentity, String> {
    let identity = DiskIdentity::of(os, number).map_err(|code| format!("disk {number}: {code}"))?;
    let is_own = !others.contains(&number)
        && identity.bus == BusType::FILE_BACKED_VIRTUAL.0
        && identity.size == i64::from(size) << 20;
    if is_own {
        Ok(identity)
    } else {
        Err(format!("disk {number} is not certain to be the new one, and is not touched"))
    }
}

#[cfg(test)]
mod tests {
    use os::abi::BusType;

    use super::{KINDS, proven};

    #[test]
    fn the_facts_know_each_disk_by_the_name_of_its_variable() {
        let local = include_str!("../../facts/src/local.rs");
        for (name, _) in KINDS {
            let (_, kind) = name.split_once('_').expect("a name with a kind");
            assert!(local.contains(&format!("`{kind}`")), "verify/facts/src/local.rs does not name {kind}");
        }
    }

    #[test]
    fn a_disk_is_own_only_if_it_is_new_and_consists_of_a_file_of_the_size() {
        let sim = os_sim::node().disk(4097 << 20).bus(BusType::FILE_BACKED_VIRTUAL).disk(4097 << 20).build();
        let os = &*sim.process();
        assert!(proven(os, 1, 4097, &[0, 2]).is_ok());
        for (number, size, others) in
            [(1, 4097, &[0, 1, 2][..]), (1, 4098, &[]), (2, 4097, &[]), (0, 4097, &[]), (7, 4097, &[])]
        {
            proven(os, number, size, others).unwrap_err();
        }
        let before = proven(os, 1, 4097, &[]).expect("the disk");
        sim.detach_disk(1).expect("the disk is attached");
        assert!(proven(os, 1, 4097, &[]).as_ref() != Ok(&before));
    }
}
