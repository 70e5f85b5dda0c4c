//! Conversion of request messages to operations, and of results to response messages.
//!
//! Versions whose messages have the same shape share one Rust type, and so one conversion.

use std::num::TryFromIntError;

use storage_ops::{Config, HostPath, Operation, OperationResult};

/// A request message.
pub(crate) trait IntoOperation: Send + 'static {
    /// The operation that it requests. Older names of an RPC request the same operation.
    type Operation: Operation;

    /// The numbers of the fields that a request may have; `None` if other fields are ignored, as
    /// protobuf demands of most programs. A client's newer or own version may ask for something by
    /// another field. Ignoring that must not destroy data.
    const ONLY_FIELDS: Option<&'static [u32]> = None;

    /// Parses the fields of the message, and refuses those that are invalid.
    fn operation(self, config: &Config) -> OperationResult<Self::Operation>;
}

/// The result of an operation that the response message `M` can report.
pub(crate) trait IntoResponse<M> {
    /// Builds the message. Sizes are unsigned in Windows and signed on the wire; a size above
    /// `i64::MAX` is an error.
    fn into_response(self) -> Result<M, TryFromIntError>;
}

/// The response without data. Old versions have an `error` field in it, which stays empty.
impl<M: Default> IntoResponse<M> for () {
    fn into_response(self) -> Result<M, TryFromIntError> {
        Ok(M::default())
    }
}

/// Parses a path that may lack the drive and may have forward slashes, as some drivers send it.
pub(crate) fn loose(path: &str, config: &Config) -> OperationResult<HostPath> {
    HostPath::parse_loose(path, &config.kubelet_dir)
}

/// Implements [`IntoOperation`] for the messages before each `=>`, whose fields give those of the
/// operation after it.
macro_rules! requests {
    (|$request:ident, $config:ident| $($($Message:path),+ => $Operation:ident $fields:tt)+) => {$($(
        impl $crate::rpc::convert::IntoOperation for $Message {
            type Operation = $Operation;

            fn operation(
                self,
                $config: &storage_ops::Config,
            ) -> storage_ops::OperationResult<$Operation> {
                let $request = self;
                let _ = (&$request, $config);
                Ok($Operation $fields)
            }
        }
    )+)+};
}

/// Implements [`IntoResponse`] for the results before each `=>`, which give the fields of the message
/// after it.
macro_rules! responses {
    (|$result:ident| $($Result:ty => $Message:path { $($fields:tt)* })+) => {$(
        impl $crate::rpc::convert::IntoResponse<$Message> for $Result {
            fn into_response(self) -> Result<$Message, std::num::TryFromIntError> {
                type Message = $Message;
                let $result = self;
                Ok(Message { $($fields)* })
            }
        }
    )+};
}

pub(crate) use {requests, responses};
