//! Creates the initial state of a node from its description.

use os::abi::{BASIC_DATA, BusType, CODE_SET_ASCII, CODE_SET_BINARY, DiskAttributes};
use os::{OsError, Uuid};

use crate::description::{
    Content, Description, DescriptionError, DiskDescription, FileDescription, Page83, VolumeHealth,
};
use crate::disks::mount_manager::{Mount, MountPoint};
use crate::disks::{ALIGNMENT, Disk, Identifier, Layout, PartitionKind, ProviderCache, Volume};
use crate::external::nt_path;
use crate::state::{DeviceId, Event, State};

/// The size of the system disk.
const SYSTEM_DISK: u64 = 128 << 30;
/// The type of a recovery partition on a GPT disk.
const RECOVERY: Uuid = Uuid::from_u128(0xde94_bba4_06d1_4d40_a16a_bfd5_0179_d6ac);
/// The type of a recovery partition on an MBR disk.
const MBR_RECOVERY: u8 = 0x27;
/// The directories on the system disk that Windows and Kubernetes need.
pub(crate) const SYSTEM_DIRECTORIES: [&str; 5] = [
    r"C:\Windows\System32",
    r"C:\ProgramData",
    r"C:\Users\Public",
    r"C:\var\lib\kubelet\pods",
    r"C:\var\lib\kubelet\plugins",
];
/// A junction and a symbolic link that Windows Setup creates on the system disk, with their
/// targets.
const SYSTEM_JUNCTION: [&str; 2] = [r"C:\Documents and Settings", r"C:\Users"];
const SYSTEM_SYMLINK: [&str; 2] = [r"C:\Users\All Users", r"C:\ProgramData"];
/// The paths of the junction and the symbolic link.
pub(crate) const SYSTEM_LINKS: [&str; 2] = [SYSTEM_JUNCTION[0], SYSTEM_SYMLINK[0]];

impl State {
    /// Creates the state of a node. All volumes of online disks have arrived.
    pub(crate) fn describe(description: &Description) -> Result<Self, DescriptionError> {
        let mut state = Self::default();
        // Firmware tables hold zero-terminated ASCII texts.
        let is_text = |serial: &&String| {
            serial
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        };
        if let Some(bad) = description
            .bios_serial
            .as_ref()
            .filter(|serial| !is_text(serial))
        {
            return Err(DescriptionError(format!(
                "bios_serial {bad:?} must be printable ASCII"
            )));
        }
        state.bios_serial.clone_from(&description.bios_serial);
        state.timing = description.timing;
        state.add_system_disk()?;
        for disk in &description.disks {
            state.add_disk(disk)?;
        }
        state.services.services.clone_from(&description.services);
        state.smb.servers.clone_from(&description.smb_servers);
        state.make_share_trees(0);
        state.smb.restore(&description.smb_mappings);
        state.iscsi.portals.clone_from(&description.iscsi_portals);
        state.iscsi.targets.clone_from(&description.iscsi_targets);
        state.assign_lun_ids(0);
        for file in &description.files {
            state.add_described_file(file)?;
        }
        state.no_automount = description.no_automount;
        state.automount();
        Ok(state)
    }

    fn add_system_disk(&mut self) -> Result<(), DescriptionError> {
        let description = DiskDescription {
            number: Some(0),
            bus: BusType::SATA.0,
            location: Some("Integrated : Adapter 0 : Port 0 : Target 0 : LUN 0".into()),
            content: Content::Partitioned,
            file_system: Some("NTFS".into()),
            ..DiskDescription::new(SYSTEM_DISK)
        };
        let device = self.add_disk(&description)?;
        let disk = self
            .disks
            .get_mut(&device)
            .expect("the disk was added just now");
        disk.system = true;
        let volume = disk
            .volumes()
            .next()
            .expect("a formatted disk has a volume")
            .id;
        self.mounts.push(Mount {
            volume,
            point: MountPoint::Letter('C'),
        });
        for path in SYSTEM_DIRECTORIES {
            self.make_directories(path)
                .map_err(|error| cannot_create(path, error))?;
        }
        let [path, target] = SYSTEM_JUNCTION;
        self.make_junction(path, target)
            .map_err(|error| cannot_create(path, error))?;
        let [path, target] = SYSTEM_SYMLINK;
        self.make_symlink(path, target)
            .map_err(|error| cannot_create(path, error))
    }

    /// Adds a disk that Windows has detected. Its volumes have arrived if it is online.
    pub(crate) fn add_disk(
        &mut self,
        description: &DiskDescription,
    ) -> Result<DeviceId, DescriptionError> {
        let device = self.new_disk(description)?;
        self.rescan();
        if let Some(disk) = self
            .disks
            .get_mut(&device)
            .filter(|disk| !disk.is_offline())
        {
            disk.volumes_mut().for_each(|volume| volume.arrived = true);
        }
        self.provider_learns(device);
        self.cancel(|event| !matches!(event, Event::VolumeArrives(_) | Event::ProviderLearns(_)));
        Ok(device)
    }

    /// Adds a disk that Windows has not detected.
    pub(crate) fn new_disk(
        &mut self,
        description: &DiskDescription,
    ) -> Result<DeviceId, DescriptionError> {
        let number = self.disk_number(description.number)?;
        let instance = self.fresh();
        let mut attributes = 0;
        if description.offline {
            attributes |= DiskAttributes::OFFLINE;
        }
        if description.read_only {
            attributes |= DiskAttributes::READ_ONLY;
        }
        description
            .check()
            .map_err(|reason| DescriptionError(format!("disk {number}: {reason}")))?;
        let sector = u64::from(description.sector_size);
        let size = description.size;
        let mut disk = Disk {
            number,
            size,
            cached_size: size,
            sector,
            attributes,
            system: false,
            visible: false,
            known_to_provider: false,
            offline_reason: description.offline_reason,
            offline_again: description.offline_again,
            bus: description.bus,
            location: description.location.clone().unwrap_or_else(|| {
                format!("Integrated : Adapter 3 : Port 0 : Target 0 : LUN {number}")
            }),
            vendor: description.vendor.clone(),
            product: description.product.clone(),
            serial: match &description.serial {
                None => Some(format!("SIM{instance:013}")),
                Some(serial) => Some(serial.clone()).filter(|serial| !serial.is_empty()),
            },
            provider_serial: description.provider_serial.clone(),
            identifiers: identifiers(&description.page83, instance),
            instance: format!("5&{instance:08x}&0&{number:06x}"),
            layout: Layout::Raw,
            foreign: None,
            partitions: Vec::new(),
            provider_cache: ProviderCache { size, attributes },
            provider_offsets: Vec::new(),
            lun_id: None,
        };
        match description.copy_of {
            None => self.lay_out(&mut disk, description)?,
            Some(original) => self.copy_content(original, &mut disk)?,
        }
        let ids: Vec<Uuid> = disk.volumes().map(|volume| volume.id).collect();
        if let Some(known) = self
            .disks
            .values()
            .flat_map(Disk::volumes)
            .find(|known| ids.contains(&known.id))
        {
            return Err(DescriptionError(format!(
                "disk {number}: another volume has the volume_id {} too",
                known.id
            )));
        }
        if let Some(letter) = description.letter {
            let point = MountPoint::Letter(letter);
            if self.mounts.iter().any(|mount| mount.point == point) {
                return Err(DescriptionError(format!(
                    "disk {number}: another volume has the letter {letter} too"
                )));
            }
            self.mounts.extend(ids.first().map(|volume| Mount {
                volume: *volume,
                point,
            }));
        }
        if let Some(grown) = description.grown_to {
            disk.size = grown.max(size);
        }
        let device = self.fresh();
        self.disks.insert(device, disk);
        self.leave_offline_if_it_collides(device);
        Ok(device)
    }

    /// Gives a new disk the partition table, the partitions and the files of another one. Its
    /// volumes have GUIDs of their own, because the mount manager gives each volume one when it
    /// first arrives.
    fn copy_content(&mut self, original: u32, to: &mut Disk) -> Result<(), DescriptionError> {
        let wrong = |reason: &str| {
            DescriptionError(format!("disk {}: copy_of {original}: {reason}", to.number))
        };
        let device = self
            .attached_device(original)
            .ok_or_else(|| wrong("no such disk"))?;
        let mounting = self.fresh();
        let original = self.disks[&device].clone();
        if to.size < original.size_when_partitioned() || to.sector != original.sector {
            return Err(wrong(
                "the original is larger, or has sectors of another size",
            ));
        }
        (to.layout, to.foreign, to.partitions) =
            (original.layout, original.foreign, original.partitions);
        for volume in to.volumes_mut() {
            (volume.id, volume.arrived, volume.known_to_provider) =
                (self.fresh_uuid(), false, false);
            if let Some(file_system) = &mut volume.file_system {
                file_system.close_all();
                file_system.dismount(mounting);
            }
        }
        Ok(())
    }

    fn disk_number(&self, wanted: Option<u32>) -> Result<u32, DescriptionError> {
        match wanted {
            Some(number) if self.attached_device(number).is_some() => Err(DescriptionError(
                format!("two disks have the number {number}"),
            )),
            Some(number) => Ok(number),
            None => Ok(self.free_disk_number()),
        }
    }

    /// Returns the lowest number that no disk has.
    pub(crate) fn free_disk_number(&self) -> u32 {
        (0..u32::MAX)
            .find(|number| self.attached_device(*number).is_none())
            .unwrap_or(u32::MAX)
    }

    fn lay_out(
        &mut self,
        disk: &mut Disk,
        description: &DiskDescription,
    ) -> Result<(), DescriptionError> {
        let new_id = self.fresh_uuid();
        let disk_id = description.signature.unwrap_or(new_id);
        let reserved_id = self.fresh_uuid();
        let part_id = self.fresh_uuid();
        let kind = match description.content {
            Content::Raw => {
                disk.foreign.clone_from(&description.file_system);
                return Ok(());
            }
            Content::Gpt => {
                disk.write_gpt(disk_id, reserved_id);
                return Ok(());
            }
            Content::Partitioned => {
                disk.write_gpt(disk_id, reserved_id);
                PartitionKind::Gpt(BASIC_DATA)
            }
            Content::Mbr => {
                disk.layout = Layout::Mbr {
                    signature: disk_id.as_fields().0,
                };
                PartitionKind::Mbr(7)
            }
            Content::Superfloppy => {
                disk.layout = Layout::Superfloppy;
                PartitionKind::Mbr(7)
            }
        };
        let gap = match description.content {
            Content::Superfloppy => Some((0, disk.size)),
            _ => disk
                .largest_gap()
                .filter(|(_, length)| *length >= ALIGNMENT),
        };
        let (offset, length) = gap.ok_or_else(|| {
            DescriptionError(format!(
                "disk {}: the disk is too small for a partition",
                disk.number
            ))
        })?;
        let recovery = description.recovery_partition.unwrap_or_default();
        let length = length.saturating_sub(recovery);
        let length = description
            .partition_size
            .map_or(length, |size| size.min(length));
        if recovery > 0 {
            let kind = match kind {
                PartitionKind::Gpt(_) => PartitionKind::Gpt(RECOVERY),
                PartitionKind::Mbr(_) => PartitionKind::Mbr(MBR_RECOVERY),
            };
            let id = self.fresh_uuid();
            disk.add_partition(offset + length, recovery, kind, id);
        }
        let number = disk.add_partition(offset, length, kind, part_id);
        let volume = self.new_volume(description, length);
        if let Some(part) = disk.partition_mut(number) {
            part.volume = Some(volume);
        }
        Ok(())
    }

    fn new_volume(&mut self, description: &DiskDescription, length: u64) -> Volume {
        let new_id = self.fresh_uuid();
        let id = description.volume_id.unwrap_or(new_id);
        let mut volume = Volume::new(id);
        volume.further_extents.clone_from(&description.spans);
        let named = description.file_system.clone();
        volume.health = description.volume;
        if volume.health == VolumeHealth::Unmountable {
            volume.recognised = Some(named.unwrap_or_else(|| "ReFS".into()));
            return volume;
        }
        // A volume that cannot be read still has a file system.
        let is_formatted = named.is_some() || description.volume != VolumeHealth::Readable;
        let kind = is_formatted.then(|| named.unwrap_or_else(|| "NTFS".into()));
        let length = description
            .file_system_size
            .map_or(length, |size| size.min(length));
        volume.file_system = kind.map(|kind| self.make_file_system(&kind, length));
        volume
    }

    /// Creates the directory trees for the shares of the servers from position `from` on.
    pub(crate) fn make_share_trees(&mut self, from: usize) {
        for server in from..self.smb.servers.len() {
            for share in 0..self.smb.servers[server].shares.len() {
                let tree = self.fresh_uuid();
                self.smb.servers[server].shares[share].tree = tree;
                let mut file_system = self.make_file_system("NTFS", 1 << 40);
                file_system.is_root_listable = self.smb.servers[server].shares[share].listable;
                self.trees.insert(tree, file_system);
            }
        }
    }

    /// Gives an identity to each logical unit of the targets from position `from` on.
    pub(crate) fn assign_lun_ids(&mut self, from: usize) {
        for target in from..self.iscsi.targets.len() {
            for lun in 0..self.iscsi.targets[target].luns.len() {
                let id = self.fresh_uuid();
                self.iscsi.targets[target].luns[lun].id = id;
            }
        }
    }

    pub(crate) fn add_described_file(
        &mut self,
        file: &FileDescription,
    ) -> Result<(), DescriptionError> {
        if let FileDescription::Mount { path, disk } = file
            && self.last_volume(*disk).is_none()
        {
            return Err(DescriptionError(format!(
                "disk {disk}, which is to be mounted at {path}, has no volume"
            )));
        }
        self.add_file(file)
            .map_err(|error| cannot_create(file.path(), error))
    }

    fn add_file(&mut self, file: &FileDescription) -> Result<(), OsError> {
        // The parent has a final separator, so that the root of a volume is a directory too.
        let path = file.path();
        let parent = path[..path.rfind(['\\', '/']).map_or(path.len(), |at| at + 1)].to_owned();
        self.make_directories(&parent)?;
        match file {
            FileDescription::Directory { path } => self.make_directories(path),
            FileDescription::File { path, content } => self.write_file(path, content),
            FileDescription::Symlink { path, target } => self.make_symlink(path, target),
            FileDescription::Junction { path, target } => self.make_junction(path, target),
            FileDescription::Mount { path, disk } => {
                let volume = self.last_volume(*disk).ok_or(OsError::FILE_NOT_FOUND)?;
                self.make_directories(path)?;
                self.mount_at(&nt_path(path), volume)
            }
        }
    }

    fn last_volume(&self, number: u32) -> Option<Uuid> {
        self.disks
            .get(&self.device(number)?)?
            .volumes()
            .last()
            .map(|volume| volume.id)
    }
}

fn cannot_create(path: &str, error: OsError) -> DescriptionError {
    DescriptionError(format!("cannot create {path}: {error}"))
}

fn identifiers(page83: &Page83, instance: u64) -> Option<Vec<Identifier>> {
    const VENDOR: u32 = 1;
    const NAA: u32 = 3;
    let of_device = match page83 {
        Page83::None => return None,
        Page83::Unique => {
            let mut bytes = vec![0x60, 0x02, 0x24, 0x80, 0, 0, 0, 0];
            bytes.extend_from_slice(&instance.to_be_bytes());
            Identifier::of_device(CODE_SET_BINARY, NAA, bytes)
        }
        Page83::Ascii(text) => {
            Identifier::of_device(CODE_SET_ASCII, VENDOR, text.clone().into_bytes())
        }
        Page83::Binary(bytes) => Identifier::of_device(CODE_SET_BINARY, NAA, bytes.clone()),
    };
    // Many arrays return the identifier of the port first. csi-proxy must not use it as the
    // identifier of the disk.
    let of_port = Identifier {
        code_set: CODE_SET_BINARY,
        kind: 4,
        association: 1,
        bytes: vec![0, 0, 0, 1],
    };
    Some(vec![of_port, of_device])
}
