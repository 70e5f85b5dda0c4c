//! Connections that break, hang or are missing.

use std::fs;
use std::future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::thread;
use std::time::Duration;

use csi_proxy_client::{Client, DiskNumber, ErrorKind};
use faults::{Call, FaultAction, Probe, Probed};
use storage_ops::{Config, Node};
use tokio::io::copy_bidirectional;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;
use tokio::time::{resume, sleep, timeout};
use transport::address::Location;
use transport::listener::{Listener as _, bind, connect};

use super::daemon::{Daemon, Sockets};
use super::node::node;

/// Far longer than any step takes; a test that waits this long hangs.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

const DIRECTORY: &str = r"C:\var\lib\kubelet\disturbed";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_go_on_after_the_daemon_has_restarted() {
    let (sim, sockets) = (node(), Sockets::new());
    let client = sockets.client();
    let first = Daemon::on(&sim, &sockets);
    client.filesystem().mkdir(DIRECTORY).await.unwrap();
    first.stop().await;
    let _second = Daemon::on(&sim, &sockets);
    assert!(client.filesystem().path_exists(DIRECTORY).await.unwrap());
    client.filesystem().rmdir(DIRECTORY).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_a_daemon_that_is_starting() {
    let (sim, sockets) = (node(), Sockets::new());
    let client = sockets.client();
    let call = tokio::spawn(async move { client.filesystem().mkdir(DIRECTORY).await });
    // The clock stands still until every task waits: the first attempt has then failed.
    sleep(Duration::from_millis(1)).await;
    let daemon = Daemon::on(&sim, &sockets);
    resume();
    call.await.expect("no panic").unwrap();
    assert_eq!(daemon.calls("v1.Filesystem", "Mkdir"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_daemon_is_unavailable() {
    let sockets = Sockets::new();
    let error = sockets.client().disk().rescan().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.is_retryable());
    assert!(
        error
            .message()
            .contains("csi-proxy-disk-v1.sock: csi-proxy does not run on the node"),
        "{error}"
    );
}

#[tokio::test]
async fn a_connector_replaces_the_endpoints_and_without_retries_each_call_connects_once() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let connect = {
        let attempts = Arc::clone(&attempts);
        move |pipe: &'static str| {
            attempts.fetch_add(1, Ordering::SeqCst);
            future::ready(Err::<UnixStream, _>(io::Error::other(format!(
                "no {pipe} today"
            ))))
        }
    };
    let error = Client::builder()
        .connector(connect)
        .without_retries()
        .build()
        .disk()
        .rescan()
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), attempts.load(Ordering::SeqCst)),
        (ErrorKind::Unavailable, 1)
    );
    assert_eq!(
        error.message(),
        "cannot connect to csi-proxy-disk-v1: no csi-proxy-disk-v1 today"
    );
}

#[tokio::test(start_paused = true)]
async fn repetitions_and_connections_are_logged() {
    let (sim, sockets) = (node(), Sockets::new());
    let log = tempfile::NamedTempFile::new().unwrap();
    let writer = Arc::new(log.reopen().unwrap());
    // While only one subscriber exists, and only for this thread, a log statement that another
    // thread reaches first is off.
    let of_all_threads = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(io::sink)
        .finish();
    tracing::subscriber::set_global_default(of_all_threads).unwrap();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(writer)
        .finish();
    let _subscriber = tracing::subscriber::set_default(subscriber);
    let client = sockets.client();
    client.disk().rescan().await.unwrap_err();
    resume();
    let _daemon = Daemon::on(&sim, &sockets);
    client.disk().rescan().await.unwrap();
    let log = fs::read_to_string(log.path()).unwrap();
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("repeating a call of csi-proxy"), 4, "{log}");
    assert_eq!(count("connected to csi-proxy"), 1, "{log}");
    assert!(log.contains("Rescan failed: nothing serves"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_first_calls_share_one_connection() {
    let (sim, front, behind) = (node(), Sockets::new(), Sockets::new());
    let _daemon = Daemon::on(&sim, &behind);
    let breaker = Arc::new(Breaker::default());
    breaker.relay("csi-proxy-disk-v1", &front, &behind);
    let client = front.client();
    let calls: Vec<_> = (0..16)
        .map(|_| {
            let disks = client.disk();
            tokio::spawn(async move { disks.get_disk_stats(DiskNumber(1)).await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").unwrap();
    }
    assert_eq!(breaker.relays.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_not_repeated_after_its_connection_broke_and_a_read_is() {
    let (sim, front, behind) = (node(), Sockets::new(), Sockets::new());
    let breaker = Arc::new(Breaker::default());
    let node = Node::new(
        Arc::new(Probed::new(sim.process(), Arc::clone(&breaker))),
        Config::default(),
    );
    let daemon = Daemon::listening(node, &behind, bind);
    breaker.relay("csi-proxy-filesystem-v1", &front, &behind);
    let files = front.client().filesystem();

    breaker.remaining.store(1, Ordering::SeqCst);
    let error = files.mkdir(DIRECTORY).await.unwrap_err();
    assert_eq!(
        breaker.remaining.load(Ordering::SeqCst),
        0,
        "the connection broke"
    );
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error
            .message()
            .contains("may or may not have made the change"),
        "{error}"
    );
    assert_eq!(daemon.calls("v1.Filesystem", "Mkdir"), 1);
    files.mkdir(DIRECTORY).await.unwrap();
    assert_eq!(daemon.calls("v1.Filesystem", "Mkdir"), 2);

    breaker.remaining.store(1, Ordering::SeqCst);
    assert!(files.path_exists(DIRECTORY).await.unwrap());
    assert_eq!(
        breaker.remaining.load(Ordering::SeqCst),
        0,
        "the connection broke"
    );
    assert_eq!(daemon.calls("v1.Filesystem", "PathExists"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_ends_at_its_deadline_or_when_it_is_dropped_and_others_go_on() {
    let (sim, sockets) = (node(), Sockets::new());
    let hang = Arc::new(Hang::default());
    let _release = ReleaseOnDrop(Arc::clone(&hang));
    let node = Node::new(
        Arc::new(Probed::new(sim.process(), Arc::clone(&hang))),
        Config::default(),
    );
    let _daemon = Daemon::listening(node, &sockets, bind);
    let client = sockets.client();

    let short = client.with_deadline(Duration::from_millis(50));
    let error = short.filesystem().mkdir(DIRECTORY).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert!(error.is_retryable(), "{error}");

    let files = client.filesystem();
    assert!(
        timeout(Duration::from_millis(50), files.mkdir(DIRECTORY))
            .await
            .is_err(),
        "it was dropped"
    );
    let other = timeout(HANG_TIMEOUT, files.path_exists(r"C:\var\lib\kubelet")).await;
    assert!(other.expect("it is answered").unwrap());
}

/// The runtime of the relays. The threads of the daemon's runtime wait until the relays have ended.
static RELAYS: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
});

/// Relays connections, and breaks them when the daemon touches the directory, as often as
/// `remaining` says.
#[derive(Default)]
struct Breaker {
    relays: Mutex<Vec<AbortHandle>>,
    remaining: AtomicUsize,
}

impl Breaker {
    /// Relays the connections to an endpoint in the folder `front` to the one in the folder
    /// `behind`.
    fn relay(self: &Arc<Self>, endpoint: &str, front: &Sockets, behind: &Sockets) {
        let [front, behind] =
            [front, behind].map(|sockets| Location::Directory(sockets.folder()).address(endpoint));
        let breaker = Arc::clone(self);
        let _entered = RELAYS.enter();
        let mut listener = bind(&front).unwrap();
        tokio::spawn(async move {
            loop {
                let mut client = listener.accept().await.unwrap();
                let mut daemon = connect(&behind).await.unwrap();
                // Locked, so that the daemon touches no directory before the relay is in the list.
                let mut relays = breaker.relays.lock().unwrap();
                let relay = tokio::spawn(async move {
                    drop(copy_bidirectional(&mut client, &mut daemon).await);
                });
                relays.push(relay.abort_handle());
            }
        });
    }
}

impl Probe for Breaker {
    fn before(&self, call: &Call) -> FaultAction {
        let takes_one = |remaining: usize| remaining.checked_sub(1);
        if call.object.contains("disturbed")
            && self
                .remaining
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, takes_one)
                .is_ok()
        {
            let relays = self.relays.lock().unwrap().clone();
            relays.iter().for_each(AbortHandle::abort);
            // A relay that has not ended yet could relay the response.
            while !relays.iter().all(AbortHandle::is_finished) {
                thread::yield_now();
            }
        }
        FaultAction::Go
    }
}

/// Blocks calls that open the directory until it is released.
#[derive(Default)]
struct Hang {
    is_released: Mutex<bool>,
    released: Condvar,
}

impl Probe for Hang {
    fn before(&self, call: &Call) -> FaultAction {
        if call.object.contains("disturbed") {
            let is_released = self.is_released.lock().unwrap();
            drop(
                self.released
                    .wait_while(is_released, |is_released| !*is_released)
                    .unwrap(),
            );
        }
        FaultAction::Go
    }
}

/// Releases the calls when a test ends: otherwise the runtime would wait forever for them.
struct ReleaseOnDrop(Arc<Hang>);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        *self.0.is_released.lock().unwrap() = true;
        self.0.released.notify_all();
    }
}
