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
use tonic::transport::Channel;

use super::daemon::{Daemon, HANG_TIMEOUT, Setup, until};
use super::good_input;

/// A field that no request has.
const UNKNOWN_FIELD: u32 = 1000;

const HUNG: &str = r"C:\var\lib\kubelet\hung";

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

/// Starts a daemon whose reads of `hung` hang. Its clients have a runtime of their own, so that they do not wake its threads.
fn with_hung_reads<F: Future<Output = ()>>(test: impl FnOnce(Daemon, Hang) -> F) {
    let hang = Hang::default();
    let node = Node::new(Arc::new(Probed::new(good_input::node().process(), hang.clone())), Config::default());
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let clients = Builder::new_current_thread().enable_all().build().unwrap();
    let _release = ReleaseOnDrop(hang.clone());
    let daemon = runtime.block_on(async { Setup::default().at(node) });
    clients.block_on(test(daemon, hang));
}

/// Sends each request, whose call hangs, on a connection of its own. After each one, `another_call`, which is given that
/// connection, must end.
async fn delays_nothing(daemon: &Daemon, hang: &Hang, requests: &[Vec<u8>], another_call: impl AsyncFn(Channel)) {
    let mut reads = Vec::new();
    for request in requests {
        let channel = daemon.channel("csi-proxy-filesystem-v1").await;
        let (of_read, bytes) = (channel.clone(), request.len());
        let request = request.clone();
        reads.push(tokio::spawn(
            async move { dynamic_client::call(&of_read, "/v1.Filesystem/PathExists", request).await },
        ));
        until(|| hang.calls() == reads.len()).await;
        let answered = timeout(HANG_TIMEOUT, another_call(channel)).await;
        answered.unwrap_or_else(|_| panic!("no answer after a request of {bytes} bytes"));
    }
    hang.release();
    for one in reads {
        one.await.expect("no panic").expect("an answer");
    }
}

fn request(path: &str) -> PathExistsRequest {
    PathExistsRequest { path: path.to_owned() }
}

#[test]
fn a_read_that_hangs_delays_no_other_connection() {
    with_hung_reads(|daemon, hang| async move {
        // A new connection, and a call on it.
        let on_another_connection = async |_| {
            let mut client = DiskClient::new(daemon.channel("csi-proxy-disk-v1").await);
            client.list_disk_ids(ListDiskIDsRequest {}).await.expect("a list");
        };
        delays_nothing(&daemon, &hang, &vec![request(HUNG).encode_to_vec(); 3], on_another_connection).await;
    });
}

#[test]
fn a_read_that_hangs_delays_no_other_call_on_its_connection() {
    with_hung_reads(|daemon, hang| async move {
        // A large request is answered with a WINDOW_UPDATE frame, for which its call wakes the task of the connection right
        // before it reads the file.
        let requests = [0, 40_000, 60_000].map(|bytes| {
            let mut request = request(HUNG).encode_to_vec();
            bytes_encoding::encode(UNKNOWN_FIELD, &vec![0; bytes], &mut request);
            request
        });
        let on_the_same_connection = async |channel| {
            let mut client = FilesystemClient::new(channel);
            client.path_exists(request(r"C:\var\lib\kubelet\pods")).await.expect("an answer");
        };
        delays_nothing(&daemon, &hang, &requests, on_the_same_connection).await;
    });
}
