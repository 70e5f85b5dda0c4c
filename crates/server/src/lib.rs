//! The gRPC server of csi-proxy.
//!
//! The server turns the requests of all group-versions into operations of [`storage_ops`], and
//! their results into responses. It maps messages to operations and failures to status codes, and
//! accepts, limits, counts and drains connections and calls. `storage_ops` defines what an
//! operation does.
//!
//! ```
//! # use std::{error::Error, io, sync::Arc};
//! # use storage_ops::Executor;
//! # use transport::{address::{Address, Location}, listener::Listener};
//! use api::Group;
//! use server::{Endpoint, EndpointSpec, Limits, Server};
//!
//! async fn daemon<L: Listener>(
//!     executor: Arc<Executor>,
//!     open: impl FnMut(&Address) -> io::Result<L>,
//!     stop: impl Future<Output = ()>,
//! ) -> Result<(), Box<dyn Error>> {
//!     let endpoints = Endpoint::open(&Location::NamedPipes, EndpointSpec::of(&Group::ALL, false), open)?;
//!     let unfinished = Server::new(executor, Limits::default()).serve(endpoints, stop).await;
//!     println!("{} calls were cut off", unfinished.calls);
//!     Ok(())
//! }
//! ```
//!
//! These are the layers, from the lowest to the highest: a module uses only itself and those before
//! it.
//!
//! - `seconds`: times as numbers;
//! - `drain`: the phases of a shutdown, and whether the server is ready;
//! - `admission`: limits on connections, calls, request bodies and unread responses;
//! - `server_state`: the state that all connections and calls share, and the last failures;
//! - `metrics`: the counters of the server in Prometheus' text format;
//! - [`status`]: the calls that run now, and the last failures;
//! - `rpc`: routing, and for each RPC the conversion of messages to operations and back;
//! - `listen`: endpoints, the accept loop, and the task of each connection;
//! - `server`: the construction of a server, and its life.

mod admission;
mod drain;
mod listen;
mod metrics;
mod rpc;
mod seconds;
mod server;
mod server_state;
pub mod status;

pub use admission::connections::{ConnectionCounts, Connections};
pub use admission::limits::Limits;
pub use admission::response_body::{ResponseStream, TrackedBytes};
pub use drain::Unfinished;
pub use drain::readiness::NotReady;
pub use listen::endpoint::{CannotServe, Endpoint};
pub use metrics::registry::Metrics;
pub use rpc::boxed_service::BoxedService;
pub use rpc::endpoint_spec::EndpointSpec;
pub use seconds::{rounded_seconds, seconds};
pub use server::Server;
pub use status::Status;
