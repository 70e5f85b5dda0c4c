//! The volumes and disks that the node itself uses. No operation mounts, empties or formats such a volume, or takes such a
//! disk offline. What cannot be determined counts as used.

use crate::error::{Kind, OperationError, OperationResult};
use crate::node::Node;
use crate::types::{DiskNumber, VolumeId};
use crate::windows::disk_device::{Disk, PartitionKind};
use crate::windows::fallback::{Fallback, SecondWay};
use crate::windows::msft_storage::report;
use crate::windows::volume_device;

/// Refuses `volume` if the node itself uses it: the volume of Windows, of a working directory or of the drive of one, and
/// the EFI system, recovery and reserved partitions of every disk. `way` is `Refused` if the volume's content is at stake.
pub(crate) fn refuse_volume(node: &Node, way: SecondWay<'_>, volume: VolumeId) -> OperationResult<()> {
    if of_node(node)?.contains(&volume) {
        return Err(OperationError::new(Kind::PermissionDenied, "the volume is used by the node itself"));
    }
    for extent in volume_device::all_extents(&node.host, way, volume).map_err(undetermined)? {
        let number = DiskNumber(extent.disk_number);
        let table = Disk::open_for_read(&node.host, number).and_then(|disk| disk.partition_table());
        let table = match way {
            SecondWay::Provider(ctx) => {
                let second = || report::partition_table(&node.host, ctx, number);
                node.host.or_second(way, Fallback::PartitionTable, table, second)
            }
            SecondWay::Refused | SecondWay::Query => table,
        };
        let table = table.map_err(undetermined)?;
        let begins_here = |offset: u64| u64::try_from(extent.offset) == Ok(offset);
        let of_system = |kind| matches!(kind, PartitionKind::System | PartitionKind::Reserved);
        if table.partitions.iter().any(|partition| begins_here(partition.offset) && of_system(partition.kind)) {
            let reason = "the volume is on an EFI system, recovery or reserved partition";
            return Err(OperationError::new(Kind::PermissionDenied, reason));
        }
    }
    Ok(())
}

/// Refuses a disk with an extent of a volume that the node itself uses. Disk 0 is usually such a disk, and it is the disk
/// of a request without a number.
pub(crate) fn refuse_disk(node: &Node, disk: DiskNumber) -> OperationResult<()> {
    for volume in of_node(node)? {
        let extents = volume_device::all_extents(&node.host, SecondWay::Refused, volume).map_err(undetermined)?;
        if extents.is_empty() {
            return Err(undetermined(OperationError::precondition(format!("volume {volume} has no extents"))));
        }
        if extents.iter().any(|extent| extent.disk_number == disk.0) {
            return Err(OperationError::new(Kind::PermissionDenied, "the disk has a volume that the node itself uses"));
        }
    }
    Ok(())
}

fn of_node(node: &Node) -> OperationResult<Vec<VolumeId>> {
    node.directories.volumes(node.host.os()).map_err(undetermined)
}

fn undetermined(mut error: OperationError) -> OperationError {
    if error.rerun.is_some() {
        return error;
    }
    error.reason = format!("it cannot be determined what the node itself uses: {}", error.reason);
    // What was not found is not the object of the request.
    if error.kind == Kind::NotFound {
        error.kind = Kind::FailedPrecondition;
    }
    error
}
