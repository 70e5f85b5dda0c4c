//! The WMI class of SMB global mappings, and the mappings that prevent another one: Windows allows
//! one user for each server.

use os::{Instance, MethodCall, Namespace, OsError, Value};

use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::node::run::Run;
use crate::node::smb_mapping_record::Origin;
use crate::provider::wmi::{call, query, quote};
use crate::readings::share::{self, Unreadable};
use crate::scheduling::LockKey;
use crate::types::{UncPath, lower_case};

pub(super) const CLASS: &str = "MSFT_SmbGlobalMapping";

/// Finds the mapping of a share.
pub(super) fn find(run: Run<'_>, share: &str) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM {CLASS} WHERE RemotePath = {}", quote(share));
    // WMI may consider letters equal that Windows and servers do not.
    let is_same = |mapping: &Instance| {
        mapping
            .text("RemotePath")
            .is_none_or(|path| lower_case(path) == share)
    };
    Ok(query(run, Namespace::Smb, &wql)?.into_iter().find(is_same))
}

/// Returns the mappings to other shares of the server of `remote`, with their remote paths in lower
/// case.
fn others(run: Run<'_>, remote: &UncPath) -> OperationResult<Vec<(String, Instance)>> {
    let (share, server) = (remote.share(), format!(r"\\{}\", remote.server()));
    let mappings = query(run, Namespace::Smb, &format!("SELECT * FROM {CLASS}"))?;
    let named = mappings
        .into_iter()
        .filter_map(|mapping| Some((lower_case(mapping.text("RemotePath")?), mapping)));
    Ok(named
        .filter(|(path, _)| path.starts_with(&server) && *path != share)
        .collect())
}

/// Removes the mapping of a share. Unless forced, Windows refuses that while files are open on it.
pub(super) fn remove(
    run: Run<'_>,
    share: &str,
    mapping: &Instance,
    force: bool,
) -> OperationResult<()> {
    let force = [("Force", Value::Bool(force))];
    let remove = MethodCall::new(Namespace::Smb, &mapping.path, "Remove", &force);
    let returned = call(run, &remove, run.timeouts().change)?;
    if returned.code != 0 {
        return Err(OperationError::of(
            OsError(returned.code),
            format!("Windows did not remove the mapping of {share}"),
        ));
    }
    run.node().smb_mappings.forget(run.windows(), share);
    Ok(())
}

/// How many of the remaining mappings are named.
const NAMED: usize = 3;

/// The outcome of removing mappings to other shares of a server.
pub(super) struct Resolved {
    /// Whether one was removed.
    pub(super) has_removed: bool,
    /// Some of the shares whose mappings remain, each with the reason if it was to be removed.
    pub(super) remaining: Vec<String>,
}

/// Removes the mappings to other shares of the server of `remote` that are from before the start of
/// Windows and are no longer usable, unless files are open on them. Their shares are mapped again
/// when they are asked for.
///
/// Leaves a share that another operation has locked.
pub(super) fn resolve_conflict(run: Run<'_>, remote: &UncPath) -> OperationResult<Resolved> {
    let mut resolved = Resolved {
        has_removed: false,
        remaining: Vec::new(),
    };
    for (path, mapping) in others(run, remote)? {
        match remove_if_stale(run, &path, &mapping) {
            Ok(true) => resolved.has_removed = true,
            Ok(false) => resolved.remaining.push(path),
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::StillRunning | ErrorKind::Unavailable | ErrorKind::Cancelled
                ) =>
            {
                return Err(error);
            }
            Err(error) => resolved.remaining.insert(0, format!("{path}: {error}")),
        }
    }
    resolved.remaining.truncate(NAMED);
    Ok(resolved)
}

/// Removes the mapping of `path` if it is from before the start of Windows and is no longer usable.
/// Returns whether it did.
fn remove_if_stale(run: Run<'_>, path: &str, mapping: &Instance) -> OperationResult<bool> {
    let Ok(remote) = UncPath::parse(path) else {
        return Ok(false);
    };
    let share = remote.share();
    if run.node().smb_mappings.origin(run.windows(), &share)? != Origin::BeforeStartOfWindows {
        return Ok(false);
    }
    let removed = run.with_lock(LockKey::Share(share.clone()), |run| {
        match share::read(run, &remote) {
            Ok(()) => return Ok(false),
            Err(Unreadable::Other(code)) => return Err(OperationError::of(code, "unreadable now")),
            Err(_) => {}
        }
        remove(run, &share, mapping, false)?;
        tracing::info!(
            share,
            "removed a mapping from before the start of Windows that is no longer usable"
        );
        Ok(true)
    });
    removed.unwrap_or(Ok(false))
}
