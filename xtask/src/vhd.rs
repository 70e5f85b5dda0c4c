//! Disk and volume tests on a real disk: a VHD file attached through diskpart.
//!
//! Needs Windows and an administrator. The daemon runs as it does on a node, and the published Go client calls it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, go, process, workspace};

/// Sizes in MiB, before and after the disk grows. The Go client's expectations name them too.
const SIZE: u32 = 1024;
const GROWN: u32 = 2048;
/// The daemon's default working directory. A node's kubelet makes it.
const WORKING_DIRECTORY: &str = r"C:\var\lib\kubelet";

/// Runs the tests with the daemon in dist/.
pub(crate) fn test() -> Outcome {
    if std::env::consts::OS != "windows" {
        return Err("real disks need Windows: run this there, as administrator".into());
    }
    fs::create_dir_all(WORKING_DIRECTORY)?;
    let client = go::pinned_client()?;
    let daemon = go::Daemon::start(&mut Command::new(workspace::root().join("dist/csi-proxy.exe")))?;
    let mut disk = Vhd::create(workspace::target().join("real-disk.vhdx"))?;

    let mut sum = go::run_on_disk(&client, disk.number()?, &[])?;
    disk.grow()?;
    // Its number may be another one now.
    sum += go::run_on_disk(&client, disk.number()?, &["-grown"])?;
    sum += daemon.end();
    drop(disk);
    sum.print();
    Ok(sum.is_green())
}

/// An attached VHD file. Dropping it detaches the disk and removes the file.
struct Vhd(PathBuf);

impl Vhd {
    fn create(file: PathBuf) -> Result<Self, Box<dyn std::error::Error>> {
        diskpart(&creation(&file))?;
        Ok(Self(file))
    }

    /// Makes the disk larger. A file can only grow while it is detached.
    fn grow(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        diskpart(&growth(&self.0))
    }

    /// The number of the disk that the file is now.
    fn number(&self) -> Result<u32, Box<dyn std::error::Error>> {
        let ask = format!("(Get-DiskImage -ImagePath '{}').Number", self.0.display());
        let answer = process::output(Command::new("powershell").args(["-NoProfile", "-Command", &ask]));
        Ok(answer.ok_or("Get-DiskImage failed")?.trim().parse()?)
    }
}

impl Drop for Vhd {
    fn drop(&mut self) {
        if let Err(error) = diskpart(&format!("{}detach vdisk\n", selection(&self.0))) {
            eprintln!("cannot detach {}: {error}", self.0.display());
        } else if let Err(error) = fs::remove_file(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

fn selection(file: &Path) -> String {
    format!("select vdisk file=\"{}\"\n", file.display())
}

fn creation(file: &Path) -> String {
    format!("create vdisk file=\"{}\" maximum={SIZE} type=expandable\nattach vdisk\n", file.display())
}

fn growth(file: &Path) -> String {
    format!("{}detach vdisk\nexpand vdisk maximum={GROWN}\nattach vdisk\n", selection(file))
}

/// Runs a diskpart script, which ends at its first failing line.
fn diskpart(script: &str) -> Result<(), Box<dyn std::error::Error>> {
    let file = workspace::target().join("diskpart.txt");
    fs::write(&file, script)?;
    let good = process::succeeds(Command::new("diskpart").arg("/s").arg(&file))?;
    if good { Ok(()) } else { Err(format!("diskpart failed at one of these lines:\n{script}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_detached_while_it_grows() {
        let script = growth(Path::new("disk.vhdx"));
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(
            lines,
            ["select vdisk file=\"disk.vhdx\"", "detach vdisk", "expand vdisk maximum=2048", "attach vdisk"]
        );
    }
}
