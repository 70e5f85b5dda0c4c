//! A client of the daemon's metrics endpoint.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::call_counts::sum;

/// The metrics endpoint.
#[derive(Clone)]
pub(crate) struct Metrics {
    address: String,
}

impl Metrics {
    pub(crate) fn at(address: &str) -> Self {
        Self {
            address: address.to_owned(),
        }
    }

    /// Waits until all calls of these services have ended, for at most a minute, and returns the
    /// metrics.
    pub(crate) async fn when_idle(&self, services: &[&str]) -> String {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let text = self.get().await;
            let all = |metric: &str| -> u64 {
                services
                    .iter()
                    .map(|service| sum(&text, metric, &[&format!("grpc_service=\"{service}\"")]))
                    .sum()
            };
            let (started, handled) = (
                all("grpc_server_started_total{"),
                all("grpc_server_handled_total{"),
            );
            if started == handled {
                return text;
            }
            let counts = || {
                text.lines()
                    .filter(|line| line.starts_with("grpc_server_") && !line.contains("seconds"))
            };
            assert!(
                Instant::now() < deadline,
                "{} calls of {services:?} do not end:\n{}",
                started - handled,
                counts()
                    .filter(|line| !line.ends_with(" 0"))
                    .collect::<Vec<_>>()
                    .join("\n")
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn get(&self) -> String {
        let mut stream = TcpStream::connect(&self.address)
            .await
            .expect("a connection");
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream
            .write_all(request.as_bytes())
            .await
            .expect("a request");
        let mut response = String::new();
        stream
            .read_to_string(&mut response)
            .await
            .expect("a response");
        response
    }
}
