//! The client: callers that share connections, as those of a node plugin do. Each caller calls
//! again when it has its answer.
//!
//! It prints `ready` when the server has answered on each connection, measures after it has read a
//! line, and prints a [`Sample`] as JSON.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use csi_proxy_client::Client;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

#[derive(Args)]
pub(crate) struct Options {
    /// Folder of the server's sockets; without it, its named pipes are called
    #[arg(long)]
    socket_folder: Option<PathBuf>,
    /// The path to ask for
    #[arg(long)]
    path: String,
    /// How many connections to open
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// How many callers call at once on the first connection
    #[arg(long)]
    callers: usize,
    /// How many seconds to measure
    #[arg(long)]
    seconds: f64,
}

/// What the client measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) calls: f64,
    pub(crate) calls_per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// How long the server may take to start.
const START: Duration = Duration::from_mins(1);

/// How long the first call on a connection may take. Under Wine, the Go program never answers on
/// some connections that were opened while it started.
const ATTEMPT: Duration = Duration::from_secs(1);

/// How long any other call may take.
const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let mut clients = Vec::with_capacity(options.connections);
    for _ in 0..options.connections {
        clients.push(connected(&options).await?);
    }
    let client = clients
        .first()
        .ok_or("without a connection, no call can be made")?;
    let window = Duration::from_secs_f64(options.seconds);
    measure(client, &options.path, options.callers, window / 5).await?;
    println!("ready");
    io::stdin().read_line(&mut String::new())?;
    let sample = measure(client, &options.path, options.callers, window).await?;
    println!("{}", serde_json::to_string(&sample)?);
    Ok(())
}

/// Returns a client that the server has answered. Each attempt has a connection of its own.
async fn connected(options: &Options) -> Result<Client, Box<dyn Error>> {
    let start = Instant::now();
    loop {
        let builder = Client::builder().deadline(DEADLINE);
        let client = match &options.socket_folder {
            Some(folder) => builder.socket_folder(folder).build(),
            None => builder.build(),
        };
        match call(&client.with_deadline(ATTEMPT), &options.path).await {
            Ok(()) => return Ok(client),
            Err(error) if start.elapsed() > START => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn measure(
    client: &Client,
    path: &str,
    callers: usize,
    window: Duration,
) -> Result<Sample, Box<dyn Error>> {
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (client, path) = (client.clone(), path.to_owned());
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            while begin.elapsed() < window {
                let before = Instant::now();
                call(&client, &path)
                    .await
                    .map_err(|error| error.to_string())?;
                latencies.push(before.elapsed());
            }
            Ok::<_, String>(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(task) = tasks.join_next().await {
        latencies.extend(task??);
    }
    let seconds = begin.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let calls = f64::from(u32::try_from(latencies.len())?);
    Ok(Sample {
        calls,
        calls_per_second: calls / seconds,
        p50_us: microseconds(&latencies, 50),
        p99_us: microseconds(&latencies, 99),
    })
}

async fn call(client: &Client, path: &str) -> Result<(), Box<dyn Error>> {
    client.filesystem().path_exists(path).await?;
    Ok(())
}

/// Returns the smallest latency that at least `percent` percent of all do not exceed.
fn microseconds(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn a_percentile_is_a_measured_latency() {
        let latencies: Vec<_> = (1..=10).map(Duration::from_micros).collect();
        let found = [50, 99, 100]
            .map(|percent| super::microseconds(&latencies, percent).round().to_string());
        assert_eq!(found, ["5", "10", "10"]);
    }
}
