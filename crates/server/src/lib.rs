//! The gRPC server of csi-proxy.
//!
//! It turns requests of all group-versions into operations of [`node`] and their outcomes into responses. What an
//! operation does is not here: here is which message means which operation, which status means which failure, and how
//! connections and calls are taken in, bounded, counted and let go.
//!
//! ```
//! # use std::{error::Error, io, sync::Arc};
//! # use storage_ops::Executor;
//! # use transport::{address::{Address, Location}, listener::Listener};
//! use server::{Endpoint, Limits, Server};
//!
//! async fn daemon<L: Listener>(
//!     executor: Arc<Executor>,
//!     open: impl FnMut(&Address) -> io::Result<L>,
//!     stop: impl Future<Output = ()>,
//! ) -> Result<(), Box<dyn Error>> {
//!     let endpoints = Endpoint::open_all(&Location::NamedPipes, false, open)?;
//!     let unfinished = Server::new(executor, Limits::default()).serve(endpoints, stop).await;
//!     println!("{} calls were cut off", unfinished.calls);
//!     Ok(())
//! }
//! ```
//!
//! The way of a call: [`server`](Server) accepts the connection, `routes` finds the service, `call` numbers, times and
//! counts it, `handlers` reads the request by `wire`, lets the node run it, and writes the response.

mod admission;
mod listen;
mod metrics;
mod rpc;
mod server;

pub use admission::connections;
pub use admission::limits::Limits;
pub use listen::endpoint::{CannotServe, Endpoint, EndpointSpec};
pub use metrics::rpc_metrics::Metrics;
pub use server::{Server, Unfinished};
