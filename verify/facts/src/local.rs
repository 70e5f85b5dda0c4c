//! This machine as a system for checks: Windows, or Wine.
//!
//! A check may overwrite a disk, so the variable [`DISKS`] has a line for each disk for tests: the
//! kind, its VHD file, and the `Debug` text of its [`DiskIdentity`](crate::DiskIdentity), with a
//! tab between them. The kinds are `DISK_RAW`, `DISK_MBR`, `DISK_SUPERFLOPPY`, `DISK_NOPAGE83`,
//! `DISK_NOSERIAL`, `DISK_FOURKN`, `VOLUME_NTFS`, `VOLUME_FAT32`, `VOLUME_REFS`, `VOLUME_RAW`,
//! `VOLUME_SMALLRAW`, `VOLUME_SHORT`, `VOLUME_NTFS4KN`, `VOLUME_SHORT4KN`, `VOLUME_GROWN`, `VOLUME_SPANNED`,
//! `VOLUME_BITLOCKER`, `VOLUME_RECOGNIZED` and `VOLUME_UNREADABLE`. A check is skipped if no line
//! names its disk. It finds the disk by the identity, and compares the identity of each disk that
//! it opens for writing or changes by WMI. diskpart runs in the folder of the file, where only
//! administrators may write.
//!
//! Variables also name the objects on the network. `CSI_PROXY_FACTS_SMB_HOST`, `_SMB_SHARES` (two
//! names, with a comma between them), `_SMB_USER_1`, `_SMB_PASSWORD_1`, `_SMB_USER_2` and
//! `_SMB_PASSWORD_2` describe an SMB server; `_SMB_SILENT` names a server that does not answer, and
//! `_SMB_UNLISTABLE` a share whose root may not be listed. `_ISCSI_PORTAL` and `_ISCSI_SILENT` are
//! `address:port`; `_ISCSI_OPEN` and `_ISCSI_CHAP` are names of targets, and `_ISCSI_CHAP_USER` and
//! `_ISCSI_CHAP_SECRET` the credentials of the second one. `_SERVICE_PLAIN` and so on are names of
//! services, one for each [`ServiceKind`](crate::ServiceKind).

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::node::TestNode;

/// The variable that names the disks for tests.
pub const DISKS: &str = "CSI_PROXY_FACTS_DISKS";
/// On Windows, the folder of all files for tests. Only administrators may create folders in Program
/// Files, so that one with this name is of an earlier run.
pub const FOLDER: &str = r"C:\Program Files\csi-proxy-selftest";

#[cfg(windows)]
#[path = "local/windows.rs"]
mod imp;

#[cfg(not(windows))]
mod imp {
    use std::path::{Path, PathBuf};
    use std::{fs, io};

    use crate::node::TestNode;

    pub(super) fn local_node() -> Option<Box<dyn TestNode>> {
        None
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "on Windows, the function can fail"
    )]
    pub(super) fn end_children_with_this_process() -> io::Result<()> {
        Ok(())
    }

    pub(super) fn create_folder(path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "on Windows, the function can fail"
    )]
    pub(super) fn system_program(name: &str) -> io::Result<PathBuf> {
        Ok(name.into())
    }

    pub(super) fn grant_everyone(_: &Path) {}

    pub(super) fn create_virtual_disk(_: &Path, _: u64, _: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Returns this machine, or `None` if it runs neither Windows nor Wine.
pub fn local_node() -> Option<Box<dyn TestNode>> {
    imp::local_node()
}

/// Lets Windows end the processes that this one starts from now on, and theirs, when this one ends
/// or is killed: a diskpart that nobody waits for could still run after its disk has gone.
pub fn end_children_with_this_process() -> io::Result<()> {
    imp::end_children_with_this_process()
}

/// Creates a folder to which, on Windows, only administrators have access. Errors: `AlreadyExists`;
/// whoever has created that folder may replace what is in it.
pub fn create_folder(path: &Path) -> io::Result<()> {
    imp::create_folder(path)
}

/// Returns the absolute path of a program of Windows; elsewhere, its name.
pub fn system_program(name: &str) -> io::Result<PathBuf> {
    imp::system_program(name)
}

/// Creates a file for a virtual disk of `size` bytes, with sectors of `sector_size` bytes.
pub fn create_virtual_disk(file: &Path, size: u64, sector_size: u32) -> io::Result<()> {
    imp::create_virtual_disk(file, size, sector_size)
}

/// Removes a folder that a check has used, with its content. Links and mount points are removed,
/// and not followed. What the check has denied to everyone is granted again.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    let entries = fs::read_dir(folder).or_else(|_| {
        imp::grant_everyone(folder);
        fs::read_dir(folder)
    })?;
    for entry in entries {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            // Also a directory with a reparse point whose tag Windows does not know, which cannot
            // be listed.
            fs::remove_dir(&path).or_else(|_| remove_folder(&path))?;
        } else {
            // On Windows, a link to a directory is removed as a directory.
            fs::remove_file(&path).or_else(|_| fs::remove_dir(&path))?;
        }
    }
    fs::remove_dir(folder)
}
