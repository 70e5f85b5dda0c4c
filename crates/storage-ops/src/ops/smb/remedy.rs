//! The errors of mapping a share, with what an operator can do about them.

use os::OsError;

use super::mapping_state::Refusal;
use crate::error::{ErrorKind, OperationError};
use crate::error_class::{ErrorClass, codes, is_unlisted};

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
    OperationError {
        code: error.code,
        ..unreadable(share, code).followed_by(format_args!("it stays: {}", error.reason))
    }
}

/// Returns the error of a mapping that cannot be read.
fn unreadable(share: &str, code: OsError) -> OperationError {
    let error = OperationError::of(code, format!("{share} is mapped, but cannot be read"));
    let advice = if ErrorClass::ServerUnreachable.contains(code) {
        "the mapping is kept for the files that are open on it"
    } else {
        "if no pod uses the mapping, remove it"
    };
    error
        .followed_by(advice)
        .with_kind(ErrorKind::FailedPrecondition)
}

/// Adds to the error of a conflict what an operator can do. `remaining` names other mappings of the
/// server.
pub(super) fn of_conflict(error: &OperationError, remaining: &[String]) -> OperationError {
    let others = match remaining {
        [] => String::new(),
        _ => format!("remove those that no pod uses ({}), ", remaining.join(", ")),
    };
    error.clone().followed_by(format_args!(
        "Windows allows one user per server at a time, and a restart makes it forget the user of a \
         mapping; {others}use the same user for all shares, or another name of the server"
    ))
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
    let remedy = match REMEDIES.iter().find(|(codes, _)| codes.contains(&code)) {
        Some((_, remedy)) => remedy,
        None if ErrorClass::CredentialsRefused.contains(code) => REFUSES,
        None if ErrorClass::ServerUnreachable.contains(code) => UNREACHABLE,
        // Windows refused the mapping, for a reason of its own.
        None if is_unlisted(code) => return error.with_kind(ErrorKind::FailedPrecondition),
        None => return error,
    };
    let kind = match error.kind {
        // The provider of the mappings reports its own failure, and gives no reason.
        ErrorKind::Internal => ErrorKind::FailedPrecondition,
        _ if ErrorClass::ServerUnreachable.contains(code) => ErrorKind::FailedPrecondition,
        kind => kind,
    };
    error
        .followed_by(remedy.replace("{server}", server))
        .with_kind(kind)
}

const REFUSES: &str =
    "{server} refuses the user name, the password or the account; check the credentials";
const UNREACHABLE: &str = "{server} cannot be reached; check that the node resolves its name and \
                           reaches its TCP port 445";

/// What an operator can do about the codes of a mapping that was not created, beside those of
/// [`ErrorClass::CredentialsRefused`] and [`ErrorClass::ServerUnreachable`]. `{server}` stands for
/// the server.
const REMEDIES: &[(&[OsError], &str)] = &[
    (
        codes! { NO_SUCH_LOGON_SESSION },
        "the user name needs a domain, such as DOMAIN\\user; any domain will do for a server \
         without one",
    ),
    (
        codes! { BAD_NET_NAME },
        "{server} has no such share, or is failing over",
    ),
    (
        codes! { INVALID_PASSWORD },
        "the node has a session with {server} for this user with another password; check the \
         credentials",
    ),
    (
        codes! { ACCESS_DENIED },
        "the account may not use the share; check its permissions on {server}",
    ),
    (
        codes! {
            NOT_ENOUGH_MEMORY NO_SYSTEM_RESOURCES NOT_ENOUGH_QUOTA WORKING_SET_QUOTA
            OUT_OF_STRUCTURES
        },
        "the node may have too many mappings; remove those that no pod uses",
    ),
    (
        codes! {
            NOT_ENOUGH_SERVER_MEMORY REMOTE_SESSION_LIMIT_EXCEEDED CONNECTION_COUNT_LIMIT
            LICENSE_QUOTA_EXCEEDED
        },
        "{server} accepts no more connections of the node or the account; remove mappings that no \
         pod uses, or raise its limit",
    ),
    (
        codes! { NETWORK_ACCESS_DENIED },
        "{server} may not support SMB encryption; turn it on there, or use csi-proxy's flag \
      -require-privacy=false",
    ),
    (
        codes! { SMB1_NOT_AVAILABLE },
        "turn SMB 2 or 3 on at {server}",
    ),
    (
        codes! { NO_NET_OR_BAD_PATH NO_NETWORK NET_NOT_STARTED WKSTA_NOT_STARTED },
        "start or restart the service LanmanWorkstation on the node, and check the name of \
         {server}",
    ),
    (
        codes! { SMB_GUEST_LOGON_BLOCKED SMB_GUEST_LOGON_BLOCKED_SIGNING_REQUIRED },
        "{server} accepts the user only as a guest; use an account that it knows",
    ),
    (
        codes! { WRONG_TARGET_NAME MUTUAL_AUTH_FAILED },
        "use the name of {server} that its account in the domain has (its service principal name)",
    ),
    (
        codes! { TIME_SKEW },
        "set the clocks of the node, of {server} and of the domain controllers",
    ),
    (
        codes! {
            NO_LOGON_SERVERS DOWNGRADE_DETECTED CANT_ACCESS_DOMAIN_INFO NO_SUCH_DOMAIN
            DOMAIN_CONTROLLER_NOT_FOUND
        },
        "check that the node or {server} reaches a domain controller, and the domain of the user \
         name",
    ),
    (
        codes! {
            NO_TRUST_LSA_SECRET NO_TRUST_SAM_ACCOUNT TRUSTED_DOMAIN_FAILURE
            TRUSTED_RELATIONSHIP_FAILURE TRUST_FAILURE
        },
        "repair the membership of the node or of {server} in the domain",
    ),
    (
        codes! {
            LOGIN_TIME_RESTRICTION LOGIN_WKSTA_RESTRICTION LOGON_NOT_GRANTED LOGON_TYPE_NOT_GRANTED
            ACCOUNT_EXPIRED ACCOUNT_PASSWORD_EXPIRED AUTHENTICATION_FIREWALL_FAILED NTLM_BLOCKED
            BAD_USERNAME NONE_MAPPED NOT_AUTHENTICATED NOT_LOGGED_ON
        },
        REFUSES,
    ),
    (
        codes! { WBEM_FAILED },
        "the SMB client gives no reason; the event logs Microsoft-Windows-SmbClient/Connectivity and \
      Microsoft-Windows-SmbClient/Security on the node may have it",
    ),
];
