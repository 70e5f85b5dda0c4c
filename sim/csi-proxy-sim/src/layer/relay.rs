//! Connections of drivers that pass through the layer.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use header_filter::HeaderFilter;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use transport::address::Address;
use transport::listener::Listener;

use super::Layer;
use crate::control::HEADER_TIMEOUT;

/// The most bytes that are under way to or from the daemon.
const CAPACITY: usize = 1 << 16;

/// What is read at once of the beginning of a connection.
const BEGINNING: usize = 1 << 10;

/// The listener of an endpoint, whose connections pass through the layer.
pub(crate) struct Layered<L> {
    /// `None` for an endpoint that is not open.
    pub(crate) listener: Option<L>,
    pub(crate) address: Address,
    /// `None` if the connections are passed on as they are.
    pub(crate) layer: Option<Arc<Layer>>,
    pub(crate) connections: Connections,
}

/// The connections of clients to one run of the daemon.
#[derive(Clone, Default)]
pub(crate) struct Connections {
    tasks: TaskTracker,
    cut: CancellationToken,
}

impl Connections {
    /// Cuts the connections, as the end of a process does: the calls get neither an answer nor a
    /// reset of their streams.
    pub(crate) fn cut(&self) {
        self.cut.cancel();
    }

    /// Returns when the connections have ended.
    pub(crate) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl<L: Listener> Listener for Layered<L> {
    type Stream = Either<DuplexStream, L::Stream>;

    async fn accept(&mut self) -> io::Result<Self::Stream> {
        let Some(listener) = &mut self.listener else {
            return pending().await;
        };
        let stream = listener.accept().await?;
        let Some(layer) = &self.layer else {
            return Ok(Either::Right(stream));
        };
        let (daemon, of_daemon) = duplex(CAPACITY);
        let relay = relay(stream, daemon, Arc::clone(layer));
        self.connections.tasks.spawn(
            self.connections
                .cut
                .clone()
                .run_until_cancelled_owned(relay),
        );
        Ok(Either::Left(of_daemon))
    }

    fn client_process(stream: &Self::Stream) -> Option<u32> {
        match stream {
            // The daemon's client is this process.
            Either::Left(_) => None,
            Either::Right(stream) => L::client_process(stream),
        }
    }

    fn address(&self) -> &Address {
        &self.address
    }
}

/// Answers the requests of a client. The daemon has a connection for each client's, so that its
/// limits hold as without the layer.
async fn relay<S>(client: S, daemon: DuplexStream, layer: Arc<Layer>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut client = BufReader::with_capacity(BEGINNING, client);
    let mut daemon = BufReader::with_capacity(BEGINNING, daemon);
    // The daemon ends a connection on which nothing is sent, and may need room for another one.
    let begun = tokio::select! {
        begun = client.fill_buf() => begun,
        begun = daemon.fill_buf() => begun,
    };
    if begun.map_or(true, <[u8]>::is_empty) {
        return;
    }
    let handshake = client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(daemon));
    let Ok((sender, connection)) = handshake.await else {
        return;
    };
    let cut = Arc::new(Notify::new());
    let service = service_fn(|request: Request<Incoming>| {
        let (layer, sender, cut) = (Arc::clone(&layer), sender.clone(), Arc::clone(&cut));
        async move { Ok::<_, Infallible>(layer.answer(request, sender, &cut).await) }
    });
    let client = TokioIo::new(HeaderFilter::new(client, HEADER_TIMEOUT));
    let mut served = pin!(
        server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(client, service)
    );
    tokio::select! {
        _ = served.as_mut() => return,
        _ = connection => {}
        () = cut.notified() => return,
    }
    // The daemon takes no more calls. Those that it has answered are passed on.
    served.as_mut().graceful_shutdown();
    tokio::select! {
        _ = served => {}
        () = cut.notified() => {}
    }
}
