//! The calls of a driver on a simulated node.
//!
//! The simulator serves Unix sockets in a folder on Linux, and named pipes on Windows.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, io};

use csi_proxy_client::Client;

/// Starts the simulator, makes calls of a driver, and checks the responses.
pub(crate) async fn test(simulator: Command) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let sockets = folder.path().join("sockets");
    let _simulator = Simulator::start(simulator, &sockets)?;
    let client = match env::consts::OS {
        "windows" => Client::new(),
        _ => Client::builder().socket_folder(sockets).build(),
    };

    let files = client.filesystem();
    let path = r"C:\var\lib\kubelet\plugins\driver.example.com\globalmount";
    assert!(!files.path_exists(path).await?);
    files.mkdir(path).await?;
    assert!(files.path_exists(path).await?);

    let disks = client.disk().list_disk_ids().await?;
    assert!(disks.values().any(|ids| ids.serial_number.starts_with("vol0123456789abcdef0")), "{disks:?}");
    Ok(())
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
