//! The errors of mapping a share, with what an operator can do about them.

use os::OsError;

use super::mapping_state::Refusal;
use crate::error::{ErrorKind, OperationError};
use crate::error_class::ErrorClass;

/// Returns the error of a request that leaves an existing mapping as it is.
pub(super) fn refusal(refusal: Refusal, share: &str) -> OperationError {
    match refusal {
        Refusal::OtherUser => OperationError::precondition(format!(
            "{share} is mapped for another user, and Windows allows one user per share; use the \
             same user for all volumes of the share on a node, map it by another name of the \
             server, or allow sharing with csi-proxy's flag -share-smb-mappings"
        )),
        Refusal::OtherPassword => OperationError::precondition(format!(
            "{share} is mapped with another password, and csi-proxy's flag \
             -refuse-other-smb-passwords is set; use the password it was mapped with, or remove \
             the mapping when no pod uses it"
        )),
        Refusal::Unreadable(code) => unreadable(share, code),
    }
}

/// Returns the error of a mapping that cannot be read because of `code` and that Windows did not
/// remove because of `error`.
pub(super) fn kept(code: OsError, share: &str, error: OperationError) -> OperationError {
    if matches!(
        error.kind,
        ErrorKind::StillRunning | ErrorKind::Unavailable | ErrorKind::Cancelled
    ) {
        return error;
    }
    let OperationError { reason, .. } = unreadable(share, code);
    OperationError {
        kind: ErrorKind::FailedPrecondition,
        reason: format!("{reason}; it stays: {}", error.reason),
        ..error
    }
}

/// Returns the error of a mapping that cannot be read.
fn unreadable(share: &str, code: OsError) -> OperationError {
    let error = OperationError::of(code, format!("{share} is mapped, but cannot be read"));
    let reason = if ErrorClass::ServerUnreachable.contains(code) {
        format!(
            "{}; the mapping is kept for the files that are open on it",
            error.reason
        )
    } else {
        format!("{}; if no pod uses the mapping, remove it", error.reason)
    };
    OperationError {
        kind: ErrorKind::FailedPrecondition,
        reason,
        ..error
    }
}

/// Adds to the error of a conflict what an operator can do. `remaining` names other mappings of the
/// server.
pub(super) fn of_conflict(error: &OperationError, remaining: &[String]) -> OperationError {
    let others = match remaining {
        [] => String::new(),
        _ => format!("remove those that no pod uses ({}), ", remaining.join(", ")),
    };
    let reason = format!(
        "{}; Windows allows one user per server at a time, and a restart makes it forget the user \
         of a mapping; {others}use the same user for all shares, or another name of the server",
        error.reason
    );
    OperationError {
        reason,
        ..error.clone()
    }
}

/// Adds to the error of a mapping that was not created the meaning of its code for an operator. An
/// unreachable server is a failed precondition, as in `error_class.rs`.
pub(super) fn of_creation(server: &str, error: OperationError) -> OperationError {
    let Some(code) = error
        .code
        .filter(|_| !matches!(error.kind, ErrorKind::Unavailable | ErrorKind::StillRunning))
    else {
        return error;
    };
    let is_unreachable = ErrorClass::ServerUnreachable.contains(code);
    let remedy = match code {
        OsError::NO_SUCH_LOGON_SESSION => {
            r"the user name needs a domain, such as DOMAIN\user; any domain will do for a server without one".into()
        }
        OsError::BAD_NET_NAME => format!("{server} has no such share, or is failing over"),
        OsError::INVALID_PASSWORD => {
            format!("the node has a session with {server} for this user with another password; \
                     check the credentials")
        }
        _ if ErrorClass::CredentialsRefused.contains(code) => {
            format!("{server} refuses the user name, the password or the account; check the \
                     credentials")
        }
        _ if is_unreachable => {
            format!("{server} cannot be reached; check that the node resolves its name and reaches \
                     its TCP port 445")
        }
        _ => return error,
    };
    let kind = if is_unreachable {
        ErrorKind::FailedPrecondition
    } else {
        error.kind
    };
    OperationError {
        kind,
        reason: format!("{}; {remedy}", error.reason),
        ..error
    }
}
