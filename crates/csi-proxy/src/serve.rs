//! Serving until a signal to stop.

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, absolute};
use std::sync::Arc;
use std::time::Duration;

use api::{GROUP_VERSIONS, Group};
use os::Os;
use server::{BoxedService, Endpoint, EndpointSpec, Limits, Server, Unfinished};
use storage_ops::{BLOCKING_THREADS, Executor, HostPath, Node};
use transport::address::{Address, Location};
use transport::listener::Listener;

use crate::flags::{Flags, LogFlags};
use crate::http_server::HttpListener;
use crate::log;
use crate::pages::Pages;
use crate::platform::{StopSignals, raise_open_files};
use crate::program::VERSION;

/// Threads for blocking work other than storage operations: the runtime's own, such as resolving
/// host names.
const OTHER_THREADS: usize = 16;

/// The minimum number of threads for asynchronous work. Reads of local files run on these threads
/// too; if a disk no longer answers, all threads except one may hang.
const LEAST_WORKERS: usize = 4;
/// The maximum number of these threads. Each may hold some MiB for a moment.
const MOST_WORKERS: usize = 8;

/// How long calls may drain in a HostProcess container. Windows ends its processes 5 seconds after
/// telling them to stop.
const CONTAINER_DRAIN: Duration = Duration::from_secs(4);

/// Descriptors that are not for connections: endpoints, evicted connections that have not closed,
/// metrics, the log.
const OTHER_DESCRIPTORS: usize = 256;

/// A node to serve.
pub struct Backend {
    /// Its primitives.
    pub os: Arc<dyn Os>,
    /// Its name in announcements, such as "this Windows node".
    pub name: String,
    /// Whether this program runs on the node, so that the program's own files are there.
    pub is_this_node: bool,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A location for endpoints. Nothing is open yet: the daemon opens all endpoints at once, shortly
/// before it serves.
#[derive(Debug)]
pub struct Endpoints<B> {
    /// Where clients find the endpoints.
    pub location: Location,
    /// Opens the endpoint at one address, as an `FnMut(&Address) -> io::Result<impl Listener>`.
    pub bind: B,
    /// Returns what an endpoint serves besides its group-versions and their health.
    pub services: fn(&EndpointSpec) -> Vec<BoxedService>,
}

/// Returns the runtime that the whole daemon runs in.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let workers = std::thread::available_parallelism()
        .map_or(1, NonZero::get)
        .clamp(LEAST_WORKERS, MOST_WORKERS);
    builder
        .enable_all()
        .worker_threads(workers)
        .max_blocking_threads(BLOCKING_THREADS + OTHER_THREADS)
        .build()
}

/// Starts the log, announces the endpoints on `out`, and serves until a signal to stop arrives and
/// the running calls have finished. A second signal stops at once.
pub fn console<L: Listener>(
    flags: &Flags,
    backend: Backend,
    endpoints: Endpoints<impl FnMut(&Address) -> io::Result<L>>,
    out: impl Write,
) -> Result<(), Box<dyn Error>> {
    log::start(&flags.log)?;
    let runtime = runtime()?;
    let served = runtime.block_on(until_signalled(flags, backend, endpoints, out, || Ok(())));
    // Abandon operations still running after the drain.
    runtime.shutdown_background();
    served
}

/// Announces the endpoints on `out`, and serves until a signal to stop, as [`console`] does. Calls
/// `ready` when all endpoints are open.
pub async fn until_signalled<L: Listener>(
    flags: &Flags,
    backend: Backend,
    endpoints: Endpoints<impl FnMut(&Address) -> io::Result<L>>,
    out: impl Write,
    ready: impl FnOnce() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (mut first, mut second) = (StopSignals::listen()?, StopSignals::listen()?);
    tokio::select! {
        served = until(flags, backend, endpoints, out, async { first.next().await }, ready) => served,
        () = async { second.next().await; second.next().await } => {
            Err("stopped by a second signal, without waiting for running calls".into())
        }
    }
}

/// Serves until `stop`, and returns when the running calls have finished. Calls `ready` when all
/// endpoints are open.
pub async fn until<L: Listener>(
    flags: &Flags,
    backend: Backend,
    endpoints: Endpoints<impl FnMut(&Address) -> io::Result<L>>,
    mut out: impl Write,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    warn(flags);
    let Backend {
        os,
        name,
        is_this_node,
    } = backend;
    let system_drive =
        system_drive(env::var("SystemDrive").ok().as_deref()).unwrap_or(flags.node.system_drive);
    let mut config = flags.node.clone();
    config.system_drive = system_drive;
    if is_this_node {
        let LogFlags { file, folder, .. } = &flags.log;
        let files = env::current_exe()
            .ok()
            .into_iter()
            .chain(file.clone())
            .chain(folder.clone());
        config
            .node_paths
            .extend(files.filter_map(|file| drive_of(&absolute(file).ok()?)));
    }
    let executor = Arc::new(Executor::new(Arc::new(Node::start(os, config)?)));
    let server = Server::new(executor, limits(flags));
    let http_listeners = HttpListener::bind_all(&flags.metrics_addresses).await?;
    let Endpoints {
        location,
        bind,
        services,
    } = endpoints;
    let open = Endpoint::open(
        &location,
        EndpointSpec::of(&flags.api_groups, flags.groupless_pipes),
        bind,
    )?;
    let with_services = |endpoint: Endpoint<L>| {
        let more = services(endpoint.spec());
        endpoint.with_services(more)
    };
    let open: Vec<_> = open.into_iter().map(with_services).collect();
    ready()?;
    // Nobody may read it, which is no reason to stop.
    let _ = announce(
        &mut out,
        &name,
        &location,
        &flags.api_groups,
        open.len(),
        &http_listeners,
    );
    let (version, process_id, given) = (VERSION, std::process::id(), flags.shown.command_line());
    tracing::info!(
        endpoints = open.len(),
        system = name,
        version,
        process_id,
        flags = given,
        "serving"
    );
    let pages = Arc::new(Pages::new(
        flags,
        &name,
        &location,
        Arc::clone(server.metrics()),
    ));
    for listener in http_listeners {
        tokio::spawn(listener.serve(Arc::clone(&pages)));
    }
    let drop_reports = tokio::spawn(log::report_dropped());
    let unfinished = server.serve(open, stop).await;
    drop_reports.abort();
    log::report_dropped_at_end();
    let _ = report_end(&mut out, unfinished);
    Ok(())
}

/// Returns the root of the drive that the file is on; `None` if it is on a share.
fn drive_of(file: &Path) -> Option<HostPath> {
    let text = file.to_str()?;
    HostPath::parse(text.strip_prefix(r"\\?\").unwrap_or(text).get(..3)?).ok()
}

/// Reads the environment variable `SystemDrive`, such as `C:`.
fn system_drive(text: Option<&str>) -> Option<char> {
    let mut letters = text?.chars();
    match (letters.next(), letters.next(), letters.next()) {
        (Some(drive), Some(':'), None) if drive.is_ascii_alphabetic() => {
            Some(drive.to_ascii_uppercase())
        }
        _ => None,
    }
}

fn limits(flags: &Flags) -> Limits {
    Limits {
        drain: flags.drain,
        ..Limits::for_connections(connections(flags.max_connections))
    }
}

/// Returns the limit on connections: the value of the flag, if the system allows as many open
/// files.
///
/// A connection over a Unix socket is a descriptor. With fewer descriptors than connections,
/// accepting would fail while idle connections, which could be evicted, hold all of them.
fn connections(wanted: usize) -> usize {
    let limit = raise_open_files(wanted.saturating_add(OTHER_DESCRIPTORS));
    let room = limit.map_or(wanted, |limit| room_within(limit, wanted));
    if room < wanted {
        tracing::warn!(
            "lowered -max-connections from {wanted} to {room}: the limit on open files allows no \
             more"
        );
    }
    room
}

/// Returns how many connections, at most `wanted`, are possible with a limit on descriptors.
fn room_within(limit: usize, wanted: usize) -> usize {
    // If the limit is very low, connections still get a quarter of it.
    limit
        .saturating_sub(OTHER_DESCRIPTORS)
        .max(limit / 4)
        .clamp(1, wanted.max(1))
}

/// Logs the flags without effect or with a limited effect, and the groups that are not served.
fn warn(flags: &Flags) {
    if is_cut_short(is_in_host_process_container(), flags.drain) {
        tracing::warn!(
            "Windows ends a HostProcess container 5 seconds after telling it to stop, so -drain={} \
             is cut short; use -drain={}",
            flags.drain.as_secs(),
            CONTAINER_DRAIN.as_secs()
        );
    }
    if let Some(groups) = excluded(&flags.api_groups) {
        tracing::info!("-api-groups excludes these groups: {groups}");
    }
    for name in &flags.without_effect {
        tracing::info!("flag -{name} has no effect");
    }
    if let Some(first) = flags.rest.first() {
        tracing::warn!(
            "'{first}' is not a flag; ignoring it and everything after it on the command line"
        );
    }
}

/// Returns whether this process runs in a HostProcess container, where every process has this
/// environment variable.
/// <https://kubernetes.io/docs/tasks/configure-pod-container/create-hostprocess-pod/>
pub(crate) fn is_in_host_process_container() -> bool {
    env::var_os("CONTAINER_SANDBOX_MOUNT_POINT").is_some()
}

/// Returns whether Windows may end the daemon before it has drained.
fn is_cut_short(is_in_container: bool, drain: Duration) -> bool {
    is_in_container && drain > CONTAINER_DRAIN
}

fn announce(
    out: &mut impl Write,
    name: &str,
    location: &Location,
    groups: &[Group],
    endpoints: usize,
    http_listeners: &[HttpListener],
) -> io::Result<()> {
    let served = || {
        GROUP_VERSIONS
            .iter()
            .filter(|row| groups.contains(&row.group))
    };
    let rpcs: usize = served().map(|row| row.rpcs.len()).sum();
    writeln!(out, "csi-proxy {VERSION} serves {name}")?;
    writeln!(
        out,
        "  {} group-versions with {rpcs} RPCs, on {endpoints} endpoints",
        served().count()
    )?;
    if let Some(groups) = excluded(groups) {
        writeln!(out, "  excluded by -api-groups: {groups}")?;
    }
    match location {
        Location::Directory(folder) => writeln!(out, "  sockets in {}", folder.display())?,
        Location::NamedPipes => writeln!(out, r"  pipes \\.\pipe\csi-proxy-<group>-<version>")?,
    }
    let addresses = || http_listeners.iter().map(HttpListener::address);
    addresses().try_for_each(|address| writeln!(out, "  metrics at http://{address}/metrics"))?;
    for port in addresses()
        .map(|address| address.port())
        .collect::<BTreeSet<_>>()
    {
        writeln!(
            out,
            "  status at http://127.0.0.1:{port}/, for clients on the node itself"
        )?;
    }
    writeln!(out, "Press Ctrl-C to stop.")?;
    out.flush()
}

/// Returns the names of the groups that are not in `groups`; `None` if there are none.
pub(crate) fn excluded(groups: &[Group]) -> Option<String> {
    let others: Vec<_> = Group::ALL
        .into_iter()
        .filter(|group| !groups.contains(group))
        .map(Group::name)
        .collect();
    (!others.is_empty()).then(|| others.join(", "))
}

fn report_end(out: &mut impl Write, unfinished: Unfinished) -> io::Result<()> {
    if unfinished == Unfinished::default() {
        tracing::info!("stopped");
        return writeln!(out, "Stopped after all calls had finished.");
    }
    let Unfinished { calls, operations } = unfinished;
    tracing::warn!(calls, operations, "stopped before all calls had finished");
    writeln!(
        out,
        "Stopped before all calls had finished; calls aborted: {calls}, operations still running: \
         {operations}."
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::{drive_of, is_cut_short, room_within, system_drive};
    use crate::program::CSI_PROXY;

    #[test]
    fn the_drive_of_windows_is_that_of_the_environment() {
        assert_eq!(
            [Some("C:"), Some("d:")].map(system_drive),
            [Some('C'), Some('D')]
        );
        assert_eq!(
            [None, Some(""), Some("C"), Some(r"C:\"), Some("1:")].map(system_drive),
            [None; 5]
        );
    }

    #[test]
    fn a_file_on_a_drive_belongs_to_the_node_and_one_on_a_share_does_not() {
        let drive = |file: &str| drive_of(Path::new(file)).map(|drive| drive.to_string());
        assert_eq!(
            drive(r"d:\csi-proxy\csi-proxy.exe").as_deref(),
            Some(r"D:\")
        );
        assert_eq!(drive(r"\\?\E:\logs").as_deref(), Some(r"E:\"));
        assert_eq!(
            [r"\\files\one\x", r"\\?\UNC\files\one\x", "C:", "é:\\x"].map(drive),
            [const { None }; 4]
        );
    }

    #[test]
    fn connections_leave_descriptors_for_the_rest() {
        for (limit, wanted, room) in [
            (1 << 20, 1024, 1024),
            (1280, 1024, 1024),
            (1279, 1024, 1023),
            (1024, 1024, 768),
            (256, 1024, 64),
            (100, 10, 10),
            (2, 10, 1),
            (2, 0, 1),
        ] {
            assert_eq!(room_within(limit, wanted), room, "{limit} descriptors");
        }
    }

    #[test]
    fn the_default_time_to_drain_is_too_long_for_a_host_process_container() {
        let default = CSI_PROXY.defaults().drain;
        assert!(is_cut_short(true, default) && !is_cut_short(false, default));
        assert!(!is_cut_short(true, Duration::from_secs(4)));
    }
}
