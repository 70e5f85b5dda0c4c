//! Bringing a disk and its volumes online.

use std::time::Duration;

use os::OsError;
use os::abi::DiskAttributes;

use crate::devices::Disk;
use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition};
use crate::error_class::ErrorClass;
use crate::node::run::Run;
use crate::ops::disk::with_same_identifier;
use crate::provider::msft_storage;
use crate::readings;
use crate::readings::volume::{DataVolumes, VolumeState};
use crate::scheduling::PoolKind;
use crate::windows::Fallback;

/// How long Windows may take to bring a volume online that it has just listed.
const ONLINE_GRACE: Duration = Duration::from_millis(300);

/// Brings a disk online and makes it writable, or takes it offline, unless it is in that state
/// already.
pub(super) async fn set_state(run: Run<'_>, disk: &Disk, online: bool) -> OperationResult<()> {
    use DiskAttributes as Bits;
    let is_reached = |attributes: u64| {
        if online {
            attributes & (Bits::OFFLINE | Bits::READ_ONLY) == 0
        } else {
            attributes & Bits::OFFLINE != 0
        }
    };
    let attributes = readings::disk::attributes(run, disk).await?;
    if is_reached(attributes) {
        return Ok(());
    }
    if online
        && attributes & Bits::OFFLINE != 0
        && let Ok(Some(other)) = with_same_identifier(run, disk.number).await
    {
        tracing::warn!(
            disk = disk.number.0,
            other = other.0,
            "brings a disk online that has the identifier of another disk: if both are paths to \
             one LUN, writing through both destroys its file system; install MPIO"
        );
    }
    run.enter(PoolKind::Disks).await;
    run.begin_mutation()?;
    let changed = if online {
        make_online(run, disk, attributes)
    } else {
        readings::volume::flush_all(run, &disk.reader(run.os())?).await;
        disk.set_attributes(run.os(), Bits::OFFLINE, Bits::OFFLINE)
    };
    if changed.is_ok() && is_reached(readings::disk::attributes(run, disk).await?) {
        return Ok(());
    }
    let refused = match changed {
        // The disk is gone.
        Err(error)
            if error
                .code
                .is_none_or(|code| ErrorClass::DeviceRemoved.contains(code)) =>
        {
            return Err(error);
        }
        changed => changed.err().and_then(|error| error.code),
    };
    run.windows()
        .fallbacks
        .record(Fallback::SetDiskState, refused.unwrap_or(OsError(0)));
    // The driver of the disk did not make the change, or a cluster or a disk with the same
    // signature prevents it. The storage provider handles such cases or returns the reason.
    msft_storage::set_online(run, disk, online).await?;
    if is_reached(readings::disk::attributes(run, disk).await?) {
        return Ok(());
    }
    failed_precondition(NOT_CHANGED)
}

/// The reason of an error if Windows reports success, but the disk has its old state: a policy may
/// have undone the change.
pub(super) const NOT_CHANGED: &str =
    "Windows reported success, but the state of the disk has not changed";

/// Makes the driver of a disk that has `attributes` clear [`DiskAttributes::READ_ONLY`], and then
/// [`DiskAttributes::OFFLINE`]: Windows would mount the volumes of a read-only disk read-only.
pub(super) fn make_online(run: Run<'_>, disk: &Disk, attributes: u64) -> OperationResult<()> {
    if attributes & DiskAttributes::READ_ONLY != 0 {
        disk.set_attributes(run.os(), 0, DiskAttributes::READ_ONLY)?;
    }
    disk.set_attributes(run.os(), 0, DiskAttributes::OFFLINE)
}

/// Brings a disk online, waits until each of its data partitions has a volume, and returns those
/// that have arrived by then. Brings the disk online again if a policy takes it offline meanwhile.
pub(super) async fn wait_for_volumes_online(
    run: Run<'_>,
    disk: &Disk,
) -> OperationResult<DataVolumes> {
    let mut pauses = run.pauses(run.timeouts().arrival);
    loop {
        match set_state(run, disk, true).await {
            Err(error)
                if error.reason == NOT_CHANGED
                    && was_taken_offline(disk, &error)
                    && pauses.again().await => {}
            outcome => {
                outcome?;
                let volumes = readings::volume::data_volumes(run, disk).await?;
                if readings::volume::have_arrived(&volumes) || !pauses.again().await {
                    return Ok(volumes);
                }
            }
        }
    }
}

/// Returns whether a change may be repeated, which has failed because a policy has taken the disk
/// offline again. A change that may still run is not repeated.
pub(super) fn was_taken_offline(disk: &Disk, error: &OperationError) -> bool {
    error.kind != ErrorKind::StillRunning && disk.is_offline().unwrap_or(false)
}

/// Brings the volumes online that have not arrived, or that Windows has left offline. Fails if the
/// provider refuses; a volume that stays offline after a success is only logged.
pub(super) async fn bring_volumes_online(
    run: Run<'_>,
    disk: &Disk,
    volumes: &DataVolumes,
) -> OperationResult<()> {
    if readings::volume::not_online(run.windows(), volumes).is_empty() {
        return Ok(());
    }
    run.enter(PoolKind::Wmi).await;
    // Windows may be about to bring a volume online that has just arrived.
    run.clock().sleep(ONLINE_GRACE);
    for (partition, state) in readings::volume::not_online(run.windows(), volumes) {
        msft_storage::bring_volume_online(run, disk, &partition, state == VolumeState::Offline)
            .await?;
    }
    let volumes = readings::volume::wait_for_volumes(run, disk).await?;
    if readings::volume::not_online(run.windows(), &volumes)
        .iter()
        .any(|(_, state)| *state == VolumeState::Offline)
    {
        tracing::warn!(
            disk = disk.number.0,
            "not all data partitions of the disk have a volume that is online"
        );
    }
    Ok(())
}
