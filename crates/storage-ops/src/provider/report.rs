//! Reports of the storage provider about disks and volumes, as the Go program reads them: the
//! fallback if a device does not answer (see [`crate::windows::fallback`]).

use os::abi::{DiskAttributes, DiskExtent};
use os::{Instance, Namespace, U16Str, Uuid, Value};

use crate::devices::{Partition, PartitionKind, PartitionTable, TableStyle};
use crate::error::{OperationError, OperationResult};
use crate::node::run::ProviderUse;
use crate::node::run::Run;
use crate::provider::instances::{
    GPT, MBR, RAW, file_system_of, find, instance_with_number, invoke, number_at_path, refresh,
};
use crate::provider::wmi;
use crate::types::{DiskNumber, VolumeId, VolumeStats};

fn missing(property: &str, object: &impl std::fmt::Display) -> OperationError {
    OperationError::precondition(format!(
        "the storage provider reports no {property} of {object}"
    ))
}

fn query(run: Run<'_>, wql: &str) -> OperationResult<Vec<Instance>> {
    wmi::query(run, Namespace::Storage, wql)
}

/// Returns the numbers of all disks.
pub(crate) fn disk_numbers(run: Run<'_>) -> OperationResult<Vec<DiskNumber>> {
    let disks = query(run, "SELECT Number FROM MSFT_Disk")?;
    Ok(disks
        .iter()
        .filter_map(|disk| disk.u32("Number"))
        .map(DiskNumber)
        .collect())
}

/// Returns the instance of a disk. If its path can be opened, the device there must have the same
/// number.
fn disk(run: Run<'_>, number: DiskNumber) -> OperationResult<Instance> {
    let instance = instance_with_number(run, number)?;
    match number_at_path(run, &instance) {
        Some(other) if other != number => Err(OperationError::precondition(format!(
            "{number} in WMI is the device of {other}"
        ))),
        _ => Ok(instance),
    }
}

/// Returns the attributes of a disk: [`DiskAttributes::OFFLINE`] and [`DiskAttributes::READ_ONLY`].
pub(crate) fn disk_attributes(run: Run<'_>, number: DiskNumber) -> OperationResult<u64> {
    refresh(run, number)?;
    let disk = disk(run, number)?;
    let bit = |property: &str, bit: u64| match disk.bool(property) {
        None => Err(missing(property, &number)),
        Some(is_set) => Ok(if is_set { bit } else { 0 }),
    };
    Ok(bit("IsOffline", DiskAttributes::OFFLINE)? | bit("IsReadOnly", DiskAttributes::READ_ONLY)?)
}

/// Returns the size of a disk in bytes.
pub(crate) fn disk_size(run: Run<'_>, number: DiskNumber) -> OperationResult<u64> {
    refresh(run, number)?;
    disk(run, number)?
        .u64("Size")
        .filter(|size| *size > 0)
        .ok_or_else(|| missing("Size", &number))
}

/// Returns the serial number of a disk, untrimmed; empty if it has none.
pub(crate) fn serial_number(run: Run<'_>, number: DiskNumber) -> OperationResult<String> {
    Ok(disk(run, number)?
        .text("SerialNumber")
        .unwrap_or_default()
        .to_owned())
}

/// Returns the partition table of a disk.
pub(crate) fn partition_table(run: Run<'_>, number: DiskNumber) -> OperationResult<PartitionTable> {
    refresh(run, number)?;
    let style = match disk(run, number)?.u32("PartitionStyle") {
        Some(RAW) => TableStyle::Raw,
        Some(MBR) => TableStyle::Mbr,
        Some(GPT) => TableStyle::Gpt,
        _ => return Err(missing("PartitionStyle", &number)),
    };
    let mut partitions = Vec::new();
    for instance in partition_instances(run, number)? {
        partitions
            .push(partition(&instance).ok_or_else(|| missing("complete partition", &number))?);
    }
    partitions.sort_unstable_by_key(|partition: &Partition| partition.offset);
    Ok(PartitionTable { style, partitions })
}

fn partition_instances(run: Run<'_>, number: DiskNumber) -> OperationResult<Vec<Instance>> {
    query(
        run,
        &format!(
            "SELECT * FROM MSFT_Partition WHERE DiskNumber = {}",
            number.0
        ),
    )
}

fn partition(instance: &Instance) -> Option<Partition> {
    let kind = match (instance.text("GptType"), instance.u32("MbrType")) {
        (Some(kind), _) => {
            PartitionKind::of_gpt(Uuid::parse_str(kind.trim_matches(['{', '}'])).ok()?)
        }
        (None, Some(kind)) => PartitionKind::of_mbr(u8::try_from(kind).ok()?),
        (None, None) => return None,
    };
    let (offset, length) = (instance.u64("Offset")?, instance.u64("Size")?);
    // A partition counts as active if the provider does not tell.
    let is_active = instance.text("GptType").is_none() && instance.bool("IsActive") != Some(false);
    Some(Partition {
        number: instance.u32("PartitionNumber")?,
        offset,
        length,
        kind,
        is_active,
    })
}

/// Returns the volumes on a disk with their offsets.
pub(crate) fn volumes_on(
    run: Run<'_>,
    number: DiskNumber,
) -> OperationResult<Vec<(u64, VolumeId)>> {
    // The provider must know the disk, and it must be this disk.
    disk(run, number)?;
    let mut found = Vec::new();
    for partition in partition_instances(run, number)? {
        let offset = partition
            .u64("Offset")
            .ok_or_else(|| missing("Offset of a partition", &number))?;
        let volumes = associated(run, &partition, "MSFT_Volume")?;
        let ids = volumes
            .iter()
            .filter_map(|volume| VolumeId::parse(volume.text("Path")?).ok());
        found.extend(ids.map(|id| (offset, id)));
    }
    Ok(found)
}

fn associated(run: Run<'_>, instance: &Instance, class: &str) -> OperationResult<Vec<Instance>> {
    let wql = format!(
        "ASSOCIATORS OF {{{}}} WHERE AssocClass = MSFT_PartitionToVolume ResultClass = {class}",
        instance.path
    );
    query(run, &wql)
}

/// Returns the instance of a volume. A volume that the provider does not know yet is waited for,
/// where that is possible.
pub(crate) fn volume(run: Run<'_>, volume: VolumeId) -> OperationResult<Instance> {
    let wql = format!(
        "SELECT * FROM MSFT_Volume WHERE Path = {}",
        wmi::quote(&volume.to_string())
    );
    let object = format!("volume {volume}");
    if run.provider_use() == ProviderUse::Allowed {
        return find(run, &wql, &object);
    }
    wmi::query_one(run, Namespace::Storage, &wql, &object)
}

/// Returns the only partition that a volume is on.
fn partition_of(run: Run<'_>, id: VolumeId) -> OperationResult<Instance> {
    let mut found = associated(run, &volume(run, id)?, "MSFT_Partition")?;
    match (found.pop(), found.is_empty()) {
        (Some(partition), true) => Ok(partition),
        _ => Err(OperationError::precondition(format!(
            "the storage provider does not report one partition of {id}"
        ))),
    }
}

/// Returns the extent of a volume, which is its partition. Volumes over several partitions have
/// another type of partition.
pub(crate) fn extent(run: Run<'_>, volume: VolumeId) -> OperationResult<DiskExtent> {
    let instance = partition_of(run, volume)?;
    if partition(&instance).is_none_or(|partition| partition.kind != PartitionKind::Data) {
        return Err(missing("basic data partition", &volume));
    }
    let [offset, length] =
        ["Offset", "Size"].map(|property| i64::try_from(instance.u64(property)?).ok());
    let found = (instance.u32("DiskNumber"), offset, length);
    let (Some(disk_number), Some(offset), Some(length)) = found else {
        return Err(missing("disk", &volume));
    };
    Ok(DiskExtent {
        disk_number,
        padding: 0,
        offset,
        length,
    })
}

/// Returns the size and usage of the file system of a volume.
pub(crate) fn volume_stats(run: Run<'_>, id: VolumeId) -> OperationResult<VolumeStats> {
    let volume = volume(run, id)?;
    match (volume.u64("Size"), volume.u64("SizeRemaining")) {
        (Some(total), Some(free)) if total > 0 && free <= total => Ok(VolumeStats {
            total,
            used: total - free,
        }),
        _ => Err(missing("Size", &id)),
    }
}

/// Writes the cache of a volume to its disk.
pub(crate) fn flush(run: Run<'_>, id: VolumeId) -> OperationResult<()> {
    let volume = volume(run, id)?;
    invoke(run, &volume.path, "Flush", &[], run.timeouts().change).map(drop)
}

/// Returns the name of the file system that the provider reports on a volume. `None` is no
/// evidence: the provider also returns it for a volume that is locked, encrypted, unreadable or of
/// another operating system.
pub(crate) fn file_system(run: Run<'_>, id: VolumeId) -> OperationResult<Option<String>> {
    Ok(file_system_of(&volume(run, id)?))
}

/// Calls `AddAccessPath`, which mounts a volume at the directory `path`, or `RemoveAccessPath`,
/// which removes its mount point there.
pub(crate) fn change_access_path(
    run: Run<'_>,
    volume: VolumeId,
    method: &str,
    path: &U16Str,
) -> OperationResult<()> {
    let partition = partition_of(run, volume)?;
    // The provider expects a path without a final backslash.
    let path = path.to_string_lossy().trim_end_matches('\\').to_owned();
    let arguments = [("AccessPath", Value::Text(path))];
    invoke(
        run,
        &partition.path,
        method,
        &arguments,
        run.timeouts().change,
    )
    .map(drop)
}
