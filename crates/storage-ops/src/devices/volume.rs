//! Volumes as devices: the disks they are on, their size, their cache.

use os::abi::{ControlCode, DiskExtent, FsFullSizeInformation, VolumeDiskExtents};
use os::{Access, FsInfo, Handle, Open, Options, OsError, OsResult};
use zerocopy::{FromZeros, IntoBytes};

use crate::devices::buffer;
use crate::devices::disk::{Disk, OPEN_FOR_QUERY, Partition, PartitionKind};
use crate::devices::file_system;
use crate::error::{Kind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::host::Host;
use crate::host::device_queries::Device;
use crate::host::fallback::{Fallback, SecondWay};
use crate::provider::msft_storage::report;
use crate::scheduling::context::OperationContext;
use crate::scheduling::locks::LockKey;
use crate::scheduling::pool_kind::PoolKind;
use crate::scheduling::stop::{RunResult, Stop};
use crate::types::{DiskNumber, VolumeId, VolumeStats};

/// Opens the file system of a volume for reading. With fewer rights Windows would open the device.
pub(crate) const OPEN_FOR_READ: Open = Open::existing(Access::GENERIC_READ, Options::empty());

/// The offset of a volume on its disk, and the volume.
type VolumeAt = (u64, VolumeId);

/// Opens `volume`.
pub(crate) fn open(host: &Host, volume: VolumeId, how: &Open) -> OperationResult<Box<dyn Handle>> {
    host.os().open(&volume.device(), how).map_err(|code| volume_error(code, volume))
}

fn volume_error(code: OsError, volume: VolumeId) -> OperationError {
    if ErrorClass::DeviceRemoved.contains(code) {
        let error = OperationError::not_found(format!("volume {volume} does not exist ({})", code.0));
        OperationError { code: Some(code), ..error }
    } else {
        code.into()
    }
}

/// Queries the extents of the volume behind `handle`.
pub(crate) fn extents(handle: &dyn Handle) -> OsResult<Vec<DiskExtent>> {
    let first = size_of::<VolumeDiskExtents>() + size_of::<DiskExtent>();
    let answer = buffer::control_grown(handle, ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS, &[], first)?;
    parse_extents(&answer).ok_or(OsError::GEN_FAILURE)
}

/// Decodes a `VOLUME_DISK_EXTENTS`. Returns `None` if it is malformed.
pub(crate) fn parse_extents(answer: &[u8]) -> Option<Vec<DiskExtent>> {
    let head: VolumeDiskExtents = buffer::at(answer, 0)?;
    let offset = |index: usize| index.checked_mul(size_of::<DiskExtent>())?.checked_add(size_of_val(&head));
    (0..usize::try_from(head.count).ok()?).map(|index| buffer::at(answer, offset(index)?)).collect()
}

/// Queries the extents of `volume`.
pub(crate) fn all_extents(host: &Host, way: SecondWay<'_>, volume: VolumeId) -> RunResult<Vec<DiskExtent>> {
    let first = open(host, volume, &OPEN_FOR_QUERY)
        .and_then(|handle| extents(&*handle).map_err(|code| volume_error(code, volume)));
    let second = || Ok(vec![report::extent(host, way, volume)?]);
    host.or_second(way, Fallback::VolumeDisk, first, second)
}

/// Queries the extent of `volume`. A volume with several extents is an error.
pub(crate) fn extent(host: &Host, way: SecondWay<'_>, volume: VolumeId) -> RunResult<DiskExtent> {
    let extents = all_extents(host, way, volume)?;
    match extents[..] {
        [extent] => Ok(extent),
        _ => Err(OperationError::precondition(format!(
            "the volume has {} extents; only volumes with one extent are supported",
            extents.len()
        ))
        .into()),
    }
}

/// Returns the disk that `volume` is on.
pub(crate) fn disk_of(host: &Host, way: SecondWay<'_>, volume: VolumeId) -> RunResult<DiskNumber> {
    extent(host, way, volume).map(|extent| DiskNumber(extent.disk_number))
}

/// Returns the disk that `volume` is on, after checking that it is locked.
pub(crate) fn locked_disk_of(host: &Host, volume: VolumeId, ctx: &OperationContext) -> RunResult<DiskNumber> {
    let disk = disk_of(host, SecondWay::Provider(ctx), volume)?;
    ctx.ensure_locked(&LockKey::Disk(disk.0))?;
    Ok(disk)
}

/// Returns the volumes on `disk` with their offsets: those on data partitions first, then the others, in the order of
/// the offsets.
pub(crate) fn on_disk(
    host: &Host,
    ctx: &OperationContext,
    disk: DiskNumber,
    partitions: &[Partition],
) -> RunResult<Vec<(u64, VolumeId)>> {
    let found = match queried_on_disk(host, disk) {
        Ok((mut found, Some(code))) if !hold_each(partitions, &found) => {
            ctx.require_pool(PoolKind::Wmi)?;
            // The volume that cannot be queried may be on another disk.
            let reported = report::volumes_on(host, ctx, disk).unwrap_or_default();
            host.fallbacks().record(Fallback::VolumesOfDisk, code);
            let queried: Vec<_> = found.iter().map(|(_, volume)| *volume).collect();
            found.extend(reported.into_iter().filter(|(_, volume)| !queried.contains(volume)));
            found
        }
        first => {
            let first = first.map(|(found, _)| found);
            let second = || report::volumes_on(host, ctx, disk);
            host.or_second(SecondWay::Provider(ctx), Fallback::VolumesOfDisk, first, second)?
        }
    };
    Ok(in_order(found, partitions))
}

/// Sorts volumes by their offsets, those on data partitions first.
fn in_order(mut found: Vec<(u64, VolumeId)>, partitions: &[Partition]) -> Vec<(u64, VolumeId)> {
    let is_data = |offset: u64| {
        partitions.iter().any(|partition| partition.offset == offset && partition.kind == PartitionKind::Data)
    };
    found.sort_unstable_by_key(|(offset, _)| (!is_data(*offset), *offset));
    found
}

/// Returns the volumes on `disk`, and the first inconclusive answer of a volume that may be on it.
fn queried_on_disk(host: &Host, disk: DiskNumber) -> OperationResult<(Vec<VolumeAt>, Option<OsError>)> {
    let (mut found, mut unknown) = (Vec::new(), None);
    let ids: Vec<_> = host.os().volumes()?.iter().filter_map(|name| VolumeId::from_windows(name)).collect();
    let targets = ids.iter().map(|id| (Device::Volume(*id), *id));
    let answers = host.query_each(targets, |os, id, _| extents(&*os.open(&id.device(), &OPEN_FOR_QUERY)?));
    for (id, (_, extents)) in ids.into_iter().zip(answers) {
        match extents.as_ref().map(|extents| extents.as_deref()) {
            Some(Ok([extent])) if extent.disk_number == disk.0 => {
                found.push((u64::try_from(extent.offset).unwrap_or_default(), id));
            }
            Some(Ok(_)) => {}
            // A volume that is late may be on this disk.
            None => unknown = unknown.or(Some(OsError::SEM_TIMEOUT)),
            // A CD drive and a volume that is being removed have no extents. A volume that cannot be queried must not
            // make the listing of another disk fail; if it is on this disk, callers notice that it is missing.
            Some(Err(code)) if ErrorClass::UnsupportedOrInvalid.contains(*code) => {}
            Some(Err(code)) => unknown = unknown.or(OperationError::from(*code).inconclusive()),
        }
    }
    Ok((found, unknown))
}

/// Returns whether each data partition has a volume.
fn hold_each(partitions: &[Partition], volumes: &[(u64, VolumeId)]) -> bool {
    let mut data = partitions.iter().filter(|partition| partition.kind == PartitionKind::Data);
    data.all(|partition| volumes.iter().any(|(offset, _)| *offset == partition.offset))
}

/// The data partitions of a disk, each with its volume if that has arrived.
pub(crate) type DataVolumes = Vec<(Partition, Option<VolumeId>)>;

/// Returns the data partitions of `disk` with their volumes.
pub(crate) fn data_volumes(host: &Host, ctx: &OperationContext, disk: &Disk) -> RunResult<DataVolumes> {
    let table = disk.reader(host)?.reported_table(host, ctx)?;
    let volumes = on_disk(host, ctx, disk.number, &table.partitions)?;
    let volume_at = |offset| volumes.iter().find(|(other, _)| *other == offset).map(|(_, volume)| *volume);
    Ok(table.data().map(|partition| (*partition, volume_at(partition.offset))).collect())
}

/// Returns whether each data partition has a volume.
pub(crate) fn have_arrived(volumes: &DataVolumes) -> bool {
    volumes.iter().all(|(_, volume)| volume.is_some())
}

/// Waits until each data partition of `disk` has a volume, and returns those that have arrived by then.
pub(crate) fn wait_for_volumes(host: &Host, ctx: &OperationContext, disk: &Disk) -> RunResult<DataVolumes> {
    let mut volumes = DataVolumes::new();
    host.poll(host.timeouts().arrival, || -> RunResult<_> {
        volumes = data_volumes(host, ctx, disk)?;
        Ok(have_arrived(&volumes).then_some(()))
    })?;
    Ok(volumes)
}

/// Whether the volume of a data partition is online. The mount manager leaves a new volume offline if automatic mounting is
/// disabled: it is listed and can be opened, but reading it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VolumeState {
    Online,
    /// It is not ready, or has not arrived.
    Offline,
    /// It cannot be read for another reason.
    Unknown,
}

/// Returns the partitions whose volumes are not known to be online.
pub(crate) fn not_online(host: &Host, volumes: &DataVolumes) -> Vec<(Partition, VolumeState)> {
    let arrived = volumes.iter().filter_map(|(_, volume)| *volume).map(|volume| (volume.into(), volume));
    let answers = host.query_each(arrived, |os, id, _| file_system::probe(&*os.open(&id.device(), &OPEN_FOR_READ)?));
    let state = |volume: VolumeId| {
        let answer = answers.iter().find(|(device, _)| *device == volume.into()).and_then(|(_, answer)| *answer);
        match answer {
            Some(Ok(())) => VolumeState::Online,
            Some(Err(OsError::NOT_READY)) => VolumeState::Offline,
            _ => VolumeState::Unknown,
        }
    };
    let states = volumes.iter().map(|(partition, volume)| (*partition, volume.map_or(VolumeState::Offline, state)));
    states.filter(|(_, state)| *state != VolumeState::Online).collect()
}

/// Queries the size and usage as [`stats`] does. If the file system does not answer, the storage provider does.
pub(crate) fn reported_stats(host: &Host, ctx: &OperationContext, volume: VolumeId) -> RunResult<VolumeStats> {
    let way = SecondWay::Provider(ctx);
    let second = || report::volume_stats(host, way, volume);
    host.or_second(way, Fallback::VolumeSize, stats(host, volume), second)
}

/// Queries the size and usage of the file system of `volume`.
pub(crate) fn stats(host: &Host, volume: VolumeId) -> OperationResult<VolumeStats> {
    let handle = open(host, volume, &OPEN_FOR_READ)?;
    // What a volume without a file system answers to the query of its size is not documented.
    if file_system::name_of(&*handle)?.is_none() {
        return Err(OsError::UNRECOGNIZED_VOLUME.into());
    }
    let mut size = FsFullSizeInformation::new_zeroed();
    handle.query_fs(FsInfo::FullSize, size.as_mut_bytes())?;
    let unit = u64::from(size.sectors_per_unit) * u64::from(size.bytes_per_sector);
    let total = size.total_units.checked_mul(unit);
    let free = size.available_units.checked_mul(unit);
    let (Some(total), Some(free)) = (total, free) else { return Err(OsError::GEN_FAILURE.into()) };
    Ok(VolumeStats { total, used: total.saturating_sub(free) })
}

/// Writes the cache of `volume` to its disk. If its device does not, the storage provider does.
pub(crate) fn flush(host: &Host, ctx: &OperationContext, volume: VolumeId) -> RunResult<()> {
    let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
    let flushed = open(host, volume, &Open::existing(access, Options::empty()))
        .and_then(|handle| handle.flush().map_err(OperationError::from));
    let first = match flushed {
        // A write-protected volume has nothing to write.
        Err(error) if error.code == Some(OsError::WRITE_PROTECT) => Ok(()),
        flushed => flushed,
    };
    let second = || report::flush(host, ctx, volume);
    match host.or_second(SecondWay::Provider(ctx), Fallback::Flush, first, second) {
        Err(Stop::Failed(error)) if error.kind != Kind::NotFound => {
            let reason = format!("the cache of the volume could not be written to its disk: {}", error.reason);
            Err(OperationError { reason, ..error }.into())
        }
        outcome => outcome,
    }
}

/// Writes the caches of the volumes of a disk, as far as that is possible: taking a disk offline does not. A disk that
/// fails must not stay attached for good, so an error that occurs twice, and a volume that is not found, are only logged.
/// Fails only to request a rerun.
pub(crate) fn flush_all(host: &Host, ctx: &OperationContext, disk: &Disk) -> RunResult<()> {
    let listed = disk.reported_table(host, ctx).and_then(|table| {
        let volumes = on_disk(host, ctx, disk.number, &table.partitions)?;
        Ok((table, volumes))
    });
    let (table, volumes) = match listed {
        Ok(listed) => listed,
        Err(Stop::Failed(error)) => {
            tracing::warn!(disk = disk.number.0, %error, "the caches of the volumes of a disk were not written");
            return Ok(());
        }
        Err(rerun) => return Err(rerun),
    };
    for partition in table.data().filter(|partition| !volumes.iter().any(|(offset, _)| *offset == partition.offset)) {
        tracing::warn!(
            disk = disk.number.0,
            partition = partition.number,
            "no volume of a data partition was found, so its cache was not written"
        );
    }
    for (_, volume) in volumes {
        let flush = || flush(host, ctx, volume);
        match flush().or_else(|stop| if matches!(stop, Stop::Failed(_)) { flush() } else { Err(stop) }) {
            Ok(()) => {}
            Err(Stop::Failed(error)) => {
                tracing::warn!(disk = disk.number.0, %volume, %error, "the cache of a volume was not written");
            }
            Err(rerun) => return Err(rerun),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use os::{MethodCall, Namespace, Os, Value};

    use super::{in_order, parse_extents, queried_on_disk};
    use crate::devices::disk::{Partition, PartitionKind};
    use crate::host::Host;
    use crate::{DiskNumber, Timeouts};

    #[test]
    fn volumes_are_in_the_order_of_their_partitions_with_data_partitions_first() {
        let sim = os_sim::node().disk(1 << 30).gpt().build();
        let (os, never) = (sim.process(), os::Time(std::time::Duration::MAX));
        let disk = os.wmi().query(Namespace::Storage, "SELECT * FROM MSFT_Disk WHERE Number = 1", never).unwrap();
        for size in [100 << 20, 200 << 20] {
            let arguments = [("Size", Value::Text(u64::to_string(&size)))];
            os.wmi()
                .call(&MethodCall::new(Namespace::Storage, &disk[0].path, "CreatePartition", &arguments), never)
                .unwrap();
        }
        sim.advance(std::time::Duration::from_mins(1));
        let host = Host::new(sim.process(), Timeouts::default());
        let offsets: Vec<_> = sim.disk(1).unwrap().partitions[1..].iter().map(|partition| partition.offset).collect();
        let [first, second] = offsets[..] else { panic!("{offsets:?}") };
        let order = |kinds: [PartitionKind; 2]| -> Vec<_> {
            let partition =
                |number, offset, kind| Partition { number, offset, length: 100 << 20, kind, is_active: false };
            let table = [partition(2, first, kinds[0]), partition(3, second, kinds[1])];
            let found = queried_on_disk(&host, DiskNumber(1)).unwrap().0;
            in_order(found, &table).into_iter().map(|(offset, _)| offset).collect()
        };
        assert_eq!(order([PartitionKind::Data, PartitionKind::Data]), [first, second]);
        assert_eq!(order([PartitionKind::Data, PartitionKind::Other]), [first, second]);
        assert_eq!(order([PartitionKind::Other, PartitionKind::Data]), [second, first]);
        assert!(queried_on_disk(&host, DiskNumber(2)).unwrap().0.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn decoding_any_extents_does_not_panic(bytes: Vec<u8>) {
            let _ = parse_extents(&bytes);
        }
    }
}
