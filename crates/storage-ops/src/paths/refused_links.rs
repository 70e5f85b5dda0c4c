//! Links and mount points on a path that csi-proxy refuses to follow.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use os::OsError;
use tracing::Span;

use crate::devices::Link;
use crate::error::{Error, ErrorKind, OperationError};

/// Creates the error of a path that is refused because of a link on it. Callers, the log and the
/// metrics know it by its code, which no other error of csi-proxy has.
pub(crate) fn refusal(reason: impl Into<String>) -> OperationError {
    OperationError {
        code: Some(OsError::REPARSE_POINT_ENCOUNTERED),
        ..OperationError::new(ErrorKind::FailedPrecondition, reason)
    }
}

/// Creates the error of a path that is refused because `object` on it is `link`.
pub(crate) fn refusal_of(link: &Link, object: impl fmt::Display) -> OperationError {
    let what = match link.volume() {
        Some(volume) => format!("the mount point of volume {volume}"),
        None if *link == Link::Other => "a reparse point of another kind than a link".to_owned(),
        None => "a link".to_owned(),
    };
    refusal(format!(
        "{object} is {what} and is not followed: {}",
        OsError::REPARSE_POINT_ENCOUNTERED
    ))
}

/// Returns whether a path was refused because of a link on it.
pub(crate) fn is_refusal(error: &OperationError) -> bool {
    error.code == Some(OsError::REPARSE_POINT_ENCOUNTERED)
}

/// The number of requests that were refused because of a link on a path.
#[derive(Default)]
pub(crate) struct RefusedLinks(AtomicU64);

impl RefusedLinks {
    /// If a link was refused, counts the request that has failed with `error`, and logs it in the
    /// span of its call. The log has the refusal apart from the failed call, because it may be an
    /// attack.
    pub(crate) fn record(&self, error: &Error, span: impl FnOnce() -> Span) {
        if error.code() == Some(OsError::REPARSE_POINT_ENCOUNTERED) {
            self.0.fetch_add(1, Ordering::Relaxed);
            span().in_scope(|| tracing::warn!(%error, "refused a link or mount point on a path"));
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
