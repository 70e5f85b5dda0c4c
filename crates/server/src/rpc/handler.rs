//! The handlers of RPCs: decode the request, run its operation, encode the response.
//!
//! The handlers are made from the list of all RPCs in the crate `api`. The conversions of the
//! messages are in the file of the group.

use std::any::Any;
use std::pin::Pin;

use api::GROUP_VERSIONS;
use bytes::Bytes;
use prost::Message;
use storage_ops::{Call, Coalesce, Config, Error, Operation};
use tonic::Status;
use tracing::{Level, Span};

use crate::admission::connections::calls::InFlightCall;
use crate::rpc::convert::{IntoOperation, IntoResponse};
use crate::rpc::message;
use crate::server_state::ServerState;
use crate::server_state::last_seen::Memory;

/// The encoded response of a call, or why the call failed.
pub(crate) type Outcome = Result<Bytes, Status>;

/// Answers a call, given the body of its request.
pub(crate) type Handler =
    for<'a> fn(&'a ServerState, &'a InFlightCall, Call, Bytes) -> HandlerFuture<'a>;

pub(crate) type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Returns the status of a failed operation. `storage_ops` decides the code: by the Windows code in
/// general, and in an operation that knows more about the failure.
fn status(error: &Error) -> Status {
    Status::new(error.kind().grpc_code().into(), error.to_string())
}

/// Answers a call of an RPC with the request `Q` and the response `M`.
///
/// Only the functions that convert the messages are compiled for each pair of them, and the rest for
/// each operation.
pub(crate) fn handle<'a, Q, M>(
    state: &'a ServerState,
    in_flight: &'a InFlightCall,
    call: Call,
    body: Bytes,
) -> HandlerFuture<'a>
where
    Q: IntoOperation + Message + Default,
    M: Message,
    <Q::Operation as Operation>::Output: IntoResponse<M>,
{
    Box::pin(run(
        state,
        in_flight,
        call,
        body,
        decode::<Q>,
        encode::<Q::Operation, M>,
    ))
}

/// Runs the operation that `decode` reads from the body of a request.
async fn run<O: Operation>(
    state: &ServerState,
    in_flight: &InFlightCall,
    call: Call,
    body: Bytes,
    decode: fn(Bytes, &Config) -> Result<O, Status>,
    encode: fn(O::Output) -> Outcome,
) -> Outcome {
    let operation = decode(body, state.executor.node().config())?;
    if tracing::enabled!(Level::DEBUG) {
        // All further log lines of the call have the object.
        Span::current().record("object", operation.describe());
        tracing::debug!("the call began");
    }
    // After the conversion, so that a request that can never succeed fails at once.
    let _slot = in_flight.slot(call, &|| operation.describe()).await?;
    // Most calls are reads of paths, and of no use to it.
    let noted = Memory::reads(&operation).then(|| operation.clone());
    let output = state.executor.run_for(call, operation).await;
    let output = output.map_err(|error| status(&error))?;
    let operation: &dyn Any = noted.as_ref().map_or(&(), |operation| operation);
    state.last_seen.note(operation, &output);
    encode(output)
}

fn decode<Q>(body: Bytes, config: &Config) -> Result<Q::Operation, Status>
where
    Q: IntoOperation + Message + Default,
{
    let request: Q = message::decode(body, Q::ONLY_FIELDS)?;
    let operation = request.operation(config);
    operation.map_err(|error| status(&error.in_request_of(Q::Operation::NAME)))
}

fn encode<O, M>(output: O::Output) -> Outcome
where
    O: Operation,
    O::Output: IntoResponse<M>,
    M: Message,
{
    let name = O::NAME;
    let response = output.into_response().map_err(|_| {
        Status::internal(format!(
            "a number in the result of {name} exceeds the range of its field"
        ))
    })?;
    message::encode(&response)
}

/// The handler of one RPC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RpcHandler {
    pub(crate) answer: Handler,
    /// Whether the operation changes nothing.
    pub(crate) is_query: bool,
}

impl RpcHandler {
    /// Returns the handler of an RPC with the request `Q` and the response `M`.
    pub(crate) const fn of<Q, M>() -> Self
    where
        Q: IntoOperation + Message + Default,
        M: Message,
        <Q::Operation as Operation>::Output: IntoResponse<M>,
    {
        Self {
            answer: handle::<Q, M>,
            is_query: matches!(Q::Operation::COALESCE, Coalesce::Never),
        }
    }
}

/// Defines `HANDLERS` from all RPCs.
macro_rules! handlers {
    ($($group:ident/$version:ident { $($rpc:ident($Request:ty) -> $Response:ty;)+ })+) => {
        /// The handlers of all group-versions, in the order of `GROUP_VERSIONS` and of its `rpcs`.
        static HANDLERS: [&[RpcHandler]; GROUP_VERSIONS.len()] = [$(&[$(RpcHandler::of::<$Request, $Response>(),)+],)+];
    };
}

api::for_each_rpc!(handlers);

/// Returns the handlers of the RPCs of the group-version at this place in `GROUP_VERSIONS`, in the
/// order of its `rpcs`.
pub(crate) fn of_row(row: usize) -> &'static [RpcHandler] {
    HANDLERS[row]
}

#[cfg(test)]
mod tests {
    use storage_ops::ErrorKind;
    use tonic::Code;

    #[test]
    fn contract_07_only_an_operation_that_may_still_run_has_a_code_that_implies_it() {
        for (kind, expected, may_still_run) in [
            (ErrorKind::InvalidArgument, Code::InvalidArgument, false),
            (ErrorKind::NotFound, Code::NotFound, false),
            (ErrorKind::AlreadyExists, Code::AlreadyExists, false),
            (
                ErrorKind::FailedPrecondition,
                Code::FailedPrecondition,
                false,
            ),
            (ErrorKind::PermissionDenied, Code::PermissionDenied, false),
            (ErrorKind::Busy, Code::Aborted, true),
            (ErrorKind::StillRunning, Code::DeadlineExceeded, true),
            (ErrorKind::Unavailable, Code::Unavailable, true),
            (ErrorKind::Cancelled, Code::Cancelled, true),
            (ErrorKind::Internal, Code::Internal, false),
        ] {
            assert_eq!(Code::from_i32(kind.grpc_code()), expected);
            let means_so = [
                Code::Cancelled,
                Code::DeadlineExceeded,
                Code::Unavailable,
                Code::Aborted,
                Code::ResourceExhausted,
            ];
            assert_eq!(means_so.contains(&expected), may_still_run, "{kind:?}");
        }
    }
}
