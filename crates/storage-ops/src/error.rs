//! Errors.
//!
//! A part of an operation returns an [`OperationError`], which has a kind and a reason. The caller
//! receives an [`Error`], which also has the name of the operation and a description that names its
//! object. Both are displayed with misleading characters as code points, because they contain names
//! from requests, devices and servers.

use std::fmt;

use os::OsError;
use terminal_text::escaped;

/// What the caller can conclude from an error. The number of each kind is that of its gRPC code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is not valid and never succeeds unchanged.
    InvalidArgument = 3,
    /// An object that the request names does not exist.
    NotFound = 5,
    /// Another object with that name already exists.
    AlreadyExists = 6,
    /// The state of the node does not allow the operation; change the state first.
    FailedPrecondition = 9,
    /// Windows or a server denied the access, the path is outside the working directories, or the
    /// object is not on a list of the administrator.
    PermissionDenied = 7,
    /// Another process is changing or using the object, or the operation stopped before it was
    /// complete; repeat the request.
    Busy = 10, // Aborted
    /// The operation was started and is still running; repeat the request to wait for it.
    StillRunning = 4, // DeadlineExceeded
    /// The operation was not started: no thread or WMI connection was available, or a disk or every
    /// storage port did not answer. Try again later.
    Unavailable = 14,
    /// The operation was not started because every caller cancelled.
    Cancelled = 1,
    /// A defect in csi-proxy, or an unexpected error from Windows.
    Internal = 13,
}

impl ErrorKind {
    /// Returns the number of the gRPC code with which a driver reports the error.
    ///
    /// Kubelet assumes that an operation may still be running after Cancelled, DeadlineExceeded,
    /// Unavailable, Aborted or ResourceExhausted, and that it has ended after any other code.
    pub fn grpc_code(self) -> i32 {
        self as i32
    }
}

/// The reason why a part of an operation failed.
///
/// It does not name the operation; [`Error`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationError {
    pub(crate) kind: ErrorKind,
    pub(crate) reason: String,
    pub(crate) code: Option<OsError>,
}

/// The result of a part of an operation.
pub type OperationResult<T> = std::result::Result<T, OperationError>;

/// Returns the result of a part of an operation that the state of the node does not allow.
pub(crate) fn failed_precondition<T>(reason: impl Into<String>) -> OperationResult<T> {
    Err(OperationError::precondition(reason))
}

impl OperationError {
    /// Creates an error without a Windows code.
    pub fn new(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
            code: None,
        }
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(
            ErrorKind::Cancelled,
            "the caller cancelled before anything was changed",
        )
    }

    /// Converts the error to that of a request for `operation` that could not be parsed.
    pub fn in_request_of(self, operation: &'static str) -> Error {
        Error::new(operation, String::new(), self)
    }

    /// Creates an error of [`ErrorKind::InvalidArgument`].
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, reason)
    }

    /// Returns the code that Windows returned, if Windows returned the error.
    pub fn code(&self) -> Option<OsError> {
        self.code
    }

    pub(crate) fn not_found(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, reason)
    }

    pub(crate) fn precondition(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::FailedPrecondition, reason)
    }

    /// Creates the error of an operation on `object` that the administrator's list in `flag` does
    /// not allow.
    pub(crate) fn not_listed(flag: &str, object: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::PermissionDenied,
            format!("csi-proxy's flag {flag} does not list {object}"),
        )
    }

    pub(crate) fn with_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Returns the same error with what failed because of it before its reason.
    pub(crate) fn in_context(self, context: impl fmt::Display) -> Self {
        let reason = format!("{context}: {}", self.reason);
        Self { reason, ..self }
    }

    /// Returns the same error with `addition` after its reason.
    pub(crate) fn followed_by(self, addition: impl fmt::Display) -> Self {
        let reason = format!("{}; {addition}", self.reason);
        Self { reason, ..self }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }
}

impl std::error::Error for OperationError {}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.reason))
    }
}

/// A failed operation:
/// `cannot mount volume \\?\Volume{...}\ at C:\var\...: the directory is not empty (145)`.
///
/// The line is complete, and has the code of Windows. Therefore `source` returns nothing, and
/// [`code`](Self::code) the code: a program that prints an error with its sources says nothing
/// twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    operation: &'static str,
    description: String,
    cause: OperationError,
}

impl Error {
    /// Creates the error of `operation`. `description` is the phrase that follows "cannot"; it is
    /// empty for a request that could not be parsed.
    pub(crate) fn new(operation: &'static str, description: String, error: OperationError) -> Self {
        Self {
            operation,
            description,
            cause: error,
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.cause.kind
    }

    /// Returns the name of the operation, such as `MountVolume`.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Returns the code that Windows returned, if Windows returned the error.
    pub fn code(&self) -> Option<OsError> {
        self.cause.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.description.is_empty() {
            return write!(f, "bad {} request: {}", self.operation, self.cause);
        }
        write!(f, "cannot {}: {}", escaped(&self.description), self.cause)
    }
}

impl std::error::Error for Error {}

/// Returns at most the first 80 bytes of `text`, which a request contained, in quotation marks for
/// an error text.
///
/// Backslashes are not doubled, so that a path reads as it was sent. Misleading characters are
/// written as code points.
pub(crate) fn quoted(text: &str) -> String {
    let start = &text[..text.floor_char_boundary(80)];
    format!("\"{}\"", escaped(start).replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use os::OsError;

    use super::{OperationError, quoted};

    #[test]
    fn an_error_and_its_sources_say_the_code_of_windows_once() {
        let error = OperationError::from(OsError::DIR_NOT_EMPTY).in_context("the target");
        let error = super::Error::new("MountVolume", "mount volume 1 at C:\\v".into(), error);
        let first: &dyn std::error::Error = &error;
        let errors = std::iter::successors(Some(first), |error| error.source());
        let printed: Vec<_> = errors.map(ToString::to_string).collect();
        assert_eq!(
            printed.join(": "),
            r"cannot mount volume 1 at C:\v: the target: the directory is not empty (145)"
        );
        assert_eq!(error.code(), Some(OsError::DIR_NOT_EMPTY));
    }

    #[test]
    fn a_quoted_path_reads_as_it_was_sent_and_hides_no_character() {
        assert_eq!(quoted(r"C:\a\\b c"), r#""C:\a\\b c""#);
        assert_eq!(quoted("it's é"), "\"it's é\"");
        assert_eq!(
            quoted("a\"b\n\0\u{202e}"),
            "\"a\\\"b\\u{a}\\u{0}\\u{202e}\""
        );
        assert_eq!(quoted(&"x".repeat(200)).len(), 82);
    }
}
