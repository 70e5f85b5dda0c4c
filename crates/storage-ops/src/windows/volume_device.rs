//! Volumes as devices: the disks they are on, their size, their cache.

use os::abi::{ControlCode, DiskExtent, FsFullSizeInformation, VolumeDiskExtents};
use os::{Access, FsInfo, Handle, Open, Options, OsError, OsResult};
use zerocopy::{FromZeros, IntoBytes};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::OperationContext;
use crate::executor::locks::LockKey;
use crate::types::{DiskNumber, VolumeId, VolumeStats};
use crate::windows::disk_device::{Disk, OPEN_FOR_QUERY, Partition, PartitionKind};
use crate::windows::error_class::ErrorClass;
use crate::windows::{Host, buffer, file_system};

/// Opens the file system of a volume for reading. With fewer rights Windows would open the device.
pub(crate) const OPEN_FOR_READ: Open = Open::existing(Access::GENERIC_READ, Options::empty());

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

/// Queries the extent of `volume`. A volume with several extents is an error.
pub(crate) fn extent(host: &Host, volume: VolumeId) -> OperationResult<DiskExtent> {
    let handle = open(host, volume, &OPEN_FOR_QUERY)?;
    let extents = extents(&*handle).map_err(|code| volume_error(code, volume))?;
    match extents[..] {
        [extent] => Ok(extent),
        _ => Err(OperationError::precondition(format!(
            "the volume has {} extents; only volumes with one extent are supported",
            extents.len()
        ))),
    }
}

/// Returns the disk that `volume` is on.
pub(crate) fn disk_of(host: &Host, volume: VolumeId) -> OperationResult<DiskNumber> {
    extent(host, volume).map(|extent| DiskNumber(extent.disk_number))
}

/// Returns the disk that `volume` is on, after checking that it is locked.
pub(crate) fn locked_disk_of(host: &Host, volume: VolumeId, ctx: &OperationContext) -> OperationResult<DiskNumber> {
    let disk = disk_of(host, volume)?;
    ctx.ensure_locked(&LockKey::Disk(disk.0))?;
    Ok(disk)
}

/// Returns the volumes on `disk` with their offsets: those on data partitions first, then the others, in the order of
/// the offsets.
pub(crate) fn on_disk(
    host: &Host,
    disk: DiskNumber,
    partitions: &[Partition],
) -> OperationResult<Vec<(u64, VolumeId)>> {
    let mut found = Vec::new();
    for id in host.os().volumes()?.iter().filter_map(|name| VolumeId::from_windows(name)) {
        let extents = host.os().open(&id.device(), &OPEN_FOR_QUERY).and_then(|handle| extents(&*handle));
        // A CD drive and a volume that is being removed have no extents. A volume that cannot be queried must not make
        // the listing of another disk fail; if it is on this disk, callers notice that it is missing.
        let Ok(extents) = extents else { continue };
        if let [extent] = extents[..]
            && extent.disk_number == disk.0
        {
            found.push((u64::try_from(extent.offset).unwrap_or_default(), id));
        }
    }
    let is_data = |offset: u64| {
        partitions.iter().any(|partition| partition.offset == offset && partition.kind == PartitionKind::Data)
    };
    found.sort_unstable_by_key(|(offset, _)| (!is_data(*offset), *offset));
    Ok(found)
}

/// Waits until each data partition of `disk` has a volume. Returns false if that takes too long.
pub(crate) fn wait_for_volumes(host: &Host, disk: &Disk) -> OperationResult<bool> {
    let arrived = host.poll(host.timeouts().arrival, || Ok(have_arrived(host, disk)?.then_some(())))?;
    Ok(arrived.is_some())
}

/// Returns whether each data partition of `disk` has a volume.
pub(crate) fn have_arrived(host: &Host, disk: &Disk) -> OperationResult<bool> {
    let table = disk.partition_table()?;
    let volumes = on_disk(host, disk.number, &table.partitions)?;
    Ok(table.data().all(|partition| volumes.iter().any(|(offset, _)| *offset == partition.offset)))
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

/// Writes the cache of `volume` to its disk.
pub(crate) fn flush(host: &Host, volume: VolumeId) -> OperationResult<()> {
    let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
    let flushed = open(host, volume, &Open::existing(access, Options::empty()))
        .and_then(|handle| handle.flush().map_err(OperationError::from));
    match flushed {
        // A write-protected volume has nothing to write.
        Err(error) if error.code == Some(OsError::WRITE_PROTECT) => Ok(()),
        Err(error) if error.kind == Kind::NotFound => Err(error),
        Err(error) => {
            let reason = format!("the cache of the volume could not be written to its disk: {}", error.reason);
            Err(OperationError { reason, ..error })
        }
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use os::{MethodCall, Namespace, Os, Value};

    use super::{on_disk, parse_extents};
    use crate::windows::Host;
    use crate::windows::disk_device::{Partition, PartitionKind};
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
            let partition = |number, offset, kind| Partition { number, offset, length: 100 << 20, kind };
            let table = [partition(2, first, kinds[0]), partition(3, second, kinds[1])];
            on_disk(&host, DiskNumber(1), &table).unwrap().into_iter().map(|(offset, _)| offset).collect()
        };
        assert_eq!(order([PartitionKind::Data, PartitionKind::Data]), [first, second]);
        assert_eq!(order([PartitionKind::Data, PartitionKind::Other]), [first, second]);
        assert_eq!(order([PartitionKind::Other, PartitionKind::Data]), [second, first]);
        assert!(on_disk(&host, DiskNumber(2), &[]).unwrap().is_empty());
    }

    proptest::proptest! {
        #[test]
        fn decoding_any_extents_does_not_panic(bytes: Vec<u8>) {
            let _ = parse_extents(&bytes);
        }
    }
}
