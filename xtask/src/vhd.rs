//! Disk and volume tests on real disks: VHD files that diskpart attaches.
//!
//! The tests need Windows and administrator rights. diskpart creates disks with sectors of 512 bytes only: its `create
//! vdisk` has no option for the size, and the protocol behind it allows no other ([MS-VDS], `VDS_CREATE_VDISK_PARAMETERS`).
//! Disks with sectors of 4096 bytes are therefore created by `New-VHD`, which comes with Hyper-V.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::summary::Summary;
use crate::{Error, go, process, workspace};

/// Sizes in MiB, before and after the disk grows. The Go client expects these sizes.
const SIZE: u32 = 1024;
const GROWN: u32 = 2048;
/// The size in MiB of disks for facts. ReFS needs more than 1 GiB.
const SIZE_FOR_FACTS: u32 = 4096;
/// The daemon's default working directory, which kubelet creates on a node.
const WORKING_DIRECTORY: &str = r"C:\var\lib\kubelet";

/// The disks for facts, by the end of the variable that names each one: verify/facts/src/local.rs. The program with the
/// facts partitions and formats them.
const DISKS_FOR_FACTS: [(&str, SectorSize); 8] = [
    ("DISK_RAW", SectorSize::B512),
    ("DISK_MBR", SectorSize::B512),
    ("DISK_FOURKN", SectorSize::B4096),
    ("VOLUME_NTFS", SectorSize::B512),
    ("VOLUME_FAT32", SectorSize::B512),
    ("VOLUME_REFS", SectorSize::B512),
    ("VOLUME_RAW", SectorSize::B512),
    ("VOLUME_NTFS4KN", SectorSize::B4096),
];

/// Runs the tests with the daemon in dist/, on a disk of each sector size.
pub(crate) fn test() -> Result<Summary, Error> {
    check_system()?;
    fs::create_dir_all(WORKING_DIRECTORY)?;
    let client = go::pinned_client()?;
    let daemon = go::Daemon::start(&mut Command::new(workspace::root().join("dist/csi-proxy.exe")))?;
    let mut sum = Summary::default();
    for sectors in [SectorSize::B512, SectorSize::B4096] {
        let mut disk = match Vhd::create("real-disk", SIZE, sectors) {
            Ok(disk) => disk,
            Err(NotCreated::NoHyperV(reason)) => {
                sum += Summary::skipped(&format!("a disk with {sectors}"), &reason);
                continue;
            }
            Err(NotCreated::Failed(error)) => return Err(error),
        };
        println!("A disk with {sectors}:");
        sum += go::run_on_disk(&client, disk.number()?, &[]);
        disk.grow()?;
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
        match Vhd::create(&name.to_lowercase(), SIZE_FOR_FACTS, sectors) {
            Ok(disk) => {
                facts.env(format!("CSI_PROXY_FACTS_{name}"), disk.number()?.to_string());
                disks.push(disk);
            }
            // The facts that need this disk are skipped, and say so.
            Err(NotCreated::NoHyperV(reason)) => println!("no disk for {name}: {reason}"),
            Err(NotCreated::Failed(error)) => return Err(error),
        }
    }
    Ok(process::succeeds(&mut facts)?)
}

fn check_system() -> Result<(), Error> {
    if std::env::consts::OS == "windows" {
        Ok(())
    } else {
        Err("tests on real disks run on Windows only, as administrator".into())
    }
}

/// The size of a disk's logical sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SectorSize {
    /// 512 bytes.
    B512,
    /// 4096 bytes, called 4K native.
    B4096,
}

impl fmt::Display for SectorSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::B512 => "sectors of 512 bytes",
            Self::B4096 => "sectors of 4096 bytes",
        })
    }
}

/// Why a disk was not created.
enum NotCreated {
    /// `New-VHD` is not installed or does not work.
    NoHyperV(String),
    /// Anything else.
    Failed(Error),
}

impl<E: Into<Error>> From<E> for NotCreated {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// An attached VHD file. Dropping it detaches the disk and removes the file.
struct Vhd(PathBuf);

impl Vhd {
    /// Creates the file `<name>-<sector size>.vhdx` in the target folder, of a size in MiB, and attaches it.
    fn create(name: &str, size: u32, sectors: SectorSize) -> Result<Self, NotCreated> {
        let suffix = if sectors == SectorSize::B512 { "512" } else { "4096" };
        let file = workspace::target().join(format!("{name}-{suffix}.vhdx"));
        match sectors {
            SectorSize::B512 => diskpart(&creation(&file, size))?,
            SectorSize::B4096 => {
                if powershell(&creation_by_hyper_v(&file, size)).is_none() {
                    return Err(NotCreated::NoHyperV("New-VHD fails; it comes with Hyper-V".into()));
                }
                diskpart(&attachment(&file))?;
            }
        }
        Ok(Self(file))
    }

    /// Grows the disk. The file can grow only while it is detached.
    fn grow(&mut self) -> Result<(), Error> {
        diskpart(&growth(&self.0))
    }

    /// Returns the number of the attached disk.
    fn number(&self) -> Result<u32, Error> {
        let answer = powershell(&format!("(Get-DiskImage -ImagePath '{}').Number", self.0.display()));
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

fn creation(file: &Path, size: u32) -> String {
    format!("create vdisk file=\"{}\" maximum={size} type=expandable\nattach vdisk\n", file.display())
}

fn creation_by_hyper_v(file: &Path, size: u32) -> String {
    format!(
        "$ErrorActionPreference = 'Stop'; \
         New-VHD -Path '{}' -SizeBytes {size}MB -Dynamic -LogicalSectorSizeBytes 4096 | Out-Null",
        file.display()
    )
}

fn attachment(file: &Path) -> String {
    format!("{}attach vdisk\n", selection(file))
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

/// Runs a line of PowerShell and returns its output, or `None` if it fails.
fn powershell(line: &str) -> Option<String> {
    process::output(Command::new("powershell").args(["-NoProfile", "-Command", line]))
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
