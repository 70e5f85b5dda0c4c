//! What went wrong, for whoever acts on it: a kind for the program, one sentence for the person.

use std::fmt;

use os::OsError;

use crate::executor::context::PoolKind;

/// What the caller can conclude from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request can never succeed as it stands.
    InvalidArgument,
    /// Something it names is not there.
    NotFound,
    /// Something else is already there.
    AlreadyExists,
    /// The node's state forbids it; somebody must change that first.
    FailedPrecondition,
    /// Windows, or a server, refuses the rights.
    PermissionDenied,
    /// Another change of the same object is under way, not by this process.
    Busy,
    /// It has begun and goes on; ask again.
    StillRunning,
    /// It was not begun: the threads for such work are all taken.
    Unavailable,
    /// It was not begun: whoever asked has gone.
    Cancelled,
    /// A defect of ours, or of Windows.
    Internal,
}

/// A failure that does not know what was being done: the second half of an [`Error`]'s sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationError {
    pub(crate) kind: Kind,
    pub(crate) reason: String,
    pub(crate) code: Option<OsError>,
    pub(crate) again: Option<Again>,
}

/// Why an operation that changed nothing is to be run once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It came to something that can hang, and asks for the threads for that.
    InLane(PoolKind),
    /// Its volume is not on the disk that was locked.
    WithOtherLocks,
}

/// What a part of an operation returns.
pub type OperationResult<T> = std::result::Result<T, OperationError>;

impl OperationError {
    /// One that Windows has no part in.
    pub fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), code: None, again: None }
    }

    pub(crate) fn again(again: Again) -> Self {
        let reason = "it has to be run again".to_string();
        Self { kind: Kind::Internal, reason, code: None, again: Some(again) }
    }

    pub(crate) fn unsettled() -> Self {
        Self::precondition("what it works on does not stay where it is")
    }

    pub(crate) fn gone() -> Self {
        Self::new(Kind::Cancelled, "the caller has gone before anything was changed")
    }

    /// The failure of reading a request of `operation`.
    pub fn in_request_of(self, operation: &'static str) -> Error {
        Error::new(operation, String::new(), self)
    }

    /// The request can never succeed as it stands.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::new(Kind::InvalidArgument, reason)
    }

    pub(crate) fn not_found(reason: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, reason)
    }

    pub(crate) fn precondition(reason: impl Into<String>) -> Self {
        Self::new(Kind::FailedPrecondition, reason)
    }

    /// Whether Windows said that the object does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.kind == Kind::NotFound
    }
}

impl std::error::Error for OperationError {}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// A failed operation: `cannot mount volume \\?\Volume{...}\ at C:\var\...: the directory is not empty (145)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    operation: &'static str,
    description: String,
    reason: String,
    code: Option<OsError>,
}

impl Error {
    pub(crate) fn new(operation: &'static str, description: String, fault: OperationError) -> Self {
        Self { kind: fault.kind, operation, description, reason: fault.reason, code: fault.code }
    }

    /// What the caller can conclude.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The operation's name, such as `MountVolume`.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The code Windows gave, if it was Windows that refused.
    pub fn code(&self) -> Option<OsError> {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.description.is_empty() {
            return write!(f, "bad {} request: {}", self.operation, self.reason);
        }
        write!(f, "cannot {}: {}", self.description, self.reason)
    }
}

impl std::error::Error for Error {}
