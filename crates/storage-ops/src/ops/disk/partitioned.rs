//! Whether PartitionDisk may bring a partitioned disk online and make it writable.
//!
//! Some drivers never call SetDiskState: azuredisk and the local static provisioner. Without
//! PartitionDisk's help they cannot use a disk that arrives offline or read-only. Such a disk may
//! also belong to somebody else: it may be a second path to a disk that is in use, or the disk of
//! a cluster or of a virtual machine. Writing to it would then destroy data.

use os::abi::DiskAttributes as Bits;

use super::{online, with_same_identifier};
use crate::devices::Disk;
use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition};
use crate::node::run::Run;
use crate::provider::msft_storage;
use crate::readings::{self, node_volumes};
use crate::scheduling::PoolKind;

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
    Left(OperationError),
    /// Windows made the change, but the disk is offline: a policy may have taken it offline again,
    /// and another attempt may succeed.
    Undone(OperationError),
}

/// Brings a partitioned disk that has `attributes` online and makes it writable, if that endangers
/// no data. The disk is locked.
pub(super) async fn make_usable(
    run: Run<'_>,
    disk: &Disk,
    attributes: u64,
) -> OperationResult<Outcome> {
    let reason = match permission(run, disk, attributes).await {
        Ok(reason) => reason,
        Err(why) => return Ok(Outcome::Left(why)),
    };
    run.begin_mutation()?;
    let changed = online::make_online(run, disk, attributes);
    // The driver may have made the change in spite of an error.
    let now = readings::disk::attributes(run, disk).await?;
    if now & (Bits::OFFLINE | Bits::READ_ONLY) == 0 {
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
    let is_undone = changed.is_ok() && now & Bits::OFFLINE != 0;
    let refused = changed
        .err()
        .unwrap_or_else(|| OperationError::precondition(online::NOT_CHANGED));
    disk.check_number()?;
    if now != attributes
        && let Err(error) = disk.set_attributes(run.os(), attributes, Bits::READ_ONLY)
    {
        tracing::warn!(
            disk = disk.number.0, %error,
            "a disk that could not be brought online was read-only and is writable now"
        );
    }
    let why = refused.in_context("the driver of the disk refuses the change");
    Ok(if is_undone {
        Outcome::Undone(why)
    } else {
        Outcome::Left(why)
    })
}

/// Returns Windows' reason for keeping the disk offline, if it may be brought online. An error says
/// why the disk must keep its state.
async fn permission(
    run: Run<'_>,
    disk: &Disk,
    attributes: u64,
) -> OperationResult<Option<OfflineReason>> {
    // The checks must not be older than a wait for WMI.
    if attributes & Bits::OFFLINE != 0 {
        run.enter(PoolKind::Wmi).await;
    }
    node_volumes::refuse_disk(run.node(), disk.number)?;
    // An error of the other disk, which may be transient, can make its identifier look absent.
    let same = match with_same_identifier(run, disk.number).await? {
        None => with_same_identifier(run, disk.number).await?,
        found => found,
    };
    if let Some(other) = same {
        return failed_precondition(format!(
            "{other} has the same identifier (two paths to one LUN without MPIO, or a copy)"
        ));
    }
    if attributes & Bits::OFFLINE == 0 {
        return Ok(None);
    }
    let reason = msft_storage::offline_reason(run, disk)
        .await
        .map_err(|error| {
            error.in_context("Windows' reason for keeping the disk offline cannot be read")
        })?;
    match reason.map(OfflineReason) {
        allowed @ Some(OfflineReason::POLICY | OfflineReason::COLLISION) => Ok(allowed),
        Some(reason) => failed_precondition(format!(
            "Windows keeps it offline for {} (OfflineReason {})",
            reason.name(),
            reason.0
        )),
        None => failed_precondition("Windows gives no reason why the disk is offline"),
    }
}

/// Returns the error of ListVolumesOnDisk for a partitioned disk that is offline.
pub(crate) async fn offline_error(
    run: Run<'_>,
    disk: &Disk,
    attributes: u64,
) -> OperationResult<OperationError> {
    if run.node().config().leave_partitioned_disks {
        return Ok(OperationError::precondition(
            "the disk is offline, and csi-proxy's flag -leave-partitioned-disks is set; bring the \
             disk online with SetDiskState first",
        ));
    }
    Ok(match permission(run, disk, attributes).await {
        Ok(reason) => OperationError::precondition(format!(
            "the disk is offline because of {}; bring it online with PartitionDisk or \
             SetDiskState. If PartitionDisk has left it offline, the log has the reason",
            reason.map_or("an unknown reason", OfflineReason::name)
        )),
        Err(why) => {
            disk.check_number()?;
            let reason = format!(
                "the disk is offline, and PartitionDisk does not bring it online, because {}; \
                 bring it online with SetDiskState if no other node, path or virtual machine uses \
                 it",
                why.reason
            );
            OperationError { reason, ..why }.with_kind(ErrorKind::FailedPrecondition)
        }
    })
}
