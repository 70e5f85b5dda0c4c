//! The daemon in this process: its node, executor, server and log, on connections that count the
//! writes.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use api::GROUP_VERSIONS;
use csi_proxy::flags::LogFlags;
use csi_proxy::log;
use faults::{Probed, Trace};
use os_sim::Sim;
use server::{Endpoint, EndpointSpec, Limits, Server};
use storage_ops::{Config, Executor, Node};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use transport::address::{Address, Location};
use transport::listener::Listener;
use transport::memory::{Dialer, MemoryEndpoint, endpoint};

use crate::excluded;

/// A daemon that serves connections of this process.
pub struct Daemon {
    dialers: Vec<(&'static str, Dialer)>,
    writes: Arc<AtomicUsize>,
    /// Counts the calls of primitives.
    pub(crate) trace: Arc<Trace>,
}

impl Daemon {
    /// Runs a daemon on `sim` while `body` runs, and returns the result of `body`.
    pub fn run<T>(
        sim: &Sim,
        body: impl AsyncFnOnce(&Self) -> Result<T, Box<dyn Error>>,
    ) -> Result<T, Box<dyn Error>> {
        // The lines of the log go nowhere.
        static LOG: Once = Once::new();
        LOG.call_once(|| {
            let lines = log::layer(&LogFlags::default(), io::sink);
            tracing_subscriber::registry().with(vec![lines]).init();
        });
        // Two threads are the least with which reads run as in the service. Of the threads for
        // blocking work there is one, so that it does not depend on chance when another is started.
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(1)
            .thread_keep_alive(Duration::from_hours(1))
            .enable_all()
            .build()?;
        let trace = Arc::new(Trace::counting());
        let node = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
        let node = Node::new(excluded::node(node), Config::default());
        node.test_path_lookup();
        let executor = Executor::new(Arc::new(node));
        let server = Server::new(Arc::new(executor), Limits::default());
        let mut daemon = Self {
            dialers: Vec::new(),
            writes: Arc::default(),
            trace,
        };
        let mut endpoints = Vec::new();
        for row in &GROUP_VERSIONS {
            let (dialer, inner) =
                endpoint(Location::Directory(PathBuf::from("/")).address(row.pipe()));
            daemon.dialers.push((row.service, dialer));
            let counting = CountingEndpoint {
                inner,
                writes: Arc::clone(&daemon.writes),
            };
            endpoints.push(Endpoint::new(EndpointSpec::GroupVersion(row), counting));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = runtime.spawn(async move {
            server.serve(endpoints, async { drop(stopped.await) }).await;
        });
        let result = runtime.block_on(body(&daemon));
        drop((stop, daemon));
        runtime.block_on(serving)?;
        result
    }

    /// How many writes there were to all connections.
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    pub(crate) fn connect(&self, service: &str) -> io::Result<DuplexStream> {
        let (_, dialer) = self
            .dialers
            .iter()
            .find(|(name, _)| *name == service)
            .ok_or(io::ErrorKind::NotFound)?;
        dialer.connect()
    }
}

struct CountingEndpoint {
    inner: MemoryEndpoint,
    writes: Arc<AtomicUsize>,
}

impl Listener for CountingEndpoint {
    type Stream = CountingStream;

    async fn accept(&mut self) -> io::Result<CountingStream> {
        Ok(CountingStream {
            inner: self.inner.accept().await?,
            writes: Arc::clone(&self.writes),
        })
    }

    fn address(&self) -> &Address {
        self.inner.address()
    }
}

/// A stream that counts the writes. Each of them is a system call on a pipe or socket.
struct CountingStream {
    inner: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl AsyncRead for CountingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl AsyncWrite for CountingStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, octets));
        self.writes.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, slices));
        self.writes.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
