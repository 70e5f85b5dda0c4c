//! The gRPC status of a failed operation.
//!
//! `storage_ops` decides the kind of an error: by the Windows code in general, and in an operation that knows more
//! about the failure.

use storage_ops::{Error, Kind};
use tonic::{Code, Status};

/// Returns the status of a failed operation: the code for its kind, and its message.
pub(crate) fn status(error: &Error) -> Status {
    Status::new(code(error.kind()), error.to_string())
}

/// Returns the code for a kind of error.
///
/// Kubelet assumes that an operation may still be running after Cancelled, DeadlineExceeded, Unavailable, Aborted or
/// ResourceExhausted, and that it has ended after any other code.
fn code(kind: Kind) -> Code {
    match kind {
        Kind::InvalidArgument => Code::InvalidArgument,
        Kind::NotFound => Code::NotFound,
        Kind::AlreadyExists => Code::AlreadyExists,
        Kind::FailedPrecondition => Code::FailedPrecondition,
        Kind::PermissionDenied => Code::PermissionDenied,
        Kind::Busy => Code::Aborted,
        Kind::StillRunning => Code::DeadlineExceeded,
        Kind::Unavailable => Code::Unavailable,
        Kind::Cancelled => Code::Cancelled,
        // Also a kind that a later release of storage_ops adds.
        _ => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::code;
    use storage_ops::Kind;
    use tonic::Code;

    #[test]
    fn contract_07_only_an_operation_that_may_still_run_has_a_code_that_implies_it() {
        for (kind, expected, may_still_run) in [
            (Kind::InvalidArgument, Code::InvalidArgument, false),
            (Kind::NotFound, Code::NotFound, false),
            (Kind::AlreadyExists, Code::AlreadyExists, false),
            (Kind::FailedPrecondition, Code::FailedPrecondition, false),
            (Kind::PermissionDenied, Code::PermissionDenied, false),
            (Kind::Busy, Code::Aborted, true),
            (Kind::StillRunning, Code::DeadlineExceeded, true),
            (Kind::Unavailable, Code::Unavailable, true),
            (Kind::Cancelled, Code::Cancelled, true),
            (Kind::Internal, Code::Internal, false),
        ] {
            assert_eq!(code(kind), expected);
            let means_so =
                [Code::Cancelled, Code::DeadlineExceeded, Code::Unavailable, Code::Aborted, Code::ResourceExhausted];
            assert_eq!(means_so.contains(&expected), may_still_run, "{kind:?}");
        }
    }
}
