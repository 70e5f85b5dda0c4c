//! Why a call failed.

use std::{fmt, io};

use api::Request as _;
use api::volume::v1::GetVolumeIdFromTargetPathRequest;
use tonic::{Code, Status};

/// The texts with which the csi-proxy written in Go, whose errors have no codes, says that nothing
/// is mounted at a path. Up to version 1.2, the first one is for a missing path and the second for
/// a directory. Version 1.3 has the others.
const NOT_MOUNTED: [&str; 5] = [
    "because it does not exist",
    ").Target, output: , error: <nil>",
    "not a mounted folder",
    "The system cannot find the file specified.",
    "The system cannot find the path specified.",
];

/// The response header with the number that a failed call has in the log of the daemon.
const CALL_NUMBER: &str = "csi-proxy-request-id";

/// A failed call.
///
/// `Display` is one line with the RPC, the message of the node, and the number of the call in the
/// log of csi-proxy if the daemon sent one. The line contains no password. `source` returns only
/// what the line does not say.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    rpc: &'static str,
    message: String,
    call_number: Option<u64>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kind of a failure: the gRPC code of the daemon, or the code for a failure to reach the
/// daemon.
///
/// The csi-proxy written in Go answers every failure with [`Unknown`](Self::Unknown), and only the
/// message has details. One message is recognized: if nothing is mounted at the path of
/// [`get_volume_id_from_target_path`](crate::Volume::get_volume_id_from_target_path), the kind is
/// [`NotFound`](Self::NotFound) whichever csi-proxy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call cannot succeed with these arguments: a malformed path, for example.
    InvalidArgument,
    /// The disk, volume, path, share, target or service does not exist.
    NotFound,
    /// Another object exists where the call would create one.
    AlreadyExists,
    /// The node or the pipe refused access.
    PermissionDenied,
    /// The node is in a state in which the call cannot succeed; the message says what to do about
    /// it.
    FailedPrecondition,
    /// The object is busy with another operation.
    Aborted,
    /// The call was cancelled on the node.
    Cancelled,
    /// The deadline of the call has passed. The node finishes any change that it has begun.
    DeadlineExceeded,
    /// gRPC itself refused the call, for example because a message is too large.
    ResourceExhausted,
    /// The daemon could not be reached, is overloaded or stopping, or the connection to it broke
    /// during the call.
    Unavailable,
    /// The daemon of the node serves no version of the group that has this RPC.
    Unimplemented,
    /// A defect or an answer of Windows that csi-proxy does not understand.
    Internal,
    /// Any other failure, and nearly every failure of the csi-proxy written in Go.
    Unknown,
}

impl Error {
    /// Creates the error of an RPC with a message of the daemon. Calls return such errors; tests of
    /// a driver need them too.
    pub fn new(kind: ErrorKind, rpc: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            rpc,
            message: message.into(),
            call_number: None,
            source: None,
        }
    }

    pub(crate) fn with_source(
        self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            source: Some(source.into()),
            ..self
        }
    }

    /// The error for a status that the daemon sent.
    pub(crate) fn from_status(rpc: &'static str, status: &Status) -> Self {
        let number = status
            .metadata()
            .get(CALL_NUMBER)
            .and_then(|number| number.to_str().ok()?.parse().ok());
        let is_not_mounted = rpc == GetVolumeIdFromTargetPathRequest::RPC
            && status.code() == Code::Unknown
            && NOT_MOUNTED
                .iter()
                .any(|text| status.message().contains(text));
        let kind = if is_not_mounted {
            ErrorKind::NotFound
        } else {
            kind(status.code())
        };
        Self {
            call_number: number,
            ..Self::new(kind, rpc, status.message())
        }
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The number of the gRPC code, for a node plugin that returns the code of the failed call.
    /// With the feature `tonic`, an error converts to a `tonic::Status` with this code.
    pub fn grpc_code(&self) -> i32 {
        let code = CODES
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .map_or(Code::Unknown, |(_, code)| *code);
        code as i32
    }

    /// The name of the RPC that failed, such as `FormatVolume`.
    pub fn rpc(&self) -> &'static str {
        self.rpc
    }

    /// The message of the daemon, or the reason why the daemon could not be called.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The number of the call in the log of the daemon, if the daemon sent one.
    pub fn call_number(&self) -> Option<u64> {
        self.call_number
    }

    /// The error of the system, if the daemon could not be reached. The message ends with its text.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.source.as_ref()?.downcast_ref()
    }

    /// Whether the same call may succeed later without anything being repaired. Every call may be
    /// repeated: a change that has already been made is left as it is.
    ///
    /// Kubelet takes the gRPC codes of these kinds to mean that the operation may still be running,
    /// so a node plugin can return the code of the error unchanged: see
    /// [`grpc_code`](Self::grpc_code).
    pub fn is_retryable(&self) -> bool {
        use ErrorKind::{Aborted, Cancelled, DeadlineExceeded, ResourceExhausted, Unavailable};
        matches!(
            self.kind,
            Aborted | Cancelled | DeadlineExceeded | ResourceExhausted | Unavailable
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.rpc, self.message)?;
        self.call_number
            .map_or(Ok(()), |number| write!(f, " (call {number})"))
    }
}

/// The status for kubelet. Its message lacks the number of the call, which would make a new event
/// of each repetition; the number is in the metadata.
#[cfg(feature = "tonic")]
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let without_number = format!("{} failed: {}", error.rpc, error.message);
        let mut status = Self::new(error.grpc_code().into(), without_number);
        if let Some(number) = error.call_number {
            status.metadata_mut().insert(CALL_NUMBER, number.into());
        }
        status
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.io_error() {
            Some(said) => said.source(),
            None => self.source.as_ref().map(|source| &**source as _),
        }
    }
}

/// The gRPC code of each kind.
const CODES: [(ErrorKind, Code); 13] = [
    (ErrorKind::Cancelled, Code::Cancelled),
    (ErrorKind::Unknown, Code::Unknown),
    (ErrorKind::InvalidArgument, Code::InvalidArgument),
    (ErrorKind::DeadlineExceeded, Code::DeadlineExceeded),
    (ErrorKind::NotFound, Code::NotFound),
    (ErrorKind::AlreadyExists, Code::AlreadyExists),
    (ErrorKind::PermissionDenied, Code::PermissionDenied),
    (ErrorKind::ResourceExhausted, Code::ResourceExhausted),
    (ErrorKind::FailedPrecondition, Code::FailedPrecondition),
    (ErrorKind::Aborted, Code::Aborted),
    (ErrorKind::Unimplemented, Code::Unimplemented),
    (ErrorKind::Internal, Code::Internal),
    (ErrorKind::Unavailable, Code::Unavailable),
];

fn kind(code: Code) -> ErrorKind {
    CODES
        .iter()
        .find(|(_, known)| *known == code)
        .map_or(ErrorKind::Unknown, |(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_becomes_an_error_with_its_kind_message_and_call_number() {
        let mut status = Status::not_found("disk 9 does not exist");
        assert_eq!(
            Error::from_status("GetDiskStats", &status).call_number(),
            None
        );
        status.metadata_mut().insert(CALL_NUMBER, 17.into());
        let error = Error::from_status("GetDiskStats", &status);
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.call_number(), Some(17));
        assert_eq!(
            error.to_string(),
            "GetDiskStats failed: disk 9 does not exist (call 17)"
        );
    }

    #[test]
    fn an_error_has_the_code_of_the_daemons_status() {
        for number in (0..=16).filter(|number| ![0, 11, 15, 16].contains(number)) {
            assert_eq!(
                Error::from_status("X", &Status::new(Code::from(number), "")).grpc_code(),
                number
            );
        }
        for (other, code) in [
            (Code::OutOfRange, Code::Unknown),
            (Code::DataLoss, Code::Unknown),
        ] {
            assert_eq!(
                Error::from_status("X", &Status::new(other, "")).grpc_code(),
                code as i32
            );
        }
    }

    #[test]
    fn nothing_mounted_is_not_found_for_every_csi_proxy_and_no_other_text_or_call_is() {
        let kind = |rpc, code, text: &str| Error::from_status(rpc, &Status::new(code, text)).kind();
        for text in NOT_MOUNTED {
            let text = format!("error: {text}");
            assert_eq!(
                kind("GetVolumeIDFromTargetPath", Code::Unknown, &text),
                ErrorKind::NotFound,
                "{text}"
            );
            assert_eq!(
                kind("MountVolume", Code::Unknown, &text),
                ErrorKind::Unknown,
                "{text}"
            );
            assert_eq!(
                kind("GetVolumeIDFromTargetPath", Code::Internal, &text),
                ErrorKind::Internal,
                "{text}"
            );
        }
        assert_eq!(
            kind("GetVolumeIDFromTargetPath", Code::Unknown, "access denied"),
            ErrorKind::Unknown
        );
    }

    #[test]
    fn the_chain_of_an_error_says_nothing_twice() {
        let error = |message: &str| Error::new(ErrorKind::Unavailable, "X", message);
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let unreachable = error(&format!("cannot connect: {refused}")).with_source(refused);
        let broken = error("the connection broke").with_source(Status::internal("reset"));
        let chain = |error: &Error| {
            let first: &dyn std::error::Error = error;
            let errors = std::iter::successors(Some(first), |error| error.source());
            errors.map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            chain(&unreachable),
            ["X failed: cannot connect: connection refused"]
        );
        assert_eq!(
            unreachable.io_error().map(io::Error::kind),
            Some(io::ErrorKind::ConnectionRefused)
        );
        let chain = chain(&broken);
        assert_eq!(chain[0], "X failed: the connection broke");
        assert!(chain[1].contains("reset") && chain.len() == 2, "{chain:?}");
        assert!(broken.io_error().is_none());
    }

    #[cfg(feature = "tonic")]
    #[test]
    fn a_status_for_kubelet_has_the_code_and_a_message_that_is_equal_for_each_repetition() {
        let status = |number: u64| {
            let mut status = Status::not_found("disk 9 does not exist");
            status.metadata_mut().insert(CALL_NUMBER, number.into());
            Status::from(Error::from_status("GetDiskStats", &status))
        };
        let (first, second) = (status(17), status(18));
        assert_eq!(
            (first.code(), first.message()),
            (Code::NotFound, "GetDiskStats failed: disk 9 does not exist")
        );
        assert_eq!(first.message(), second.message());
        assert_eq!(second.metadata().get(CALL_NUMBER).unwrap(), "18");
    }

    #[test]
    fn the_retryable_kinds_are_those_that_kubelet_takes_for_still_running() {
        let retryable = |number| Error::new(kind(Code::from(number)), "X", "").is_retryable();
        let codes: Vec<Code> = (0..=16)
            .filter(|number| retryable(*number))
            .map(Code::from)
            .collect();
        let expected = [
            Code::Cancelled,
            Code::DeadlineExceeded,
            Code::ResourceExhausted,
            Code::Aborted,
            Code::Unavailable,
        ];
        assert_eq!(codes, expected);
    }
}
