//! Answers to those who watch the daemon, over HTTP: `/metrics` and `/healthz`.
//!
//! Whoever reaches the address may ask, so a connection is good for one request and not for long, and where too many
//! are open the oldest is closed: one that asks at once has its answer before that.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use server::Metrics;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Prometheus' text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How many connections may be open before the oldest is closed.
const CONNECTIONS: usize = 64;

/// How long a connection may be open, from its beginning until the answer is taken.
const TIME: Duration = Duration::from_secs(10);

/// How large a request may be, without its body, which is not read.
const LARGEST_HEAD: usize = 16 << 10;

/// How long a listener that cannot accept, for want of handles say, is left alone.
const PAUSE: Duration = Duration::from_millis(100);

/// An address that is listened at.
#[derive(Debug)]
pub struct Telemetry {
    listener: TcpListener,
    address: SocketAddr,
}

impl Telemetry {
    /// Listens at `address`, `host:port`; without a host on all interfaces, as Go takes it.
    pub async fn open(address: &str) -> io::Result<Self> {
        let everywhere = address.starts_with(':').then(|| format!("0.0.0.0{address}"));
        let bound = TcpListener::bind(everywhere.as_deref().unwrap_or(address)).await;
        let listener =
            bound.map_err(|error| io::Error::new(error.kind(), format!("cannot listen at {address}: {error}")))?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Where.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers for as long as it is polled.
    pub async fn serve(self, metrics: Arc<Metrics>) -> Infallible {
        let (mut tasks, mut open) = (JoinSet::new(), VecDeque::new());
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    while tasks.try_join_next().is_some() {}
                    make_room(&mut open);
                    open.push_back(tasks.spawn(answer_one(stream, Arc::clone(&metrics))));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection for metrics was not accepted");
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Closes the oldest connection if there are as many as may be.
fn make_room(open: &mut VecDeque<AbortHandle>) {
    open.retain(|connection| !connection.is_finished());
    if open.len() >= CONNECTIONS
        && let Some(oldest) = open.pop_front()
    {
        oldest.abort();
    }
}

/// Answers the one request of a connection.
async fn answer_one(stream: impl AsyncRead + AsyncWrite + Unpin, metrics: Arc<Metrics>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let metrics = Arc::clone(&metrics);
        async move { Ok::<_, Infallible>(answer(&request, &metrics)) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).keep_alive(false).max_buf_size(LARGEST_HEAD);
    match timeout(TIME, http.serve_connection(TokioIo::new(stream), service)).await {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => tracing::debug!(%reason, "a connection for metrics broke"),
        Err(_) => tracing::debug!("a connection for metrics was closed, as it took too long"),
    }
}

fn answer(request: &Request<Incoming>, metrics: &Metrics) -> Response<Full<Bytes>> {
    let with = |status, header: HeaderName, value: &'static str, body: String| {
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        response.headers_mut().insert(header, HeaderValue::from_static(value));
        response
    };
    let plain = |status, body: &str| with(status, CONTENT_TYPE, "text/plain; charset=utf-8", body.to_owned());
    match (request.uri().path(), request.method()) {
        ("/metrics" | "/healthz", method) if !matches!(*method, Method::GET | Method::HEAD) => {
            with(StatusCode::METHOD_NOT_ALLOWED, ALLOW, "GET, HEAD", String::new())
        }
        ("/metrics", _) => with(StatusCode::OK, CONTENT_TYPE, TEXT, metrics.render()),
        ("/healthz", _) => plain(StatusCode::OK, "ok\n"),
        _ => plain(StatusCode::NOT_FOUND, "here is only /metrics and /healthz\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use os_sim::Sim;
    use server::{Limits, Metrics, Server};
    use storage_ops::{Config, Executor, Node};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::net::TcpStream;
    use tokio::time::Instant;

    use super::{CONNECTIONS, LARGEST_HEAD, TIME, Telemetry, answer_one};

    fn metrics() -> Arc<Metrics> {
        let node = Node::new(Sim::default_node().process(), Config::default());
        Arc::clone(Server::new(Arc::new(Executor::new(Arc::new(node))), Limits::default()).metrics())
    }

    fn connect() -> DuplexStream {
        let (client, server) = duplex(1024);
        tokio::spawn(answer_one(server, metrics()));
        client
    }

    async fn ask(request: &str) -> String {
        let mut client = connect();
        client.write_all(request.as_bytes()).await.expect("it is read");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("text");
        answer
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_and_health_are_there_and_nothing_else() {
        for (line, status, body) in [
            ("GET /metrics", "HTTP/1.1 200 ", "\ncsi_proxy_connections{state=\"busy\"} 0\n"),
            ("GET /healthz", "HTTP/1.1 200 ", "\r\n\r\nok\n"),
            ("GET /", "HTTP/1.1 404 ", "here is only /metrics and /healthz"),
            ("POST /metrics", "HTTP/1.1 405 ", "allow: GET, HEAD"),
        ] {
            let answer = ask(&format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
            assert!(answer.starts_with(status) && answer.contains(body), "{line}: {answer:.200}");
        }
        let head = ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(head.contains("text/plain; version=0.0.4") && head.ends_with("\r\n\r\n"), "{head:.200}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_come_and_an_answer_that_is_not_read_end_with_their_time() {
        for request in ["", "GET /metr", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"] {
            let start = Instant::now();
            let (mut client, server) = duplex(64);
            client.write_all(request.as_bytes()).await.expect("it fits");
            answer_one(server, metrics()).await;
            assert_eq!(start.elapsed().as_secs(), TIME.as_secs(), "{request}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_too_large_is_refused() {
        let request = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(LARGEST_HEAD));
        let mut client = connect();
        // It may be refused before it is read to its end.
        let _ = client.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 431 "), "{}", answer.escape_ascii());
    }

    #[tokio::test]
    async fn however_many_are_silent_one_that_asks_is_answered() {
        let telemetry = Telemetry::open("127.0.0.1:0").await.expect("a port");
        let address = telemetry.address();
        let serving = tokio::spawn(telemetry.serve(metrics()));
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS + 8 {
            silent.push(TcpStream::connect(address).await.expect("it accepts"));
        }
        let mut client = TcpStream::connect(address).await.expect("it accepts");
        client.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("it is read");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("text");
        assert!(answer.ends_with("ok\n"), "{answer}");
        for closed in &mut silent[..9] {
            // Whether in order or not.
            assert_eq!(closed.read(&mut [0]).await.unwrap_or_default(), 0);
        }
        serving.abort();
    }
}
