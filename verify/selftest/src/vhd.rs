//! VHD files that diskpart attaches: disks for tests on Windows, as administrator.
//!
//! diskpart creates disks with sectors of 512 bytes only: its `create vdisk` has no option for the size, and the protocol
//! behind it allows no other ([MS-VDS], `VDS_CREATE_VDISK_PARAMETERS`). Disks with sectors of 4096 bytes are therefore
//! created by `New-VHD`, which comes with Hyper-V. A script names the file and never the number of a disk.
//!
//! xtask, which depends on no package of the workspace, compiles this file too.

use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::{env, fs};

/// An attached VHD file. Dropping it detaches the disk and removes the file.
pub(crate) struct Vhd(pub(crate) PathBuf);

impl Vhd {
    /// Creates the file `<name>-<sector size>.vhdx` in a folder, of a size in MiB, and attaches it. Returns `None` if the
    /// sectors need Hyper-V, and `New-VHD` is not installed or does not work.
    pub(crate) fn create(folder: &Path, name: &str, size: u32, sectors: u32) -> Result<Option<Self>, String> {
        let file = folder.join(format!("{name}-{sectors}.vhdx"));
        let path = file.display();
        if sectors == 512 {
            diskpart(&format!("create vdisk file=\"{path}\" maximum={size} type=expandable\nattach vdisk\n"))?;
        } else {
            let new = format!("New-VHD -Path '{path}' -SizeBytes {size}MB -Dynamic -LogicalSectorSizeBytes {sectors}");
            if powershell(&format!("$ErrorActionPreference = 'Stop'; {new} | Out-Null")).is_none() {
                return Ok(None);
            }
            diskpart(&format!("{}attach vdisk\n", selection(&file)))?;
        }
        Ok(Some(Self(file)))
    }

    /// Returns the number of the attached disk.
    pub(crate) fn number(&self) -> Result<u32, String> {
        let answer = powershell(&format!("(Get-DiskImage -ImagePath '{}').Number", self.0.display()));
        let answer = answer.ok_or("Get-DiskImage failed")?;
        answer.trim().parse().map_err(|_| format!("Get-DiskImage returned {answer}"))
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

pub(crate) fn selection(file: &Path) -> String {
    format!("select vdisk file=\"{}\"\n", file.display())
}

/// Runs a diskpart script, which stops at the first line that fails.
pub(crate) fn diskpart(script: &str) -> Result<(), String> {
    let file = env::temp_dir().join(format!("csi-proxy-vhd-{}.txt", process::id()));
    fs::write(&file, script).map_err(|error| format!("{}: {error}", file.display()))?;
    let output =
        Command::new("diskpart").arg("/s").arg(&file).output().map_err(|error| format!("diskpart: {error}"))?;
    let _ = fs::remove_file(&file);
    if output.status.success() {
        return Ok(());
    }
    Err(format!("diskpart failed on one of these lines:\n{script}\n{}", String::from_utf8_lossy(&output.stdout)))
}

/// Runs a line of PowerShell and returns its output, or `None` if it fails.
fn powershell(line: &str) -> Option<String> {
    let output = Command::new("powershell").args(["-NoProfile", "-Command", line]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
