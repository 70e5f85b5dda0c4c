//! Serves a simulated node: runs the daemon until a signal to stop, and again after each restart of the node or the daemon.

use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use csi_proxy::flags::Flags;
use csi_proxy::serve::{Backend, Endpoints};
use csi_proxy::{log, serve as daemon};
use faults::{Call, FaultAction, FaultSet, Outcome, Probe, Probed, Trace};
use os_sim::Sim;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc};
use transport::address::Address;
use transport::listener::Listener;

use crate::backend::SimulatedNode;
use crate::control::{self, Control, Restart};
use crate::state_file::StateFile;

/// How long a run of the daemon waits at its end for threads that wait for the simulated Windows. No client gets their
/// answers.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// How often the node is written to its file, if it has changed.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// Why a run of the daemon has ended.
enum End {
    Stopped(Result<(), Box<dyn Error>>),
    Restart(Restart),
    Crashed,
}

/// Serves the node and its control API until a signal to stop. `open` returns the endpoints of each run of the
/// daemon.
pub(crate) fn serve<L: Listener, B: FnMut(&Address) -> io::Result<L>>(
    flags: &Flags,
    node: SimulatedNode,
    mut open: impl FnMut() -> io::Result<Endpoints<B>>,
    mut out: impl Write,
) -> Result<(), Box<dyn Error>> {
    log::start(&flags.log)?;
    let SimulatedNode { sim, name, state } = node;
    let sim = sim.real_time();
    let state = state.map(Arc::new);
    let faults = Arc::new(FaultSet::default());
    let trace = Arc::new(Trace::counting());
    let (restarts, mut requests) = mpsc::channel(1);
    let control = Control {
        sim: sim.clone(),
        faults: Arc::clone(&faults),
        trace: Arc::clone(&trace),
        injected: Mutex::default(),
        restarts,
        state: state.clone(),
    };
    let mut endpoints = open()?;
    let address = crate::control_api::address(&endpoints.location);
    let _control = serve_control(control, || (endpoints.bind)(&address))?;
    if let Some(state) = state.clone() {
        let sim = sim.clone();
        thread::spawn(move || save_repeatedly(&state, &sim));
    }
    tracing::info!(address = address.to_string(), "serving the control API of the simulated node");

    let mut starting: Option<Restart> = None;
    loop {
        let crashed = Arc::new(Notify::new());
        let ended = Arc::new(OnceLock::new());
        let probe = RunProbe {
            faults: Arc::clone(&faults),
            trace: Arc::clone(&trace),
            crashed: Arc::clone(&crashed),
            ended: Arc::clone(&ended),
            main: thread::current().id(),
        };
        let process = Arc::new(Probed::new(sim.process(), probe));
        let backend = Backend { os: Arc::clone(&process) as _, name: name.clone(), is_this_node: false };
        let runtime = daemon::runtime()?;
        let ready = || {
            if let Some(restart) = starting.take() {
                restart.done();
            }
            Ok(())
        };
        let end = runtime.block_on(async {
            tokio::select! {
                served = daemon::until_signalled(flags, backend, endpoints, &mut out, ready) => End::Stopped(served),
                Some(restart) = requests.recv() => End::Restart(restart),
                () = crashed.notified() => End::Crashed,
            }
        });
        match end {
            End::Stopped(served) => {
                // Abandon operations still running after the drain.
                runtime.shutdown_background();
                if let Some(state) = state {
                    state.save(&sim)?;
                }
                return served;
            }
            End::Restart(restart) => {
                end_run(runtime, &process, &ended);
                restart_node(&sim, &restart);
                starting = Some(restart);
            }
            End::Crashed => {
                end_run(runtime, &process, &ended);
                tracing::warn!("an injected fault made the daemon crash; it starts again");
            }
        }
        endpoints = open()?;
    }
}

/// Writes the node to its file after changes, as long as the program runs.
fn save_repeatedly(state: &StateFile, sim: &Sim) {
    let mut has_failed = false;
    loop {
        let saved = state.save(sim);
        if let Err(error) = &saved
            && !has_failed
        {
            tracing::warn!(%error, file = %state.path().display(), "cannot write the state of the simulated node");
        }
        has_failed = saved.is_err();
        thread::sleep(SAVE_INTERVAL);
    }
}

/// Serves the control API until the runtime is dropped.
fn serve_control<L: Listener>(control: Control, bind: impl FnOnce() -> io::Result<L>) -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread().enable_all().worker_threads(1).thread_name("sim-control").build()?;
    let listener = {
        let _runtime = runtime.enter();
        bind()?
    };
    runtime.spawn(control::serve(control, listener));
    Ok(runtime)
}

/// Ends the connections and sockets, then the process on the node: a process that has ended answers no client.
fn end_run(runtime: Runtime, process: &Probed, ended: &OnceLock<()>) {
    runtime.shutdown_timeout(LAST_CALLS);
    process.kill();
    ended.get_or_init(|| ());
}

fn restart_node(sim: &Sim, restart: &Restart) {
    if restart.daemon_only {
        tracing::info!("restarting the daemon");
    } else {
        tracing::info!("restarting the simulated node");
        sim.reboot();
    }
}

/// Counts the Windows calls of a run of the daemon, and disturbs them.
struct RunProbe {
    faults: Arc<FaultSet>,
    trace: Arc<Trace>,
    crashed: Arc<Notify>,
    /// Set when the run has ended.
    ended: Arc<OnceLock<()>>,
    /// The thread that ends the run.
    main: ThreadId,
}

impl RunProbe {
    fn report(&self, action: FaultAction) -> FaultAction {
        if action == FaultAction::Die {
            self.crashed.notify_one();
            // The call returns only after no client can get its answer.
            if thread::current().id() != self.main {
                self.ended.wait();
            }
        }
        action
    }
}

impl Probe for RunProbe {
    fn before(&self, call: &Call) -> FaultAction {
        self.report(self.faults.before(call))
    }

    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        self.trace.after(call, outcome);
        self.report(self.faults.after(call, outcome))
    }
}
