//! The whole of a node's state: what there is, what is open and what is due.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use os::{OsError, OsResult, Uuid};

use crate::clock::timing::Timing;
use crate::disks::mount_manager::Mount;
use crate::disks::{Disk, Volume};
use crate::files::file_system::{FileId, FileSystem};
use crate::files::handles::Opened;
use crate::iscsi::Iscsi;
use crate::services::Services;
use crate::smb::Smb;
use crate::wmi::storage_jobs::{Job, Outcome};

/// The identity of a device; never used twice on a node.
pub(crate) type DeviceId = u64;

/// 2026-01-01, when every simulated node's clock begins, in 100 ns since 1601.
const EPOCH: i64 = 134_116_992_000_000_000;

/// A simulated node's state.
#[derive(Default)]
pub(crate) struct State {
    /// Time since the clock's beginning.
    pub now: Duration,
    due: Vec<ScheduledEvent>,
    counter: u64,
    pub disks: BTreeMap<DeviceId, Disk>,
    pub mounts: Vec<Mount>,
    /// The directory trees behind remote shares.
    pub trees: BTreeMap<Uuid, FileSystem>,
    /// Disks of iSCSI targets that no session reaches, by their medium.
    pub detached_luns: BTreeMap<Uuid, Disk>,
    pub bios_serial: Option<String>,
    pub services: Services,
    pub smb: Smb,
    pub iscsi: Iscsi,
    pub jobs: BTreeMap<u64, Job>,
    pub timing: Timing,
    pub job_results: BTreeMap<u64, Outcome>,
    pub handles: BTreeMap<u64, Opened>,
    /// How long the network took over what was just done, to be waited for.
    pub network_time: Duration,
    /// What is to be called once the state is unlocked.
    pub calls: Vec<Call>,
}

/// A call to be made without the state's lock.
pub(crate) type Call = Box<dyn FnOnce() + Send>;

/// Something that will happen.
#[derive(Clone, Debug)]
struct ScheduledEvent {
    at: Duration,
    order: u64,
    event: Event,
}

/// What can happen by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Windows has noticed the volume.
    VolumeArrives(Uuid),
    /// The provider has finished a job.
    JobEnds(u64),
}

/// A file system: a volume's or a share's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FsId {
    Volume(Uuid),
    /// `host\share` in lower case, and the directory tree behind it.
    Share(String, Uuid),
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("now", &self.now).finish_non_exhaustive()
    }
}

impl State {
    /// A number never given before.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// A GUID never given before; the same on every run, in no order.
    pub(crate) fn fresh_uuid(&mut self) -> Uuid {
        let seed = self.fresh();
        let high = scramble(seed.wrapping_mul(2));
        let low = scramble(seed.wrapping_mul(2) + 1);
        uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes()).into_uuid()
    }

    /// The time of day, in 100 ns since 1601.
    pub(crate) fn time_of_day(&self) -> i64 {
        EPOCH + i64::try_from(self.now.as_nanos() / 100).unwrap_or(i64::MAX - EPOCH)
    }

    pub(crate) fn schedule(&mut self, after: Duration, event: Event) {
        let order = self.fresh();
        self.due.push(ScheduledEvent { at: self.now + after, order, event });
    }

    /// When something happens next.
    pub(crate) fn next_event(&self) -> Option<Duration> {
        self.due.iter().map(|due| due.at).min()
    }

    /// Moves time to `to`, and lets all that is due until then happen, each at its time.
    pub(crate) fn advance_to(&mut self, to: Duration) {
        loop {
            let next =
                self.due.iter().enumerate().filter(|(_, due)| due.at <= to).min_by_key(|(_, due)| (due.at, due.order));
            let Some((index, _)) = next else { break };
            let due = self.due.swap_remove(index);
            self.now = self.now.max(due.at);
            self.happen(&due.event);
        }
        self.now = self.now.max(to);
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::VolumeArrives(volume) => self.volume_arrives(*volume),
            Event::JobEnds(job) => self.job_ends(*job),
        }
    }

    /// Forgets what would have happened by itself and is none of `keep`.
    pub(crate) fn cancel(&mut self, keep: impl Fn(&Event) -> bool) {
        self.due.retain(|due| keep(&due.event));
    }

    fn volume_arrives(&mut self, id: Uuid) {
        for disk in self.disks.values_mut().filter(|disk| disk.visible && !disk.is_offline()) {
            for volume in disk.volumes_mut().filter(|volume| volume.id == id) {
                volume.arrived = true;
            }
        }
    }

    /// Lets the volumes of a disk that is there and online arrive by and by.
    pub(crate) fn announce_volumes(&mut self, device: DeviceId) {
        let Some(disk) = self.disks.get(&device).filter(|disk| disk.visible && !disk.is_offline()) else { return };
        let waiting: Vec<Uuid> = disk.volumes().filter(|volume| !volume.arrived).map(|volume| volume.id).collect();
        for id in waiting {
            self.schedule(self.timing.volume_arrival, Event::VolumeArrives(id));
        }
    }

    /// Sets a disk's attributes; its volumes come and go with them.
    pub(crate) fn set_attributes(&mut self, device: DeviceId, attributes: u64) {
        let Some(disk) = self.disks.get_mut(&device) else { return };
        disk.attributes = attributes;
        if disk.is_offline() {
            self.dismount(device);
        } else {
            self.announce_volumes(device);
        }
    }

    /// Takes a disk's volumes away from under their handles.
    pub(crate) fn dismount(&mut self, device: DeviceId) {
        let mounting = self.fresh();
        for volume in self.disks.get_mut(&device).into_iter().flat_map(Disk::volumes_mut) {
            volume.arrived = false;
            volume.file_system.iter_mut().for_each(|file_system| file_system.dismount(mounting));
        }
    }

    /// The disk with `number` that Windows shows.
    pub(crate) fn device(&self, number: u32) -> Option<DeviceId> {
        self.disks.iter().find(|(_, disk)| disk.visible && disk.number == number).map(|(id, _)| *id)
    }

    /// The disk a handle was opened on, if it is still there.
    pub(crate) fn disk(&self, device: DeviceId) -> OsResult<&Disk> {
        self.disks.get(&device).filter(|disk| disk.visible).ok_or(OsError::DEVICE_NOT_CONNECTED)
    }

    pub(crate) fn disk_mut(&mut self, device: DeviceId) -> OsResult<&mut Disk> {
        self.disks.get_mut(&device).filter(|disk| disk.visible).ok_or(OsError::DEVICE_NOT_CONNECTED)
    }

    /// Where the volume `id` is, whether Windows shows it or not: device and partition number.
    pub(crate) fn location_of(&self, id: Uuid) -> Option<(DeviceId, u32)> {
        self.disks.iter().filter(|(_, disk)| disk.visible).find_map(|(device, disk)| {
            let holds = |volume: &Volume| volume.id == id;
            let part = disk.partitions.iter().find(|part| part.volume.as_ref().is_some_and(holds))?;
            Some((*device, part.number))
        })
    }

    /// The volume `id` if Windows shows it; `DEVICE_NOT_CONNECTED` if its disk has gone, `NOT_READY` if that is offline.
    pub(crate) fn volume(&self, id: Uuid) -> OsResult<(&Disk, &Volume)> {
        let found = self.disks.values().filter(|disk| disk.visible).find_map(|disk| {
            let volume = disk.volumes().find(|volume| volume.id == id)?;
            Some((disk, volume))
        });
        let (disk, volume) = found.ok_or(OsError::DEVICE_NOT_CONNECTED)?;
        if volume.arrived { Ok((disk, volume)) } else { Err(OsError::NOT_READY) }
    }

    pub(crate) fn volume_mut(&mut self, id: Uuid) -> OsResult<&mut Volume> {
        let mut volumes = self.disks.values_mut().filter(|disk| disk.visible).flat_map(Disk::volumes_mut);
        let volume = volumes.find(|volume| volume.id == id).ok_or(OsError::DEVICE_NOT_CONNECTED)?;
        if volume.arrived { Ok(volume) } else { Err(OsError::NOT_READY) }
    }

    /// The volumes that Windows shows.
    pub(crate) fn arrived_volumes(&self) -> impl Iterator<Item = (&Disk, &Volume)> {
        let disks = self.disks.values().filter(|disk| disk.visible);
        disks.flat_map(|disk| disk.volumes().map(move |volume| (disk, volume))).filter(|(_, volume)| volume.arrived)
    }

    /// A file system that can be read.
    pub(crate) fn file_system(&self, id: &FsId) -> OsResult<&FileSystem> {
        match id {
            FsId::Volume(volume) => self.volume(*volume)?.1.mounted(),
            FsId::Share(_, tree) => self.trees.get(tree).ok_or(OsError::BAD_NET_NAME),
        }
    }

    pub(crate) fn file_system_mut(&mut self, id: &FsId) -> OsResult<&mut FileSystem> {
        self.file_system(id)?;
        match id {
            FsId::Volume(volume) => self.volume_mut(*volume)?.file_system.as_mut().ok_or(OsError::UNRECOGNIZED_VOLUME),
            FsId::Share(_, tree) => self.trees.get_mut(tree).ok_or(OsError::BAD_NET_NAME),
        }
    }

    /// Whether the file system `id` may be written to.
    pub(crate) fn check_writable(&self, id: &FsId) -> OsResult<()> {
        match id {
            FsId::Volume(volume) if self.volume(*volume)?.0.is_read_only() => Err(OsError::WRITE_PROTECT),
            _ => Ok(()),
        }
    }

    /// Puts an empty file system on a volume.
    pub(crate) fn make_file_system(&mut self, kind: &str, length: u64) -> FileSystem {
        let (root, serial) = (self.fresh(), scramble(self.counter));
        FileSystem::new(kind, serial, length, root, self.time_of_day())
    }

    /// All file systems there are, within reach or not.
    pub(crate) fn file_systems_mut(&mut self) -> impl Iterator<Item = &mut FileSystem> {
        let disks = self.disks.values_mut().chain(self.detached_luns.values_mut());
        let on_disks = disks.flat_map(Disk::volumes_mut).filter_map(|volume| volume.file_system.as_mut());
        on_disks.chain(self.trees.values_mut())
    }

    /// Whether some handle is open on the file.
    pub(crate) fn is_open(&self, fs: &FsId, node: FileId) -> bool {
        self.handles.values().any(|opened| opened.is_on(fs, node))
    }
}

/// SplitMix64: spreads consecutive numbers over all others.
fn scramble(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
