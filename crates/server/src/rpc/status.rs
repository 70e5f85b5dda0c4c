//! What a caller is told of a failure.

use storage_ops::{Error, Kind};
use tonic::{Code, Status};

/// The status of a failed operation: the code that fits its kind, and its sentence.
pub(crate) fn status(error: &Error) -> Status {
    Status::new(code(error.kind()), error.to_string())
}

/// Kubelet takes Cancelled, DeadlineExceeded, Unavailable, Aborted and ResourceExhausted for "it may still be
/// happening", and everything else for final.
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
        Kind::Internal => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::{code, status};
    use storage_ops::{Kind, OperationError};
    use tonic::Code;

    #[test]
    fn contract_07_only_what_may_still_be_happening_has_a_code_that_says_so() {
        for (kind, expected, may_go_on) in [
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
            let says_so =
                [Code::Cancelled, Code::DeadlineExceeded, Code::Unavailable, Code::Aborted, Code::ResourceExhausted];
            assert_eq!(says_so.contains(&expected), may_go_on, "{kind:?}");
        }
    }

    #[test]
    fn a_status_says_what_the_error_says() {
        let error = OperationError::new(Kind::Busy, "somebody formats it").in_request_of("FormatVolume");
        let status = status(&error);
        assert_eq!(status.code(), Code::Aborted);
        assert_eq!(status.message(), "bad FormatVolume request: somebody formats it");
    }
}
