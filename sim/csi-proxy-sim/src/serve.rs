//! Serves a simulated node: runs the daemon until a signal to stop, and again after each restart of the node or the daemon.

use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use csi_proxy::flags::Flags;
use csi_proxy::serve::{Backend, Endpoints};
use csi_proxy::{log, serve as daemon};
use faults::{Call, FaultAction, Outcome, Probe, Probed};
use os_sim::Sim;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc};
use transport::address::Address;
use transport::listener::Listener;

use crate::backend::SimulatedNode;
use crate::control::{self, Control, Restart};

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
    let (restarts, mut requests) = mpsc::channel(1);
    let control = Arc::new(Control::new(sim.real_time(), state, restarts));
    let mut endpoints = open()?;
    let address = crate::control_api::address(&endpoints.location);
    let _control = serve_control(Arc::clone(&control), || (endpoints.bind)(&address))?;
    if control.state.is_some() {
        let control = Arc::clone(&control);
        thread::spawn(move || save_repeatedly(&control));
    }
    tracing::info!(address = address.to_string(), "serving the control API of the simulated node");

    let mut starting: Option<Restart> = None;
    loop {
        let run = Arc::new(Run {
            control: Arc::clone(&control),
            crashed: Notify::new(),
            ended: OnceLock::new(),
            main: thread::current().id(),
        });
        let process = Arc::new(Probed::new(control.sim.process(), Arc::clone(&run)));
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
                () = run.crashed.notified() => End::Crashed,
            }
        });
        match end {
            End::Stopped(served) => {
                // Abandon operations still running after the drain.
                runtime.shutdown_background();
                control.save()?;
                return served;
            }
            End::Restart(restart) => {
                end_run(runtime, &process, &run);
                restart_node(&control.sim, &restart);
                starting = Some(restart);
            }
            End::Crashed => {
                end_run(runtime, &process, &run);
                tracing::warn!("an injected fault made the daemon crash; it starts again");
            }
        }
        endpoints = open()?;
    }
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
fn serve_control<L: Listener>(control: Arc<Control>, bind: impl FnOnce() -> io::Result<L>) -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread().enable_all().worker_threads(1).thread_name("sim-control").build()?;
    let listener = {
        let _runtime = runtime.enter();
        bind()?
    };
    runtime.spawn(control::serve(control, listener));
    Ok(runtime)
}

/// Ends the connections and sockets, then the process on the node: a process that has ended answers no client.
fn end_run(runtime: Runtime, process: &Probed, run: &Run) {
    runtime.shutdown_timeout(LAST_CALLS);
    process.kill();
    run.ended.get_or_init(|| ());
}

fn restart_node(sim: &Sim, restart: &Restart) {
    if restart.daemon_only {
        tracing::info!("restarting the daemon");
    } else {
        tracing::info!("restarting the simulated node");
        sim.reboot();
    }
}

/// A run of the daemon, whose Windows calls are counted and disturbed.
struct Run {
    control: Arc<Control>,
    crashed: Notify,
    /// Set when the run has ended.
    ended: OnceLock<()>,
    /// The thread that ends the run.
    main: ThreadId,
}

impl Run {
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

impl Probe for Run {
    fn before(&self, call: &Call) -> FaultAction {
        self.report(self.control.faults.before(call))
    }

    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        self.control.trace.after(call, outcome);
        self.report(self.control.faults.after(call, outcome))
    }
}
