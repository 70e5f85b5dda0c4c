//! Whether a mapped share can be read, and if not, why.

use std::time::Duration;

use os::{Access, Open, Options, Os, OsError, OsResult};

use crate::error::OperationResult;
use crate::error_class::ErrorClass;
use crate::node::run::Run;
use crate::types::UncPath;

/// An attempt that failed after this time has waited for a server that does not answer (SMB-25).
/// Assumed: a stale session fails at once. If Windows waits for it too, the request fails, and its
/// repetition uses a new session.
const ONE_TIME_OUT: Duration = Duration::from_secs(5);

/// Why a mapped share cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The server refuses the credentials of the mapping.
    CredentialsRefused(OsError),
    /// The server answers that it has no such share.
    ShareMissing(OsError),
    /// The server denies access or has no such share, or Windows has no credentials for it. The
    /// credentials of the mapping may be right.
    Refused(OsError),
    /// Another reason, such as a network failure. Files that are open on the share may become
    /// usable again.
    Other(OsError),
}

/// Returns whether the code proves that a mapping is not usable: the server has answered, or
/// Windows has no credentials for it. After every other code, such as the code of an outage or an
/// unknown code, the share may become readable again.
fn is_evidence(code: OsError) -> bool {
    [
        OsError::ACCESS_DENIED,
        OsError::BAD_NET_NAME,
        OsError::NO_SUCH_LOGON_SESSION,
    ]
    .contains(&code)
        || ErrorClass::CredentialsRefused.contains(code)
}

/// Reads the share and the directory on it that `remote` names. It suffices if one of them can be
/// read.
///
/// Makes up to three attempts: a refusal leads to the removal of the mapping, which breaks the open
/// files of other pods, so a single error, which may be transient, is not enough. An attempt that
/// has waited for the server is the last one: an outage removes no mapping.
pub(crate) fn read(run: Run<'_>, remote: &UncPath) -> Result<(), Unreadable> {
    let mut codes = Vec::new();
    for share_only in [true, false, true] {
        let begin = run.clock().now();
        let code = match list(run.os(), remote, share_only) {
            Ok(()) => return Ok(()),
            // The user is not allowed to list the share, but the server reports that the directory
            // does not exist.
            Err(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND)
                if !share_only && codes == [OsError::ACCESS_DENIED] =>
            {
                return Ok(());
            }
            Err(code) => code,
        };
        if ErrorClass::ServerUnreachable.contains(code) && run.clock().now() >= begin + ONE_TIME_OUT
        {
            return Err(Unreadable::Other(code));
        }
        codes.push(code);
    }
    Err(why_unreadable(codes[0], codes[2]))
}

/// Returns why a share cannot be read that could be listed neither at first nor at last.
fn why_unreadable(first: OsError, last: OsError) -> Unreadable {
    let refused = ErrorClass::CredentialsRefused;
    // The code that explains why the mapping is kept. A single refusal of the credentials does not
    // remove a mapping.
    let named = if refused.contains(last) { first } else { last };
    match (first, last) {
        (OsError::BAD_NET_NAME, OsError::BAD_NET_NAME) => Unreadable::ShareMissing(last),
        _ if refused.contains(first) && refused.contains(last) => {
            Unreadable::CredentialsRefused(last)
        }
        _ if is_evidence(first) && is_evidence(last) => Unreadable::Refused(named),
        _ => Unreadable::Other(named),
    }
}

/// Asks a server that may be failing over until it has the share again: during a failover, a server
/// answers that it has no such share. Returns the last answer.
pub(crate) fn wait_for_share(
    run: Run<'_>,
    remote: &UncPath,
) -> OperationResult<Result<(), Unreadable>> {
    let answer = run
        .windows()
        .poll(run.timeouts().share_gone, || -> OperationResult<_> {
            Ok(match list(run.os(), remote, true) {
                Ok(()) => Some(Ok(())),
                Err(OsError::BAD_NET_NAME) => None,
                Err(code) => Some(Err(Unreadable::Other(code))),
            })
        })?;
    Ok(answer.unwrap_or(Err(Unreadable::ShareMissing(OsError::BAD_NET_NAME))))
}

/// Lists the share, or the directory on it, with a new open, which uses the session of the mapping.
/// If the user may not list it, it suffices that its attributes may be read: that proves the
/// session and the credentials.
pub(crate) fn list(os: &dyn Os, remote: &UncPath, share_only: bool) -> OsResult<()> {
    let path = remote.to_nt(share_only);
    match os
        .open(
            &path,
            &Open::existing(
                Access::READ_DATA | Access::READ_ATTRIBUTES,
                Options::DIRECTORY,
            ),
        )
        .and_then(|directory| directory.list(true, &mut [0; 4096]))
    {
        Err(OsError::NO_MORE_FILES) => Ok(()),
        Err(OsError::ACCESS_DENIED) => os
            .open(
                &path,
                &Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY),
            )
            .map(drop),
        outcome => outcome,
    }
}
