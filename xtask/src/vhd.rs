//! Disk and volume tests on a real disk: a VHD file that diskpart attaches.
//!
//! The tests need Windows and administrator rights. The daemon runs as on a node, and the published Go client calls it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, go, process, workspace};

/// Sizes in MiB, before and after the disk grows. The Go client expects these sizes.
const SIZE: u32 = 1024;
const GROWN: u32 = 2048;
/// The daemon's default working directory, which kubelet creates on a node.
const WORKING_DIRECTORY: &str = r"C:\var\lib\kubelet";

/// Runs the tests with the daemon in dist/.
pub(crate) fn test() -> Result<bool, Error> {
    if std::env::consts::OS != "windows" {
        return Err("tests on real disks run on Windows only, as administrator".into());
    }
    fs::create_dir_all(WORKING_DIRECTORY)?;
    let client = go::pinned_client()?;
    let daemon = go::Daemon::start(&mut Command::new(workspace::root().join("dist/csi-proxy.exe")))?;
    let mut disk = Vhd::create(workspace::target().join("real-disk.vhdx"))?;

    let mut sum = go::run_on_disk(&client, disk.number()?, &[])?;
    disk.grow()?;
    // Attaching the disk again can change its number.
    sum += go::run_on_disk(&client, disk.number()?, &["-grown"])?;
    sum += daemon.end();
    drop(disk);
    Ok(sum.print())
}

/// An attached VHD file. Dropping it detaches the disk and removes the file.
struct Vhd(PathBuf);

impl Vhd {
    fn create(file: PathBuf) -> Result<Self, Error> {
        diskpart(&creation(&file))?;
        Ok(Self(file))
    }

    /// Grows the disk. The file can grow only while it is detached.
    fn grow(&mut self) -> Result<(), Error> {
        diskpart(&growth(&self.0))
    }

    /// Returns the number of the attached disk.
    fn number(&self) -> Result<u32, Error> {
        let query = format!("(Get-DiskImage -ImagePath '{}').Number", self.0.display());
        let answer = process::output(Command::new("powershell").args(["-NoProfile", "-Command", &query]));
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

/// Runs a diskpart script, which stops at the first line that fails.
fn diskpart(script: &str) -> Result<(), Error> {
    let file = workspace::target().join("diskpart.txt");
    fs::write(&file, script)?;
    let good = process::succeeds(Command::new("diskpart").arg("/s").arg(&file))?;
    if good { Ok(()) } else { Err(format!("diskpart failed on one of these lines:\n{script}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_grows_while_it_is_detached() {
        let script = growth(Path::new("disk.vhdx"));
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(
            lines,
            ["select vdisk file=\"disk.vhdx\"", "detach vdisk", "expand vdisk maximum=2048", "attach vdisk"]
        );
    }
}
