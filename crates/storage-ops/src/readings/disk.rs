//! Disks: their attributes, size and partition table.

use os::Access;
use os::abi::DiskAttributes;

use crate::devices::{Disk, PartitionTable};
use crate::error::{OperationError, OperationResult};
use crate::node::run::Run;
use crate::provider::{instances, report};
use crate::types::DiskNumber;
use crate::windows::Fallback;

/// Queries [`DiskAttributes::OFFLINE`] and [`DiskAttributes::READ_ONLY`] of an open disk.
pub(crate) async fn attributes(run: Run<'_>, disk: &Disk) -> OperationResult<u64> {
    let first = disk.attributes().map_err(OperationError::from);
    run.or_fallback(Fallback::DiskState, first, || {
        report::disk_attributes(run, disk.number)
    })
    .await
}

/// Returns whether an open disk is offline.
pub(crate) async fn is_offline(run: Run<'_>, disk: &Disk) -> OperationResult<bool> {
    Ok(attributes(run, disk).await? & DiskAttributes::OFFLINE != 0)
}

/// Returns whether a disk is offline. The disk is not open.
pub(crate) async fn is_offline_by_number(
    run: Run<'_>,
    number: DiskNumber,
) -> OperationResult<bool> {
    let first =
        Disk::open(run.os(), number, Access::empty()).and_then(|disk| Ok(disk.attributes()?));
    let attributes = run
        .or_fallback(Fallback::DiskState, first, || {
            report::disk_attributes(run, number)
        })
        .await?;
    Ok(attributes & DiskAttributes::OFFLINE != 0)
}

/// Queries the size of an open disk in bytes.
pub(crate) async fn size(run: Run<'_>, disk: &Disk) -> OperationResult<u64> {
    let first = disk.size().map_err(OperationError::from);
    run.or_fallback(Fallback::DiskSize, first, || {
        report::disk_size(run, disk.number)
    })
    .await
}

/// Queries the size of a disk in bytes. The disk is not open, and is read again only if Windows
/// does not answer the query that always reads the size.
pub(crate) async fn size_by_number(run: Run<'_>, number: DiskNumber) -> OperationResult<u64> {
    let first = Disk::open_for_read(run.os(), number)
        .and_then(|disk| Ok(disk.length().or_else(|_| disk.size())?));
    run.or_fallback(Fallback::DiskSize, first, || report::disk_size(run, number))
        .await
}

/// Queries the partition table of an open disk. The report of the storage provider must not decide
/// whether a disk is partitioned.
pub(crate) async fn partition_table(run: Run<'_>, disk: &Disk) -> OperationResult<PartitionTable> {
    run.or_fallback(Fallback::PartitionTable, disk.partition_table(), || {
        report::partition_table(run, disk.number)
    })
    .await
}

/// Returns `known`, the partition table as the device has answered. If the device has not answered,
/// partitions that the storage provider reports exist. A report of no partition is no evidence: the
/// cache of the provider may be out of date.
pub(crate) async fn known_partition_table(
    run: Run<'_>,
    number: DiskNumber,
    known: OperationResult<PartitionTable>,
) -> OperationResult<PartitionTable> {
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
    .await
}

/// Makes Windows read the size and the partition table of an open disk again.
pub(crate) async fn update(run: Run<'_>, disk: &Disk) -> OperationResult<()> {
    let first = disk.update().map_err(OperationError::from);
    run.or_fallback(Fallback::DiskUpdate, first, || {
        instances::refresh(run, disk.number)
    })
    .await
}
