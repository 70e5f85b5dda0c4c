//! The calls of a driver on a simulated node.
//!
//! The simulator serves Unix sockets in a folder on Linux, and named pipes on Windows.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, io};

use api::disk::v1::ListDiskIDsRequest;
use api::disk::v1::disk_client::DiskClient;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use api::filesystem::v1::{MkdirRequest, PathExistsRequest};
use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;
use transport::address::Location;

/// Starts the simulator, makes calls of a driver, and checks the responses.
pub(crate) async fn test(simulator: Command) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let sockets = folder.path().join("sockets");
    let _simulator = Simulator::start(simulator, &sockets)?;
    let windows = env::consts::OS == "windows";
    let location = if windows { Location::NamedPipes } else { Location::Directory(sockets) };

    let mut files = FilesystemClient::new(connect(&location, "csi-proxy-filesystem-v1").await?);
    let path = r"C:\var\lib\kubelet\plugins\driver.example.com\globalmount".to_owned();
    assert!(!files.path_exists(PathExistsRequest { path: path.clone() }).await?.into_inner().exists);
    files.mkdir(MkdirRequest { path: path.clone() }).await?;
    assert!(files.path_exists(PathExistsRequest { path }).await?.into_inner().exists);

    let mut disks = DiskClient::new(connect(&location, "csi-proxy-disk-v1").await?);
    let ids = disks.list_disk_ids(ListDiskIDsRequest {}).await?.into_inner().disk_ids;
    assert!(ids.values().any(|ids| ids.serial_number.starts_with("vol0123456789abcdef0")), "{ids:?}");
    Ok(())
}

async fn connect(location: &Location, endpoint: &str) -> Result<Channel, Box<dyn Error>> {
    let address = location.address(endpoint)?;
    let connector = service_fn(move |_| {
        let address = address.clone();
        async move { transport::listener::connect(&address).await.map(TokioIo::new) }
    });
    Ok(Endpoint::from_static("http://csi-proxy").connect_with_connector(connector).await?)
}

/// A running simulator, which is stopped when it is dropped.
struct Simulator(Child);

impl Simulator {
    /// Starts the program and waits until it serves.
    fn start(mut program: Command, sockets: &Path) -> io::Result<Self> {
        let mut process = program.arg("-socket-folder").arg(sockets).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().map(BufReader::new);
        let simulator = Self(process);
        for line in output.into_iter().flat_map(BufRead::lines) {
            if line?.starts_with("Press Ctrl-C") {
                return Ok(simulator);
            }
        }
        Err(io::Error::other("csi-proxy-sim exited before it served"))
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // An error means that it has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
