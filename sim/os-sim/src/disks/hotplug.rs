//! Disks that come and go: attached, detached, grown, or reached over iSCSI.

use os::Uuid;
use os::abi::{BusType, DiskAttributes};

use crate::description::{DescriptionError, DiskDescription};
use crate::disks::{Disk, ProviderCache};
use crate::iscsi::{Effect, Lun};
use crate::state::{DeviceId, State};

impl State {
    /// Attaches a disk. One that is not `noticed` appears with the next rescan.
    pub(crate) fn attach(&mut self, description: &DiskDescription, noticed: bool) -> Result<u32, DescriptionError> {
        let device = self.new_disk(description)?;
        if noticed {
            self.show(device);
        }
        Ok(self.disks[&device].number)
    }

    /// Attaches a disk that was detached, with all that is on it, under the lowest free number.
    pub(crate) fn reattach(&mut self, mut disk: Disk, noticed: bool) -> u32 {
        let taken = |number: u32| self.disks.values().any(|disk| disk.number == number);
        disk.number = (0..u32::MAX).find(|number| !taken(*number)).unwrap_or(u32::MAX);
        let (number, device) = (disk.number, self.fresh());
        self.disks.insert(device, disk);
        if noticed {
            self.show(device);
        }
        number
    }

    /// Makes Windows see a disk.
    pub(crate) fn show(&mut self, device: DeviceId) {
        let Some(disk) = self.disks.get_mut(&device) else { return };
        disk.visible = true;
        disk.refresh();
        self.announce_volumes(device);
    }

    /// Takes a disk away, as when its cable is pulled.
    pub(crate) fn detach(&mut self, device: DeviceId) -> Option<Disk> {
        self.dismount(device);
        let mut disk = self.disks.remove(&device)?;
        disk.visible = false;
        Some(disk)
    }

    /// Lets the disks of an iSCSI target appear or vanish.
    pub(crate) fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Attach { luns, .. } => luns.iter().for_each(|lun| self.reach_lun(lun)),
            Effect::Detach { luns, .. } => luns.iter().for_each(|lun| self.lose_lun(lun.id)),
        }
    }

    /// A target's disk comes offline: Windows Server's policy for disks that others may use too.
    fn reach_lun(&mut self, lun: &Lun) {
        if let Some(disk) = self.detached_luns.remove(&lun.id) {
            self.reattach(disk, true);
            return;
        }
        let description = DiskDescription {
            bus: BusType::ISCSI.0,
            offline: true,
            location: Some(format!("Adapter 1 : Port 0 : Target 0 : LUN {}", lun.number)),
            serial: Some(format!("{}", lun.id.simple())),
            ..DiskDescription::new(lun.size)
        };
        let Ok(device) = self.new_disk(&description) else { return };
        if let Some(disk) = self.disks.get_mut(&device) {
            disk.lun_id = Some(lun.id);
            disk.instance = format!("1&{:x}&0&{:06}", device, lun.number);
        }
        self.show(device);
    }

    fn lose_lun(&mut self, lun_id: Uuid) {
        let device = self.disks.iter().find(|(_, disk)| disk.lun_id == Some(lun_id)).map(|(device, _)| *device);
        if let Some(mut disk) = device.and_then(|device| self.detach(device)) {
            disk.attributes |= DiskAttributes::OFFLINE;
            disk.provider_cache = ProviderCache { size: disk.cached_size, attributes: disk.attributes };
            self.detached_luns.insert(lun_id, disk);
        }
    }
}
