//! Reads of local files that hang, as on a disk that no longer answers.

use std::sync::{Arc, Condvar, Mutex};

use api::disk::v1::ListDiskIDsRequest;
use api::disk::v1::disk_client::DiskClient;
use api::filesystem::v1::PathExistsRequest;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use faults::{Call, FaultAction, Probe, Probed};
use prost::Message as _;
use prost::encoding::bytes as bytes_encoding;
use storage_ops::{Config, Node};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::channels::channel;
use super::daemon::{HANG_TIMEOUT, Setup, until};
use super::good_input;

/// A field that no request has.
const UNKNOWN_FIELD: u32 = 1000;

/// Blocks each call that opens an object with `hung` in its path, until it is released. Counts the calls that are blocked.
#[derive(Clone, Default)]
struct Hang(Arc<(Mutex<Blocked>, Condvar)>);

#[derive(Default)]
struct Blocked {
    calls: usize,
    is_released: bool,
}

impl Probe for Hang {
    fn before(&self, call: &Call) -> FaultAction {
        if call.object.contains("hung") {
            let mut blocked = self.0.0.lock().unwrap();
            blocked.calls += 1;
            drop(self.0.1.wait_while(blocked, |blocked| !blocked.is_released).unwrap());
        }
        FaultAction::Go
    }
}

impl Hang {
    fn calls(&self) -> usize {
        self.0.0.lock().unwrap().calls
    }

    fn release(&self) {
        self.0.0.lock().unwrap().is_released = true;
        self.0.1.notify_all();
    }
}

/// Releases the calls when a test fails: otherwise the runtime would wait forever for them.
struct ReleaseOnDrop(Hang);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[test]
fn a_read_that_hangs_delays_no_other_connection() {
    let hang = Hang::default();
    let node = Node::new(Arc::new(Probed::new(good_input::node().process(), hang.clone())), Config::default());
    // Clients in another runtime do not wake the threads of the daemon.
    let (runtime, clients) = (Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap(), runtime());
    let _release = ReleaseOnDrop(hang.clone());
    let daemon = runtime.block_on(async { Setup::default().at(node) });
    let mut files = vec![daemon.address("csi-proxy-filesystem-v1"); 3];
    clients.block_on(async {
        let mut reads = Vec::new();
        while let Some(address) = files.pop() {
            let mut client = FilesystemClient::new(channel(address).await.expect("the endpoint accepts"));
            let path = r"C:\var\lib\kubelet\hung".to_owned();
            reads.push(tokio::spawn(async move { client.path_exists(PathExistsRequest { path }).await }));
            until(|| hang.calls() == reads.len()).await;
            // A new connection, and a call on it.
            let answered = timeout(HANG_TIMEOUT, async {
                let mut client = DiskClient::new(daemon.channel("csi-proxy-disk-v1").await);
                client.list_disk_ids(ListDiskIDsRequest {}).await
            });
            answered.await.expect("the daemon answers").expect("a list");
        }
        hang.release();
        for one in reads {
            one.await.expect("no panic").expect("an answer");
        }
    });
}

#[test]
fn a_read_that_hangs_delays_no_other_call_on_its_connection() {
    let hang = Hang::default();
    let node = Node::new(Arc::new(Probed::new(good_input::node().process(), hang.clone())), Config::default());
    let (runtime, clients) = (Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap(), runtime());
    let _release = ReleaseOnDrop(hang.clone());
    let daemon = runtime.block_on(async { Setup::default().at(node) });
    clients.block_on(async {
        let mut reads = Vec::new();
        for bytes in [0, 40_000, 60_000] {
            let channel = daemon.channel("csi-proxy-filesystem-v1").await;
            // A large request is answered with a WINDOW_UPDATE frame, for which its call wakes the task of the connection
            // right before it reads the file.
            let mut request = PathExistsRequest { path: r"C:\var\lib\kubelet\hung".to_owned() }.encode_to_vec();
            bytes_encoding::encode(UNKNOWN_FIELD, &vec![0; bytes], &mut request);
            let of_read = channel.clone();
            reads.push(tokio::spawn(async move {
                dynamic_client::call(&of_read, "/v1.Filesystem/PathExists", request).await
            }));
            until(|| hang.calls() == reads.len()).await;
            let path = r"C:\var\lib\kubelet\pods".to_owned();
            let mut client = FilesystemClient::new(channel);
            let answered = timeout(HANG_TIMEOUT, client.path_exists(PathExistsRequest { path }));
            answered.await.unwrap_or_else(|_| panic!("no answer after a request of {bytes} bytes")).expect("an answer");
        }
        hang.release();
        for one in reads {
            one.await.expect("no panic").expect("an answer");
        }
    });
}

fn runtime() -> tokio::runtime::Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
