//! The control API of csi-proxy-sim: its messages and stubs, and where it is served.
//!
//! `proto/sim_control.proto` documents the RPCs. With them, tests in any language change a
//! simulated node while it runs, and do what kubelet and a driver's container do on its file system
//! without csi-proxy.

mod generated {
    #![allow(
        missing_docs,
        rust_2018_idioms,
        unreachable_pub,
        clippy::all,
        clippy::pedantic,
        reason = "generated"
    )]

    tonic::include_proto!("csi_proxy_sim.v1");
}

use std::io;

use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint, Error};
use tower::service_fn;
use transport::address::{Address, Location};

pub use generated::container_files_client::ContainerFilesClient;
#[cfg(feature = "server")]
pub use generated::container_files_server::{ContainerFiles, ContainerFilesServer};
pub use generated::simulation_client::SimulationClient;
#[cfg(feature = "server")]
pub use generated::simulation_server::{Simulation, SimulationServer};
pub use generated::*;

/// The name of the endpoint: of the socket without `.sock`, or of the pipe. No driver dials it,
/// since it does not begin with `csi-proxy-`.
pub const ENDPOINT: &str = "sim-control";

/// The descriptors of the services, as a serialized `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Returns the address of the control endpoint of a csi-proxy-sim that serves in `location`.
pub fn address(location: &Location) -> Address {
    location.address(ENDPOINT)
}

/// Connects to the csi-proxy-sim that serves in `location`.
pub async fn connect(location: &Location) -> Result<Channel, Error> {
    let address = address(location);
    let connector = service_fn(move |_| {
        let address = address.clone();
        async move { io::Result::Ok(TokioIo::new(transport::listener::connect(&address).await?)) }
    });
    // The connector does not use the URI.
    Endpoint::from_static("http://sim-control")
        .connect_with_connector(connector)
        .await
}
