//! Disk and volume tests on real disks: VHD files that diskpart attaches.
//!
//! The tests need Windows and administrator rights.

use std::fs;
use std::process::Command;

use crate::summary::Summary;
use crate::vhd_file::{DISKS_FOR_FACTS, Vhd, diskpart, selection};
use crate::{Error, go, process, workspace};

/// Sizes in MiB, before and after the disk grows. The Go client expects these sizes.
const SIZE: u32 = 1024;
const GROWN: u32 = 2048;
/// The size in MiB of disks for facts. ReFS needs more than 1 GiB.
const SIZE_FOR_FACTS: u32 = 4096;
const NO_HYPER_V: &str = "New-VHD fails; it comes with Hyper-V";
/// The daemon's default working directory, which kubelet creates on a node.
const WORKING_DIRECTORY: &str = r"C:\var\lib\kubelet";

/// Runs the tests with the daemon in dist/, on a disk of each sector size.
pub(crate) fn test() -> Result<Summary, Error> {
    check_system()?;
    fs::create_dir_all(WORKING_DIRECTORY)?;
    let client = go::pinned_client()?;
    let daemon = go::Daemon::start(&mut Command::new(workspace::root().join("dist/csi-proxy.exe")))?;
    let mut sum = Summary::default();
    for sectors in [512, 4096] {
        let name = format!("a disk with sectors of {sectors} bytes");
        let Some(disk) = Vhd::create(&workspace::target(), "real-disk", SIZE, sectors)? else {
            sum += Summary::skipped(&name, NO_HYPER_V);
            continue;
        };
        println!("{name}:");
        sum += go::run_on_disk(&client, disk.number()?, &[]);
        grow(&disk)?;
        // Attaching the disk again can change its number.
        sum += go::run_on_disk(&client, disk.number()?, &["-grown"]);
    }
    sum += daemon.end();
    Ok(sum)
}

/// Runs `cargo xtask facts` with a disk for each kind of disk and volume that Windows can create.
pub(crate) fn check_facts() -> Result<bool, Error> {
    check_system()?;
    let mut disks = Vec::new();
    let mut facts = Command::new(std::env::current_exe()?);
    facts.arg("facts");
    for (name, sectors) in DISKS_FOR_FACTS {
        let Some(disk) = Vhd::create(&workspace::target(), &name.to_lowercase(), SIZE_FOR_FACTS, sectors)? else {
            // The facts that need this disk are skipped, and say so.
            println!("no disk for {name}: {NO_HYPER_V}");
            continue;
        };
        facts.env(format!("CSI_PROXY_FACTS_{name}"), disk.number()?.to_string());
        disks.push(disk);
    }
    Ok(process::succeeds(&mut facts)?)
}

/// Grows a disk. Its file can grow only while it is detached.
fn grow(disk: &Vhd) -> Result<(), String> {
    diskpart(&format!("{}detach vdisk\nexpand vdisk maximum={GROWN}\nattach vdisk\n", selection(&disk.0)))
}

fn check_system() -> Result<(), Error> {
    if std::env::consts::OS == "windows" {
        Ok(())
    } else {
        Err("tests on real disks run on Windows only, as administrator".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_know_each_disk_by_the_name_of_its_variable() {
        let local = fs::read_to_string(workspace::root().join("verify/facts/src/local.rs")).expect("local.rs");
        for (name, _) in DISKS_FOR_FACTS {
            let (_, kind) = name.split_once('_').expect("a name with a kind");
            assert!(local.contains(&format!("`{kind}`")), "verify/facts/src/local.rs does not name {kind}");
        }
    }
}
