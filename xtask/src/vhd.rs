//! Disk and volume tests on real disks: VHD files that diskpart attaches.
//!
//! The tests need Windows and administrator rights.

use std::fs;
use std::process::Command;

use crate::summary::Summary;
use crate::vhd_file::{Vhd, diskpart, selection};
use crate::{Error, go, workspace};

/// Sizes in MiB, before and after the disk grows. The Go client expects these sizes.
const SIZE: u32 = 1024;
const GROWN: u32 = 2048;
/// The daemon's default working directory, which kubelet creates on a node.
const WORKING_DIRECTORY: &str = r"C:\var\lib\kubelet";

/// Runs the tests with the daemon in dist/, on a disk of each sector size.
pub(crate) fn test() -> Result<Summary, Error> {
    if std::env::consts::OS != "windows" {
        return Err("tests on real disks run on Windows only, as administrator".into());
    }
    fs::create_dir_all(WORKING_DIRECTORY)?;
    let client = go::pinned_client()?;
    let daemon = go::Daemon::start(&mut Command::new(workspace::root().join("dist/csi-proxy.exe")))?;
    let mut sum = Summary::default();
    for sectors in [512, 4096] {
        let name = format!("a disk with sectors of {sectors} bytes");
        let Some(disk) = Vhd::create(&workspace::target(), "real-disk", SIZE, sectors)? else {
            sum += Summary::skipped(&name, "New-VHD fails; it comes with Hyper-V");
            continue;
        };
        println!("{name}:");
        sum += go::run_on_disk(&client, disk.number()?, &[]);
        // Its file can grow only while it is detached.
        diskpart(&format!("{}detach vdisk\nexpand vdisk maximum={GROWN}\nattach vdisk\n", selection(&disk.0)))?;
        // Attaching the disk again can change its number.
        sum += go::run_on_disk(&client, disk.number()?, &["-grown"]);
    }
    sum += daemon.end();
    Ok(sum)
}
