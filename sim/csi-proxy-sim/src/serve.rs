//! Serves a simulated node: runs the daemon until a signal to stop, and again after each restart of
//! the node or the daemon.

use std::error::Error;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use csi_proxy::serve::{Backend, Endpoints};
use csi_proxy::{log, serve as daemon};
use faults::{Call, FaultAction, Outcome, Probe, Probed};
use os_sim::Sim;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic_health::ServingStatus;
use transport::address::Address;
use transport::listener::Listener;

use crate::backend::SimulatedNode;
use crate::control::{self, Control, Restart};
use crate::flags::SimFlags;
use crate::layer::{self, Connections, Layer, Layered, Recorder};

/// How long a run of the daemon waits at its end for threads that wait for the simulated Windows.
/// No client gets their answers.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// How long the layer may take to pass on the last answers when the daemon has stopped.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

/// How often the node is written to its file, if it has changed.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// Why a run of the daemon has ended.
enum End {
    Stopped(Result<(), Box<dyn Error>>),
    Restart(Restart),
    Crashed,
}

/// Serves the node and its control API until a signal to stop. `open` returns the endpoints of each
/// run of the daemon.
pub(crate) fn serve<L: Listener, B: FnMut(&Address) -> io::Result<L>>(
    flags: &SimFlags,
    node: SimulatedNode,
    mut open: impl FnMut() -> io::Result<Endpoints<B>>,
    mut out: impl Write,
) -> Result<(), Box<dyn Error>> {
    let SimFlags {
        go_version,
        listen,
        versions,
        record,
        is_direct,
        exits_with_stdin,
        ..
    } = flags;
    check_combinations(flags)?;
    let mut daemon_flags = flags.daemon.clone();
    // The Go program gives a second user the access of the first.
    daemon_flags.node.share_smb_mappings |= go_version.is_some();
    // It leaves a partitioned disk offline or read-only.
    daemon_flags.node.leave_partitioned_disks |= go_version.is_some();
    log::start(&daemon_flags.log)?;
    let SimulatedNode { sim, name, state } = node;
    let (restarts, mut requests) = mpsc::channel(1);
    let control = Arc::new(Control::new(sim.real_time(), state, restarts));
    let recorder = record.as_deref().map(Recorder::create).transpose();
    let recorder = recorder.map_err(|error| format!("cannot record calls: {error}"))?;
    // A state that cannot be written is an error now, not at the end.
    control.save()?;
    let layer = Layer {
        control: Arc::clone(&control),
        go_version: *go_version,
        recorder,
    };
    let layer = (!is_direct).then(|| Arc::new(layer));
    let layered = |address: &Address, listener, connections: &Connections| Layered {
        listener,
        address: address.clone(),
        layer: layer.clone(),
        connections: connections.clone(),
    };
    let is_open = |address: &Address| {
        versions.is_empty() || versions.iter().any(|row| row.pipe() == address.name())
    };
    let mut endpoints = open()?;
    let address = crate::control_api::address(&endpoints.location);
    let bind = || {
        Ok(layered(
            &address,
            Some((endpoints.bind)(&address)?),
            &Connections::default(),
        ))
    };
    let control_runtime = serve_control(Arc::clone(&control), bind)?;
    let set_health = |status| {
        let set = control.health.set_service_status("", status);
        // Also called on a thread of the daemon's runtime.
        tokio::task::block_in_place(|| control_runtime.block_on(set));
    };
    if let Some(listen) = listen {
        let listener = control_runtime.block_on(TcpListener::bind(listen));
        let listener = listener.map_err(|error| format!("cannot listen at {listen}: {error}"))?;
        // Nobody may read it.
        let _ = writeln!(
            out,
            "all endpoints and the control API at {}",
            listener.local_addr()?
        );
        control_runtime.spawn(layer::serve_tcp(listener, endpoints.location.clone()));
    }
    if !versions.is_empty() {
        let names: Vec<_> = versions
            .iter()
            .map(|row| format!("{}/{}", row.group.name(), row.version))
            .collect();
        let _ = writeln!(out, "-api-versions opens only {}", names.join(", "));
    }
    if control.state.is_some() {
        let control = Arc::clone(&control);
        thread::spawn(move || save_repeatedly(&control));
    }
    tracing::info!(
        address = address.to_string(),
        "serving the control API of the simulated node"
    );

    let mut input_end = input_end(*exits_with_stdin);
    let mut starting = Vec::new();
    loop {
        // An earlier run may have ended while it crashed.
        pin!(control.crash.notified()).enable();
        let run = Arc::new(Run {
            control: Arc::clone(&control),
            ended: OnceLock::new(),
            main: thread::current().id(),
        });
        let process = Arc::new(Probed::new(control.sim.process(), Arc::clone(&run)));
        let backend = Backend {
            os: Arc::clone(&process) as _,
            name: name.clone(),
            is_this_node: false,
        };
        let runtime = daemon::runtime()?;
        let Endpoints {
            location,
            mut bind,
            services,
        } = endpoints;
        let connections = Connections::default();
        let bind = |address: &Address| {
            let listener = is_open(address).then(|| bind(address)).transpose()?;
            Ok(layered(address, listener, &connections))
        };
        let layered_endpoints = Endpoints {
            location,
            bind,
            services,
        };
        let ready = || {
            set_health(ServingStatus::Serving);
            starting.drain(..).for_each(Restart::done);
            Ok(())
        };
        let end = runtime.block_on(async {
            let end = tokio::select! {
                served = daemon::until_signalled(&daemon_flags, backend, layered_endpoints, &mut out, ready) => {
                    End::Stopped(served)
                }
                Some(()) = input_end.recv() => End::Stopped(Ok(())),
                Some(restart) = requests.recv() => End::Restart(restart),
                () = control.crash.notified() => End::Crashed,
            };
            if !matches!(end, End::Stopped(_)) {
                connections.cut();
            }
            // A client that does not read its answer does not keep the program.
            let _ = timeout(LAST_ANSWERS, connections.ended()).await;
            end
        });
        match end {
            End::Stopped(served) => {
                // Abandon operations still running after the drain.
                runtime.shutdown_background();
                control.save()?;
                return served;
            }
            End::Restart(restart) => {
                set_health(ServingStatus::NotServing);
                end_run(runtime, &process, &run);
                restart_node(&control.sim, &restart, flags.is_fast);
                starting.push(restart);
            }
            End::Crashed => {
                set_health(ServingStatus::NotServing);
                end_run(runtime, &process, &run);
                tracing::warn!("an injected fault made the daemon crash; it starts again");
            }
        }
        endpoints = open()?;
    }
}

/// Returns what receives a message when the standard input ends, if that `is_awaited`.
fn input_end(is_awaited: bool) -> mpsc::Receiver<()> {
    let (end, receiver) = mpsc::channel(1);
    if is_awaited {
        thread::spawn(move || {
            // An error ends the input too.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            let _ = end.blocking_send(());
        });
    }
    receiver
}

/// Refuses flags of which one would have no effect beside the other.
fn check_combinations(flags: &SimFlags) -> Result<(), &'static str> {
    if flags.is_direct && (flags.record.is_some() || flags.go_version.is_some()) {
        return Err(
            "-direct cannot be combined with -record or -like-go: connections then bypass both",
        );
    }
    if !flags.versions.is_empty() && flags.daemon.groupless_pipes {
        return Err(
            "-api-versions cannot be combined with -groupless-pipes, which have all groups",
        );
    }
    Ok(())
}

/// Writes the node to its file after changes, as long as the program runs.
fn save_repeatedly(control: &Control) {
    let mut has_failed = false;
    loop {
        let saved = control.save();
        if let Err(error) = &saved
            && !has_failed
        {
            tracing::warn!(%error, "cannot save the simulated node");
        }
        has_failed = saved.is_err();
        thread::sleep(SAVE_INTERVAL);
    }
}

/// Serves the control API until the runtime is dropped.
fn serve_control<L: Listener>(
    control: Arc<Control>,
    bind: impl FnOnce() -> io::Result<L>,
) -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .worker_threads(1)
        .thread_name("sim-control")
        .build()?;
    // Before a client can ask: a new reporter says SERVING.
    runtime.block_on((control.health).set_service_status("", ServingStatus::NotServing));
    let listener = {
        let _runtime = runtime.enter();
        bind()?
    };
    runtime.spawn(control::serve(control, listener));
    Ok(runtime)
}

/// Ends the connections and sockets, then the process on the node: a process that has ended answers
/// no client.
fn end_run(runtime: Runtime, process: &Probed, run: &Run) {
    runtime.shutdown_timeout(LAST_CALLS);
    process.kill();
    run.control.run_has_ended();
    run.ended.get_or_init(|| ());
}

fn restart_node(sim: &Sim, restart: &Restart, is_fast: bool) {
    if let Some(node) = &restart.node {
        tracing::info!("replacing the simulated node");
        let node = node.clone();
        sim.replace(&if is_fast { node.fast() } else { node });
    } else if restart.daemon_only {
        tracing::info!("restarting the daemon");
    } else {
        tracing::info!("restarting the simulated node");
        match restart.renumber {
            None => sim.reboot(),
            Some(seed) => sim.reboot_with_other_disk_numbers(seed),
        }
    }
}

/// A run of the daemon, whose Windows calls are counted and disturbed.
struct Run {
    control: Arc<Control>,
    /// Set when the run has ended.
    ended: OnceLock<()>,
    /// The thread that ends the run.
    main: ThreadId,
}

impl Run {
    fn faults(&self) -> Vec<Arc<dyn Probe>> {
        self.control
            .faults_of(false)
            .into_iter()
            .map(|injected| injected as _)
            .collect()
    }

    fn report(&self, action: FaultAction) -> FaultAction {
        if action == FaultAction::Die {
            self.control.crash.notify_one();
            // The call returns only after no client can get its answer.
            if thread::current().id() != self.main {
                self.ended.wait();
            }
        }
        action
    }
}

impl Probe for Run {
    fn before(&self, call: &Call) -> FaultAction {
        self.report(self.faults().before(call))
    }

    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        self.control.trace.after(call, outcome);
        self.report(self.faults().after(call, outcome))
    }
}
