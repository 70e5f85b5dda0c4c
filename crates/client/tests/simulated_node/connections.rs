//! Connections that break, hang or are missing.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use csi_proxy_client::ErrorKind;
use faults::{Call, FaultAction, Probe, Probed};
use storage_ops::{Config, Node};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::{resume, sleep, timeout};
use transport::address::Address;
use transport::listener::{Listener, UnixEndpoint, bind};

use super::daemon::{Daemon, Sockets};
use super::node::node;

/// Far longer than any step takes; a test that waits this long hangs.
const HANG_TIMEOUT: Duration = Duration::from_mins(1);

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
    client.filesystem().rmdir(DIRECTORY, false).await.unwrap();
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
    assert!(error.message().contains("csi-proxy-disk-v1.sock: csi-proxy does not run on the node"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_first_calls_share_one_connection() {
    let (sim, sockets) = (node(), Sockets::new());
    let breaker = Arc::new(Breaker::default());
    let node = Node::new(sim.process(), Config::default());
    let _daemon = Daemon::listening(node, &sockets, |address| breaker.open(address));
    let client = sockets.client();
    let calls: Vec<_> = (0..16)
        .map(|_| {
            let disks = client.disk();
            tokio::spawn(async move { disks.get_disk_stats(1).await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").unwrap();
    }
    assert_eq!(breaker.connections.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_not_repeated_after_its_connection_broke_and_a_read_is() {
    let (sim, sockets) = (node(), Sockets::new());
    let breaker = Arc::new(Breaker::default());
    let node = Node::new(Arc::new(Probed::new(sim.process(), Arc::clone(&breaker))), Config::default());
    let daemon = Daemon::listening(node, &sockets, |address| breaker.open(address));
    let files = sockets.client().filesystem();

    breaker.remaining.store(1, Ordering::SeqCst);
    let error = files.mkdir(DIRECTORY).await.unwrap_err();
    assert_eq!(breaker.remaining.load(Ordering::SeqCst), 0, "the connection broke");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("may or may not have made the change"), "{error}");
    assert_eq!(daemon.calls("v1.Filesystem", "Mkdir"), 1);
    files.mkdir(DIRECTORY).await.unwrap();
    assert_eq!(daemon.calls("v1.Filesystem", "Mkdir"), 2);

    breaker.remaining.store(1, Ordering::SeqCst);
    assert!(files.path_exists(DIRECTORY).await.unwrap());
    assert_eq!(breaker.remaining.load(Ordering::SeqCst), 0, "the connection broke");
    assert_eq!(daemon.calls("v1.Filesystem", "PathExists"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_ends_at_its_deadline_or_when_it_is_dropped_and_others_go_on() {
    let (sim, sockets) = (node(), Sockets::new());
    let hang = Arc::new(Hang::default());
    let _release = ReleaseOnDrop(Arc::clone(&hang));
    let node = Node::new(Arc::new(Probed::new(sim.process(), Arc::clone(&hang))), Config::default());
    let _daemon = Daemon::listening(node, &sockets, bind);
    let client = sockets.client();

    let short = client.with_deadline(Duration::from_millis(50));
    let error = short.filesystem().mkdir(DIRECTORY).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert!(error.is_retryable(), "{error}");

    let files = client.filesystem();
    assert!(timeout(Duration::from_millis(50), files.mkdir(DIRECTORY)).await.is_err(), "it was dropped");
    let other = timeout(HANG_TIMEOUT, files.path_exists(r"C:\var\lib\kubelet")).await;
    assert!(other.expect("it is answered").unwrap());
}

/// Breaks all connections when the daemon touches the directory, as often as `remaining` says.
#[derive(Default)]
struct Breaker {
    connections: Mutex<Vec<Arc<AtomicBool>>>,
    remaining: AtomicUsize,
}

impl Breaker {
    fn open(self: &Arc<Self>, address: &Address) -> io::Result<BreakableEndpoint> {
        Ok(BreakableEndpoint { endpoint: bind(address)?, breaker: Arc::clone(self) })
    }
}

impl Probe for Breaker {
    fn before(&self, call: &Call) -> FaultAction {
        let takes_one = |remaining: usize| remaining.checked_sub(1);
        if call.object.contains("disturbed")
            && self.remaining.fetch_update(Ordering::SeqCst, Ordering::SeqCst, takes_one).is_ok()
        {
            for connection in &*self.connections.lock().unwrap() {
                connection.store(true, Ordering::SeqCst);
            }
        }
        FaultAction::Go
    }
}

struct BreakableEndpoint {
    endpoint: UnixEndpoint,
    breaker: Arc<Breaker>,
}

impl Listener for BreakableEndpoint {
    type Stream = BreakableStream;

    async fn accept(&mut self) -> io::Result<BreakableStream> {
        let stream = self.endpoint.accept().await?;
        let is_broken = Arc::new(AtomicBool::new(false));
        self.breaker.connections.lock().unwrap().push(Arc::clone(&is_broken));
        Ok(BreakableStream { stream, is_broken })
    }

    fn address(&self) -> &Address {
        self.endpoint.address()
    }
}

/// The server's end of a connection, whose writes fail when it is broken.
struct BreakableStream {
    stream: UnixStream,
    is_broken: Arc<AtomicBool>,
}

impl AsyncRead for BreakableStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for BreakableStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
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
            drop(self.released.wait_while(is_released, |is_released| !*is_released).unwrap());
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
