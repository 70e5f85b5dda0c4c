//! Other mappings to the server of a share: Windows allows one user for each server.

use os::Instance;

use super::global_mapping::{others, remove};
use crate::error::{Kind, OperationError, OperationResult};
use crate::node::run::Run;
use crate::node::smb_mapping_record::Origin;
use crate::readings::share::{self, Unreadable};
use crate::scheduling::LockKey;
use crate::types::UncPath;

/// How many of the remaining mappings are named.
const NAMED: usize = 3;

/// The outcome of removing mappings to other shares of a server.
pub(super) struct Resolved {
    /// Whether one was removed.
    pub(super) has_removed: bool,
    /// Some of the shares whose mappings remain, each with the reason if it was to be removed.
    pub(super) remaining: Vec<String>,
}

/// Removes the mappings to other shares of the server of `remote` that are from before the start of Windows and are no
/// longer usable, unless files are open on them. Their shares are mapped again when they are asked for.
///
/// Leaves a share that another operation has locked.
pub(super) fn resolve(run: Run<'_>, remote: &UncPath) -> OperationResult<Resolved> {
    let mut resolved = Resolved { has_removed: false, remaining: Vec::new() };
    for (path, mapping) in others(run, remote)? {
        match remove_if_stale(run, &path, &mapping) {
            Ok(true) => resolved.has_removed = true,
            Ok(false) => resolved.remaining.push(path),
            Err(error) if matches!(error.kind, Kind::StillRunning | Kind::Unavailable | Kind::Cancelled) => {
                return Err(error);
            }
            Err(error) => resolved.remaining.insert(0, format!("{path}: {error}")),
        }
    }
    resolved.remaining.truncate(NAMED);
    Ok(resolved)
}

/// Removes the mapping of `path` if it is from before the start of Windows and is no longer usable. Returns whether it
/// did.
fn remove_if_stale(run: Run<'_>, path: &str, mapping: &Instance) -> OperationResult<bool> {
    let Ok(remote) = UncPath::parse(path) else { return Ok(false) };
    let share = remote.share();
    if run.node().smb_mappings.origin(run.host(), &share)? != Origin::BeforeStartOfWindows {
        return Ok(false);
    }
    let removed = run.with_lock(LockKey::Share(share.clone()), |run| {
        match share::read(run, &remote) {
            Ok(()) => return Ok(false),
            Err(Unreadable::Other(code)) => return Err(OperationError::of(code, "unreadable now")),
            Err(_) => {}
        }
        remove(run, &share, mapping, false)?;
        tracing::info!(share, "removed a mapping from before the start of Windows that is no longer usable");
        Ok(true)
    });
    removed.unwrap_or(Ok(false))
}
