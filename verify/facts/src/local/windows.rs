//! The machine that this program runs on, through os-win32.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io, process, thread};

use os::{Access, Handle, NtPath, Open, Options, Os, OsError, OsResult, PathForm, U16Str, Uuid};
use os_win32::file_security::{self, ADMINISTRATORS_ONLY};
use os_win32::{Windows, own_process, system, virtual_disk};

use crate::facts::devices::{device_number, extents};
use crate::network::{ServiceKind, TargetKind, TestPortal, TestServer, TestTarget, TestUser};
use crate::node::{DiskKind, System, TestDisk, TestNode, TestVolume, VolumeKind, missing};
use crate::{
    DISKS, DiskIdentity, FOLDER, diskpart, diskpart_script, named_disk, remove_folder, run,
};

struct LocalNode {
    os: Windows,
    /// The parent of all directories of this node.
    folder: OnceCell<String>,
    directories: Cell<u32>,
    /// The identities of the disks that this check has asked for.
    prepared: RefCell<BTreeSet<String>>,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "on other systems, the same function returns None"
)]
pub(super) fn local_node() -> Option<Box<dyn TestNode>> {
    Some(Box::new(LocalNode {
        os: Windows::new(),
        folder: OnceCell::new(),
        directories: Cell::new(0),
        prepared: RefCell::default(),
    }))
}

pub(super) fn end_children_with_this_process() -> io::Result<()> {
    own_process::end_children_with_this_process()
        .map_err(|code| io::Error::other(format!("create a job object: error {}", code.0)))
}

pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    file_security::create_folder(path, ADMINISTRATORS_ONLY)
}

pub(super) fn system_program(name: &str) -> io::Result<PathBuf> {
    system::program(name)
}

pub(super) fn create_virtual_disk(file: &Path, size: u64, sector_size: u32) -> io::Result<()> {
    virtual_disk::create(file, size, sector_size)
}

pub(super) fn grant_everyone(folder: &Path) {
    change_access(folder, &["/remove:d", "*S-1-1-0"]);
}

/// Runs icacls, whose output is in the language of the system.
fn change_access(path: &Path, change: &[&str]) -> bool {
    let icacls = system_program("icacls.exe").map(Command::new);
    icacls
        .and_then(|mut icacls| run(icacls.arg(path).args(change), Duration::from_mins(1)))
        .is_ok_and(|ended| ended.failure.is_none())
}

/// Creates a folder for the directories of this process, and returns its path.
fn new_folder() -> String {
    match create_folder(Path::new(FOLDER)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            panic!("{FOLDER} is not created: {error}")
        }
        _ => {}
    }
    let mut number = 0;
    loop {
        let path = format!(r"{FOLDER}\facts-{}-{number}", process::id());
        match create_folder(Path::new(&path)) {
            Ok(()) => return path,
            // Of a process that had the same id.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => panic!("{path} is not created: {error}"),
        }
    }
}

impl Drop for LocalNode {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.get() {
            let _ = remove_folder(Path::new(folder));
            // Only if nothing else is in it.
            let _ = fs::remove_dir(FOLDER);
        }
    }
}

impl TestNode for LocalNode {
    fn system(&self) -> System {
        // Windows has no program of this name.
        if Path::new(r"C:\windows\system32\winecfg.exe").exists() {
            System::Wine
        } else {
            System::Windows
        }
    }

    fn os(&self) -> &dyn Os {
        &self.os
    }

    fn process(&self) -> Arc<dyn Os> {
        Arc::new(Windows::new())
    }

    fn new_directory(&self) -> String {
        self.directories.set(self.directories.get() + 1);
        let folder = self.folder.get_or_init(new_folder);
        let path = format!(r"{folder}\{}", self.directories.get());
        fs::create_dir(&path).expect("the directory is created");
        path
    }

    fn write_file(&self, path: &str, data: &[u8]) {
        fs::write(path, data).expect("the file is written");
    }

    fn rename(&self, from: &str, to: &str) -> OsResult<()> {
        let code = |error: std::io::Error| {
            error
                .raw_os_error()
                .and_then(|code| u32::try_from(code).ok())
        };
        fs::rename(from, to).map_err(|error| OsError(code(error).expect("an error of Windows")))
    }

    fn revoke_all_rights(&self, path: &str) {
        if self.system() == System::Wine {
            missing("access control lists");
        }
        // Everyone is denied everything. What is below a directory inherits no entry of this kind.
        assert!(
            change_access(Path::new(path), &["/deny", "*S-1-1-0:F"]),
            "icacls denies access to {path}"
        );
    }

    fn share(&self) -> String {
        if self.system() == System::Wine {
            missing("a share");
        }
        // The administrative share of the drive.
        self.new_directory().replace("C:", r"\\localhost\C$")
    }

    fn remove_directory(&self, path: &str) {
        fs::remove_dir(path).expect("the directory is removed");
    }

    fn disk(&self, kind: DiskKind) -> TestDisk {
        if kind == DiskKind::System {
            return TestDisk {
                number: self.system_volume().disk,
            };
        }
        TestDisk {
            number: self.disk_number(&format!("DISK_{kind:?}").to_uppercase()),
        }
    }

    fn volume(&self, kind: VolumeKind) -> TestVolume {
        if kind == VolumeKind::System {
            return self.system_volume();
        }
        let kind = format!("VOLUME_{kind:?}").to_uppercase();
        let disk = self.disk_number(&kind);
        let id = self.volume_on(disk);
        assert_eq!(self.disk_number(&kind), disk, "the disk for tests has gone");
        TestVolume { id, disk }
    }

    fn is_own(&self, disk: &dyn Handle) -> bool {
        DiskIdentity::read(disk)
            .is_ok_and(|found| self.prepared.borrow().contains(&format!("{found:?}")))
    }

    fn smb_server(&self) -> TestServer {
        const WHAT: &str = "an SMB server for tests";
        let user = |number: u32| TestUser {
            name: variable(&format!("SMB_USER_{number}"), WHAT),
            password: variable(&format!("SMB_PASSWORD_{number}"), WHAT),
        };
        let shares = variable("SMB_SHARES", WHAT);
        let (first, second) = shares
            .split_once(',')
            .expect("CSI_PROXY_FACTS_SMB_SHARES has two names");
        TestServer {
            host: variable("SMB_HOST", WHAT),
            shares: [first.to_owned(), second.to_owned()],
            users: [user(1), user(2)],
        }
    }

    fn unlistable_share(&self) -> String {
        variable("SMB_UNLISTABLE", "a share whose root may not be listed")
    }

    fn silent_smb_server(&self) -> String {
        variable("SMB_SILENT", "an SMB server that does not answer")
    }

    fn iscsi_target(&self, kind: TargetKind) -> TestTarget {
        const WHAT: &str = "an iSCSI target for tests";
        let (name, chap) = match kind {
            TargetKind::Open => ("ISCSI_OPEN", (String::new(), String::new())),
            TargetKind::Chap => (
                "ISCSI_CHAP",
                (
                    variable("ISCSI_CHAP_USER", WHAT),
                    variable("ISCSI_CHAP_SECRET", WHAT),
                ),
            ),
        };
        TestTarget {
            portal: portal("ISCSI_PORTAL", WHAT),
            iqn: variable(name, WHAT),
            chap,
        }
    }

    fn silent_iscsi_portal(&self) -> TestPortal {
        portal("ISCSI_SILENT", "an iSCSI portal that does not answer")
    }

    fn service(&self, kind: ServiceKind) -> String {
        variable(
            &format!("SERVICE_{kind:?}").to_uppercase(),
            &format!("a service for tests: {kind:?}"),
        )
    }
}

impl LocalNode {
    /// Returns the number of the disk for tests of a kind, such as `DISK_RAW`: of the only disk
    /// with its identity. The first time, diskpart prepares the disk: an earlier check may have
    /// used it.
    fn disk_number(&self, kind: &str) -> u32 {
        let what = kind
            .replace("DISK_", "a disk for tests: ")
            .replace("VOLUME_", "a volume for tests: ");
        let disks = env::var(DISKS).unwrap_or_default();
        let (file, identity) = named_disk(&disks, kind).unwrap_or_else(|| missing(&what));
        if self.prepared.borrow_mut().insert(identity.to_owned())
            && let Some(script) = diskpart_script(kind, file)
        {
            let ended = diskpart(file.parent().expect("a path"), &script).expect("diskpart runs");
            assert!(ended.failure.is_none(), "the disk is prepared: {ended:?}");
        }
        let mut found = DiskIdentity::of_files(&self.os);
        found.retain(|(_, found)| format!("{found:?}") == identity);
        let [(number, _)] = found[..] else {
            panic!(
                "{} disks have the identity of the disk for tests",
                found.len()
            )
        };
        number
    }

    /// Returns the volume on a disk. A volume arrives some time after its partition.
    fn volume_on(&self, disk: u32) -> Uuid {
        for _ in 0..50 {
            let volumes = self.os.volumes().expect("the volumes");
            let found = volumes
                .iter()
                .filter_map(|path| volume_id(path))
                .find(|id| self.disk_of(*id) == Some(disk));
            if let Some(id) = found {
                return id;
            }
            thread::sleep(Duration::from_millis(200));
        }
        panic!("disk {disk} has no volume")
    }

    /// Returns the volume of drive C: and the number of its disk.
    fn system_volume(&self) -> TestVolume {
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
        let root = self
            .os
            .open(&NtPath::drive_root('C'), &how)
            .expect("the root directory of drive C:");
        let path = root
            .final_path(PathForm::VolumeGuid)
            .expect("the path of the volume");
        let id = volume_id(&path).expect("the GUID of the volume");
        let how = Open::existing(Access::empty(), Options::empty());
        let volume = self
            .os
            .open(&NtPath::volume(id), &how)
            .expect("the volume opens");
        TestVolume {
            id,
            disk: device_number(&*volume).device_number,
        }
    }

    /// Returns the number of the disk with the first extent of a volume.
    fn disk_of(&self, volume: Uuid) -> Option<u32> {
        let how = Open::existing(Access::empty(), Options::empty());
        let handle = self.os.open(&NtPath::volume(volume), &how).ok()?;
        Some(extents(&*handle).ok()?.first()?.disk_number)
    }
}

/// Returns the text in a variable of the environment, which names an object.
fn variable(name: &str, what: &str) -> String {
    env::var(format!("CSI_PROXY_FACTS_{name}")).unwrap_or_else(|_| missing(what))
}

/// Returns the portal in a variable of the environment.
fn portal(name: &str, what: &str) -> TestPortal {
    let value = variable(name, what);
    let (address, port) = value.rsplit_once(':').unwrap_or((&value, "3260"));
    let port = port
        .parse()
        .unwrap_or_else(|_| panic!("CSI_PROXY_FACTS_{name}={value} has no port"));
    TestPortal {
        address: address.to_owned(),
        port,
    }
}

/// Parses `\\?\Volume{...}\`.
fn volume_id(path: &U16Str) -> Option<Uuid> {
    let text = path.to_string().ok()?;
    text.strip_prefix(r"\\?\Volume{")?
        .strip_suffix(r"}\")?
        .parse()
        .ok()
}
