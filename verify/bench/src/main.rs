//! A minimal tonic server for the RPCs that `cargo xtask bench` measures. It shows the cost of serving them in Rust
//! without the daemon's checks, limits, metrics and log.

use std::error::Error;
use std::path::PathBuf;

use api::disk::v1::disk_server::DiskServer;
use api::filesystem::v1::filesystem_server::FilesystemServer;
use api::volume::v1::volume_server::VolumeServer;
use clap::Parser;

use disks::Disks;
use filesystem::Filesystem;
use volumes::Volumes;

mod disks;
mod filesystem;
mod volumes;

#[derive(Parser)]
#[command(version, about = "A minimal tonic server to compare csi-proxy with")]
struct Arguments {
    /// Folder for the sockets; created if missing
    #[arg(long)]
    socket_folder: PathBuf,
    /// Folder that represents C:\var\lib\kubelet
    #[arg(long)]
    root: PathBuf,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { socket_folder, root } = Arguments::parse();
    std::fs::create_dir_all(&socket_folder)?;
    tokio::try_join!(
        imp::serve(FilesystemServer::new(Filesystem::new(root)), socket_folder.join("csi-proxy-filesystem-v1.sock")),
        imp::serve(DiskServer::new(Disks), socket_folder.join("csi-proxy-disk-v1.sock")),
        imp::serve(VolumeServer::new(Volumes), socket_folder.join("csi-proxy-volume-v1.sock")),
    )?;
    Ok(())
}

#[cfg(unix)]
mod imp {
    use std::convert::Infallible;
    use std::path::PathBuf;

    use tokio::net::UnixListener;
    use tokio_stream::wrappers::UnixListenerStream;
    use tonic::body::Body;
    use tonic::codegen::Service;
    use tonic::codegen::http::{Request, Response};
    use tonic::transport::Server;

    /// Serves one group-version without tonic's router, which the daemon does not use either.
    pub(super) async fn serve<S>(service: S, socket: PathBuf) -> Result<(), Box<dyn std::error::Error>>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
    {
        let listener = UnixListener::bind(socket)?;
        Ok(Server::builder().serve_with_incoming(service, UnixListenerStream::new(listener)).await?)
    }
}

#[cfg(not(unix))]
mod imp {
    use std::path::PathBuf;

    #[expect(clippy::unused_async, reason = "the function for Unix awaits")]
    pub(super) async fn serve<S>(_service: S, _socket: PathBuf) -> Result<(), Box<dyn std::error::Error>> {
        Err("tokio has Unix sockets on Unix only".into())
    }
}
