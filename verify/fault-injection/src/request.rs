//! Any storage operation as a trait object, and its answer in a form that can be compared.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use storage_ops::{Error, ErrorKind, Operation};

use crate::in_executor;
use crate::started_node::StartedNode;

/// An operation of any type.
pub trait Request: Send + Sync {
    /// Returns the operation's name.
    fn operation(&self) -> &'static str;
    /// Returns what the operation does, in words that can follow "cannot".
    fn describe(&self) -> String;
    /// Runs the operation.
    fn run(&self, node: &StartedNode) -> Answer;
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It succeeded, with this output.
    Succeeded(String),
    /// It failed.
    Failed(Box<Error>),
    /// It panicked, which is always a defect.
    Panicked(String),
    /// The executor has not answered, which is always a defect. These are its requests.
    Hung(String),
}

impl<T: fmt::Debug> From<Result<T, Error>> for Answer {
    fn from(result: Result<T, Error>) -> Self {
        match result {
            Ok(output) => Self::Succeeded(format!("{output:?}")),
            Err(error) => Self::Failed(Box::new(error)),
        }
    }
}

impl Answer {
    /// Returns whether the operation was denied.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Failed(error) if error.kind() == ErrorKind::PermissionDenied)
    }

    /// Returns whether this work, or other work on the object, is still running, so that the caller
    /// is to retry later.
    pub fn is_retryable(&self) -> bool {
        let Self::Failed(error) = self else {
            return false;
        };
        matches!(error.kind(), ErrorKind::Busy | ErrorKind::StillRunning)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded(output) => write!(f, "ok {output}"),
            Self::Failed(error) => write!(f, "{:?}: {error}", error.kind()),
            Self::Panicked(message) => write!(f, "panic: {message}"),
            Self::Hung(requests) => write!(f, "no answer: {requests}"),
        }
    }
}

impl<O: Operation> Request for O {
    fn operation(&self) -> &'static str {
        O::NAME
    }

    fn describe(&self) -> String {
        Operation::describe(self)
    }

    fn run(&self, node: &StartedNode) -> Answer {
        if let Some(executor) = &node.executor {
            return in_executor::run(executor, &node.sim, self.clone());
        }
        // If the panic leaves a lock poisoned or held, the checks after the run find that as well.
        match catch_unwind(AssertUnwindSafe(|| node.run(self))) {
            Ok(result) => result.into(),
            Err(panic) => {
                let message = panic.downcast_ref::<String>().cloned();
                let message =
                    message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                Answer::Panicked(message.unwrap_or_default())
            }
        }
    }
}
