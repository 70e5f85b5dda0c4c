//! Whether PartitionDisk may bring a partitioned disk online and make it writable.
//!
//! Some drivers never call SetDiskState: azuredisk and the local static provisioner. Without
//! PartitionDisk's help they cannot use a disk that arrives offline or read-only. Such a disk may
//! also belong to somebody else: it may be a second path to a disk that is in use, or the disk of
//! a cluster or of a virtual machine. Writing to it would then destroy data.

use os::abi::DiskAttributes as Bits;

use super::{is_of_node, online, read_ids};
use crate::devices::Disk;
use crate::error::{ErrorKind, OperationError};
use crate::error_class::ErrorClass;
use crate::node::run::Run;
use crate::provider::msft_storage;
use crate::readings::{self, node_volumes};
use crate::scheduling::{RunResult, caught};
use crate::types::{DiskIds, DiskNumber};

/// Why Windows keeps a disk offline: `MSFT_Disk.OfflineReason` (WMI-DISK-12).
#[derive(Clone, Copy, PartialEq, Eq)]
struct OfflineReason(u32);

impl OfflineReason {
    const POLICY: Self = Self(1);
    const COLLISION: Self = Self(4);

    fn name(self) -> &'static str {
        match self.0 {
            1 => "a policy",
            2 => "a redundant path",
            3 => "a snapshot",
            4 => "a disk with the same signature",
            5 => "missing resources",
            6 => "write failures",
            7 => "a pending integrity scan",
            _ => "an unknown reason",
        }
    }
}

/// What happened to the state of a partitioned disk.
pub(crate) enum Outcome {
    /// The disk is online and writable.
    Usable,
    /// The disk keeps its state, because of this.
    Left(String),
}

/// Brings a partitioned disk that has `attributes` online and makes it writable, if that endangers
/// no data. The disk is locked.
pub(super) fn make_usable(run: Run<'_>, disk: &Disk, attributes: u64) -> RunResult<Outcome> {
    let reason = match permission(run, disk, attributes)? {
        Ok(reason) => reason,
        Err(why) => return Ok(Outcome::Left(why)),
    };
    run.begin_mutation()?;
    let changed = online::make_online(run, disk, attributes);
    let is_usable = |attributes: u64| attributes & (Bits::OFFLINE | Bits::READ_ONLY) == 0;
    if changed.is_ok() && is_usable(readings::disk::attributes(run, disk)?) {
        if reason == Some(OfflineReason::COLLISION) {
            tracing::warn!(
                disk = disk.number.0,
                "brought a disk online that has the signature of another disk; Windows gives it a \
                 new signature"
            );
        } else {
            tracing::info!(
                disk = disk.number.0,
                "brought a partitioned disk online and made it writable"
            );
        }
        return Ok(Outcome::Usable);
    }
    // The storage provider could make the change in spite of the refusal, but a cluster or a
    // virtual machine may have caused it.
    let refused = changed.err().unwrap_or_else(|| {
        OperationError::precondition("Windows reported success, but the state has not changed")
    });
    if refused
        .code
        .is_none_or(|code| ErrorClass::DeviceRemoved.contains(code))
    {
        disk.check_number()?;
    }
    if attributes & Bits::READ_ONLY != 0
        && let Err(error) = disk.set_attributes(run.os(), Bits::READ_ONLY, Bits::READ_ONLY)
    {
        tracing::warn!(
            disk = disk.number.0, %error,
            "a disk that could not be brought online was read-only and is writable now"
        );
    }
    Ok(Outcome::Left(format!(
        "the driver of the disk refuses the change: {}",
        refused.reason
    )))
}

/// Returns Windows' reason for keeping the disk offline, if it may be brought online, and
/// otherwise why it must keep its state.
fn permission(
    run: Run<'_>,
    disk: &Disk,
    attributes: u64,
) -> RunResult<Result<Option<OfflineReason>, String>> {
    if let Err(error) = node_volumes::refuse_disk(run.node(), disk.number) {
        return Ok(Err(error.reason));
    }
    match with_same_identifier(run, disk.number)? {
        Ok(None) => {}
        Ok(Some(other)) => return Ok(Err(same_identifier(other))),
        Err(unknown) => return Ok(Err(unknown)),
    }
    if attributes & Bits::OFFLINE == 0 {
        return Ok(Ok(None));
    }
    Ok(
        match caught(msft_storage::offline_reason(run, disk))?
            .map(|reason| reason.map(OfflineReason))
        {
            Ok(Some(reason @ (OfflineReason::POLICY | OfflineReason::COLLISION))) => {
                Ok(Some(reason))
            }
            Ok(Some(reason)) => Err(format!(
                "Windows keeps the disk offline because of {} (OfflineReason {})",
                reason.name(),
                reason.0
            )),
            Ok(None) => Err("Windows gives no reason why the disk is offline".to_owned()),
            Err(error) if error.kind == ErrorKind::NotFound => return Err(error.into()),
            Err(error) => Err(format!(
                "Windows' reason for keeping the disk offline cannot be read: {}",
                error.reason
            )),
        },
    )
}

/// Returns the error of ListVolumesOnDisk for a partitioned disk that is offline.
pub(crate) fn offline_error(
    run: Run<'_>,
    disk: &Disk,
    attributes: u64,
) -> RunResult<OperationError> {
    if run.node().config().leave_partitioned_disks {
        return Ok(OperationError::precondition(
            "the disk is offline, and csi-proxy's flag -leave-partitioned-disks is set; bring the \
             disk online with SetDiskState first",
        ));
    }
    let reason = match permission(run, disk, attributes)? {
        Ok(reason) => format!(
            "the disk is offline because of {}; bring it online with PartitionDisk or \
             SetDiskState. If PartitionDisk has left it offline, the log has the reason",
            reason.map_or("an unknown reason", OfflineReason::name)
        ),
        Err(why) => format!(
            "the disk is offline, and PartitionDisk does not bring it online, because {why}; bring it \
             online with SetDiskState if no other node, path or virtual machine uses it"
        ),
    };
    Ok(OperationError::precondition(reason))
}

/// Returns what two disks with one identifier can be.
pub(super) fn same_identifier(other: DiskNumber) -> String {
    format!("{other} has the same identifier (two paths to one LUN without MPIO, or a copy)")
}

/// Finds another disk with the page 83 identifier of a disk or, if that has none, with its serial
/// number. The inner error says why that cannot be determined.
pub(super) fn with_same_identifier(
    run: Run<'_>,
    number: DiskNumber,
) -> RunResult<Result<Option<DiskNumber>, String>> {
    let found = match caught(read_ids(run))? {
        Ok(found) => found,
        Err(error) => {
            return Ok(Err(format!(
                "the identifiers of the disks cannot be read: {}",
                error.reason
            )));
        }
    };
    let own = found.ids.get(&number).cloned().unwrap_or_default();
    let identifier: fn(&DiskIds) -> &str = match (own.page83.trim(), own.serial.trim()) {
        ("", "") => {
            return Ok(Err(
                "the disk has no identifier that would show a second path to it".to_owned(),
            ));
        }
        ("", _) => |ids| ids.serial.trim(),
        _ => |ids| ids.page83.trim(),
    };
    let is_same = |(other, ids): (&DiskNumber, &DiskIds)| {
        (*other != number && identifier(ids) == identifier(&own)).then_some(*other)
    };
    if let Some(other) = found.ids.iter().find_map(is_same) {
        return Ok(Ok(Some(other)));
    }
    let unread = found
        .without_page83
        .iter()
        .find(|disk| !is_of_node(run, disk));
    let without_serial = found.without_serial.iter().find(|(other, code)| {
        *other != number && own.page83.is_empty() && !ErrorClass::Unsupported.contains(*code)
    });
    let unknown = unread
        .map(|disk| disk.device.to_string())
        .or(without_serial.map(|(other, _)| other.to_string()));
    Ok(match unknown {
        None => Ok(None),
        Some(disk) => Err(format!(
            "{disk} cannot be read and may have the same identifier"
        )),
    })
}
