//! What the daemon counts of its calls.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::ledger::sum;

/// Where to ask for it.
#[derive(Clone)]
pub(crate) struct Metrics {
    address: String,
}

impl Metrics {
    pub(crate) fn at(address: &str) -> Self {
        Self { address: address.to_owned() }
    }

    /// The counts, once all that was begun of these services has ended, which it has a minute for.
    pub(crate) async fn once_ended(&self, services: &[String]) -> String {
        let give_up = Instant::now() + Duration::from_mins(1);
        loop {
            let text = self.get().await;
            let all = |metric: &str| -> u64 {
                services.iter().map(|service| sum(&text, metric, &[&format!("grpc_service=\"{service}\"")])).sum()
            };
            let (begun, ended) = (all("grpc_server_started_total{"), all("grpc_server_handled_total{"));
            if begun == ended {
                return text;
            }
            let counts = || text.lines().filter(|line| line.starts_with("grpc_server_") && !line.contains("seconds"));
            assert!(
                Instant::now() < give_up,
                "{} calls of {services:?} do not end:\n{}",
                begun - ended,
                counts().filter(|line| !line.ends_with(" 0")).collect::<Vec<_>>().join("\n")
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn get(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).await.expect("a connection");
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await.expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }
}
