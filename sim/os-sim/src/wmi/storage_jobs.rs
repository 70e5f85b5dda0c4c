//! Jobs of the storage provider: methods that take time and continue when their caller stops waiting.

use std::time::Duration;

use os::abi::{BASIC_DATA, DiskAttributes, MSFT_RESERVED};
use os::{OsResult, Returned, Uuid, Value};

use crate::disks::volume_lock::VolumeLock;
use crate::disks::{ALIGNMENT, Disk, Health, Layout, PartitionKind, SECTOR, Volume};
use crate::files::file_system::FileSystem;
use crate::state::{Callback, DeviceId, Event, State};
use crate::wmi::method_call::returned;
use crate::wmi::msft_storage::partition_by_number;

/// The result of a job, kept for the caller that waits for it.
pub(crate) type JobResult = OsResult<Returned>;

/// A running job.
pub(crate) struct Job {
    pub device: Option<DeviceId>,
    action: JobAction,
    /// When it began and how long it takes.
    begun: Duration,
    takes: Duration,
    /// Whether the caller still waits for the result.
    pub awaited: bool,
    /// Callbacks to run when the job has ended.
    pub callbacks: Vec<Callback>,
}

/// The change that a job makes when it ends.
#[derive(Clone, Debug)]
pub(crate) enum JobAction {
    Initialize {
        gpt: bool,
    },
    CreatePartition {
        offset: Option<u64>,
        size: Option<u64>,
        kind: Option<Uuid>,
    },
    Format {
        volume: Uuid,
        kind: String,
        label: String,
    },
    Resize {
        partition: u32,
        size: u64,
    },
    SetOffline(bool),
    SetReadOnly(bool),
    Rescan,
    /// A call that uses the network.
    Remote {
        object: String,
        method: String,
        arguments: Vec<(String, Value)>,
    },
}

/// The return values of the provider's methods.
pub(crate) mod code {
    pub(crate) const DONE: u32 = 0;
    pub(crate) const NOT_SUPPORTED: u32 = 1;
    pub(crate) const FAILED: u32 = 4;
    pub(crate) const INVALID_PARAMETER: u32 = 5;
    pub(crate) const IN_USE: u32 = 6;
    pub(crate) const NO_SPACE: u32 = 40000;
    pub(crate) const STALE_CACHE: u32 = 40003;
    pub(crate) const NOT_INITIALIZED: u32 = 41000;
    pub(crate) const ALREADY_INITIALIZED: u32 = 41001;
    pub(crate) const READ_ONLY: u32 = 41002;
    pub(crate) const BAD_PARTITION_TYPE: u32 = 41010;
    pub(crate) const TOO_SMALL_FOR_GPT: u32 = 41014;
}

/// The smallest disk on which the provider writes a GPT.
const MIN_GPT_DISK: u64 = 32 << 20;

impl Job {
    /// Returns how the job locks a volume. A format locks its volume first and then dismounts it; until it ends, opening
    /// the volume fails.
    pub(crate) fn volume_lock(&self, id: Uuid, now: Duration) -> Option<VolumeLock> {
        match &self.action {
            JobAction::Format { volume, .. } if *volume != id => None,
            JobAction::Format { .. } if now < self.begun + self.takes / 2 => Some(VolumeLock::Mounted),
            JobAction::Format { .. } => Some(VolumeLock::Dismounted),
            _ => None,
        }
    }
}

impl State {
    /// Starts a job. Fails with `IN_USE` if another job runs on the disk.
    pub(crate) fn start(&mut self, device: Option<DeviceId>, action: JobAction, takes: Duration) -> Result<u64, u32> {
        if device.is_some() && self.jobs.values().any(|job| job.device == device) {
            return Err(code::IN_USE);
        }
        if let Some(refusal) = self.refusal(device, &action) {
            return Err(refusal);
        }
        if let JobAction::Format { volume, .. } = &action {
            self.dismount_file_system(*volume);
        }
        let id = self.fresh();
        self.jobs.insert(id, Job { device, action, begun: self.now, takes, awaited: true, callbacks: Vec::new() });
        self.schedule(takes, Event::JobEnds(id));
        Ok(id)
    }

    pub(crate) fn job_ends(&mut self, id: u64) {
        let Some(job) = self.jobs.remove(&id) else { return };
        let returned = match self.refusal(job.device, &job.action) {
            Some(refusal) => Ok(returned(refusal)),
            None => self.perform(job.device, job.action),
        };
        if job.awaited {
            self.job_results.insert(id, returned);
        }
        self.callbacks.extend(job.callbacks);
    }

    /// Returns the code with which the provider refuses an action. Checked when a job starts and again when it ends.
    fn refusal(&self, device: Option<DeviceId>, action: &JobAction) -> Option<u32> {
        let device = device?;
        let Ok(disk) = self.disk(device) else { return Some(code::FAILED) };
        let changes = !matches!(action, JobAction::SetOffline(_) | JobAction::SetReadOnly(_) | JobAction::Rescan);
        if changes && disk.is_read_only() {
            return Some(code::READ_ONLY);
        }
        let stale = changes && disk.is_cache_stale() && !matches!(action, JobAction::Format { .. });
        match action {
            JobAction::Initialize { .. } if disk.layout != Layout::Raw => Some(code::ALREADY_INITIALIZED),
            JobAction::Initialize { gpt: true } if disk.cached_size < MIN_GPT_DISK => Some(code::TOO_SMALL_FOR_GPT),
            _ if stale => Some(code::STALE_CACHE),
            JobAction::CreatePartition { offset, size, kind } => create_partition_refusal(disk, *offset, *size, *kind),
            JobAction::Resize { partition, size } => resize_refusal(disk, *partition, *size),
            JobAction::Format { volume, kind, .. } => self.format_refusal(*volume, kind),
            JobAction::SetOffline(true) | JobAction::SetReadOnly(true) if disk.system => Some(code::NOT_SUPPORTED),
            _ => None,
        }
    }

    fn format_refusal(&self, volume: Uuid, kind: &str) -> Option<u32> {
        let Ok((_, volume)) = self.volume(volume) else { return Some(code::FAILED) };
        if volume.health == Health::Unreadable {
            return Some(code::FAILED);
        }
        file_system_name(kind).is_none().then_some(code::INVALID_PARAMETER)
    }

    fn perform(&mut self, device: Option<DeviceId>, action: JobAction) -> JobResult {
        Ok(match (action, device) {
            (JobAction::Remote { object, method, arguments }, _) => {
                let arguments: Vec<_> = arguments.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
                return self.call_remote(&object.parse()?, &method, &arguments);
            }
            (JobAction::Rescan, _) => {
                self.rescan();
                self.disks.values_mut().filter(|disk| disk.visible).for_each(Disk::refresh);
                returned(code::DONE)
            }
            (JobAction::Initialize { gpt }, Some(device)) => self.initialize(device, gpt),
            (JobAction::CreatePartition { offset, size, kind }, Some(device)) => {
                self.create_partition(device, offset, size, kind)
            }
            (JobAction::Format { volume, kind, label }, _) => returned(self.format(volume, &kind, &label)),
            (JobAction::Resize { partition, size }, Some(device)) => returned(self.resize(device, partition, size)),
            (JobAction::SetOffline(offline), Some(device)) => {
                returned(self.set_attribute(device, DiskAttributes::OFFLINE, offline))
            }
            (JobAction::SetReadOnly(read_only), Some(device)) => {
                returned(self.set_attribute(device, DiskAttributes::READ_ONLY, read_only))
            }
            (_, None) => returned(code::FAILED),
        })
    }

    fn initialize(&mut self, device: DeviceId, gpt: bool) -> Returned {
        let (id, reserved) = (self.fresh_uuid(), self.fresh_uuid());
        let Ok(disk) = self.disk_mut(device) else { return returned(code::FAILED) };
        if gpt {
            disk.write_gpt(id, reserved);
        } else {
            disk.layout = Layout::Mbr { signature: id.as_fields().0 };
        }
        returned(code::DONE)
    }

    fn create_partition(
        &mut self,
        device: DeviceId,
        offset: Option<u64>,
        size: Option<u64>,
        kind: Option<Uuid>,
    ) -> Returned {
        let (id, volume) = (self.fresh_uuid(), self.fresh_uuid());
        let Ok(disk) = self.disk_mut(device) else { return returned(code::FAILED) };
        let Some((gap, available)) = disk.largest_gap() else { return returned(code::NO_SPACE) };
        let kind = match disk.layout {
            Layout::Gpt { .. } => PartitionKind::Gpt(kind.unwrap_or(BASIC_DATA)),
            _ => PartitionKind::Mbr(7),
        };
        let number = disk.add_partition(offset.unwrap_or(gap), size.unwrap_or(available), kind, id);
        let Some(part) = disk.partition_mut(number) else { return returned(code::FAILED) };
        if part.holds_volume() {
            part.volume = Some(Volume::new(volume));
        }
        self.announce_volumes(device);
        let mut returned = returned(code::DONE);
        if let Some(created) = self.disks.get(&device).and_then(|disk| partition_by_number(self, disk, number)) {
            let created = Value::Object(Box::new(created));
            returned.out.properties.insert("CreatedPartition".into(), created);
        }
        returned
    }

    /// Formats a volume. Its content is lost.
    pub(crate) fn format(&mut self, id: Uuid, kind: &str, label: &str) -> u32 {
        let Some((device, number)) = self.location_of(id) else { return code::FAILED };
        let Some(kind) = file_system_name(kind) else { return code::INVALID_PARAMETER };
        let Some(part) = self.disks.get(&device).and_then(|disk| disk.partitions.iter().find(|p| p.number == number))
        else {
            return code::FAILED;
        };
        let mut file_system = self.make_file_system(kind, part.length);
        label.clone_into(&mut file_system.label);
        let Ok(volume) = self.volume_mut(id) else { return code::FAILED };
        volume.file_system = Some(file_system);
        volume.recognised = None;
        volume.health = Health::Readable;
        volume.formats += 1;
        code::DONE
    }

    fn resize(&mut self, device: DeviceId, number: u32, size: u64) -> u32 {
        let Ok(disk) = self.disk_mut(device) else { return code::FAILED };
        let usable_end = disk.gpt_end();
        if let Layout::Gpt { end, .. } = &mut disk.layout {
            *end = usable_end;
        }
        let Some(part) = disk.partition_mut(number) else { return code::FAILED };
        part.length = size;
        if let Some(file_system) = part.volume.as_mut().and_then(|volume| volume.file_system.as_mut()) {
            file_system.length = size;
        }
        code::DONE
    }

    fn set_attribute(&mut self, device: DeviceId, bit: u64, set: bool) -> u32 {
        let Ok(disk) = self.disk(device) else { return code::FAILED };
        let attributes = disk.attributes & !bit | if set { bit } else { 0 };
        if attributes != disk.attributes {
            self.set_attributes(device, attributes);
        }
        if let Ok(disk) = self.disk_mut(device) {
            disk.refresh();
        }
        code::DONE
    }

    /// Makes Windows detect the attached disks that it has not detected yet.
    pub(crate) fn rescan(&mut self) {
        let hidden: Vec<DeviceId> =
            self.disks.iter().filter(|(_, disk)| !disk.visible).map(|(device, _)| *device).collect();
        for device in hidden {
            self.disks.entry(device).and_modify(|disk| disk.visible = true);
            self.announce_volumes(device);
        }
    }
}

/// Returns the smallest and the largest size to which a partition can be resized, from the provider's cache.
pub(crate) fn supported_size(disk: &Disk, partition: u32) -> Option<(u64, u64)> {
    let part = disk.partitions.iter().find(|part| part.number == partition)?;
    let used = part.volume.as_ref().and_then(|volume| volume.file_system.as_ref()).map_or(0, FileSystem::used);
    let smallest = used.next_multiple_of(ALIGNMENT).min(part.length);
    Some((smallest, disk.max_length_at(part.offset, disk.provider_cache.size).max(part.length)))
}

fn resize_refusal(disk: &Disk, partition: u32, size: u64) -> Option<u32> {
    let Some(part) = disk.partitions.iter().find(|part| part.number == partition) else {
        return Some(code::FAILED);
    };
    let Some(volume) = part.volume.as_ref().filter(|volume| volume.arrived) else {
        return Some(code::NOT_SUPPORTED);
    };
    if volume.health != Health::Readable {
        return Some(code::FAILED);
    }
    let (smallest, largest) = supported_size(disk, partition)?;
    if size < smallest {
        return Some(code::INVALID_PARAMETER);
    }
    (size > largest).then_some(code::NO_SPACE)
}

fn create_partition_refusal(disk: &Disk, offset: Option<u64>, size: Option<u64>, kind: Option<Uuid>) -> Option<u32> {
    match disk.layout {
        Layout::Raw | Layout::Superfloppy => return Some(code::NOT_INITIALIZED),
        Layout::Mbr { .. } if kind.is_some() => return Some(code::BAD_PARTITION_TYPE),
        Layout::Gpt { .. } if kind == Some(MSFT_RESERVED) => return Some(code::BAD_PARTITION_TYPE),
        Layout::Mbr { .. } | Layout::Gpt { .. } => {}
    }
    let Some((gap, available)) = disk.largest_gap() else { return Some(code::NO_SPACE) };
    let begin = offset.unwrap_or(gap);
    let size = size.unwrap_or(available);
    if size == 0 || !begin.is_multiple_of(SECTOR) || !size.is_multiple_of(SECTOR) {
        return Some(code::INVALID_PARAMETER);
    }
    let fits = begin >= gap && begin.checked_add(size).is_some_and(|end| end <= gap + available);
    (!fits).then_some(code::NO_SPACE)
}

/// Returns the canonical name of a file system, if the provider can format it.
fn file_system_name(kind: &str) -> Option<&'static str> {
    ["NTFS", "ReFS", "FAT32", "exFAT"].into_iter().find(|known| known.eq_ignore_ascii_case(kind))
}
