//! Reads of local files that hang, as on a disk that no longer answers.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use api::disk::v1::ListDiskIDsRequest;
use api::disk::v1::disk_client::DiskClient;
use api::filesystem::v1::PathExistsRequest;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use faults::{Call, FaultAction, Probe, Probed};
use storage_ops::{Config, Node};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::daemon::{HANG_TIMEOUT, Setup, until};
use super::good_input;

const HUNG: &str = r"C:\var\lib\kubelet\hung";

/// Blocks each call that opens an object with `hung` in its path, until it is released. Counts the
/// calls that are blocked.
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
            drop(
                self.0
                    .1
                    .wait_while(blocked, |blocked| !blocked.is_released)
                    .unwrap(),
            );
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

fn request(path: &str) -> PathExistsRequest {
    PathExistsRequest {
        path: path.to_owned(),
    }
}

#[test]
fn a_read_that_hangs_delays_no_other_call() {
    let hang = Hang::default();
    let node = Node::new(
        Arc::new(Probed::new(good_input::node().process(), hang.clone())),
        Config::default(),
    );
    // The clients have a runtime of their own, so that they wake no thread of the daemon's.
    let runtime = Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    let clients = Builder::new_current_thread().enable_all().build().unwrap();
    let _release = ReleaseOnDrop(hang.clone());
    let daemon = runtime.block_on(async { Setup::default().at(node) });
    clients.block_on(async {
        let mut calls = Vec::new();
        for count in 1..=3 {
            let mut on_its_connection =
                FilesystemClient::new(daemon.channel("csi-proxy-filesystem-v1").await);
            let mut client = on_its_connection.clone();
            calls.push(tokio::spawn(async move {
                client.path_exists(request(HUNG)).await
            }));
            until(|| hang.calls() == count).await;
            let others = async {
                on_its_connection
                    .path_exists(request(r"C:\var\lib\kubelet\pods"))
                    .await
                    .expect("an answer");
                let mut on_a_new_connection =
                    DiskClient::new(daemon.channel("csi-proxy-disk-v1").await);
                on_a_new_connection
                    .list_disk_ids(ListDiskIDsRequest {})
                    .await
                    .expect("a list");
            };
            timeout(HANG_TIMEOUT, others)
                .await
                .unwrap_or_else(|_| panic!("no answer while {count} reads hang"));
        }
        // One more has a thread of a pool, and so its deadline ends it. It has begun no change that
        // could continue.
        let mut client = FilesystemClient::new(daemon.channel("csi-proxy-filesystem-v1").await);
        let mut with_deadline = tonic::Request::new(request(HUNG));
        with_deadline.set_timeout(Duration::from_millis(200));
        client
            .path_exists(with_deadline)
            .await
            .expect_err("the read hangs");
        let failures = || daemon.server.metrics().status().failures;
        until(|| !failures().is_empty()).await;
        let message = &failures()[0].message;
        assert!(
            message.contains(HUNG)
                && message.ends_with("the caller's deadline of 200.0ms has passed"),
            "{message}"
        );
        hang.release();
        for call in calls {
            call.await.expect("no panic").expect("an answer");
        }
    });
}
