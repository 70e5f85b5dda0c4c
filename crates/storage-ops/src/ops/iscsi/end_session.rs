//! Ending a session: whether it is in use, its persistence, and the logout.

use os::{Instance, OsError, Value};

use crate::devices::disk::OPEN_FOR_QUERY;
use crate::devices::volume;
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::node::run::Run;
use crate::provider::msft_iscsi::{
    allow, disks_of, disks_of_session, disks_without_another_session, invoke, same_session,
    target_path,
};
use crate::provider::report;
use crate::readings::iscsi_session::{Session, identifier, sessions};
use crate::readings::node_volumes::{self, MountedAt};
use crate::scheduling::LockKey;
use crate::types::{DiskNumber, Iqn};
use crate::windows::{Device, Fallback};

/// Ends a session, unless a volume on one of its disks is mounted at such a path.
pub(super) fn end(
    run: Run<'_>,
    iqn: &Iqn,
    session: &Session,
    refused: MountedAt,
) -> OperationResult<()> {
    let disks = Disks::of(run, session)?;
    // No volume may be mounted between the check and the logout.
    let keys = disks.numbers.iter().copied().map(LockKey::Disk).collect();
    let Some(_locked) = run.try_lock(keys) else {
        let reason = "another request changes a disk of the target";
        return Err(OperationError::new(ErrorKind::Busy, reason));
    };
    refuse_mounted(run, &disks, refused)?;
    // A session that connects again gets its disks again, and Windows mounts their volumes at their
    // old mount points.
    refuse_if_connected_again(run, iqn, session)?;
    end_persistence(run, &session.instance)?;
    log_out(run, iqn, session)
}

/// The disks of a session.
struct Disks {
    numbers: Vec<DiskNumber>,
    /// Why it is not known that they are those of the session.
    doubt: Option<OperationError>,
}

impl Disks {
    /// Returns the disks of a session. If Windows lists none for a session without a connection,
    /// returns all iSCSI disks that may be those of the session: no document says what Windows
    /// lists for such a session while its disks still exist.
    fn of(run: Run<'_>, session: &Session) -> OperationResult<Self> {
        let mut numbers = disks_of(run, &session.connections)?;
        if session.is_connected() {
            let doubt = None;
            return Ok(Self { numbers, doubt });
        }
        let doubt = match disks_of_session(run, &session.instance) {
            Ok(found) => {
                numbers.extend(found);
                OperationError::precondition("Windows names no session of its disk")
            }
            Err(error) if error.kind == ErrorKind::Unavailable => return Err(error),
            Err(error) => error.with_kind(ErrorKind::FailedPrecondition),
        };
        numbers.sort_unstable();
        numbers.dedup();
        if !numbers.is_empty() {
            let doubt = None;
            return Ok(Self { numbers, doubt });
        }
        Ok(Self {
            numbers: disks_without_another_session(run, &session.instance)?,
            doubt: Some(doubt),
        })
    }
}

/// Refuses to end a session that had no connection before, and has one now.
fn refuse_if_connected_again(run: Run<'_>, iqn: &Iqn, session: &Session) -> OperationResult<()> {
    if session.is_connected() {
        return Ok(());
    }
    let identifier_before = identifier(&session.instance);
    let is_connected = sessions(run, iqn)?.iter().any(|current| {
        current.is_connected() && identifier(&current.instance) == identifier_before
    });
    if is_connected {
        return Err(OperationError::precondition(
            "the session has a connection again; repeat the request if it is to end",
        ));
    }
    Ok(())
}

/// The most registrations of one session that are taken back. Windows restores a session once for
/// each.
const MAX_REGISTRATIONS: usize = 8;

/// Refuses to end a session while a volume on one of its disks is mounted at such a path. In a
/// working directory, a pod may use the volume.
fn refuse_mounted(run: Run<'_>, disks: &Disks, refused: MountedAt) -> OperationResult<()> {
    if disks.numbers.is_empty() {
        return Ok(());
    }
    let mounted = node_volumes::mounted(run.node(), refused)?;
    let targets = mounted
        .iter()
        .map(|(volume, _)| (Device::Volume(*volume), *volume));
    let answers = run.windows().query_each(targets, |os, volume, _| {
        volume::extents_on_disks(&*os.open(&volume.device(), &OPEN_FOR_QUERY)?)
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
            .any(|extent| disks.numbers.contains(&DiskNumber(extent.disk_number)));
        if !is_on_disk {
            continue;
        }
        let Some(doubt) = &disks.doubt else {
            return Err(OperationError::precondition(format!(
                "volume {volume} of the target is mounted at {path}; unmount it first"
            )));
        };
        let reason = format!(
            "volume {volume} is mounted at {path}, and may be one of the target: {}; unmount it \
             first",
            doubt.reason
        );
        return Err(OperationError {
            reason,
            ..doubt.clone()
        });
    }
    Ok(())
}

/// Makes Windows not restore a session after a restart.
fn end_persistence(run: Run<'_>, session: &Instance) -> OperationResult<()> {
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
fn log_out(run: Run<'_>, iqn: &Iqn, session: &Session) -> OperationResult<()> {
    const BUSY: [OsError; 2] = [
        OsError::ISDSC_SESSION_BUSY,
        OsError::ISDSC_DEVICE_BUSY_ON_SESSION,
    ];
    let instance = &session.instance;
    let identifier = identifier(instance).to_owned();
    let arguments = [("SessionIdentifier", Value::Text(identifier))];
    // Windows may spell the name otherwise than the request.
    let target = target_path(instance.text("TargetNodeAddress").unwrap_or(iqn.as_str()));
    let mut busy = None;
    let ended = run.windows().poll(run.timeouts().arrival, || {
        refuse_if_connected_again(run, iqn, session)?;
        match invoke(run, &target, "Disconnect", &arguments) {
            Err(error) if error.code.is_some_and(|code| BUSY.contains(&code)) => {
                busy = Some(error);
                Ok(None)
            }
            outcome => allow(OsError::ISDSC_INVALID_SESSION_ID, outcome, || {
                Ok(same_session(run, instance)?.is_none())
            })
            .map(|_| Some(())),
        }
    })?;
    match (ended, busy) {
        (None, Some(error)) => Err(error),
        _ => Ok(()),
    }
}
