//! Describes a node as it is now, and writes the description as a node file.

use os::abi::CODE_SET_ASCII;
use os::{OsResult, Uuid};

use crate::description::from_description::{SYSTEM_DIRECTORIES, SYSTEM_LINKS};
use crate::description::{Content, Description, DiskDescription, FileDescription, Page83};
use crate::disks::mount_manager::{MountPoint, mounted_volume};
use crate::disks::{Disk, Layout, OFFLINE_BY_POLICY, Partition, Volume};
use crate::external::readlink_text;
use crate::files::file_system::FileSystem;
use crate::files::reparse_point;
use crate::sim::Sim;
use crate::smb::Mapping;
use crate::state::State;

impl Sim {
    /// Returns the node as a node file, from which an equal node can be created: with the same
    /// disks, volume GUIDs, files, services and servers. Comments at the start of the file list the
    /// parts of the node that it leaves out.
    ///
    /// The file contains the passwords of the servers.
    pub fn node_file(&self) -> String {
        let (description, left_out) = self.with(|state| state.description());
        let title = "# A simulated node, as csi-proxy-sim has written it.\n".to_owned();
        let head = left_out
            .iter()
            .fold(title, |head, what| head + &format!("# Left out: {what}.\n"));
        head + &toml::to_string(&description).expect("a description can be written in TOML")
    }

    /// Returns the node file of [`Self::default_node`].
    pub const fn default_node_file() -> &'static str {
        crate::sim::DEFAULT_NODE
    }
}

/// The parts of a node that its description leaves out, each as a phrase.
type LeftOut = Vec<String>;

impl State {
    fn description(&self) -> (Description, LeftOut) {
        let mut left_out = LeftOut::new();
        let mut disks: Vec<&Disk> = self
            .disks
            .values()
            .filter(|disk| !disk.system && disk.lun_id.is_none())
            .collect();
        disks.sort_by_key(|disk| disk.number);
        for disk in self.unplugged.values() {
            left_out.push(format!(
                "an unplugged disk, which had the number {}",
                disk.number
            ));
        }
        let mut services = self.services.services.clone();
        for service in &mut services {
            service.state = service.state.settled();
        }
        // A new node would accept a mapping whose password has changed, so leave such a mapping
        // out.
        let survives = |mapping: &&Mapping| mapping.persistent && self.smb.accepts(mapping);
        let (restored, lost): (Vec<_>, Vec<_>) = self.smb.mappings().iter().partition(survives);
        left_out.extend(
            lost.iter()
                .map(|mapping| format!("the SMB mapping of {}", mapping.remote)),
        );
        for target in self
            .iscsi
            .targets
            .iter()
            .filter(|target| self.iscsi.is_connected(&target.iqn))
        {
            left_out.push(format!(
                "the session with {}, and the content of its disks",
                target.iqn
            ));
        }
        let description = Description {
            bios_serial: self.bios_serial.clone(),
            no_automount: self.no_automount,
            timing: self.timing,
            disks: disks
                .into_iter()
                .map(|disk| DiskDescription {
                    letter: self.letter_of(disk),
                    ..describe_disk(disk, &mut left_out)
                })
                .collect(),
            files: self.described_files(&mut left_out),
            services,
            smb_servers: self.smb.servers.clone(),
            smb_mappings: restored.into_iter().cloned().collect(),
            iscsi_portals: self.iscsi.portals.clone(),
            iscsi_targets: self.iscsi.targets.clone(),
        };
        (description, left_out)
    }

    /// Returns the drive letter of the last volume of a disk.
    fn letter_of(&self, disk: &Disk) -> Option<char> {
        let volume = disk.volumes().last()?.id;
        let mut mounts = self.mounts.iter().filter(|mount| mount.volume == volume);
        mounts.find_map(|mount| match mount.point {
            MountPoint::Letter(letter) => Some(letter),
            MountPoint::Directory { .. } => None,
        })
    }

    fn described_files(&self, left_out: &mut LeftOut) -> Vec<FileDescription> {
        let mut files = Vec::new();
        let volumes = self
            .disks
            .values()
            .flat_map(|disk| disk.volumes().map(move |volume| (disk, volume)));
        for (disk, volume) in volumes {
            let Some(file_system) = &volume.file_system else {
                continue;
            };
            let root = if disk.system {
                "C:".to_owned()
            } else {
                format!(r"\\?\Volume{{{}}}", volume.id)
            };
            if disk.lun_id.is_none()
                && volume.mounted().is_ok()
                && volume.arrived
                && !disk.is_read_only()
            {
                // A file that cannot be read is not in the tree.
                let _ = self.describe_directory(
                    file_system,
                    file_system.root,
                    &root,
                    &mut files,
                    left_out,
                );
            } else if !disk.system && file_system.records().count() > 1 {
                left_out.push(format!(
                    "the files on disk {}, which cannot be written now",
                    disk.number
                ));
            }
        }
        if self.trees.values().any(|tree| tree.records().count() > 1) {
            left_out.push("the files on SMB shares".to_owned());
        }
        files
    }

    fn describe_directory(
        &self,
        file_system: &FileSystem,
        id: u64,
        path: &str,
        files: &mut Vec<FileDescription>,
        left_out: &mut LeftOut,
    ) -> OsResult<()> {
        for (name, child) in file_system.record(id)?.children().into_iter().flatten() {
            let path = format!(r"{path}\{name}");
            let file = file_system.record(*child)?;
            if let Some(data) = file.reparse.as_deref() {
                match self.describe_link(path, data, file.is_directory()) {
                    Ok(link) => files.extend(link),
                    Err(reason) => left_out.push(reason),
                }
            } else if !file.is_directory() {
                files.push(FileDescription::File {
                    path,
                    content: file.data().to_vec(),
                });
            } else if !file.is_empty_directory() {
                self.describe_directory(file_system, *child, &path, files, left_out)?;
            } else if !SYSTEM_DIRECTORIES.contains(&path.as_str()) {
                files.push(FileDescription::Directory { path });
            }
        }
        Ok(())
    }

    /// Returns the description of a link, or `None` for a link that every node has. Fails with the
    /// phrase for [`LeftOut`] if the link cannot be described.
    fn describe_link(
        &self,
        path: String,
        data: &[u8],
        is_directory: bool,
    ) -> Result<Option<FileDescription>, String> {
        if SYSTEM_LINKS.contains(&path.as_str()) {
            return Ok(None);
        }
        if let Some(volume) = mounted_volume(data).filter(|_| is_directory) {
            return match self.disk_of_volume(volume) {
                Some(disk) => Ok(Some(FileDescription::Mount { path, disk })),
                None => Err(format!(
                    "the mount point {path} of a volume that does not exist"
                )),
            };
        }
        let Ok(target) = readlink_text(data) else {
            return Err(format!(
                "{path}, a reparse point that is neither a link nor a mount point"
            ));
        };
        Ok(Some(
            if reparse_point::tag(data) == os::abi::REPARSE_TAG_SYMLINK {
                FileDescription::Symlink { path, target }
            } else {
                FileDescription::Junction { path, target }
            },
        ))
    }

    /// Returns the number of the disk whose last volume this is.
    fn disk_of_volume(&self, id: Uuid) -> Option<u32> {
        let is_last = |disk: &&Disk| disk.volumes().last().is_some_and(|volume| volume.id == id);
        self.disks
            .values()
            .filter(|disk| disk.lun_id.is_none())
            .find(is_last)
            .map(|disk| disk.number)
    }
}

fn describe_disk(disk: &Disk, left_out: &mut LeftOut) -> DiskDescription {
    let size = disk.size_when_partitioned();
    let volumes: Vec<&Partition> = disk
        .partitions
        .iter()
        .filter(|part| part.volume.is_some())
        .collect();
    let reserved = usize::from(matches!(disk.layout, Layout::Gpt { .. }));
    let behind = volumes.last().and_then(|volume| {
        disk.partitions
            .iter()
            .find(|part| part.volume.is_none() && part.offset == volume.end())
    });
    let known = volumes.len() + reserved + usize::from(behind.is_some());
    if volumes.len() > 1 || disk.partitions.len() != known {
        left_out.push(format!("further partitions of disk {}", disk.number));
    }
    let mut description = DiskDescription {
        grown_to: (disk.size > size).then_some(disk.size),
        number: Some(disk.number),
        bus: disk.bus,
        location: Some(disk.location.clone()),
        vendor: disk.vendor.clone(),
        product: disk.product.clone(),
        serial: Some(disk.serial.clone().unwrap_or_default()),
        provider_serial: disk.provider_serial.clone(),
        page83: describe_page83(disk),
        sector_size: u32::try_from(disk.sector).unwrap_or(u32::MAX),
        offline: disk.is_offline(),
        offline_reason: if disk.is_offline() {
            disk.offline_reason
        } else {
            OFFLINE_BY_POLICY
        },
        offline_again: disk.offline_again,
        read_only: disk.is_read_only(),
        content: match disk.layout {
            Layout::Raw => Content::Raw,
            Layout::Gpt { .. } if volumes.is_empty() => Content::Gpt,
            Layout::Gpt { .. } => Content::Partitioned,
            Layout::Mbr { .. } => Content::Mbr,
            Layout::Superfloppy => Content::Superfloppy,
        },
        signature: match disk.layout {
            Layout::Gpt { id, .. } => Some(id),
            Layout::Mbr { signature } => Some(Uuid::from_fields(signature, 0, 0, &[0; 8])),
            Layout::Raw | Layout::Superfloppy => None,
        },
        file_system: disk.foreign.clone(),
        recovery_partition: behind.map(|part| part.length),
        ..DiskDescription::new(size)
    };
    if let Some(part) = volumes.last()
        && let Some(volume) = &part.volume
    {
        describe_volume(disk, part, volume, &mut description);
    }
    description
}

fn describe_page83(disk: &Disk) -> Page83 {
    let is_of_device = |identifier: &&crate::disks::Identifier| {
        identifier.association == os::abi::ASSOCIATION_DEVICE
    };
    match disk.identifiers.iter().flatten().find(is_of_device) {
        None => Page83::None,
        Some(found) if found.code_set == CODE_SET_ASCII => {
            Page83::Ascii(String::from_utf8_lossy(&found.bytes).into_owned())
        }
        Some(found) => Page83::Binary(found.bytes.clone()),
    }
}

fn describe_volume(disk: &Disk, part: &Partition, volume: &Volume, to: &mut DiskDescription) {
    let mut without = disk.clone();
    without.cached_size = to.size;
    without
        .partitions
        .retain(|other| other.number != part.number && other.offset != part.end());
    let largest = without
        .largest_gap()
        .map_or(part.length, |(_, length)| length);
    let largest = largest.saturating_sub(to.recovery_partition.unwrap_or_default());
    let is_smaller = disk.layout != Layout::Superfloppy && part.length < largest;
    to.partition_size = is_smaller.then_some(part.length);
    to.volume_id = Some(volume.id);
    to.volume = volume.health;
    let mounted = volume.file_system.as_ref();
    to.file_system = volume
        .recognised
        .clone()
        .or_else(|| mounted.map(|file_system| file_system.kind.clone()));
    to.file_system_size = mounted
        .map(|file_system| file_system.length)
        .filter(|length| *length < part.length);
    to.spans.clone_from(&volume.further_extents);
}
