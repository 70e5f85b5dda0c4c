//! Answers to those who watch the daemon, over HTTP: `/metrics` and `/healthz`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use server::Metrics;
use tokio::net::TcpListener;

/// Prometheus' text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

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
    pub async fn serve(self, metrics: Arc<Metrics>) -> io::Result<()> {
        let render = move || {
            let text = metrics.render();
            async move { ([(CONTENT_TYPE, TEXT)], text) }
        };
        let router = Router::new().route("/metrics", get(render)).route("/healthz", get(|| async { "ok\n" }));
        axum::serve(self.listener, router).await
    }
}
