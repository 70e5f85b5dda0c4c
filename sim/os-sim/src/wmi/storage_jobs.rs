//! Jobs of the storage provider: methods that take time and continue when their caller stops
//! waiting.

use std::time::Duration;

use os::abi::{BASIC_DATA, DiskAttributes};
use os::{OsResult, Returned, Uuid, Value};

use crate::description::VolumeHealth;
use crate::disks::volume_lock::VolumeLock;
use crate::disks::{ALIGNMENT, Disk, Layout, PartitionKind, SECTOR, Volume, Writability};
use crate::files::file_system::{NTFS_CLUSTERS, new_root};
use crate::state::{Callback, DeviceId, Event, State};
use crate::wmi::method_call::{created, returned};
use crate::wmi::provider_instances::partition_by_number;
use crate::wmi::return_value as code;
use crate::wmi::wql::ObjectPath;

/// The result of a job, kept for the caller that waits for it.
pub(crate) type JobResult = OsResult<Returned>;

/// A running job.
#[derive(Clone)]
pub(crate) struct Job {
    pub device: Option<DeviceId>,
    action: JobAction,
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
    Initialize,
    CreatePartition(NewPartition),
    Format(FormatArguments),
    Resize {
        partition: u32,
        size: u64,
    },
    SetOffline(bool),
    SetReadOnly(bool),
    Rescan,
    /// A call that uses the network.
    Remote {
        object: ObjectPath,
        method: String,
        arguments: Vec<(String, Value)>,
    },
}

/// The arguments of `CreatePartition`.
#[derive(Clone, Debug)]
pub(crate) struct NewPartition {
    pub offset: Option<u64>,
    /// `None` for the largest free range.
    pub size: Option<u64>,
    pub gpt_type: Option<Uuid>,
}

/// The arguments of `Format`.
#[derive(Clone, Debug)]
pub(crate) struct FormatArguments {
    pub volume: Uuid,
    pub kind: String,
    pub cluster_size: Option<u32>,
}

/// The smallest disk on which the provider writes a GPT.
const MIN_GPT_DISK: u64 = 32 << 20;

/// The type of a new MBR partition: "huge".
const MBR_HUGE: u8 = 6;

impl Job {
    /// Returns how the job locks a volume. A format locks its volume, dismounts it halfway, and
    /// unlocks it at its end.
    pub(crate) fn volume_lock(&self, id: Uuid, now: Duration) -> Option<VolumeLock> {
        match &self.action {
            JobAction::Format(format) if format.volume != id => None,
            JobAction::Format(_) if now < self.begun + self.takes / 2 => Some(VolumeLock::Mounted),
            JobAction::Format(_) => Some(VolumeLock::Dismounted),
            _ => None,
        }
    }
}

impl State {
    /// Starts a job. Fails if another job runs on the disk.
    pub(crate) fn start(
        &mut self,
        device: Option<DeviceId>,
        action: JobAction,
        takes: Duration,
    ) -> Result<u64, u32> {
        if device.is_some() && self.jobs.values().any(|job| job.device == device) {
            return Err(match action {
                // "In use" (6) is not a documented return value of these methods.
                JobAction::Format(_) => code::ACCESS_DENIED,
                JobAction::Resize { .. } => code::FAILED,
                _ => code::IN_USE,
            });
        }
        if let Some(refusal) = self.refusal(device, &action) {
            return Err(refusal);
        }
        if let JobAction::Format(format) = &action {
            self.dismount_file_system(format.volume);
        }
        let id = self.fresh();
        self.jobs.insert(
            id,
            Job {
                device,
                action,
                begun: self.now,
                takes,
                awaited: true,
                callbacks: Vec::new(),
            },
        );
        self.schedule(takes, Event::JobEnds(id));
        Ok(id)
    }

    pub(crate) fn job_ends(&mut self, id: u64) {
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        let returned = match self.refusal(job.device, &job.action) {
            Some(refusal) => Ok(returned(refusal)),
            None => self.perform(job.device, job.action),
        };
        if job.awaited {
            self.job_results.insert(id, returned);
        }
        self.callbacks.extend(job.callbacks);
    }

    /// Returns the code with which the provider refuses an action. Called when a job starts and
    /// again when it ends.
    fn refusal(&self, device: Option<DeviceId>, action: &JobAction) -> Option<u32> {
        let device = device?;
        let Ok(disk) = self.disk(device) else {
            return Some(code::FAILED);
        };
        match action {
            JobAction::Format(format) => self.format_refusal(disk, format),
            JobAction::Resize { .. } if disk.is_offline() || disk.is_read_only() => {
                Some(code::FAILED)
            }
            JobAction::Resize { partition, size } => resize_refusal(disk, *partition, *size),
            JobAction::Initialize if disk.layout != Layout::Raw => Some(code::ALREADY_INITIALIZED),
            JobAction::SetOffline(true) | JobAction::SetReadOnly(_) if disk.system => {
                Some(code::CRITICAL_DISK)
            }
            JobAction::SetOffline(_) if disk.is_cache_stale() => Some(code::STALE_CACHE),
            JobAction::SetOffline(_) | JobAction::Rescan | JobAction::Remote { .. } => None,
            _ if disk.is_offline() => Some(code::DISK_OFFLINE),
            _ if disk.is_cache_stale() => Some(code::STALE_CACHE),
            JobAction::SetReadOnly(_) => None,
            _ if disk.is_read_only() => Some(code::DISK_READ_ONLY),
            JobAction::Initialize if disk.cached_size < MIN_GPT_DISK => {
                Some(code::TOO_SMALL_FOR_GPT)
            }
            JobAction::Initialize => None,
            JobAction::CreatePartition(partition) => create_partition_refusal(disk, partition),
        }
    }

    fn format_refusal(&self, disk: &Disk, format: &FormatArguments) -> Option<u32> {
        let Ok((_, volume)) = self.volume(format.volume) else {
            return Some(code::FAILED);
        };
        if disk.system {
            return Some(code::SYSTEM_PARTITION);
        }
        if volume.offline {
            return Some(code::INVALID_PARAMETER);
        }
        let Some(kind) = file_system_name(&format.kind) else {
            return Some(code::FILE_SYSTEM_NOT_SUPPORTED);
        };
        // csi-proxy passes only sizes that NTFS can have.
        if kind == "ReFS"
            && format
                .cluster_size
                .is_some_and(|size| ![4096, 65536].contains(&size))
        {
            return Some(code::BAD_CLUSTER_SIZE);
        }
        let (_, number) = self.location_of(format.volume)?;
        let length = disk.partition(number).map_or(0, |part| part.length);
        let is_too_small = |size| length / u64::from(size) > NTFS_CLUSTERS;
        if kind == "NTFS" && format.cluster_size.is_some_and(is_too_small) {
            return Some(code::TOO_MANY_CLUSTERS);
        }
        let is_writable = match volume.writability {
            Writability::Writable => true,
            Writability::NotYet => false,
            Writability::From(ready) => self.now >= ready,
        };
        if disk.is_read_only() || !is_writable {
            return Some(code::VOLUME_READ_ONLY);
        }
        (volume.health == VolumeHealth::Unreadable).then_some(code::FAILED)
    }

    fn perform(&mut self, device: Option<DeviceId>, action: JobAction) -> JobResult {
        let code = match (action, device) {
            (
                JobAction::Remote {
                    object,
                    method,
                    arguments,
                },
                _,
            ) => {
                let arguments: Vec<_> = arguments
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.clone()))
                    .collect();
                return self.call_remote(&object, &method, &arguments);
            }
            (JobAction::Rescan, _) => self.refresh_provider(),
            (JobAction::Initialize, Some(device)) => self.initialize(device),
            (JobAction::CreatePartition(partition), Some(device)) => {
                return Ok(self.create_partition(device, &partition));
            }
            (JobAction::Format(format), _) => self.format(&format),
            (JobAction::Resize { partition, size }, Some(device)) => {
                self.resize(device, partition, size)
            }
            (JobAction::SetOffline(offline), Some(device)) => {
                self.set_attribute(device, DiskAttributes::OFFLINE, offline)
            }
            (JobAction::SetReadOnly(read_only), Some(device)) => {
                self.set_attribute(device, DiskAttributes::READ_ONLY, read_only)
            }
            (_, None) => code::FAILED,
        };
        Ok(returned(code))
    }

    fn initialize(&mut self, device: DeviceId) -> u32 {
        let id = self.fresh_uuid();
        let reserved = self.fresh_uuid();
        let Ok(disk) = self.disk_mut(device) else {
            return code::FAILED;
        };
        disk.write_gpt(id, reserved);
        code::DONE
    }

    fn create_partition(&mut self, device: DeviceId, wanted: &NewPartition) -> Returned {
        let id = self.fresh_uuid();
        let volume = self.fresh_uuid();
        let Ok(disk) = self.disk_mut(device) else {
            return returned(code::FAILED);
        };
        let Some((offset, size)) = place(disk, wanted) else {
            return returned(code::NO_SPACE);
        };
        let kind = match disk.layout {
            Layout::Gpt { .. } => PartitionKind::Gpt(wanted.gpt_type.unwrap_or(BASIC_DATA)),
            _ => PartitionKind::Mbr(MBR_HUGE),
        };
        let number = disk.add_partition(offset, size, kind, id);
        let Some(part) = disk.partition_mut(number) else {
            return returned(code::FAILED);
        };
        if part.holds_volume() {
            part.volume = Some(Volume {
                writability: Writability::NotYet,
                ..Volume::new(volume)
            });
        }
        self.announce_volumes(device);
        let partition = self
            .disks
            .get(&device)
            .and_then(|disk| partition_by_number(self, disk, number));
        let out = partition
            .map(|partition| created("CreatedPartition", partition).out)
            .unwrap_or_default();
        Returned {
            code: code::DONE,
            out,
        }
    }

    /// Formats a volume. Its content is lost.
    pub(crate) fn format(&mut self, format: &FormatArguments) -> u32 {
        let Some((device, number)) = self.location_of(format.volume) else {
            return code::FAILED;
        };
        let Some(kind) = file_system_name(&format.kind) else {
            return code::INVALID_PARAMETER;
        };
        let Some(part) = self.disks[&device].partition(number) else {
            return code::FAILED;
        };
        let mut file_system = self.make_file_system(kind, part.length);
        file_system.cluster = format.cluster_size.map_or(file_system.cluster, u64::from);
        if !file_system.is_fat()
            && let Ok(root) = file_system.record_mut(file_system.root)
        {
            root.access = Some(new_root());
        }
        let Ok(volume) = self.volume_mut(format.volume) else {
            return code::FAILED;
        };
        volume.file_system = Some(file_system);
        volume.recognised = None;
        volume.health = VolumeHealth::Readable;
        volume.formats += 1;
        code::DONE
    }

    fn resize(&mut self, device: DeviceId, number: u32, size: u64) -> u32 {
        let Ok(disk) = self.disk_mut(device) else {
            return code::FAILED;
        };
        let usable_end = disk.gpt_end();
        if let Layout::Gpt { end, .. } = &mut disk.layout {
            *end = usable_end;
        }
        let Some(part) = disk.partition_mut(number) else {
            return code::FAILED;
        };
        part.length = size;
        if let Some(file_system) = part
            .volume
            .as_mut()
            .and_then(|volume| volume.file_system.as_mut())
        {
            file_system.length = size;
        }
        code::DONE
    }

    /// Sets or clears an attribute of a disk, and updates the provider's cache of the disk.
    pub(crate) fn set_attribute(&mut self, device: DeviceId, bit: u64, set: bool) -> u32 {
        let Ok(disk) = self.disk(device) else {
            return code::FAILED;
        };
        let attributes = disk.attributes & !bit | if set { bit } else { 0 };
        if attributes != disk.attributes {
            self.set_attributes(device, attributes);
        }
        if let Ok(disk) = self.disk_mut(device) {
            disk.refresh();
        }
        code::DONE
    }

    /// Updates the provider's cache of all disks.
    fn refresh_provider(&mut self) -> u32 {
        let visible: Vec<DeviceId> = self.visible_disks().map(|(device, _)| device).collect();
        for device in visible {
            self.provider_learns(device);
            self.disks.entry(device).and_modify(Disk::refresh);
        }
        code::DONE
    }

    /// Makes Windows detect the attached disks that it has not detected yet.
    pub(crate) fn rescan(&mut self) {
        let hidden: Vec<DeviceId> = self
            .disks
            .iter()
            .filter(|(_, disk)| !disk.visible)
            .map(|(device, _)| *device)
            .collect();
        for device in hidden {
            self.disks
                .entry(device)
                .and_modify(|disk| disk.visible = true);
            self.schedule(self.timing.provider, Event::ProviderLearns(device));
            self.announce_volumes(device);
        }
    }
}

/// Returns the smallest and the largest size to which a partition can be resized, from the
/// provider's cache, or the code with which the provider refuses to resize it.
pub(crate) fn supported_size(disk: &Disk, partition: u32) -> Result<(u64, u64), u32> {
    let part = disk.partition(partition).ok_or(code::FAILED)?;
    let volume = part.volume.as_ref().ok_or(code::NOT_SUPPORTED)?;
    let (used, clusters) = match volume.file_system.as_ref() {
        _ if volume.offline || volume.health != VolumeHealth::Readable => {
            return Err(code::UNKNOWN_FILE_SYSTEM);
        }
        Some(file_system) => match &*file_system.kind {
            "NTFS" => (file_system.used(), file_system.cluster * NTFS_CLUSTERS),
            // ReFS cannot shrink.
            "ReFS" => (part.length, u64::MAX),
            _ => return Err(code::UNKNOWN_FILE_SYSTEM),
        },
        None => (0, u64::MAX),
    };
    let smallest = used.next_multiple_of(ALIGNMENT).min(part.length);
    let largest = disk
        .max_length_at(part.offset, disk.provider_cache.size)
        .min(clusters);
    Ok((smallest, largest.max(part.length)))
}

fn resize_refusal(disk: &Disk, partition: u32, size: u64) -> Option<u32> {
    match supported_size(disk, partition) {
        Err(refusal) => Some(refusal),
        Ok((smallest, largest)) => {
            (size < smallest || size > largest).then_some(code::SIZE_NOT_SUPPORTED)
        }
    }
}

fn create_partition_refusal(disk: &Disk, wanted: &NewPartition) -> Option<u32> {
    if matches!(disk.layout, Layout::Raw | Layout::Superfloppy) {
        return Some(code::NOT_INITIALIZED);
    }
    if wanted
        .size
        .is_some_and(|size| size == 0 || !size.is_multiple_of(SECTOR))
    {
        return Some(code::SIZE_NOT_SUPPORTED);
    }
    let Some((gap, available)) = disk.largest_gap() else {
        return Some(code::NO_SPACE);
    };
    let fits = |(begin, size): (u64, u64)| {
        begin >= gap
            && begin
                .checked_add(size)
                .is_some_and(|end| end <= gap + available)
    };
    (!place(disk, wanted).is_some_and(fits)).then_some(code::NO_SPACE)
}

/// Returns the offset and the size of a new partition. The offset is rounded to the default
/// alignment.
fn place(disk: &Disk, wanted: &NewPartition) -> Option<(u64, u64)> {
    let (gap, available) = disk.largest_gap()?;
    let offset = match wanted.offset {
        None => gap,
        Some(offset) => offset.checked_add(ALIGNMENT / 2)? / ALIGNMENT * ALIGNMENT,
    };
    Some((
        offset,
        wanted
            .size
            .unwrap_or_else(|| available.saturating_sub(offset.saturating_sub(gap))),
    ))
}

/// Returns the canonical name of a file system, if the provider can format it.
fn file_system_name(kind: &str) -> Option<&'static str> {
    ["NTFS", "ReFS", "FAT32", "exFAT"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(kind))
}
