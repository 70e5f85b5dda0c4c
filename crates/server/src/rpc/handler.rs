//! The handlers of RPCs: decode the request, run its operation, encode the response.
//!
//! [`rpcs!`] creates the handlers of a group from the list of its RPCs.

use std::pin::Pin;

use bytes::Bytes;
use prost::Message;
use storage_ops::{Call, Coalesce, Operation};
use tonic::Status;
use tracing::{Level, Span};

use crate::admission::connections::calls::{InFlightCall, WaitingCall};
use crate::rpc::code::status;
use crate::rpc::convert::{IntoOperation, IntoResponse};
use crate::rpc::{disk, filesystem, iscsi, message, smb, system, volume};
use crate::server_state::ServerState;

/// The encoded response of a call, or why the call failed.
pub(crate) type Outcome = Result<Bytes, Status>;

/// Answers a call, given the body of its request.
pub(crate) type Handler = for<'a> fn(&'a ServerState, &'a InFlightCall, Call, Bytes) -> HandlerFuture<'a>;

pub(crate) type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Answers a call of an RPC with the request `Q` and the response `M`.
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
    Box::pin(async move {
        let name = Q::Operation::NAME;
        let operation = message::decode::<Q>(body)?.operation(state.executor.node().config());
        let operation = operation.map_err(|error| status(&error.in_request_of(name)))?;
        if tracing::enabled!(Level::DEBUG) {
            // All further log lines of the call have the object.
            Span::current().record("object", operation.describe());
            tracing::debug!("the call began");
        }
        // After the conversion, so that a request that can never succeed fails at once.
        let _slot = in_flight.slot(|| WaitingCall { call, object: operation.describe() }).await?;
        let output = state.executor.run_for(call, operation).await.map_err(|error| status(&error))?;
        let response = output.into_response();
        let response = response.map_err(|_| {
            Status::internal(format!("a number in the result of {name} exceeds the range of its field"))
        })?;
        message::encode(&response)
    })
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
        Self { answer: handle::<Q, M>, is_query: matches!(Q::Operation::COALESCE, Coalesce::Never) }
    }
}

/// The handlers of the RPCs of a version, by the names of the RPCs.
pub(crate) type Handlers = &'static [(&'static str, RpcHandler)];

/// Returns the handlers of a group-version.
pub(crate) fn of(row: &api::GroupVersion) -> Handlers {
    let of_group = match row.group {
        api::Group::Disk => disk::handlers,
        api::Group::Filesystem => filesystem::handlers,
        api::Group::Iscsi => iscsi::handlers,
        api::Group::Smb => smb::handlers,
        api::Group::System => system::handlers,
        api::Group::Volume => volume::handlers,
    };
    of_group(row.version)
}

/// Defines `handlers`, which returns the handlers of a version of the group.
///
/// Versions with the same RPCs share a list: `v1 | v1beta3 => { Rescan(RescanRequest) -> RescanResponse, }`.
macro_rules! rpcs {
    ($group:ident; $($($version:ident)|+ => $rpcs:tt)+) => {
        /// Returns the handlers of a version of the group.
        pub(crate) fn handlers(version: &str) -> $crate::rpc::handler::Handlers {
            $($(if version == stringify!($version) {
                const HANDLERS: $crate::rpc::handler::Handlers =
                    $crate::rpc::handler::rpcs!(@ $group $version $rpcs);
                return HANDLERS;
            })+)+
            &[]
        }
    };
    (@ $group:ident $version:ident { $($rpc:ident($Request:ident) -> $Response:ident,)+ }) => {
        &[$((
            stringify!($rpc),
            $crate::rpc::handler::RpcHandler::of::<api::$group::$version::$Request, api::$group::$version::$Response>(),
        ),)+]
    };
}

pub(crate) use rpcs;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::GROUP_VERSIONS;

    #[test]
    fn each_group_version_has_a_handler_for_each_of_its_rpcs_and_no_others() {
        for row in &GROUP_VERSIONS {
            let rpcs: BTreeSet<_> = row.rpcs.iter().map(|rpc| rpc.name).collect();
            let handlers: BTreeSet<_> = super::of(row).iter().map(|(name, _)| *name).collect();
            assert_eq!(handlers, rpcs, "{}", row.service);
        }
    }
}
