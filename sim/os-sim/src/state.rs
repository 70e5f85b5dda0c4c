//! The state of a node: its objects, open handles, running jobs and scheduled events.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use os::abi::DiskAttributes;
use os::{OsError, OsResult, Uuid};

use crate::clock::timing::Timing;
use crate::disks::mount_manager::Mount;
use crate::disks::{Disk, OFFLINE_BY_POLICY, Volume, Writability};
use crate::files::file_system::{FileId, FileSystem};
use crate::files::handles::{Opened, ProcessId};
use crate::iscsi::Iscsi;
use crate::registry::Registry;
use crate::services::Services;
use crate::smb::Smb;
use crate::wmi::storage_jobs::{Job, JobResult};

/// Identifies a device; never used twice on a node.
pub(crate) type DeviceId = u64;

/// A simulated node's state.
#[derive(Clone, Default)]
pub(crate) struct State {
    /// The time since the node's clock started.
    pub now: Duration,
    events: Vec<ScheduledEvent>,
    counter: u64,
    pub disks: BTreeMap<DeviceId, Disk>,
    pub mounts: Vec<Mount>,
    /// Whether a volume that arrives stays offline unless it has a mount point (`NoAutoMount`).
    pub no_automount: bool,
    /// Whether an offline volume answers `IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS`. The sources
    /// disagree: one says that I/O fails, the other that all control codes fail.
    pub offline_volumes_have_extents: bool,
    /// The directory trees behind remote shares.
    pub trees: BTreeMap<Uuid, FileSystem>,
    /// The disks that were unplugged and can be plugged in again, by the devices that they were.
    pub unplugged: BTreeMap<DeviceId, Disk>,
    /// The disks of iSCSI logical units without a session, by the unit's identity.
    pub detached_luns: BTreeMap<Uuid, Disk>,
    /// The error of requests to a device that was removed; `None` stands for `DEV_NOT_EXIST`.
    pub removed_code: Option<OsError>,
    pub bios_serial: Option<String>,
    pub registry: Registry,
    /// When Windows last started.
    pub started: Duration,
    pub services: Services,
    pub smb: Smb,
    pub iscsi: Iscsi,
    pub jobs: BTreeMap<u64, Job>,
    pub timing: Timing,
    pub job_results: BTreeMap<u64, JobResult>,
    pub handles: BTreeMap<u64, Opened>,
    /// The processes without the privilege to create symbolic links.
    pub without_symlink_privilege: BTreeSet<ProcessId>,
    /// How long the network took for the last operation. The caller sleeps for this time after the
    /// operation.
    pub network_time: Duration,
    /// Callbacks to run once the state is unlocked.
    pub callbacks: Vec<Callback>,
}

/// A function to be called without holding the lock of the state. Shared, so that the state can be
/// copied.
pub(crate) type Callback = Arc<dyn Fn() + Send + Sync>;

/// An event and its time.
#[derive(Clone, Debug)]
struct ScheduledEvent {
    at: Duration,
    order: u64,
    event: Event,
}

/// An event that happens at a scheduled time and not in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Windows detects the volume.
    VolumeArrives(Uuid),
    /// The storage provider learns of a disk and of the volumes that have arrived on it.
    ProviderLearns(DeviceId),
    /// A policy takes a disk offline that was brought online.
    PolicyTakesOffline(DeviceId),
    /// A job ends.
    JobEnds(u64),
    /// The initiator stops holding requests to the disks of iSCSI sessions without a connection.
    IscsiHoldTimeEnds,
}

/// Identifies the file system of a volume or of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FsId {
    Volume(Uuid),
    /// The identity of the share's directory tree.
    Share(Uuid),
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl State {
    /// Returns a number that was never returned before.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Returns a GUID that was never returned before. The sequence is the same on every run and
    /// looks random.
    pub(crate) fn fresh_uuid(&mut self) -> Uuid {
        let seed = self.fresh();
        let high = scramble(seed.wrapping_mul(2));
        let low = scramble(seed.wrapping_mul(2) + 1);
        uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
            .into_uuid()
    }

    /// Takes the place of another node: continues its time, and gives out none of its numbers.
    pub(crate) fn continue_from(&mut self, other: &Self) {
        self.counter += other.counter;
        self.now += other.now;
        self.started = self.now;
        for event in &mut self.events {
            event.at += other.now;
        }
    }

    /// Schedules `event` to happen `after` from now.
    pub(crate) fn schedule(&mut self, after: Duration, event: Event) {
        let order = self.fresh();
        self.events.push(ScheduledEvent {
            at: self.now + after,
            order,
            event,
        });
    }

    /// Returns the time of the next scheduled event.
    pub(crate) fn next_event(&self) -> Option<Duration> {
        self.events.iter().map(|event| event.at).min()
    }

    /// Advances the time to `to` and lets all events until then happen, each at its own time.
    pub(crate) fn advance_to(&mut self, to: Duration) {
        loop {
            let next = self
                .events
                .iter()
                .enumerate()
                .filter(|(_, event)| event.at <= to)
                .min_by_key(|(_, event)| (event.at, event.order));
            let Some((index, _)) = next else { break };
            let scheduled = self.events.swap_remove(index);
            self.now = self.now.max(scheduled.at);
            self.happen(&scheduled.event);
        }
        self.now = self.now.max(to);
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::VolumeArrives(volume) => self.volume_arrives(*volume),
            Event::ProviderLearns(device) => self.provider_learns(*device),
            Event::PolicyTakesOffline(device) => self.policy_takes_offline(*device),
            Event::JobEnds(job) => self.job_ends(*job),
            Event::IscsiHoldTimeEnds => {
                for effect in self.iscsi.stop_holding(self.now) {
                    self.apply(effect);
                }
            }
        }
    }

    /// Cancels the scheduled events for which `keep` returns false.
    pub(crate) fn cancel(&mut self, keep: impl Fn(&Event) -> bool) {
        self.events.retain(|scheduled| keep(&scheduled.event));
    }

    /// Lets a volume arrive, if its disk is visible and online.
    pub(crate) fn volume_arrives(&mut self, id: Uuid) {
        let ready = self.now + self.timing.new_volume;
        let offline = self.no_automount && !self.is_mounted(id);
        let mut on = None;
        for (device, disk) in self
            .disks
            .iter_mut()
            .filter(|(_, disk)| disk.visible && !disk.is_offline())
        {
            for volume in disk
                .volumes_mut()
                .filter(|volume| volume.id == id && !volume.arrived)
            {
                volume.arrived = true;
                volume.offline = offline;
                if volume.writability == Writability::NotYet {
                    volume.writability = Writability::From(ready);
                }
                on = Some(*device);
            }
        }
        if let Some(device) = on {
            self.schedule(self.timing.provider, Event::ProviderLearns(device));
        }
    }

    /// Returns whether a volume has a mount point.
    fn is_mounted(&self, id: Uuid) -> bool {
        self.mounts.iter().any(|mount| mount.volume == id)
    }

    /// Leaves volumes offline as the mount manager does when the node starts.
    pub(crate) fn automount(&mut self) {
        let ids: Vec<Uuid> = self
            .disks
            .values()
            .flat_map(Disk::volumes)
            .map(|volume| volume.id)
            .collect();
        for id in ids {
            let offline = self.no_automount && !self.is_mounted(id);
            if let Ok(volume) = self.volume_mut(id) {
                volume.offline = offline;
            }
        }
    }

    /// Lets the storage provider know a disk and the volumes that have arrived on it.
    pub(crate) fn provider_learns(&mut self, device: DeviceId) {
        let Some(disk) = self.disks.get_mut(&device).filter(|disk| disk.visible) else {
            return;
        };
        disk.known_to_provider = true;
        disk.volumes_mut()
            .for_each(|volume| volume.known_to_provider = volume.arrived);
    }

    fn policy_takes_offline(&mut self, device: DeviceId) {
        let Some(disk) = self.disks.get(&device).filter(|disk| disk.visible) else {
            return;
        };
        self.set_attributes(device, disk.attributes | DiskAttributes::OFFLINE);
        if self.collides(device) {
            self.disks.entry(device).and_modify(Disk::take_offline);
        }
    }

    /// Schedules the arrival of the volumes of a disk, if the disk is visible and online.
    pub(crate) fn announce_volumes(&mut self, device: DeviceId) {
        let Some(disk) = self
            .disks
            .get(&device)
            .filter(|disk| disk.visible && !disk.is_offline())
        else {
            return;
        };
        let waiting: Vec<Uuid> = disk
            .volumes()
            .filter(|volume| !volume.arrived)
            .map(|volume| volume.id)
            .collect();
        for id in waiting {
            self.schedule(self.timing.volume_arrival, Event::VolumeArrives(id));
        }
    }

    /// Sets a disk's attributes. Its volumes arrive when it comes online and disappear when it goes
    /// offline.
    pub(crate) fn set_attributes(&mut self, device: DeviceId, attributes: u64) {
        let Some(disk) = self.disks.get_mut(&device) else {
            return;
        };
        let was_offline = disk.is_offline();
        disk.attributes = attributes;
        if disk.is_offline() {
            if !was_offline {
                disk.offline_reason = OFFLINE_BY_POLICY;
            }
            self.dismount(device);
            return;
        }
        if was_offline {
            let is_read_only = disk.is_read_only();
            let is_policy = disk.offline_again > 0;
            disk.offline_again = disk.offline_again.saturating_sub(1);
            let collides = self.collides(device);
            if collides && !is_read_only {
                self.give_new_signature(device);
            }
            if is_policy || collides && is_read_only {
                self.schedule(self.timing.policy, Event::PolicyTakesOffline(device));
            }
        }
        self.announce_volumes(device);
    }

    /// Dismounts the volumes of a disk. Calls on handles that are open on them fail from then on.
    pub(crate) fn dismount(&mut self, device: DeviceId) {
        let mounting = self.fresh();
        for volume in self
            .disks
            .get_mut(&device)
            .into_iter()
            .flat_map(Disk::volumes_mut)
        {
            volume.arrived = false;
            volume.known_to_provider = false;
            volume
                .file_system
                .iter_mut()
                .for_each(|file_system| file_system.dismount(mounting));
        }
    }

    /// Returns the disks that Windows has detected.
    pub(crate) fn visible_disks(&self) -> impl Iterator<Item = (DeviceId, &Disk)> {
        self.disks
            .iter()
            .map(|(device, disk)| (*device, disk))
            .filter(|(_, disk)| disk.visible)
    }

    /// Returns the visible disk with `number`.
    pub(crate) fn device(&self, number: u32) -> Option<DeviceId> {
        self.visible_disks()
            .find(|(_, disk)| disk.number == number)
            .map(|(id, _)| id)
    }

    /// Returns the disk with this number, even if Windows has not detected it yet.
    pub(crate) fn attached_device(&self, number: u32) -> Option<DeviceId> {
        self.disks
            .iter()
            .find(|(_, disk)| disk.number == number)
            .map(|(id, _)| *id)
    }

    /// Returns the error of requests to a device that was removed.
    pub(crate) fn removed(&self) -> OsError {
        self.removed_code.unwrap_or(OsError::DEV_NOT_EXIST)
    }

    /// Returns the disk of an open handle, or [`Self::removed`] if it was removed.
    pub(crate) fn disk(&self, device: DeviceId) -> OsResult<&Disk> {
        self.disks
            .get(&device)
            .filter(|disk| disk.visible)
            .ok_or(self.removed())
    }

    pub(crate) fn disk_mut(&mut self, device: DeviceId) -> OsResult<&mut Disk> {
        let removed = self.removed();
        self.disks
            .get_mut(&device)
            .filter(|disk| disk.visible)
            .ok_or(removed)
    }

    /// Returns the device and the partition number of the volume `id`, even if the volume has not
    /// arrived.
    pub(crate) fn location_of(&self, id: Uuid) -> Option<(DeviceId, u32)> {
        self.visible_disks().find_map(|(device, disk)| {
            let holds = |volume: &Volume| volume.id == id;
            let part = disk
                .partitions
                .iter()
                .find(|part| part.volume.as_ref().is_some_and(holds))?;
            Some((device, part.number))
        })
    }

    /// Returns the volume `id` and its disk.
    ///
    /// Fails with [`Self::removed`] if the disk was removed, and with `NOT_READY` if the volume has
    /// not arrived, for example because the disk is offline.
    pub(crate) fn volume(&self, id: Uuid) -> OsResult<(&Disk, &Volume)> {
        let found = self.visible_disks().find_map(|(_, disk)| {
            let volume = disk.volumes().find(|volume| volume.id == id)?;
            Some((disk, volume))
        });
        let (disk, volume) = found.ok_or(self.removed())?;
        if volume.arrived {
            Ok((disk, volume))
        } else {
            Err(OsError::NOT_READY)
        }
    }

    pub(crate) fn volume_mut(&mut self, id: Uuid) -> OsResult<&mut Volume> {
        let removed = self.removed();
        let mut volumes = self
            .disks
            .values_mut()
            .filter(|disk| disk.visible)
            .flat_map(Disk::volumes_mut);
        let volume = volumes.find(|volume| volume.id == id).ok_or(removed)?;
        if volume.arrived {
            Ok(volume)
        } else {
            Err(OsError::NOT_READY)
        }
    }

    /// Returns the volumes that have arrived, with their disks.
    pub(crate) fn arrived_volumes(&self) -> impl Iterator<Item = (&Disk, &Volume)> {
        let volumes = self
            .visible_disks()
            .flat_map(|(_, disk)| disk.volumes().map(move |volume| (disk, volume)));
        volumes.filter(|(_, volume)| volume.arrived)
    }

    /// Returns a file system, or the error that reading it gives.
    pub(crate) fn file_system(&self, id: FsId) -> OsResult<&FileSystem> {
        match id {
            FsId::Volume(volume) => self.volume(volume)?.1.mounted(),
            FsId::Share(tree) => self.trees.get(&tree).ok_or(OsError::BAD_NET_NAME),
        }
    }

    pub(crate) fn file_system_mut(&mut self, id: FsId) -> OsResult<&mut FileSystem> {
        self.file_system(id)?;
        match id {
            FsId::Volume(volume) => self
                .volume_mut(volume)?
                .file_system
                .as_mut()
                .ok_or(OsError::UNRECOGNIZED_VOLUME),
            FsId::Share(tree) => self.trees.get_mut(&tree).ok_or(OsError::BAD_NET_NAME),
        }
    }

    /// Fails with `WRITE_PROTECT` if the file system is on a read-only disk.
    pub(crate) fn check_writable(&self, id: FsId) -> OsResult<()> {
        match id {
            FsId::Volume(volume) if self.volume(volume)?.0.is_read_only() => {
                Err(OsError::WRITE_PROTECT)
            }
            _ => Ok(()),
        }
    }

    /// Creates an empty file system.
    pub(crate) fn make_file_system(&mut self, kind: &str, length: u64) -> FileSystem {
        let root = self.fresh();
        let serial = scramble(self.counter);
        FileSystem::new(kind, serial, length, root)
    }

    /// Returns all file systems, including those of detached iSCSI disks.
    pub(crate) fn file_systems_mut(&mut self) -> impl Iterator<Item = &mut FileSystem> {
        let disks = self
            .disks
            .values_mut()
            .chain(self.detached_luns.values_mut());
        let on_disks = disks
            .flat_map(Disk::volumes_mut)
            .filter_map(|volume| volume.file_system.as_mut());
        on_disks.chain(self.trees.values_mut())
    }

    /// Returns whether any handle is open on the file.
    pub(crate) fn is_open(&self, fs: FsId, node: FileId) -> bool {
        self.handles.values().any(|opened| opened.is_on(fs, node))
    }
}

/// SplitMix64: maps consecutive numbers to numbers that look random.
fn scramble(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
