//! Builds a node in one line of a test.

use std::time::Duration;

use os::abi::BusType;

use crate::description::{
    Content, Description, DiskDescription, FileDescription, Page83, Span, VolumeHealth,
};
use crate::iscsi::{Chap, Lun, Portal, PortalAddress, Target};
use crate::services::{ServiceModel, ServiceState, StartType};
use crate::sim::Sim;
use crate::smb::{Server, Share, User};

/// Starts to build a node. It has the system disk, which is disk 0 with `C:\Windows`,
/// `C:\ProgramData` and kubelet's directories.
pub fn node() -> Builder {
    Builder::default()
}

/// Builds a node. Each method adds an object, or changes the disk, server, share, target or service
/// that was added last.
///
/// A method panics if no such object was added: the test is wrong.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    description: Description,
}

impl Builder {
    /// Starts from `description`.
    pub fn description(mut self, description: &Description) -> Self {
        self.description = description.clone();
        self
    }

    /// Sets the serial number in the firmware.
    pub fn bios_serial(mut self, serial: &str) -> Self {
        self.description.bios_serial = Some(serial.to_owned());
        self
    }

    /// Disables automatic mounting (`mountvol /N`): a volume that arrives stays offline unless it
    /// has a mount point.
    pub fn no_automount(mut self) -> Self {
        self.description.no_automount = true;
        self
    }

    /// Adds a raw disk with the next number. It is online, writable and on SAS, and its LUN is its
    /// number.
    pub fn disk(mut self, bytes: u64) -> Self {
        let number = self
            .description
            .disks
            .iter()
            .filter_map(|disk| disk.number)
            .max()
            .map_or(1, |last| last + 1);
        self.description.disks.push(DiskDescription {
            number: Some(number),
            ..DiskDescription::new(bytes)
        });
        self
    }

    fn change(mut self, change: impl FnOnce(&mut DiskDescription)) -> Self {
        change(self.description.disks.last_mut().expect("add a disk first"));
        self
    }

    /// Sets the number of the disk.
    pub fn number(self, number: u32) -> Self {
        self.change(|disk| disk.number = Some(number))
    }

    /// Takes the disk offline.
    pub fn offline(self) -> Self {
        self.change(|disk| disk.offline = true)
    }

    /// Takes the disk offline for a reason of `MSFT_Disk.OfflineReason`.
    pub fn offline_because(self, reason: u32) -> Self {
        self.offline().change(|disk| disk.offline_reason = reason)
    }

    /// Sets the size of a logical sector: 512, or 4096 for a 4Kn disk.
    pub fn sector_size(self, bytes: u32) -> Self {
        self.change(|disk| disk.sector_size = bytes)
    }

    /// Makes a policy take the disk offline again the next `times` times that it is brought online.
    pub fn offline_again(self, times: u32) -> Self {
        self.change(|disk| disk.offline_again = times)
    }

    /// Makes the disk read-only.
    pub fn read_only(self) -> Self {
        self.change(|disk| disk.read_only = true)
    }

    /// Sets a vendor-specific text as the page-83 identifier.
    pub fn page83_ascii(self, text: &str) -> Self {
        self.change(|disk| disk.page83 = Page83::Ascii(text.to_owned()))
    }

    /// Sets bytes as the page-83 identifier.
    pub fn page83_binary(self, bytes: &[u8]) -> Self {
        self.change(|disk| disk.page83 = Page83::Binary(bytes.to_vec()))
    }

    /// Removes page 83 from the disk.
    pub fn no_page83(self) -> Self {
        self.change(|disk| disk.page83 = Page83::None)
    }

    /// Sets the serial number of the disk.
    pub fn serial(self, serial: &str) -> Self {
        self.change(|disk| disk.serial = Some(serial.to_owned()))
    }

    /// Sets the serial number that the storage provider reports for the disk.
    pub fn provider_serial(self, serial: &str) -> Self {
        self.change(|disk| disk.provider_serial = Some(serial.to_owned()))
    }

    /// Sets the location of the disk.
    pub fn location(self, location: &str) -> Self {
        self.change(|disk| disk.location = Some(location.to_owned()))
    }

    /// Sets the bus of the disk.
    pub fn bus(self, bus: BusType) -> Self {
        self.change(|disk| disk.bus = bus.0)
    }

    /// Makes the disk a mounted VHDX file, such as the scratch space of a container.
    pub fn vhd(self) -> Self {
        self.change(|disk| {
            disk.bus = BusType::FILE_BACKED_VIRTUAL.0;
            disk.location =
                Some(r"C:\ProgramData\containerd\root\snapshots\1\sandbox.vhdx".to_owned());
        })
    }

    /// Gives the disk an MBR and one partition.
    pub fn mbr(self) -> Self {
        self.change(|disk| disk.content = Content::Mbr)
    }

    /// Gives the disk a GPT and only the Microsoft reserved partition.
    pub fn gpt(self) -> Self {
        self.change(|disk| disk.content = Content::Gpt)
    }

    /// Gives the disk a GPT, the Microsoft reserved partition and a basic data partition whose
    /// volume has arrived.
    pub fn partitioned(self) -> Self {
        self.change(|disk| disk.content = Content::Partitioned)
    }

    /// Gives the disk a file system from the first sector on, without a partition table.
    pub fn superfloppy(self) -> Self {
        self.change(|disk| disk.content = Content::Superfloppy)
    }

    /// Gives the volume a file system, such as `NTFS`, `ReFS` or `FAT32`. Gives a raw disk a file
    /// system that Windows does not know, such as `ext4`.
    pub fn formatted(self, file_system: &str) -> Self {
        self.change(|disk| disk.file_system = Some(file_system.to_owned()))
    }

    /// Locks the volume with BitLocker.
    pub fn bitlocker_locked(self) -> Self {
        self.change(|disk| disk.volume = VolumeHealth::Locked)
    }

    /// Makes reading the volume fail with I/O errors.
    pub fn unreadable(self) -> Self {
        self.change(|disk| disk.volume = VolumeHealth::Unreadable)
    }

    /// Gives the volume a file system that Windows recognises but cannot mount.
    pub fn unmountable(self) -> Self {
        self.change(|disk| disk.volume = VolumeHealth::Unmountable)
    }

    /// Extends the volume by `bytes` on another disk.
    pub fn spanned(self, disk: u32, bytes: u64) -> Self {
        self.change(|on| {
            on.spans.push(Span {
                disk,
                offset: 1 << 20,
                length: bytes,
            });
        })
    }

    /// Sets the size that the disk has grown to since it was partitioned. Windows has not detected
    /// the new size.
    pub fn grown_to(self, bytes: u64) -> Self {
        self.change(|disk| disk.grown_to = Some(bytes))
    }

    /// Sets the size of the file system, as if growing it had been interrupted.
    pub fn file_system_of(self, bytes: u64) -> Self {
        self.change(|disk| disk.file_system_size = Some(bytes))
    }

    fn file_entry(mut self, file: FileDescription) -> Self {
        self.description.files.push(file);
        self
    }

    /// Adds a directory and its missing parents.
    pub fn dir(self, path: &str) -> Self {
        self.file_entry(FileDescription::Directory {
            path: path.to_owned(),
        })
    }

    /// Adds a file and its missing parent directories.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.file_entry(FileDescription::File {
            path: path.to_owned(),
            content: content.as_ref().to_vec(),
        })
    }

    /// Adds a symbolic link.
    pub fn symlink(self, link: &str, target: &str) -> Self {
        self.file_entry(FileDescription::Symlink {
            path: link.to_owned(),
            target: target.to_owned(),
        })
    }

    /// Adds a junction.
    pub fn junction(self, link: &str, target: &str) -> Self {
        self.file_entry(FileDescription::Junction {
            path: link.to_owned(),
            target: target.to_owned(),
        })
    }

    /// Mounts the volume of the disk at this directory.
    pub fn mounted(self, path: &str) -> Self {
        let disk = self.description.disks.last().and_then(|disk| disk.number);
        let number = disk.expect("add a disk first");
        self.file_entry(FileDescription::Mount {
            path: path.to_owned(),
            disk: number,
        })
    }

    /// Adds an SMB server to the network.
    pub fn smb_server(mut self, host: &str) -> Self {
        self.description.smb_servers.push(Server::new(host));
        self
    }

    fn server(mut self, change: impl FnOnce(&mut Server)) -> Self {
        change(
            self.description
                .smb_servers
                .last_mut()
                .expect("add a server first"),
        );
        self
    }

    /// Adds a share to the server.
    pub fn share(self, name: &str) -> Self {
        self.server(|server| {
            server.shares.push(Share {
                name: name.to_owned(),
                tree: os::Uuid::nil(),
                guest: false,
                listable: true,
            });
        })
    }

    /// Forbids clients to list the root directory of the share.
    pub fn unlistable(self) -> Self {
        self.server(|server| {
            server
                .shares
                .last_mut()
                .expect("add a share first")
                .listable = false;
        })
    }

    /// Makes the share accept guests.
    pub fn guest(self) -> Self {
        self.server(|server| server.shares.last_mut().expect("add a share first").guest = true)
    }

    /// Adds a user to the server.
    pub fn user(self, name: &str, password: &str) -> Self {
        self.server(|server| server.users.push(User::new(name, password)))
    }

    /// Adds an iSCSI portal to the network.
    pub fn iscsi_portal(mut self, address: &str, port: u16) -> Self {
        let PortalAddress { address, port } = PortalAddress::new(address, port);
        self.description.iscsi_portals.push(Portal {
            address,
            port,
            reachable: true,
            answer_takes: Duration::ZERO,
        });
        self
    }

    /// Adds a target at the portal that was added last.
    pub fn target(mut self, iqn: &str) -> Self {
        let portal = self
            .description
            .iscsi_portals
            .last()
            .expect("add a portal first");
        let portals = vec![PortalAddress::new(&portal.address, portal.port)];
        let target = Target {
            iqn: iqn.to_owned(),
            portals,
            redirects_to: None,
            chap: Chap::None,
            luns: Vec::new(),
        };
        self.description.iscsi_targets.push(target);
        self
    }

    fn change_target(mut self, change: impl FnOnce(&mut Target)) -> Self {
        change(
            self.description
                .iscsi_targets
                .last_mut()
                .expect("add a target first"),
        );
        self
    }

    /// Adds a logical unit to the target.
    pub fn lun(self, bytes: u64) -> Self {
        self.change_target(|target| {
            let number = u8::try_from(target.luns.len()).expect("fewer than 256 units");
            target.luns.push(Lun {
                number,
                id: os::Uuid::nil(),
                size: bytes,
            });
        })
    }

    /// Makes the target require one-way CHAP with this user and secret.
    pub fn chap(self, user: &str, secret: &str) -> Self {
        self.change_target(|target| {
            target.chap = Chap::OneWay {
                user: user.to_owned(),
                secret: secret.to_owned(),
            };
        })
    }

    /// Makes the target use mutual CHAP and sets the target's secret.
    pub fn mutual(self, target_secret: &str) -> Self {
        self.change_target(|target| {
            let Chap::OneWay { user, secret } = target.chap.clone() else {
                panic!("call chap() first")
            };
            target.chap = Chap::Mutual {
                user,
                secret,
                target_secret: target_secret.to_owned(),
            };
        })
    }

    /// Adds a stopped service that starts without delay on demand.
    pub fn service(mut self, name: &str, display_name: &str) -> Self {
        self.description
            .services
            .push(ServiceModel::new(name, display_name));
        self
    }

    fn change_service(mut self, change: impl FnOnce(&mut ServiceModel)) -> Self {
        change(
            self.description
                .services
                .last_mut()
                .expect("add a service first"),
        );
        self
    }

    /// Makes the service depend on another.
    pub fn depends_on(self, name: &str) -> Self {
        self.change_service(|service| service.depends_on.push(name.to_owned()))
    }

    /// Sets the service to running.
    pub fn running(self) -> Self {
        self.change_service(|service| service.state = ServiceState::Running)
    }

    /// Disables the service.
    pub fn disabled(self) -> Self {
        self.change_service(|service| service.start_type = StartType::Disabled)
    }

    /// Sets how long the service takes to start and to stop.
    pub fn slow(self, span: Duration) -> Self {
        self.change_service(|service| {
            service.start_takes = span;
            service.stop_takes = span;
        })
    }

    /// Creates the node. Panics if the description is not valid.
    pub fn build(&self) -> Sim {
        Sim::describe(&self.description).unwrap_or_else(|error| panic!("{error}"))
    }
}
