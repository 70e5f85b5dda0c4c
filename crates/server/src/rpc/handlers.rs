//! The handlers of all RPCs: read the request, let the node do it, write the response.
//!
//! [`services!`] makes the tonic service of each group-version; a group's file lists its RPCs and has its conversions.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::connections::ConnectionId;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use storage_ops::{Executor, Operation};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::BoxFuture;

use crate::Limits;
use crate::admission::call_slots::{CallSlot, CallSlots};
use crate::rpc::convert::{IntoOperation, IntoResponse};
use crate::rpc::status::status;
use crate::rpc::{disk, filesystem, iscsi, smb, system, volume};

/// What every service is implemented for.
pub(crate) struct Handlers {
    executor: Arc<Executor>,
    running: Arc<CallSlots>,
    patience: Duration,
}

impl Handlers {
    pub(crate) fn new(executor: Arc<Executor>, limits: &Limits) -> Self {
        Self { executor, running: CallSlots::new(limits.calls, limits.queue), patience: limits.wait }
    }

    /// Answers one call.
    pub(crate) async fn answer<Q, M>(&self, request: tonic::Request<Q>) -> Result<tonic::Response<M>, Status>
    where
        Q: IntoOperation,
        <Q::Operation as Operation>::Output: IntoResponse<M>,
    {
        let name = Q::Operation::NAME;
        let connection = request.extensions().get::<ConnectionId>().copied();
        let operation = request.into_inner().operation(self.executor.node().config());
        let operation = operation.map_err(|fault| status(&fault.in_request_of(name)))?;
        let _place = self.slot(connection).await?;
        let output = self.executor.run(operation).await.map_err(|error| status(&error))?;
        let message = output.into_response();
        let message =
            message.map_err(|_| Status::internal(format!("what {name} found is too large for its answer")))?;
        Ok(tonic::Response::new(message))
    }

    /// The slots of the calls that run.
    pub(crate) fn running(&self) -> &Arc<CallSlots> {
        &self.running
    }

    /// Waits for its turn if too many calls run, but not for long.
    async fn slot(&self, connection: Option<ConnectionId>) -> Result<CallSlot, Status> {
        let connection = connection.ok_or_else(|| Status::internal("a call of no connection"))?;
        let slot = self.running.take(connection, self.patience).await;
        slot.ok_or_else(|| Status::unavailable("too many calls are running; try again later"))
    }
}

/// A service, whichever it is.
pub(crate) trait Service: Send + Sync {
    /// Begins to answer a request.
    fn call(&self, request: Request<Full<Bytes>>) -> BoxFuture<Response<Body>, Infallible>;
}

impl<S> Service for S
where
    S: tower_service::Service<
            Request<Full<Bytes>>,
            Response = Response<Body>,
            Error = Infallible,
            Future = BoxFuture<Response<Body>, Infallible>,
        >,
    S: Clone + Send + Sync,
{
    fn call(&self, request: Request<Full<Bytes>>) -> BoxFuture<Response<Body>, Infallible> {
        // What tonic generates is always ready, and cheap to clone.
        tower_service::Service::call(&mut self.clone(), request)
    }
}

/// The service of a group-version.
pub(crate) fn service(row: &api::GroupVersion, handlers: &Arc<Handlers>) -> Option<Arc<dyn Service>> {
    let of_group = match row.group {
        api::Group::Disk => disk::service,
        api::Group::Filesystem => filesystem::service,
        api::Group::Iscsi => iscsi::service,
        api::Group::Smb => smb::service,
        api::Group::System => system::service,
        api::Group::Volume => volume::service,
    };
    of_group(row.version, handlers)
}

/// Makes the services of a group, and `service`, which finds the one of a version.
///
/// Versions that have the same RPCs by name stand together: `v1 | v1beta3 => { get(GetRequest) -> GetResponse, }`.
macro_rules! services {
    ($group:ident::$module:ident::{$Trait:ident, $Server:ident}; $($($version:ident)|+ => $rpcs:tt)+) => {
        $($($crate::rpc::handlers::services!(@ $group $version $module $Trait $rpcs);)+)+

        /// The service of one version of the group.
        pub(crate) fn service(
            version: &str,
            handlers: &std::sync::Arc<$crate::rpc::handlers::Handlers>,
        ) -> Option<std::sync::Arc<dyn $crate::rpc::handlers::Service>> {
            $($(if version == stringify!($version) {
                let service = api::$group::$version::$module::$Server::from_arc(std::sync::Arc::clone(handlers))
                    .max_decoding_message_size($crate::admission::limits::LARGEST_REQUEST);
                return Some(std::sync::Arc::new(service));
            })+)+
            None
        }
    };
    (@ $group:ident $version:ident $module:ident $Trait:ident {
        $($rpc:ident($Request:ident) -> $Response:ident,)+
    }) => {
        #[tonic::async_trait]
        impl api::$group::$version::$module::$Trait for $crate::rpc::handlers::Handlers {
            $(async fn $rpc(
                &self,
                request: tonic::Request<api::$group::$version::$Request>,
            ) -> Result<tonic::Response<api::$group::$version::$Response>, tonic::Status> {
                self.answer(request).await
            })+
        }
    };
}

pub(crate) use services;
