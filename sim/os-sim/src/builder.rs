//! Building a node in one line.

use std::time::Duration;

use os::abi::BusType;

use crate::clock::timing::Timing;
use crate::description::{
    Content, Description, DescriptionError, DiskDescription, FileDescription, Page83, Span, VolumeHealth,
};
use crate::iscsi::{Chap, Lun, Portal, PortalAddress, Target};
use crate::services::{ServiceModel, StartType, State as ServiceState};
use crate::sim::Sim;
use crate::smb::{Server, Share, User};

/// A node with the system disk alone: disk 0, with `C:\Windows`, `C:\ProgramData` and kubelet's directories.
pub fn node() -> Builder {
    Builder::default()
}

/// What a node shall be. Each method adds to it, or changes the disk, server, target or service added last.
///
/// A method that has nothing to change panics: such a test is wrong.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    description: Description,
}

impl Builder {
    /// Starts from a description.
    pub fn description(mut self, description: &Description) -> Self {
        self.description = description.clone();
        self
    }

    /// How long things take.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.description.timing = timing;
        self
    }

    /// The serial number in the firmware.
    pub fn bios_serial(mut self, serial: &str) -> Self {
        self.description.bios_serial = Some(serial.to_owned());
        self
    }

    /// A raw disk with the next number: online, writable, on SAS, its LUN its number.
    pub fn disk(mut self, bytes: u64) -> Self {
        let number = self.description.disks.iter().filter_map(|disk| disk.number).max().map_or(1, |last| last + 1);
        self.description.disks.push(DiskDescription { number: Some(number), ..DiskDescription::new(bytes) });
        self
    }

    fn change(mut self, change: impl FnOnce(&mut DiskDescription)) -> Self {
        change(self.description.disks.last_mut().expect("a disk comes first"));
        self
    }

    /// With this number.
    pub fn number(self, number: u32) -> Self {
        self.change(|disk| disk.number = Some(number))
    }

    /// Offline.
    pub fn offline(self) -> Self {
        self.change(|disk| disk.offline = true)
    }

    /// Read-only.
    pub fn read_only(self) -> Self {
        self.change(|disk| disk.read_only = true)
    }

    /// With a vendor's text as page-83 identifier.
    pub fn page83_ascii(self, text: &str) -> Self {
        self.change(|disk| disk.page83 = Page83::Ascii(text.to_owned()))
    }

    /// With these bytes as page-83 identifier.
    pub fn page83_binary(self, bytes: &[u8]) -> Self {
        self.change(|disk| disk.page83 = Page83::Binary(bytes.to_vec()))
    }

    /// Without the page of identifiers.
    pub fn no_page83(self) -> Self {
        self.change(|disk| disk.page83 = Page83::None)
    }

    /// With this serial number.
    pub fn serial(self, serial: &str) -> Self {
        self.change(|disk| disk.serial = Some(serial.to_owned()))
    }

    /// With this location.
    pub fn location(self, location: &str) -> Self {
        self.change(|disk| disk.location = Some(location.to_owned()))
    }

    /// On this bus.
    pub fn bus(self, bus: BusType) -> Self {
        self.change(|disk| disk.bus = bus.0)
    }

    /// A mounted VHDX file, as containers have them.
    pub fn vhd(self) -> Self {
        self.change(|disk| {
            disk.bus = BusType::FILE_BACKED_VIRTUAL.0;
            disk.location = Some(r"C:\ProgramData\containerd\root\snapshots\1\sandbox.vhdx".to_owned());
        })
    }

    /// With an MBR and one basic partition.
    pub fn mbr(self) -> Self {
        self.change(|disk| disk.content = Content::Mbr)
    }

    /// With a GPT and the reserved partition alone.
    pub fn gpt(self) -> Self {
        self.change(|disk| disk.content = Content::Gpt)
    }

    /// With a GPT, the reserved partition and one of basic data, whose volume has arrived.
    pub fn partitioned(self) -> Self {
        self.change(|disk| disk.content = Content::Partitioned)
    }

    /// With a file system from the first sector on, and no partition table.
    pub fn superfloppy(self) -> Self {
        self.change(|disk| disk.content = Content::Superfloppy)
    }

    /// With a file system on its volume: `NTFS`, `ReFS`, `FAT32`.
    pub fn formatted(self, file_system: &str) -> Self {
        self.change(|disk| disk.file_system = Some(file_system.to_owned()))
    }

    /// Its volume locked by BitLocker.
    pub fn bitlocker_locked(self) -> Self {
        self.change(|disk| disk.volume = VolumeHealth::Locked)
    }

    /// Its volume answering with I/O errors.
    pub fn unreadable(self) -> Self {
        self.change(|disk| disk.volume = VolumeHealth::Unreadable)
    }

    /// Its volume naming a file system that this system cannot mount.
    pub fn unmountable(self) -> Self {
        self.change(|disk| disk.volume = VolumeHealth::Unmountable)
    }

    /// Its volume going on for `bytes` on another disk.
    pub fn spanned(self, disk: u32, bytes: u64) -> Self {
        self.change(|on| on.spans.push(Span { disk, offset: 1 << 20, length: bytes }))
    }

    /// Grown since it was partitioned, which Windows has not noticed.
    pub fn grown_to(self, bytes: u64) -> Self {
        self.change(|disk| disk.grown_to = Some(bytes))
    }

    /// With a file system that has stayed that small, where growing it was interrupted.
    pub fn file_system_of(self, bytes: u64) -> Self {
        self.change(|disk| disk.file_system_size = Some(bytes))
    }

    fn file_entry(mut self, file: FileDescription) -> Self {
        self.description.files.push(file);
        self
    }

    /// A directory, with those above it.
    pub fn dir(self, path: &str) -> Self {
        self.file_entry(FileDescription::Directory { path: path.to_owned() })
    }

    /// A file, with the directories above it.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.file_entry(FileDescription::File { path: path.to_owned(), content: content.as_ref().to_vec() })
    }

    /// A symbolic link.
    pub fn symlink(self, link: &str, target: &str) -> Self {
        self.file_entry(FileDescription::Symlink { path: link.to_owned(), target: target.to_owned() })
    }

    /// A junction.
    pub fn junction(self, link: &str, target: &str) -> Self {
        self.file_entry(FileDescription::Junction { path: link.to_owned(), target: target.to_owned() })
    }

    /// The last disk's volume mounted at this directory.
    pub fn mounted(self, path: &str) -> Self {
        let disk = self.description.disks.last().and_then(|disk| disk.number);
        let number = disk.expect("a disk comes first");
        self.file_entry(FileDescription::Mount { path: path.to_owned(), disk: number })
    }

    /// An SMB server on the network.
    pub fn smb_server(mut self, host: &str) -> Self {
        self.description.smb_servers.push(Server::new(host));
        self
    }

    fn server(mut self, change: impl FnOnce(&mut Server)) -> Self {
        change(self.description.smb_servers.last_mut().expect("a server comes first"));
        self
    }

    /// A share of the last server.
    pub fn share(self, name: &str) -> Self {
        self.server(|server| {
            server.shares.push(Share { name: name.to_owned(), tree: os::Uuid::nil(), guest: false });
        })
    }

    /// The last share lets in guests.
    pub fn guest(self) -> Self {
        self.server(|server| server.shares.last_mut().expect("a share comes first").guest = true)
    }

    /// A user of the last server.
    pub fn user(self, name: &str, password: &str) -> Self {
        self.server(|server| server.users.push(User::new(name, password)))
    }

    /// An iSCSI portal on the network.
    pub fn iscsi_portal(mut self, address: &str, port: u16) -> Self {
        let portal = PortalAddress::new(address, port);
        self.description.iscsi_portals.push(Portal {
            address: portal.address,
            port: portal.port,
            reachable: true,
            slow_milliseconds: 0,
        });
        self
    }

    /// A target at the last portal.
    pub fn target(mut self, iqn: &str) -> Self {
        let portal = self.description.iscsi_portals.last().expect("a portal comes first");
        let portals = vec![PortalAddress::new(&portal.address, portal.port)];
        let target = Target { iqn: iqn.to_owned(), portals, chap: Chap::None, luns: Vec::new() };
        self.description.iscsi_targets.push(target);
        self
    }

    fn change_target(mut self, change: impl FnOnce(&mut Target)) -> Self {
        change(self.description.iscsi_targets.last_mut().expect("a target comes first"));
        self
    }

    /// A logical unit of the last target.
    pub fn lun(self, bytes: u64) -> Self {
        self.change_target(|target| {
            let number = u8::try_from(target.luns.len()).expect("fewer than 256 units");
            target.luns.push(Lun { number, id: os::Uuid::nil(), size: bytes });
        })
    }

    /// The last target asks for this user's secret.
    pub fn chap(self, user: &str, secret: &str) -> Self {
        self.change_target(|target| {
            target.chap = Chap::OneWay { user: user.to_owned(), secret: secret.to_owned() };
        })
    }

    /// The last target proves itself with this secret, too.
    pub fn mutual(self, target_secret: &str) -> Self {
        self.change_target(|target| {
            let Chap::OneWay { user, secret } = target.chap.clone() else { panic!("one-way CHAP comes first") };
            target.chap = Chap::Mutual { user, secret, target_secret: target_secret.to_owned() };
        })
    }

    /// A stopped service that starts at once on demand.
    pub fn service(mut self, name: &str, display_name: &str) -> Self {
        self.description.services.push(ServiceModel::new(name, display_name));
        self
    }

    fn change_service(mut self, change: impl FnOnce(&mut ServiceModel)) -> Self {
        change(self.description.services.last_mut().expect("a service comes first"));
        self
    }

    /// The last service needs another.
    pub fn depends_on(self, name: &str) -> Self {
        self.change_service(|service| service.depends_on.push(name.to_owned()))
    }

    /// The last service runs.
    pub fn running(self) -> Self {
        self.change_service(|service| service.state = ServiceState::Running)
    }

    /// The last service is disabled.
    pub fn disabled(self) -> Self {
        self.change_service(|service| service.start_type = StartType::Disabled)
    }

    /// The last service takes this long to start and to stop.
    pub fn slow(self, span: Duration) -> Self {
        let milliseconds = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        self.change_service(|service| {
            service.start_milliseconds = milliseconds;
            service.stop_milliseconds = milliseconds;
        })
    }

    /// The node, or what is wrong with it.
    pub fn try_build(&self) -> Result<Sim, DescriptionError> {
        Sim::describe(&self.description)
    }

    /// The node.
    ///
    /// Panics if there can be no such node.
    pub fn build(&self) -> Sim {
        self.try_build().unwrap_or_else(|error| panic!("{error}"))
    }
}
