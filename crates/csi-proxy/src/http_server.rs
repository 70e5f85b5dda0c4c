//! The HTTP server for metrics and status. [`Pages`] has the answers.
//!
//! Any client that reaches the address may connect. A connection is therefore closed after one
//! request or `CONNECTION_TIME`. At the limit on connections, a new connection closes the oldest
//! connection of the client address that has the most. A client that sends its request at once is
//! answered before that, unless its own address floods the server.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::pages::Pages;

/// The number of open connections at which a new one closes another.
const MAX_CONNECTIONS: usize = 64;

/// How long a connection may be open, from accepting it until the client has read the response.
const CONNECTION_TIME: Duration = Duration::from_secs(10);

/// The largest head of a request. Its body is not read.
const MAX_HEAD: usize = 16 << 10;

/// How long to wait after a failure to accept, such as too many open handles.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// A listener for HTTP requests.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpListener {
    /// Listens at each address, and at 127.0.0.1 on each of their ports: only there can clients
    /// read the status pages.
    pub async fn bind_all(addresses: &[String]) -> io::Result<Vec<Self>> {
        let mut listeners: Vec<Self> = Vec::new();
        for address in addresses {
            listeners.push(Self::bind(address).await?);
        }
        for port in listeners
            .iter()
            .map(|listener| listener.address.port())
            .collect::<BTreeSet<_>>()
        {
            let of_port = listeners
                .iter()
                .map(Self::address)
                .filter(|address| address.port() == port);
            let bound: Vec<IpAddr> = of_port.map(|address| address.ip()).collect();
            if bound
                .iter()
                .any(|ip| *ip == Ipv4Addr::LOCALHOST || *ip == Ipv4Addr::UNSPECIFIED)
            {
                continue;
            }
            match Self::bind(&format!("127.0.0.1:{port}")).await {
                // Linux, unlike Windows, also listens at 127.0.0.1 for [::].
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse
                        && bound.iter().any(IpAddr::is_unspecified) => {}
                listener => listeners.push(listener?),
            }
        }
        Ok(listeners)
    }

    /// Listens at `address`, `host:port`; as in Go, on all interfaces if the host is missing.
    async fn bind(address: &str) -> io::Result<Self> {
        let everywhere = address
            .starts_with(':')
            .then(|| format!("0.0.0.0{address}"));
        let bound = TcpListener::bind(everywhere.as_deref().unwrap_or(address)).await;
        let listener = bound.map_err(|error| {
            let form = if error.kind() == io::ErrorKind::InvalidInput {
                "; expected HOST:PORT or :PORT"
            } else {
                ""
            };
            io::Error::new(
                error.kind(),
                format!("cannot listen at {address} for metrics: {error}{form}"),
            )
        })?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
        })
    }

    /// The address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `pages` for as long as this is polled.
    pub async fn serve(self, pages: Arc<Pages>) -> Infallible {
        let (mut tasks, mut open) = (JoinSet::new(), VecDeque::new());
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    while tasks.try_join_next().is_some() {}
                    close_one_at_limit(&mut open);
                    let task = tasks.spawn(serve_connection(stream, peer, Arc::clone(&pages)));
                    open.push_back((peer.ip(), task));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to the metrics address");
                    sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }
}

/// If [`MAX_CONNECTIONS`] are open, closes the oldest connection of the client address that has the
/// most.
fn close_one_at_limit(open: &mut VecDeque<(IpAddr, AbortHandle)>) {
    open.retain(|(_, connection)| !connection.is_finished());
    if open.len() < MAX_CONNECTIONS {
        return;
    }
    let of_address = |address: &IpAddr| open.iter().filter(|(other, _)| other == address).count();
    let counts: Vec<_> = open
        .iter()
        .map(|(address, _)| of_address(address))
        .collect();
    let most = counts.iter().max();
    let oldest = counts
        .iter()
        .position(|count| Some(count) == most)
        .and_then(|oldest| open.remove(oldest));
    if let Some((_, connection)) = oldest {
        connection.abort();
    }
}

/// Answers the one request of a connection.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: SocketAddr,
    pages: Arc<Pages>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let pages = Arc::clone(&pages);
        async move { Ok::<_, Infallible>(pages.answer(&request, peer).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .keep_alive(false)
        .max_buf_size(MAX_HEAD);
    match timeout(
        CONNECTION_TIME,
        http.serve_connection(TokioIo::new(stream), service),
    )
    .await
    {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => tracing::debug!(%reason, "a connection to the metrics address failed"),
        Err(_) => tracing::debug!(
            "closed a connection to the metrics address that exceeded the time limit"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::pending;

    use tokio::io::{
        AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex,
    };
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::{AbortHandle, JoinSet};
    use tokio::time::Instant;

    use super::{
        CONNECTION_TIME, HttpListener, MAX_CONNECTIONS, MAX_HEAD, close_one_at_limit,
        serve_connection,
    };
    use crate::pages::tests::{LOCAL, pages};

    /// A part of the metrics, which are more than the buffers between client and server hold.
    const METRIC: &str = "csi_proxy_connections{state=\"busy\"} 0\n";

    fn connect() -> DuplexStream {
        let (client, server) = duplex(1024);
        tokio::spawn(serve_connection(server, LOCAL, pages()));
        client
    }

    async fn answer_to(request: &str) -> String {
        exchange(connect(), request).await
    }

    /// Sends a request, and reads until the server closes the connection.
    async fn exchange(mut client: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> String {
        client.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("text");
        answer
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_and_health_are_served_and_nothing_else() {
        for (line, status, body) in [
            ("GET /metrics", "HTTP/1.1 200 ", METRIC),
            ("GET /healthz", "HTTP/1.1 200 ", "\r\n\r\nok\n"),
            (
                "GET /other",
                "HTTP/1.1 404 ",
                "only /, /statusz, /flagz, /metrics, /healthz and /readyz exist",
            ),
            ("POST /metrics", "HTTP/1.1 405 ", "allow: GET, HEAD"),
        ] {
            let answer = answer_to(&format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
            assert!(
                answer.starts_with(status) && answer.contains(body),
                "{line}: {answer:.200}"
            );
        }
        let head = answer_to("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(
            head.contains("text/plain; version=0.0.4") && head.ends_with("\r\n\r\n"),
            "{head:.200}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_no_request_or_does_not_read_the_response_is_disconnected() {
        for request in ["", "GET /metr", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"] {
            let start = Instant::now();
            let (mut client, server) = duplex(64);
            client.write_all(request.as_bytes()).await.expect("sent");
            serve_connection(server, LOCAL, pages()).await;
            assert_eq!(
                start.elapsed().as_secs(),
                CONNECTION_TIME.as_secs(),
                "{request}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_with_too_large_a_head_is_refused() {
        let request = format!(
            "GET /healthz HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
            "x".repeat(MAX_HEAD)
        );
        let mut client = connect();
        // The server may refuse it before it has read all of it.
        let _ = client.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        assert!(
            answer.starts_with(b"HTTP/1.1 431 "),
            "{}",
            answer.escape_ascii()
        );
    }

    #[tokio::test]
    async fn a_flood_from_one_address_closes_no_connection_of_another() {
        let [flooding, other, third] =
            ["10.0.0.7", "127.0.0.1", "10.0.0.8"].map(|address| address.parse().unwrap());
        let (mut tasks, mut open) = (JoinSet::new(), VecDeque::new());
        let mut add = |address| {
            close_one_at_limit(&mut open);
            let task = tasks.spawn(pending::<()>());
            open.push_back((address, task.clone()));
            task
        };
        let kept = [add(other), add(third)];
        let flood: Vec<_> = (0..1000).map(|_| add(flooding)).collect();
        add(third);
        while tasks.len() > MAX_CONNECTIONS {
            tasks.join_next().await;
        }
        assert!(kept.iter().all(|connection| !connection.is_finished()));
        let closed: Vec<_> = flood.iter().map(AbortHandle::is_finished).collect();
        let expected: Vec<_> = (0..1000)
            .map(|connection| connection < 1000 + 3 - MAX_CONNECTIONS)
            .collect();
        assert_eq!(closed, expected, "the oldest ones are closed");
    }

    async fn bind_all(addresses: &[&str]) -> Vec<HttpListener> {
        let addresses: Vec<String> = addresses
            .iter()
            .map(|address| (*address).to_owned())
            .collect();
        HttpListener::bind_all(&addresses)
            .await
            .expect("free ports")
    }

    #[tokio::test]
    async fn the_loopback_address_answers_the_status_on_the_port_of_each_address_and_checks_hold_everywhere()
     {
        assert!(
            bind_all(&[]).await.is_empty(),
            "nothing is open without an address"
        );
        let addresses = [
            &["127.0.0.1:0"][..],
            &[":0"],
            &["127.0.0.2:0"],
            &["127.0.0.1:0", "127.0.0.2:0"],
        ];
        let with_ipv6 = [&["[::1]:0"][..], &["[::]:0"]];
        let has_ipv6 = TcpListener::bind("[::1]:0").await.is_ok();
        for addresses in addresses
            .into_iter()
            .chain(with_ipv6.into_iter().filter(|_| has_ipv6))
        {
            let listeners = bind_all(addresses).await;
            let bound: Vec<_> = listeners.iter().map(HttpListener::address).collect();
            for listener in listeners {
                tokio::spawn(listener.serve(pages()));
            }
            for address in bound {
                let loopback = format!("127.0.0.1:{}", address.port());
                let own = address
                    .to_string()
                    .replace("0.0.0.0", "127.0.0.1")
                    .replace("[::]", "[::1]");
                for (connect, header, status) in [
                    (&loopback, "Host: localhost", 200),
                    (&own, "Host: node.example", 403),
                    (&own, "Host: localhost\r\nX-Forwarded-For: 10.0.0.7", 403),
                ] {
                    let client = TcpStream::connect(connect).await.expect("connected");
                    let request = format!("GET /statusz HTTP/1.1\r\n{header}\r\n\r\n");
                    let answer = exchange(client, &request).await;
                    assert!(
                        answer.starts_with(&format!("HTTP/1.1 {status} ")),
                        "{addresses:?} {header}: {answer:.90}"
                    );
                }
            }
        }
    }

    #[tokio::test]
    async fn a_request_is_answered_however_many_connections_are_silent() {
        let listener = bind_all(&["127.0.0.1:0"]).await.remove(0);
        let address = listener.address();
        let serving = tokio::spawn(listener.serve(pages()));
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS + 8 {
            silent.push(TcpStream::connect(address).await.expect("connected"));
        }
        let client = TcpStream::connect(address).await.expect("connected");
        let answer = exchange(client, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(answer.ends_with("ok\n"), "{answer}");
        for closed in &mut silent[..9] {
            // The server closes it, or resets it.
            assert_eq!(closed.read(&mut [0]).await.unwrap_or_default(), 0);
        }
        serving.abort();
    }
}
