//! The simulated node as a system for checks.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use os::{Os, OsResult, Uuid};
use os_sim::{Content, Description, DiskDescription, Page83, Sim, Span, VolumeHealth};

use crate::network::{ServiceKind, TargetKind, TestPortal, TestServer, TestTarget, TestUser};
use crate::node::{DiskKind, System, TestDisk, TestNode, TestVolume, VolumeKind};

/// The servers, targets and services of a node.
const NETWORK: &str = include_str!("simulated_network.toml");

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Longer than it takes until the volumes of a new disk have arrived.
const ARRIVAL: Duration = Duration::from_mins(1);

/// A simulated node for one check.
pub struct SimulatedNode {
    sim: Sim,
    os: Arc<dyn Os>,
    directories: Cell<u32>,
}

impl SimulatedNode {
    /// Creates a node whose primitives the check calls through `layer`, such as a wrapper that
    /// records them.
    pub fn with_layer(layer: impl FnOnce(Arc<dyn Os>) -> Arc<dyn Os>) -> Self {
        let network = Description::from_toml(NETWORK).expect("the description is valid");
        let sim = os_sim::node().description(&network).build();
        let os = layer(sim.process());
        Self {
            sim,
            os,
            directories: Cell::new(0),
        }
    }

    fn attach(&self, disk: &DiskDescription) -> u32 {
        self.sim
            .attach_disk(disk, true)
            .expect("the description of the disk is valid")
    }
}

impl Default for SimulatedNode {
    fn default() -> Self {
        Self::with_layer(|node| node)
    }
}

impl TestNode for SimulatedNode {
    fn system(&self) -> System {
        System::Simulator
    }

    fn os(&self) -> &dyn Os {
        &*self.os
    }

    fn process(&self) -> Arc<dyn Os> {
        Arc::clone(&self.os)
    }

    fn os_without_symlink_privilege(&self) -> Arc<dyn Os> {
        self.sim.process_without_symlink_privilege()
    }

    fn new_directory(&self) -> String {
        self.directories.set(self.directories.get() + 1);
        let path = format!(r"C:\facts\{}", self.directories.get());
        self.sim
            .external()
            .mkdir_all(&path)
            .expect("the directory is created");
        path
    }

    fn write_file(&self, path: &str, data: &[u8]) {
        let external = self.sim.external();
        let written = match path.rsplit_once(':') {
            // Not the colon of the drive.
            Some((object, stream)) if object.len() > 1 => {
                external.add_stream(object, stream, data.len())
            }
            _ => external.write(path, data),
        };
        written.expect("the file is written");
    }

    fn rename(&self, from: &str, to: &str) -> OsResult<()> {
        self.sim.external().rename(from, to)
    }

    fn revoke_all_rights(&self, path: &str) {
        self.sim
            .external()
            .revoke_all_rights(path)
            .expect("the list is replaced");
    }

    fn share(&self) -> String {
        self.directories.set(self.directories.get() + 1);
        let path = format!(r"\\facts\share\{}", self.directories.get());
        self.sim
            .external()
            .mkdir_all(&path)
            .expect("the directory is created");
        path
    }

    fn remove_directory(&self, path: &str) {
        self.sim
            .external()
            .remove_all(path)
            .expect("the directory is removed");
    }

    fn disk(&self, kind: DiskKind) -> TestDisk {
        let mut disk = DiskDescription::new(10 * GIB);
        match kind {
            DiskKind::Raw => {}
            DiskKind::Mbr => disk.content = Content::Mbr,
            DiskKind::Superfloppy => {
                disk.content = Content::Superfloppy;
                disk.file_system = Some("NTFS".to_owned());
            }
            DiskKind::NoPage83 => disk.page83 = Page83::None,
            DiskKind::NoSerial => disk.serial = Some(String::new()),
            DiskKind::FourKn => disk.sector_size = 4096,
            DiskKind::System => return TestDisk { number: 0 },
        }
        TestDisk {
            number: self.attach(&disk),
        }
    }

    fn volume(&self, kind: VolumeKind) -> TestVolume {
        let gibibytes = if kind == VolumeKind::SmallRaw { 1 } else { 10 };
        let mut disk = DiskDescription::new(gibibytes * GIB);
        disk.content = Content::Partitioned;
        if kind == VolumeKind::System {
            return TestVolume {
                id: self.volume_of(0),
                disk: 0,
            };
        }
        let file_system = match kind {
            VolumeKind::Raw | VolumeKind::SmallRaw | VolumeKind::Unreadable => None,
            VolumeKind::Fat32 => Some("FAT32"),
            VolumeKind::Refs | VolumeKind::Recognized => Some("ReFS"),
            _ => Some("NTFS"),
        };
        disk.file_system = file_system.map(str::to_owned);
        if matches!(kind, VolumeKind::Ntfs4Kn | VolumeKind::Short4Kn) {
            disk.sector_size = 4096;
        }
        if matches!(kind, VolumeKind::Short | VolumeKind::Short4Kn) {
            disk.file_system_size = Some(GIB);
        }
        if kind == VolumeKind::Grown {
            disk.grown_to = Some(14 * GIB);
        }
        if kind == VolumeKind::Spanned {
            let second = self.attach(&DiskDescription::new(10 * GIB));
            disk.spans.push(Span {
                disk: second,
                offset: MIB,
                length: GIB,
            });
        }
        disk.volume = match kind {
            VolumeKind::BitLocker => VolumeHealth::Locked,
            VolumeKind::Unreadable => VolumeHealth::Unreadable,
            VolumeKind::Recognized => VolumeHealth::Unmountable,
            _ => VolumeHealth::Readable,
        };
        let number = self.attach(&disk);
        let volume = TestVolume {
            id: self.volume_of(number),
            disk: number,
        };
        self.sim.advance(ARRIVAL);
        volume
    }

    fn grow_disk(&self, disk: TestDisk, bytes: u64) {
        let size = self.sim.disk(disk.number).expect("the disk exists").size;
        assert!(
            self.sim.grow_disk(disk.number, size + bytes),
            "the disk grows"
        );
    }

    fn attach_disk(&self) -> TestDisk {
        let number = self
            .sim
            .attach_disk(&DiskDescription::new(10 * GIB), false)
            .expect("the disk is valid");
        TestDisk { number }
    }

    fn copy_of(&self, disk: TestDisk) -> TestDisk {
        TestDisk {
            number: self.attach(&DiskDescription {
                copy_of: Some(disk.number),
                ..DiskDescription::new(10 * GIB)
            }),
        }
    }

    fn remove_disk(&self, disk: TestDisk) -> Box<dyn FnOnce() + '_> {
        let detached = self
            .sim
            .unplug_disk(disk.number)
            .expect("the disk is attached");
        Box::new(move || {
            self.sim.plug_disk(detached, true);
            self.sim.advance(ARRIVAL);
        })
    }

    fn smb_server(&self) -> TestServer {
        let user = |name: &str| TestUser {
            name: name.to_owned(),
            password: format!("{name}:pass"),
        };
        TestServer {
            host: "files".to_owned(),
            shares: ["one".to_owned(), "two".to_owned()],
            users: [user("anna"), user("bert")],
        }
    }

    fn unlistable_share(&self) -> String {
        r"\\strict\unlistable".to_owned()
    }

    fn silent_smb_server(&self) -> String {
        "silent".to_owned()
    }

    fn change_smb_password(&self, server: &TestServer, user: &TestUser, password: &str) {
        assert!(
            self.sim
                .rotate_smb_password(&server.host, &user.name, password),
            "the user exists"
        );
    }

    fn forbid_stored_credentials(&self) {
        self.sim.set_stored_credentials_forbidden(true);
    }

    fn iscsi_target(&self, kind: TargetKind) -> TestTarget {
        let (name, user, secret) = match kind {
            TargetKind::Open => ("open", "", ""),
            TargetKind::Chap => ("chap", "initiator", "initiator-12"),
        };
        TestTarget {
            portal: TestPortal {
                address: "10.0.0.1".to_owned(),
                port: 3260,
            },
            iqn: format!("iqn.2026-01.test:{name}"),
            chap: (user.to_owned(), secret.to_owned()),
        }
    }

    fn silent_iscsi_portal(&self) -> TestPortal {
        TestPortal {
            address: "10.0.0.2".to_owned(),
            port: 3260,
        }
    }

    fn stop_iscsi_portal(&self, portal: &TestPortal) -> Box<dyn FnOnce() + '_> {
        let (address, port) = (portal.address.clone(), portal.port);
        let set = move |answers| {
            let is_known = self.sim.set_portal_reachable(&address, port, answers);
            assert!(is_known, "the portal exists");
        };
        set(false);
        Box::new(move || set(true))
    }

    fn service(&self, kind: ServiceKind) -> String {
        format!("{kind:?}")
    }

    fn restart(&self) {
        self.sim.reboot();
    }
}

impl SimulatedNode {
    /// Returns the GUID of the last volume on a disk.
    fn volume_of(&self, disk: u32) -> Uuid {
        self.sim.volume_on(disk).expect("the disk has a volume").id
    }
}
