//! The volumes and disks that the node itself uses. No operation mounts, empties or formats such a volume, or takes such a
//! disk offline. What cannot be determined counts as used.

use crate::error::{Kind, OperationError, OperationResult};
use crate::node::Node;
use crate::types::{DiskNumber, VolumeId};
use crate::windows::disk_device::{Disk, Partition, PartitionKind};
use crate::windows::fallback::{Fallback, SecondWay};
use crate::windows::msft_storage::report;
use crate::windows::volume_device;

/// Refuses `volume` if the node itself uses it: the volume of Windows, of a working directory or of the drive of one; the
/// EFI system, recovery and reserved partitions of every disk; and the active partition of a disk with one of the former
/// volumes, which is the system partition of a node that starts from a BIOS. Windows names it "System Reserved", but its
/// type is that of a data partition. `way` is `Refused` if the volume's content is at stake.
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
        let begins_here = |partition: &&Partition| u64::try_from(extent.offset) == Ok(partition.offset);
        for partition in table.partitions.iter().filter(begins_here) {
            let reason = match partition.kind {
                PartitionKind::System | PartitionKind::Reserved => {
                    "the volume is on an EFI system, recovery or reserved partition"
                }
                _ if partition.is_active && has_volume_of_node(node, number)? => {
                    "the volume is on the active partition of a disk of the node, from which the node starts"
                }
                _ => continue,
            };
            return Err(OperationError::new(Kind::PermissionDenied, reason));
        }
    }
    Ok(())
}

/// Refuses a disk with an extent of a volume that the node itself uses. Disk 0 is usually such a disk, and it is the disk
/// of a request without a number.
pub(crate) fn refuse_disk(node: &Node, disk: DiskNumber) -> OperationResult<()> {
    if has_volume_of_node(node, disk)? {
        return Err(OperationError::new(Kind::PermissionDenied, "the disk has a volume that the node itself uses"));
    }
    Ok(())
}

/// Returns whether the disk has an extent of a volume that the node itself uses.
pub(crate) fn has_volume_of_node(node: &Node, disk: DiskNumber) -> OperationResult<bool> {
    for volume in of_node(node)? {
        let extents = volume_device::all_extents(&node.host, SecondWay::Refused, volume).map_err(undetermined)?;
        if extents.is_empty() {
            return Err(undetermined(OperationError::precondition(format!("volume {volume} has no extents"))));
        }
        if extents.iter().any(|extent| extent.disk_number == disk.0) {
            return Ok(true);
        }
    }
    Ok(false)
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
