//! An example of a CSI node plugin for Windows, which stages disks with csi-proxy.
//!
//! It serves csi.sock to kubelet. The controller of such a driver attaches a disk to the node,
//! whose serial number is the ID of the volume; this plugin finds the disk by the number, and has
//! csi-proxy partition, format and mount the disk.

mod identity;
mod node;
mod registration;
mod sockets;

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use csi_proxy_client::Client;
use tonic::codegen::http;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::{Code, Status};
use tower::ServiceExt as _;

use identity::Identity;
use node::Node;
use proto::csi::v1::{identity_server::IdentityServer, node_server::NodeServer};
use proto::pluginregistration::registration_server::RegistrationServer;
use registration::Registration;

/// The code that build.rs generates.
mod proto {
    pub mod csi {
        pub mod v1 {
            #![allow(clippy::all, clippy::pedantic, reason = "generated")]
            tonic::include_proto!("csi.v1");
        }
    }
    pub mod pluginregistration {
        tonic::include_proto!("pluginregistration");
    }
}

/// The name of the CSIDriver object.
const DRIVER_NAME: &str = "driver.example.com";

#[derive(Parser)]
struct Flags {
    /// Where to serve CSI: unix://PATH or tcp://HOST:PORT
    #[arg(long, default_value = r"unix://C:\csi\csi.sock")]
    endpoint: String,
    /// The name by which the controller knows this node
    #[arg(long)]
    node_id: String,
    /// A socket in kubelet's folder plugins_registry, unless the sidecar node-driver-registrar
    /// creates it
    #[arg(long, requires = "kubelet_registration_path")]
    registration_socket: Option<String>,
    /// The path of csi.sock as kubelet sees it
    #[arg(long)]
    kubelet_registration_path: Option<String>,
    /// The folder of csi-proxy-sim's sockets (not on Windows)
    #[arg(long)]
    csi_proxy_sockets: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    let client = match flags.csi_proxy_sockets {
        Some(folder) => Client::builder().socket_folder(folder).build(),
        None => Client::new(),
    };
    let connections = sockets::listen(&flags.endpoint)?;
    if let (Some(socket), Some(endpoint)) =
        (flags.registration_socket, flags.kubelet_registration_path)
    {
        // Kubelet connects to csi.sock as soon as this socket appears.
        let registration = RegistrationServer::new(Registration { endpoint });
        let kubelet = sockets::listen(&format!("unix://{socket}"))?;
        tokio::spawn(
            Server::builder()
                .add_service(registration)
                .serve_with_incoming(kubelet),
        );
    }
    eprintln!("{DRIVER_NAME} serves {}", flags.endpoint);
    let log = tower::layer::layer_fn(|routes: Routes| {
        tower::service_fn(move |request: http::Request<tonic::body::Body>| {
            let (rpc, routes) = (request.uri().path().to_owned(), routes.clone());
            async move {
                routes
                    .oneshot(request)
                    .await
                    .inspect(|response| log_failure(&rpc, response.headers()))
            }
        })
    });
    Server::builder()
        .layer(log)
        .add_service(IdentityServer::new(Identity {
            client: client.clone(),
        }))
        .add_service(NodeServer::new(Node {
            client,
            id: flags.node_id,
        }))
        .serve_with_incoming_shutdown(connections, async { drop(tokio::signal::ctrl_c().await) })
        .await?;
    Ok(())
}

/// Logs a call that fails. Requests are not logged, since they may have secrets.
fn log_failure(rpc: &str, headers: &http::HeaderMap) {
    if let Some(status) =
        Status::from_header_map(headers).filter(|status| status.code() != Code::Ok)
    {
        let call = status
            .metadata()
            .get("csi-proxy-request-id")
            .and_then(|number| number.to_str().ok());
        let call = call
            .map(|number| format!(" (call {number} in the log of csi-proxy)"))
            .unwrap_or_default();
        eprintln!("{rpc}: {:?}: {}{call}", status.code(), status.message());
    }
}
