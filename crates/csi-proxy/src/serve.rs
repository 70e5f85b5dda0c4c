//! Serving until told to stop.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use api::GROUP_VERSIONS;
use server::{Limits, Server, Unfinished};
use storage_ops::{BLOCKING_THREADS, Executor, Node};
use transport::address::Location;

use crate::backend::{self, System};
use crate::endpoints::{self, Endpoints};
use crate::flags::Flags;
use crate::metrics_http::Telemetry;
use crate::signals::Interrupt;

/// Threads for blocking work beyond the node's: the runtime's own, such as looking up names.
const OTHER_THREADS: usize = 16;

/// The runtime that all of the daemon runs in.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().max_blocking_threads(BLOCKING_THREADS + OTHER_THREADS).build()
}

/// Serves in a console: tells `out` where, and returns when it was told to stop and what ran has ended. Told a second
/// time, it does not wait.
pub async fn run(flags: &Flags, out: impl Write) -> Result<(), Box<dyn Error>> {
    let (mut interrupt, mut hurry) = (Interrupt::listen()?, Interrupt::listen()?);
    tokio::select! {
        served = until(flags, out, async { interrupt.next().await }, || Ok(())) => served,
        () = async { hurry.next().await; hurry.next().await } => {
            Err("stopped at once, on being told to a second time".into())
        }
    }
}

/// Serves until `stop`, and returns when what ran has ended. Calls `ready` when all endpoints are open.
pub async fn until(
    flags: &Flags,
    mut out: impl Write,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    warn(flags);
    let System { os, name } = backend::open(flags)?;
    let executor = Arc::new(Executor::new(Arc::new(Node::new(os, flags.node.clone()))));
    let server = Server::new(executor, limits(flags));
    let telemetry = match &flags.metrics_address {
        Some(address) => Some(Telemetry::open(address).await?),
        None => None,
    };
    let Endpoints { open, place, temporary } = endpoints::open(flags)?;
    announce(&mut out, &name, &place, open.len(), telemetry.as_ref())?;
    tracing::info!(endpoints = open.len(), system = %name, "serving");
    if let Some(telemetry) = telemetry {
        let metrics = Arc::clone(server.metrics());
        tokio::spawn(telemetry.serve(metrics));
    }
    ready()?;
    let unfinished = server.serve(open, stop).await;
    drop(temporary);
    farewell(&mut out, unfinished)
}

fn limits(flags: &Flags) -> Limits {
    let connections = server::ConnectionLimits {
        open: flags.max_connections,
        silence: flags.silence,
        // Those that run, and as many that have yet to send their message, wait, or are taking their answer.
        calls: flags.max_calls.saturating_mul(2),
    };
    let (calls, queue) = (flags.max_calls, flags.max_calls);
    Limits { connections, calls, queue, drain: flags.drain, ..Limits::default() }
}

/// Logs what the command line asks for and does not get.
fn warn(flags: &Flags) {
    for name in &flags.without_effect {
        tracing::info!("the flag -{name} has no effect here");
    }
    if let Some(first) = flags.rest.first() {
        tracing::warn!("the command line is ignored from '{first}' on, as that is no flag");
    }
}

fn announce(
    out: &mut impl Write,
    name: &str,
    place: &Location,
    endpoints: usize,
    telemetry: Option<&Telemetry>,
) -> io::Result<()> {
    let rpcs: usize = GROUP_VERSIONS.iter().map(|row| row.rpcs.len()).sum();
    writeln!(out, "csi-proxy {} serves {name}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "  {} group-versions with {rpcs} RPCs, on {endpoints} endpoints", GROUP_VERSIONS.len())?;
    match place {
        Location::Directory(folder) => writeln!(out, "  sockets in {}", folder.display())?,
        Location::NamedPipes => writeln!(out, r"  pipes \\.\pipe\csi-proxy-<group>-<version>")?,
    }
    if let Some(telemetry) = telemetry {
        writeln!(out, "  metrics at http://{}/metrics", telemetry.address())?;
    }
    writeln!(out, "Ctrl-C ends it.")?;
    out.flush()
}

fn farewell(out: &mut impl Write, unfinished: Unfinished) -> Result<(), Box<dyn Error>> {
    if unfinished == Unfinished::default() {
        tracing::info!("stopped");
        writeln!(out, "Stopped; nothing was cut off.")?;
        return Ok(());
    }
    let Unfinished { calls, operations } = unfinished;
    tracing::warn!(calls, operations, "stopped before all had ended");
    writeln!(out, "Stopped; calls cut off: {calls}, operations that had not ended: {operations}.")?;
    Ok(())
}
