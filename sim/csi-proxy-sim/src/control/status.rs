//! Errors of the simulated Windows as gRPC statuses.

use std::fmt::Display;

use os::OsError;
use tonic::{Code, Status};

/// Returns the status of an operation that failed with `error`, such as "read C:\file".
pub(super) fn cannot(what: impl Display, error: OsError) -> Status {
    let code = match error {
        OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND | OsError::BAD_NETPATH | OsError::BAD_NET_NAME => {
            Code::NotFound
        }
        OsError::ALREADY_EXISTS => Code::AlreadyExists,
        OsError::INVALID_NAME => Code::InvalidArgument,
        _ => Code::FailedPrecondition,
    };
    Status::new(code, format!("cannot {what}: {error}"))
}
