//! VHD files that diskpart attaches: disks for tests on Windows, as administrator.
//!
//! diskpart creates disks with sectors of 512 bytes only: its `create vdisk` has no option for the
//! size, and the protocol behind it allows no other ([MS-VDS], `VDS_CREATE_VDISK_PARAMETERS`).
//! Disks with sectors of 4096 bytes are therefore created by `New-VHD`, which comes with Hyper-V. A
//! script names the file and never the number of a disk.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use facts::{diskpart, output_of, system_program};

/// A VHD file. Dropping it detaches the disk and removes the file.
pub(crate) struct Vhd(pub(crate) PathBuf);

impl Vhd {
    /// Creates the file `<name>.vhdx` in a folder, of a size in MiB, and attaches it.
    pub(crate) fn create(
        folder: &Path,
        name: &str,
        size: u32,
        sectors: u32,
    ) -> Result<Self, String> {
        let vhd = Self(folder.join(format!("{name}.vhdx")));
        let path = vhd.0.display();
        if sectors == 512 {
            vhd.diskpart(&format!(
                "create vdisk file=\"{path}\" maximum={size} type=expandable\n"
            ))?;
        } else {
            let new = format!(
                "New-VHD -Path '{path}' -SizeBytes {size}MB -Dynamic -LogicalSectorSizeBytes \
                 {sectors}"
            );
            vhd.powershell(&format!(
                "$ErrorActionPreference = 'Stop'; {new} | Out-Null"
            ))?;
        }
        vhd.diskpart(&format!("select vdisk file=\"{path}\"\nattach vdisk\n"))?;
        Ok(vhd)
    }

    /// Returns the number of the attached disk.
    pub(crate) fn number(&self) -> Result<u32, String> {
        let answer = self.powershell(&format!(
            "(Get-DiskImage -ImagePath '{}').Number",
            self.0.display()
        ))?;
        answer
            .trim()
            .parse()
            .map_err(|_| format!("Get-DiskImage returned {answer}"))
    }

    fn diskpart(&self, script: &str) -> Result<(), String> {
        diskpart(self.0.parent().expect("a folder"), script)
    }

    /// Runs a line of PowerShell and returns its output.
    fn powershell(&self, line: &str) -> Result<String, String> {
        let program = system_program(r"WindowsPowerShell\v1.0\powershell.exe")
            .map_err(|error| error.to_string())?;
        output_of(
            Command::new(program).args(["-NoProfile", "-Command", line]),
            &self.0.with_extension("log"),
        )
        .map_err(|error| format!("{line}: {error}"))
    }
}

impl Drop for Vhd {
    fn drop(&mut self) {
        let detached = self.diskpart(&format!(
            "select vdisk file=\"{}\"\ndetach vdisk noerr\n",
            self.0.display()
        ));
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                eprintln!(
                    "cannot remove {}: {error}, {}",
                    self.0.display(),
                    detached.err().unwrap_or_default()
                );
            }
            _ => {}
        }
    }
}
