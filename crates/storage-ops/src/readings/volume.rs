//! Volumes: the disks they are on, their size, whether they have arrived, and the writing of their
//! caches.

use os::OsError;
use os::abi::DiskExtent;

use crate::devices::disk::OPEN_FOR_QUERY;
use crate::devices::volume::OPEN_FOR_READ;
use crate::devices::{Disk, Partition, PartitionKind, PartitionTable, file_system, volume};
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::node::run::Run;
use crate::provider::report;
use crate::readings::disk;
use crate::scheduling::{LockKey, PoolKind};
use crate::types::{DiskNumber, VolumeId, VolumeStats};
use crate::windows::{Device, Fallback, Windows};

/// The offset of a volume on its disk, and the volume.
type VolumeAt = (u64, VolumeId);

/// Queries the extents of a volume.
pub(crate) async fn extents(run: Run<'_>, volume: VolumeId) -> OperationResult<Vec<DiskExtent>> {
    let first = volume::extents_of(run.os(), volume);
    run.or_fallback(Fallback::VolumeDisk, first, || {
        Ok(vec![report::extent(run, volume)?])
    })
    .await
}

/// Queries the extent of a volume. A volume with several extents is an error.
pub(crate) async fn extent(run: Run<'_>, volume: VolumeId) -> OperationResult<DiskExtent> {
    volume::only(&extents(run, volume).await?)
}

/// Returns the disk that a volume is on.
pub(crate) async fn disk_of(run: Run<'_>, volume: VolumeId) -> OperationResult<DiskNumber> {
    extent(run, volume)
        .await
        .map(|extent| DiskNumber(extent.disk_number))
}

/// Returns the disk that a volume is on, after checking that the disk is locked.
pub(crate) async fn locked_disk_of(run: Run<'_>, volume: VolumeId) -> OperationResult<DiskNumber> {
    let disk = disk_of(run, volume).await?;
    run.ensure_locked(&LockKey::Disk(disk))?;
    Ok(disk)
}

/// Returns whether a volume exists: whether Windows can open it or lists it or, if there is no
/// list, the storage provider knows it. Only Windows decides that a volume does not exist.
///
/// The list comes second because its length is the number of volumes of the node.
pub(crate) async fn exists(run: Run<'_>, volume: VolumeId) -> OperationResult<bool> {
    let Err(opened) = run.os().open(&volume.device(), &OPEN_FOR_QUERY) else {
        return Ok(true);
    };
    let listed = run.os().volumes().map_err(OperationError::from);
    let listed = listed.map(|names| {
        names
            .iter()
            .any(|name| VolumeId::from_windows(name) == Some(volume))
    });
    if run
        .or_fallback(Fallback::VolumeList, listed, || {
            report::volume(run, volume).map(|_| true)
        })
        .await?
    {
        return Ok(true);
    }
    if ErrorClass::DeviceRemoved.contains(opened) {
        return Ok(false);
    }
    Err(OperationError::of(
        opened,
        format!("it cannot be determined whether volume {volume} exists"),
    ))
}

/// Returns the volumes on `disk` with their offsets: first the volumes on data partitions, then all
/// others, each in the order of the offsets.
pub(crate) async fn on_disk(
    run: Run<'_>,
    disk: DiskNumber,
    partitions: &[Partition],
) -> OperationResult<Vec<(u64, VolumeId)>> {
    let found = match queried_on_disk(run.windows(), disk) {
        Ok((mut found, Some(code))) if !hold_each(partitions, &found) => {
            run.enter(PoolKind::Wmi).await;
            // The volume that cannot be queried may be on another disk.
            let reported = report::volumes_on(run, disk).unwrap_or_default();
            run.windows()
                .fallbacks
                .record(Fallback::VolumesOfDisk, code);
            let queried: Vec<_> = found.iter().map(|(_, volume)| *volume).collect();
            found.extend(
                reported
                    .into_iter()
                    .filter(|(_, volume)| !queried.contains(volume)),
            );
            found
        }
        first => {
            let first = first.map(|(found, _)| found);
            run.or_fallback(Fallback::VolumesOfDisk, first, || {
                report::volumes_on(run, disk)
            })
            .await?
        }
    };
    Ok(in_order(found, partitions))
}

/// Sorts volumes by their offsets, those on data partitions first.
fn in_order(mut found: Vec<(u64, VolumeId)>, partitions: &[Partition]) -> Vec<(u64, VolumeId)> {
    let is_data = |offset: u64| {
        partitions
            .iter()
            .any(|partition| partition.offset == offset && partition.kind == PartitionKind::Data)
    };
    found.sort_unstable_by_key(|(offset, _)| (!is_data(*offset), *offset));
    found
}

/// Returns the volumes on `disk`, and the first inconclusive answer of a volume that may be on it.
fn queried_on_disk(
    windows: &Windows,
    disk: DiskNumber,
) -> OperationResult<(Vec<VolumeAt>, Option<OsError>)> {
    let (mut found, mut unknown) = (Vec::new(), None);
    let ids: Vec<_> = windows
        .os()
        .volumes()?
        .iter()
        .filter_map(|name| VolumeId::from_windows(name))
        .collect();
    let targets = ids.iter().map(|id| (Device::Volume(*id), *id));
    let answers = windows.query_each(targets, |os, id, _| {
        volume::extents(&*os.open(&id.device(), &OPEN_FOR_QUERY)?)
    });
    for (id, (_, extents)) in ids.into_iter().zip(answers) {
        match extents.as_ref().map(|extents| extents.as_deref()) {
            Some(Ok([extent])) if extent.disk_number == disk.0 => {
                found.push((u64::try_from(extent.offset).unwrap_or_default(), id));
            }
            Some(Ok(_)) => {}
            // A volume that is late may be on this disk.
            None => unknown = unknown.or(Some(OsError::SEM_TIMEOUT)),
            // A CD drive and a volume that is being removed have no extents. A volume that cannot
            // be queried must not make the listing of another disk fail; if it is on this disk,
            // callers notice that it is missing.
            Some(Err(code)) if ErrorClass::UnsupportedOrInvalid.contains(*code) => {}
            Some(Err(code)) => unknown = unknown.or(OperationError::from(*code).inconclusive()),
        }
    }
    Ok((found, unknown))
}

/// Returns whether each data partition has a volume.
fn hold_each(partitions: &[Partition], volumes: &[(u64, VolumeId)]) -> bool {
    let mut data = partitions
        .iter()
        .filter(|partition| partition.kind == PartitionKind::Data);
    data.all(|partition| {
        volumes
            .iter()
            .any(|(offset, _)| *offset == partition.offset)
    })
}

/// The data partitions of a disk, each with its volume if that has arrived.
pub(crate) type DataVolumes = Vec<(Partition, Option<VolumeId>)>;

/// Returns the data partitions of `disk` with their volumes.
pub(crate) async fn data_volumes(run: Run<'_>, disk: &Disk) -> OperationResult<DataVolumes> {
    let table = disk::partition_table(run, &disk.reader(run.os())?).await?;
    volumes_of(run, disk.number, &table).await
}

/// Returns the data partitions of a disk, which has this partition table, with their volumes.
pub(crate) async fn volumes_of(
    run: Run<'_>,
    disk: DiskNumber,
    table: &PartitionTable,
) -> OperationResult<DataVolumes> {
    let volumes = on_disk(run, disk, &table.partitions).await?;
    let volume_at = |offset| {
        volumes
            .iter()
            .find(|(other, _)| *other == offset)
            .map(|(_, volume)| *volume)
    };
    Ok(table
        .data()
        .map(|partition| (*partition, volume_at(partition.offset)))
        .collect())
}

/// Returns whether each data partition has a volume.
pub(crate) fn have_arrived(volumes: &DataVolumes) -> bool {
    volumes.iter().all(|(_, volume)| volume.is_some())
}

/// Waits until each data partition of `disk` has a volume, and returns those that have arrived by
/// then.
pub(crate) async fn wait_for_volumes(run: Run<'_>, disk: &Disk) -> OperationResult<DataVolumes> {
    let mut pauses = run.pauses(run.timeouts().arrival);
    loop {
        let volumes = data_volumes(run, disk).await?;
        if have_arrived(&volumes) || !pauses.again().await {
            return Ok(volumes);
        }
    }
}

/// Whether the volume of a data partition is online. The mount manager leaves a new volume offline
/// if automatic mounting is disabled: it is listed and can be opened, but reading it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VolumeState {
    Online,
    /// The volume is not ready, or has not arrived.
    Offline,
    /// The volume cannot be read for another reason.
    Unknown,
}

/// Returns the partitions whose volumes are not known to be online.
pub(crate) fn not_online(
    windows: &Windows,
    volumes: &DataVolumes,
) -> Vec<(Partition, VolumeState)> {
    let arrived = volumes
        .iter()
        .filter_map(|(_, volume)| *volume)
        .map(|volume| (Device::Volume(volume), volume));
    let answers = windows.query_each(arrived, |os, id, _| {
        file_system::probe(&*os.open(&id.device(), &OPEN_FOR_READ)?)
    });
    let state = |volume: VolumeId| {
        let answer = answers
            .iter()
            .find(|(device, _)| *device == Device::Volume(volume))
            .and_then(|(_, answer)| *answer);
        match answer {
            Some(Ok(())) => VolumeState::Online,
            Some(Err(OsError::NOT_READY)) => VolumeState::Offline,
            _ => VolumeState::Unknown,
        }
    };
    let states = volumes
        .iter()
        .map(|(partition, volume)| (*partition, volume.map_or(VolumeState::Offline, state)));
    states
        .filter(|(_, state)| *state != VolumeState::Online)
        .collect()
}

/// Returns `first`, the result of a reading of `volume`. If it is an error because another call is
/// changing the volume, the error says so, and is no reason for a fallback: while a volume is
/// formatted, Windows refuses to open it.
pub(crate) fn unless_changing<T>(
    run: Run<'_>,
    volume: VolumeId,
    first: OperationResult<T>,
) -> OperationResult<T> {
    let is_locked = || {
        let disk = volume::disk_of(run.os(), volume);
        disk.is_ok_and(|disk| run.is_locked_by_another(&LockKey::Disk(disk)))
    };
    match first {
        Err(error) if error.is_of(ErrorClass::VolumeChanging) && is_locked() => {
            let error = error.in_context("another call is changing the volume; repeat the request");
            Err(OperationError {
                kind: ErrorKind::Busy,
                code: None,
                ..error
            })
        }
        first => first,
    }
}

/// Queries the size and usage of the file system of a volume.
pub(crate) async fn stats(run: Run<'_>, volume: VolumeId) -> OperationResult<VolumeStats> {
    let first = unless_changing(run, volume, file_system::stats(run.os(), volume));
    run.or_fallback(Fallback::VolumeSize, first, || {
        report::volume_stats(run, volume)
    })
    .await
}

/// Writes the cache of a volume to its disk.
pub(crate) async fn flush(run: Run<'_>, volume: VolumeId) -> OperationResult<()> {
    let first = volume::flush(run.os(), volume);
    match run
        .or_fallback(Fallback::Flush, first, || report::flush(run, volume))
        .await
    {
        Err(error) if error.kind != ErrorKind::NotFound => {
            Err(error.in_context("the cache of the volume could not be written to its disk"))
        }
        outcome => outcome,
    }
}

/// Flushes all volumes of a disk before it goes offline, which Windows does not do itself. Best
/// effort: a failing disk must still be detachable, so errors are retried once and then logged.
pub(crate) async fn flush_all(run: Run<'_>, disk: &Disk) {
    let listed = async {
        let table = disk::partition_table(run, disk).await?;
        let volumes = on_disk(run, disk.number, &table.partitions).await?;
        Ok::<_, OperationError>((table, volumes))
    };
    let (table, volumes) = match listed.await {
        Ok(listed) => listed,
        Err(error) => {
            tracing::warn!(
                disk = disk.number.0, %error,
                "the caches of the volumes of a disk were not written"
            );
            return;
        }
    };
    for partition in table.data().filter(|partition| {
        !volumes
            .iter()
            .any(|(offset, _)| *offset == partition.offset)
    }) {
        tracing::warn!(
            disk = disk.number.0,
            partition = partition.number,
            "no volume of a data partition was found, so its cache was not written"
        );
    }
    for (_, volume) in volumes {
        let mut flushed = flush(run, volume).await;
        if flushed.is_err() {
            flushed = flush(run, volume).await;
        }
        if let Err(error) = flushed {
            tracing::warn!(
                disk = disk.number.0, %volume, %error,
                "the cache of a volume was not written"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::in_order;
    use crate::devices::{Partition, PartitionKind};
    use crate::types::VolumeId;

    fn partition(offset: u64, kind: PartitionKind) -> Partition {
        Partition {
            number: 1,
            offset,
            length: 1,
            kind,
            is_active: false,
        }
    }

    #[test]
    fn volumes_are_in_the_order_of_their_partitions_with_data_partitions_first() {
        use PartitionKind::{Data, Other};

        let volume = VolumeId::parse(r"\\?\Volume{00000000-0000-0000-0000-000000000001}\").unwrap();
        for (kinds, expected) in [
            ([Data, Data], [1, 2]),
            ([Data, Other], [1, 2]),
            ([Other, Data], [2, 1]),
        ] {
            let found = in_order(
                vec![(2, volume), (1, volume)],
                &[partition(1, kinds[0]), partition(2, kinds[1])],
            );
            assert_eq!([found[0].0, found[1].0], expected);
        }
    }
}
