//! The WMI class of SMB global mappings, and the mappings that prevent another one: Windows allows
//! one user for each server.

use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

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
    Ok(query(run, Namespace::Smb, &wql)?
        .into_iter()
        .find(|mapping| {
            mapping
                .text("RemotePath")
                .is_none_or(|path| lower_case(path) == share)
        }))
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
const NAMED: usize = 2;

/// How many shares are read side by side. Reading one takes up to three round trips.
const READ_AT_ONCE: usize = 16;

/// The outcome of removing mappings to other shares of a server.
pub(super) struct Resolved {
    /// Whether one was removed.
    pub(super) has_removed: bool,
    /// Some of the shares whose mappings remain, each with the reason if it was to be removed.
    pub(super) remaining: Vec<String>,
}

/// A mapping from before the start of Windows.
struct Left {
    share: String,
    remote: UncPath,
    mapping: Instance,
}

/// Removes the mappings to other shares of the server of `remote` that are from before the start of
/// Windows and are no longer usable, unless files are open on them. Their shares are mapped again
/// when they are asked for.
///
/// Leaves a share that another operation has locked. Ends when one of these mappings stays, because
/// that one suffices for the conflict, and a node may have hundreds of them.
pub(super) fn resolve_conflict(run: Run<'_>, remote: &UncPath) -> OperationResult<Resolved> {
    // The mappings that stay without having been read.
    let mut kept = Vec::new();
    let mut left = Vec::new();
    for (path, mapping) in others(run, remote)? {
        let Ok(remote) = UncPath::parse(&path) else {
            kept.push(path);
            continue;
        };
        let share = remote.share();
        match run.node().smb_mappings.origin(run.windows(), &share)? {
            Origin::BeforeStartOfWindows => left.push(Left {
                share,
                remote,
                mapping,
            }),
            Origin::SinceStartOfWindows(_) => kept.push(path),
        }
    }
    let mut resolved = Resolved {
        has_removed: false,
        remaining: Vec::new(),
    };
    let mut waiting = &left[..];
    // Usually each of them can be read, so the first one is read alone.
    let mut at_once = 1;
    while !waiting.is_empty() && resolved.remaining.is_empty() {
        let (group, others) = waiting.split_at(at_once.min(waiting.len()));
        kept.extend(remove_stale(run, group, &mut resolved)?);
        (waiting, at_once) = (others, READ_AT_ONCE);
    }
    let unread = waiting.iter().map(|left| left.share.clone());
    resolved.remaining.extend(unread.chain(kept));
    resolved.remaining.truncate(NAMED);
    Ok(resolved)
}

/// Removes those mappings that are no longer usable, and adds the others to the remaining ones.
/// Returns the shares that another operation has locked.
fn remove_stale(
    run: Run<'_>,
    group: &[Left],
    resolved: &mut Resolved,
) -> OperationResult<Vec<String>> {
    let (mut locked, mut busy) = (Vec::new(), Vec::new());
    for left in group {
        match run.try_lock(vec![LockKey::Share(left.share.clone())]) {
            Some(context) => locked.push((left, context)),
            None => busy.push(left.share.clone()),
        }
    }
    let read = |left: &Left| share::read(run, &left.remote);
    let answers = match &locked[..] {
        [(left, _)] => vec![read(left)],
        locked => {
            let span = tracing::Span::current();
            thread::scope(|scope| {
                let (read, span) = (&read, &span);
                let threads: Vec<_> = locked
                    .iter()
                    .map(|(left, _)| scope.spawn(move || span.in_scope(|| read(left))))
                    .collect();
                let joined = threads.into_iter().map(ScopedJoinHandle::join);
                joined
                    .map(|answer| answer.unwrap_or_else(|panic| resume_unwind(panic)))
                    .collect()
            })
        }
    };
    for ((left, context), answer) in locked.into_iter().zip(answers) {
        let share = &left.share;
        let removed = match answer {
            Ok(()) => {
                resolved.remaining.push(share.clone());
                continue;
            }
            Err(Unreadable::Other(code)) => Err(OperationError::of(code, "unreadable now")),
            Err(_) => remove(run.in_context(&context), share, &left.mapping, false),
        };
        match removed {
            Ok(()) => {
                tracing::info!(
                    share,
                    "removed a mapping from before the start of Windows that is no longer usable"
                );
                resolved.has_removed = true;
            }
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::StillRunning | ErrorKind::Unavailable | ErrorKind::Cancelled
                ) =>
            {
                return Err(error);
            }
            Err(error) => resolved.remaining.insert(0, format!("{share}: {error}")),
        }
    }
    Ok(busy)
}
