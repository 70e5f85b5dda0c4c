//! Ending a session: whether it is in use, its persistence, and the logout.

use os::{Instance, OsError, Value};

use crate::devices::disk::OPEN_FOR_QUERY;
use crate::devices::volume;
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::node::run::Run;
use crate::provider::msft_iscsi::{allow, invoke, same_session, target_path};
use crate::provider::report;
use crate::readings::node_volumes;
use crate::types::{DiskNumber, Iqn};
use crate::windows::{Device, Fallback};

/// The most registrations of one session that are taken back. Windows restores a session once for
/// each.
const MAX_REGISTRATIONS: usize = 8;

/// Refuses to end a session while a volume on one of its disks is mounted in a working directory,
/// where a pod may use it.
pub(super) fn refuse_mounted(run: Run<'_>, disks: &[DiskNumber]) -> OperationResult<()> {
    if disks.is_empty() {
        return Ok(());
    }
    let mounted = node_volumes::mounted_for_drivers(run.node())?;
    let targets = mounted
        .iter()
        .map(|(volume, _)| (Device::Volume(*volume), *volume));
    let answers = run.windows().query_each(targets, |os, volume, _| {
        volume::extents(&*os.open(&volume.device(), &OPEN_FOR_QUERY)?)
    });
    for ((volume, path), (_, extents)) in mounted.iter().zip(answers) {
        let extents = match extents.unwrap_or(Err(OsError::SEM_TIMEOUT)) {
            Ok(extents) => extents,
            // A volume that does not answer may be that of another target, which must not keep
            // this one.
            Err(code) => {
                let reported = report::extent(run.with_queries_only(), *volume);
                let fallbacks = &run.windows().fallbacks;
                fallbacks.record(Fallback::VolumeDisk, code);
                let extent = reported.map_err(|failed| {
                    let context = format!(
                        "it is not known whether volume {volume}, which is mounted at {path}, is \
                         on a disk of the target"
                    );
                    OperationError::of(code, context)
                        .with_kind(ErrorKind::FailedPrecondition)
                        .with_failed_fallback(&failed)
                })?;
                vec![extent]
            }
        };
        let is_on_disk = extents
            .iter()
            .any(|extent| disks.contains(&DiskNumber(extent.disk_number)));
        if is_on_disk {
            return Err(OperationError::precondition(format!(
                "volume {volume} of the target is mounted at {path}; unmount it first"
            )));
        }
    }
    Ok(())
}

/// Makes Windows not restore a session after a restart.
pub(super) fn end_persistence(run: Run<'_>, session: &Instance) -> OperationResult<()> {
    let mut current = Some(session.clone());
    for _ in 0..MAX_REGISTRATIONS {
        if current.and_then(|session| session.bool("IsPersistent")) != Some(true) {
            return Ok(());
        }
        invoke(run, &session.path, "Unregister", &[])?;
        current = same_session(run, session)?;
    }
    Ok(())
}

/// Ends a session. Windows refuses that for as long as it uses a device of the session, such as a
/// new disk.
pub(super) fn log_out(run: Run<'_>, iqn: &Iqn, session: &Instance) -> OperationResult<()> {
    const BUSY: [OsError; 2] = [
        OsError::ISDSC_SESSION_BUSY,
        OsError::ISDSC_DEVICE_BUSY_ON_SESSION,
    ];
    let id = session.text("SessionIdentifier").unwrap_or_default();
    let arguments = [("SessionIdentifier", Value::Text(id.to_owned()))];
    // Windows may spell the name otherwise than the request.
    let target = target_path(session.text("TargetNodeAddress").unwrap_or(iqn.as_str()));
    let mut busy = None;
    let ended = run.windows().poll(run.timeouts().arrival, || {
        match invoke(run, &target, "Disconnect", &arguments) {
            Err(error) if error.code.is_some_and(|code| BUSY.contains(&code)) => {
                busy = Some(error);
                Ok(None)
            }
            outcome => {
                let has_ended = || Ok(same_session(run, session)?.is_none());
                allow(OsError::ISDSC_INVALID_SESSION_ID, outcome, has_ended).map(|_| Some(()))
            }
        }
    })?;
    match (ended, busy) {
        (None, Some(error)) => Err(error),
        _ => Ok(()),
    }
}
