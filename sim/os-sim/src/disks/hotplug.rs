//! Attaching and detaching disks, also by iSCSI sessions.

use os::Uuid;
use os::abi::{BusType, DiskAttributes};

use crate::description::{DescriptionError, DiskDescription};
use crate::disks::{Disk, Layout, ProviderCache};
use crate::files::handles::Object;
use crate::iscsi::{Effect, Lun};
use crate::state::{DeviceId, Event, FsId, State};

impl State {
    /// Attaches a disk and returns its number. If it is not `detected`, it becomes visible with the
    /// next rescan.
    pub(crate) fn attach(
        &mut self,
        description: &DiskDescription,
        detected: bool,
    ) -> Result<u32, DescriptionError> {
        let device = self.new_disk(description)?;
        if detected {
            self.show(device);
        }
        Ok(self.disks[&device].number)
    }

    /// Attaches a detached disk with its content. Returns its number, which is the lowest free
    /// number.
    pub(crate) fn reattach(&mut self, mut disk: Disk, detected: bool) -> u32 {
        disk.number = self.free_disk_number();
        let number = disk.number;
        let device = self.fresh();
        self.disks.insert(device, disk);
        self.leave_offline_if_it_collides(device);
        if detected {
            self.show(device);
        }
        number
    }

    /// Leaves a new disk offline if another one that is online has the same signature, as Windows
    /// does.
    pub(crate) fn leave_offline_if_it_collides(&mut self, device: DeviceId) {
        if self.collides(device) {
            self.disks.entry(device).and_modify(Disk::take_offline);
        }
    }

    /// Returns whether another disk that is online has the signature of this one.
    pub(crate) fn collides(&self, device: DeviceId) -> bool {
        let signature = self.disks.get(&device).and_then(Disk::signature);
        let others = self
            .disks
            .iter()
            .filter(|(other, disk)| **other != device && !disk.is_offline());
        signature.is_some()
            && others
                .map(|(_, disk)| disk.signature())
                .any(|other| other == signature)
    }

    /// Writes a new signature to a disk, as Windows does when one that collides comes online.
    pub(crate) fn give_new_signature(&mut self, device: DeviceId) {
        let new = self.fresh_uuid();
        match self.disks.get_mut(&device).map(|disk| &mut disk.layout) {
            Some(Layout::Gpt { id, .. }) => *id = new,
            Some(Layout::Mbr { signature }) => *signature = new.as_fields().0,
            Some(Layout::Raw | Layout::Superfloppy) | None => {}
        }
    }

    /// Gives each disk except the system disk the number of another one, in a circle.
    pub(crate) fn renumber_disks(&mut self, seed: u64) {
        let mut numbers: Vec<u32> = self
            .disks
            .values()
            .filter(|disk| !disk.system)
            .map(|disk| disk.number)
            .collect();
        numbers.sort_unstable();
        let Ok(others @ 1..) = u64::try_from(numbers.len().saturating_sub(1)) else {
            return;
        };
        let by = usize::try_from(1 + seed % others).unwrap_or(1);
        let new = |old: u32| {
            let at = numbers.iter().position(|number| *number == old)?;
            Some(numbers[(at + by) % numbers.len()])
        };
        for disk in self.disks.values_mut() {
            disk.number = new(disk.number).unwrap_or(disk.number);
            for span in disk
                .volumes_mut()
                .flat_map(|volume| &mut volume.further_extents)
            {
                span.disk = new(span.disk).unwrap_or(span.disk);
            }
        }
    }

    /// Makes Windows detect a disk.
    pub(crate) fn show(&mut self, device: DeviceId) {
        let Some(disk) = self.disks.get_mut(&device) else {
            return;
        };
        disk.visible = true;
        disk.refresh();
        self.schedule(self.timing.provider, Event::ProviderLearns(device));
        self.announce_volumes(device);
    }

    /// Removes a disk, as when its cable is pulled.
    pub(crate) fn detach(&mut self, device: DeviceId) -> Option<Disk> {
        self.dismount(device);
        let mut disk = self.disks.remove(&device)?;
        disk.visible = false;
        disk.known_to_provider = false;
        Some(disk)
    }

    /// Attaches or detaches the disks of an iSCSI target.
    pub(crate) fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Attach(luns) => luns.iter().for_each(|lun| self.attach_lun(lun)),
            Effect::Detach(luns) => luns.iter().for_each(|lun| self.detach_lun(lun.id)),
        }
    }

    /// Returns whether the effect detaches a disk on which a handle is open: on the disk, on a
    /// volume, or on a file.
    pub(crate) fn detaches_used_disk(&self, effect: &Effect) -> bool {
        let Effect::Detach(luns) = effect else {
            return false;
        };
        let is_detached = |device: DeviceId| {
            let lun = self.disks.get(&device).and_then(|disk| disk.lun_id);
            luns.iter().any(|known| Some(known.id) == lun)
        };
        let device_of = |object: &Object| match object {
            Object::Disk(device) => Some(*device),
            Object::Volume { id, .. }
            | Object::File {
                fs: FsId::Volume(id),
                ..
            } => self.location_of(*id).map(|(device, _)| device),
            Object::File {
                fs: FsId::Share(..),
                ..
            } => None,
        };
        self.handles
            .values()
            .any(|opened| device_of(&opened.object).is_some_and(is_detached))
    }

    /// Attaches the disk of a logical unit. A new disk is offline and read-only, as Windows
    /// Server's policy requires for disks that other hosts may share.
    fn attach_lun(&mut self, lun: &Lun) {
        if let Some(disk) = self.detached_luns.remove(&lun.id) {
            let number = self.reattach(disk, true);
            // The storage provider itself attaches the disk.
            self.device(number)
                .into_iter()
                .for_each(|device| self.provider_learns(device));
            return;
        }
        let description = DiskDescription {
            bus: BusType::ISCSI.0,
            offline: true,
            read_only: true,
            location: Some(format!(
                "Adapter 1 : Port 0 : Target 0 : LUN {}",
                lun.number
            )),
            serial: Some(format!("{}", lun.id.simple())),
            ..DiskDescription::new(lun.size)
        };
        let Ok(device) = self.new_disk(&description) else {
            return;
        };
        if let Some(disk) = self.disks.get_mut(&device) {
            disk.lun_id = Some(lun.id);
            disk.instance = format!("1&{:x}&0&{:06}", device, lun.number);
        }
        self.show(device);
        self.provider_learns(device);
    }

    fn detach_lun(&mut self, lun_id: Uuid) {
        let device = self
            .disks
            .iter()
            .find(|(_, disk)| disk.lun_id == Some(lun_id))
            .map(|(device, _)| *device);
        if let Some(mut disk) = device.and_then(|device| self.detach(device)) {
            disk.attributes |= DiskAttributes::OFFLINE | DiskAttributes::READ_ONLY;
            disk.provider_cache = ProviderCache {
                size: disk.cached_size,
                attributes: disk.attributes,
            };
            self.detached_luns.insert(lun_id, disk);
        }
    }
}
