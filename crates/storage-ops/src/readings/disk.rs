//! Disks: their attributes, size and partition table.

use os::Access;
use os::abi::DiskAttributes;

use crate::devices::{Disk, PartitionTable};
use crate::error::{OperationError, OperationResult};
use crate::node::run::Run;
use crate::provider::{instances, report};
use crate::scheduling::RunResult;
use crate::types::DiskNumber;
use crate::windows::Fallback;

/// Queries [`DiskAttributes::OFFLINE`] and [`DiskAttributes::READ_ONLY`] of an open disk.
pub(crate) fn attributes(run: Run<'_>, disk: &Disk) -> RunResult<u64> {
    let first = disk.attributes().map_err(OperationError::from);
    run.or_fallback(Fallback::DiskState, first, || {
        report::disk_attributes(run, disk.number)
    })
}

/// Returns whether an open disk is offline.
pub(crate) fn is_offline(run: Run<'_>, disk: &Disk) -> RunResult<bool> {
    Ok(attributes(run, disk)? & DiskAttributes::OFFLINE != 0)
}

/// Returns whether a disk is offline. The disk is not open.
pub(crate) fn is_offline_by_number(run: Run<'_>, number: DiskNumber) -> RunResult<bool> {
    let first =
        Disk::open(run.os(), number, Access::empty()).and_then(|disk| Ok(disk.attributes()?));
    let attributes = run.or_fallback(Fallback::DiskState, first, || {
        report::disk_attributes(run, number)
    })?;
    Ok(attributes & DiskAttributes::OFFLINE != 0)
}

/// Queries the size of an open disk in bytes.
pub(crate) fn size(run: Run<'_>, disk: &Disk) -> RunResult<u64> {
    let first = disk.size().map_err(OperationError::from);
    run.or_fallback(Fallback::DiskSize, first, || {
        report::disk_size(run, disk.number)
    })
}

/// Queries the size of a disk in bytes. The disk is not open.
pub(crate) fn size_by_number(run: Run<'_>, number: DiskNumber) -> RunResult<u64> {
    let first = Disk::open_for_read(run.os(), number).and_then(|disk| Ok(disk.size()?));
    run.or_fallback(Fallback::DiskSize, first, || report::disk_size(run, number))
}

/// Queries the partition table of an open disk. The report of the storage provider must not decide
/// whether a disk is partitioned.
pub(crate) fn partition_table(run: Run<'_>, disk: &Disk) -> RunResult<PartitionTable> {
    run.or_fallback(Fallback::PartitionTable, disk.partition_table(), || {
        report::partition_table(run, disk.number)
    })
}

/// Returns `known`, the partition table as the device has answered. If the device has not answered,
/// partitions that the storage provider reports exist. A report of no partition is no evidence: the
/// cache of the provider may be out of date.
pub(crate) fn known_partition_table(
    run: Run<'_>,
    number: DiskNumber,
    known: OperationResult<PartitionTable>,
) -> RunResult<PartitionTable> {
    run.or_fallback(Fallback::PartitionTable, known, || {
        let table = report::partition_table(run, number)?;
        if table.is_partitioned() {
            return Ok(table);
        }
        Err(OperationError::precondition(
            "the storage provider reports no partition, but its cache may be out of date, so the \
             disk is not treated as empty",
        ))
    })
}

/// Makes Windows read the size and the partition table of an open disk again.
pub(crate) fn update(run: Run<'_>, disk: &Disk) -> RunResult<()> {
    let first = disk.update().map_err(OperationError::from);
    run.or_fallback(Fallback::DiskUpdate, first, || {
        instances::refresh(run, disk.number)
    })
}
