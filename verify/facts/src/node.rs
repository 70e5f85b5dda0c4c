//! What a check needs from the system it runs on.

use std::panic::resume_unwind;
use std::sync::Arc;

use os::{Access, Handle, NtPath, Open, Options, Os, OsResult, U16String, Uuid};

use crate::network::{ServiceKind, TargetKind, TestPortal, TestServer, TestTarget, TestUser};

/// The system lacks what a check needs, such as `a raw disk for tests`. [`missing`] throws it.
pub(crate) struct Missing(pub(crate) String);

/// Ends the check, which counts as skipped: this system lacks `what` the check needs.
pub fn missing(what: &str) -> ! {
    // Not a panic, so that the panic hook prints nothing.
    resume_unwind(Box::new(Missing(what.to_owned())))
}

/// The system that a check runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A node of os-sim.
    Simulator,
    /// Wine.
    Wine,
    /// Windows.
    Windows,
}

/// The kinds of disks that a check can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// Online and writable, without a partition table, of at least 1 GiB.
    Raw,
    /// With an MBR and one partition.
    Mbr,
    /// With a file system from its first sector on, without a partition table.
    Superfloppy,
    /// Raw, and without the device identification page (83h).
    NoPage83,
    /// Raw, and without a serial number.
    NoSerial,
    /// Raw, with logical sectors of 4096 bytes.
    FourKn,
    /// The disk that Windows runs on. A check must not change it.
    System,
}

/// The kinds of volumes that a check can ask for. Each but the first is on a GPT disk of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeKind {
    /// The volume that Windows is on, among others on its disk. A check must not change it.
    System,
    /// NTFS.
    Ntfs,
    /// FAT32.
    Fat32,
    /// ReFS.
    Refs,
    /// Without a file system.
    Raw,
    /// Without a file system, of at most 1 GiB, so that a full format writes no more than that.
    SmallRaw,
    /// NTFS, smaller than its partition.
    Short,
    /// NTFS on a disk with logical sectors of 4096 bytes.
    Ntfs4Kn,
    /// NTFS on such a disk, smaller than its partition.
    Short4Kn,
    /// NTFS in all of a disk that has grown by at least 2 GiB since.
    Grown,
    /// NTFS over two disks.
    Spanned,
    /// Locked by BitLocker.
    BitLocker,
    /// A file system that Windows recognizes and cannot mount.
    Recognized,
    /// A volume that cannot be read.
    Unreadable,
}

/// A disk for tests, which a check may overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestDisk {
    /// The number of the disk.
    pub number: u32,
}

/// A volume for tests, which a check may overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestVolume {
    /// The GUID of the volume.
    pub id: Uuid,
    /// The number of its disk.
    pub disk: u32,
}

impl TestVolume {
    /// Returns the GUID path of the volume, with a final backslash.
    pub fn guid_path(&self) -> U16String {
        U16String::from_str(&format!(r"\\?\Volume{{{}}}\", self.id))
    }

    /// Opens the volume as a device.
    pub fn open(&self, os: &dyn Os, access: Access) -> OsResult<Box<dyn Handle>> {
        os.open(
            &NtPath::volume(self.id),
            &Open::existing(access, Options::empty()),
        )
    }

    /// Opens the root directory of the volume.
    pub fn open_root(&self, os: &dyn Os, access: Access) -> OsResult<Box<dyn Handle>> {
        os.open(
            &NtPath::volume_root(self.id),
            &Open::existing(access, Options::empty()),
        )
    }
}

/// The system that the facts are checked on. Each check gets a fresh one. A method that cannot
/// provide what it names calls [`missing`]; only a simulated node provides what a method without an
/// implementation of its own names.
pub trait TestNode {
    /// Which system this is.
    fn system(&self) -> System;

    /// The primitives.
    fn os(&self) -> &dyn Os;

    /// Returns the primitives, for a program that keeps them.
    fn process(&self) -> Arc<dyn Os>;

    /// Returns the primitives as a process sees them whose account has not the privilege to create
    /// symbolic links.
    fn os_without_symlink_privilege(&self) -> Arc<dyn Os> {
        missing("a process without the privilege to create symbolic links")
    }

    /// Creates an empty directory on an NTFS volume and returns its Win32 path, such as
    /// `C:\facts\17`.
    fn new_directory(&self) -> String;

    /// Writes a file, as a program does that is not csi-proxy. Creates it if it is missing. After a
    /// colon, the path names a data stream of a file or directory.
    fn write_file(&self, path: &str, data: &[u8]);

    /// Renames a file or directory, as another program does.
    fn rename(&self, from: &str, to: &str) -> OsResult<()>;

    /// Changes the access control list of a file or directory so that it grants nobody a right.
    /// Lists below a directory stay as they are.
    fn revoke_all_rights(&self, path: &str);

    /// Creates an empty directory on a share and returns its UNC path, such as `\\server\share\17`.
    fn share(&self) -> String;

    /// Removes an empty directory, as a program does that is not csi-proxy (`RemoveDirectory`).
    fn remove_directory(&self, path: &str);

    /// Returns a disk that nothing else uses.
    fn disk(&self, kind: DiskKind) -> TestDisk;

    /// Returns a volume that nothing else uses.
    fn volume(&self, kind: VolumeKind) -> TestVolume;

    /// Returns whether an open disk, with the right to read, is one that this check got: its number
    /// may mean another disk by now. All disks of a simulated node are for tests.
    fn is_own(&self, _: &dyn Handle) -> bool {
        true
    }

    /// Enlarges a disk by `bytes`, as the administrator of the storage does. Windows is not told.
    fn grow_disk(&self, _: TestDisk, _: u64) {
        missing("a disk that a check can enlarge")
    }

    /// Attaches a raw disk, which Windows has not detected. Returns the number that it will have.
    fn attach_disk(&self) -> TestDisk {
        missing("a disk that a check can attach")
    }

    /// Attaches a copy of a disk, with its partition table.
    fn copy_of(&self, _: TestDisk) -> TestDisk {
        missing("a copy of a disk that a check can attach")
    }

    /// Removes a disk without warning, as when its cable is pulled. Returns what connects the disk
    /// again, with its content, and waits until its volumes have arrived.
    fn remove_disk(&self, _: TestDisk) -> Box<dyn FnOnce() + '_> {
        missing("a disk that a check can remove")
    }

    /// Returns an SMB server. No share of it is mapped.
    fn smb_server(&self) -> TestServer;

    /// Returns the remote path of a share that is readable without a mapping, but whose root may
    /// not be listed.
    fn unlistable_share(&self) -> String;

    /// Returns the name of an SMB server that does not answer.
    fn silent_smb_server(&self) -> String;

    /// Changes the password of a user of the SMB server.
    fn change_smb_password(&self, _: &TestServer, _: &TestUser, _: &str) {
        missing("a way to change a password of the SMB server")
    }

    /// Forbids Windows to store credentials.
    fn forbid_stored_credentials(&self) {
        missing("a policy that forbids to store credentials")
    }

    /// Returns an iSCSI target. It is not connected, and its portal is not known.
    fn iscsi_target(&self, kind: TargetKind) -> TestTarget;

    /// Returns an iSCSI portal that does not answer.
    fn silent_iscsi_portal(&self) -> TestPortal;

    /// Stops an iSCSI portal. The returned function starts it again.
    fn stop_iscsi_portal(&self, _: &TestPortal) -> Box<dyn FnOnce() + '_> {
        missing("an iSCSI portal that can be stopped")
    }

    /// Returns the name of a service.
    fn service(&self, kind: ServiceKind) -> String;

    /// Restarts the system.
    fn restart(&self) {
        missing("a restart of Windows")
    }
}

impl dyn TestNode + '_ {
    /// Creates an empty directory on an NTFS volume.
    pub fn directory(&self) -> Directory<'_> {
        Directory {
            node: self,
            path: self.new_directory(),
        }
    }

    /// Creates a directory on an NTFS volume with the file `file`, whose content is `content`.
    pub fn directory_with_file(&self) -> Directory<'_> {
        let directory = self.directory();
        directory.write("file", b"content");
        directory
    }
}

/// A directory for one check.
pub struct Directory<'a> {
    node: &'a dyn TestNode,
    path: String,
}

impl Directory<'_> {
    /// Returns the Win32 path of the entry `name`, which may have several components; of the
    /// directory itself if `name` is empty.
    pub fn win32(&self, name: &str) -> String {
        if name.is_empty() {
            self.path.clone()
        } else {
            format!(r"{}\{name}", self.path)
        }
    }

    /// Returns the NT path of the entry `name`.
    pub fn nt(&self, name: &str) -> NtPath {
        NtPath::from_win32(&U16String::from_str(&self.win32(name)))
    }

    /// Opens the directory itself, for listing and for opening entries relative to it.
    pub fn handle(&self) -> Box<dyn Handle> {
        let access = Access::READ_DATA | Access::READ_ATTRIBUTES;
        self.open("", &Open::existing(access, Options::DIRECTORY))
            .expect("the directory of the test opens")
    }

    /// Opens or creates the entry `name` by its full path.
    pub fn open(&self, name: &str, how: &Open) -> OsResult<Box<dyn Handle>> {
        self.node.os().open(&self.nt(name), how)
    }

    /// Opens or creates the entry `name` by its full path, and again by its name in the open
    /// directory.
    pub fn open_both_ways(&self, name: &str, how: &Open) -> [OsResult<Box<dyn Handle>>; 2] {
        [
            self.open(name, how),
            self.handle().open_child(&U16String::from_str(name), how),
        ]
    }

    /// Opens the existing entry `name` by its full path with full sharing.
    pub fn existing(
        &self,
        name: &str,
        access: Access,
        options: Options,
    ) -> OsResult<Box<dyn Handle>> {
        self.open(name, &Open::existing(access, options))
    }

    /// Creates the directory `name`.
    pub fn mkdir(&self, name: &str) {
        self.open(name, &Open::new_directory(Access::READ_ATTRIBUTES))
            .expect("the directory is created");
    }

    /// Writes the file `name` and creates it if it is missing.
    pub fn write(&self, name: &str, data: &[u8]) {
        self.node.write_file(&self.win32(name), data);
    }
}
