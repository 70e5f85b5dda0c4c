//! The server of the control API, `sim/simtest/proto/sim_control.proto`.

mod container_files;
mod fault_request;
mod injected;
mod simulation;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::control_api::{ContainerFilesServer, DESCRIPTORS, SimulationServer};
use faults::Trace;
use header_filter::HeaderFilter;
use os_sim::Sim;
use server::{BoxedService, ResponseStream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc, oneshot};
use tonic::Status;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use transport::listener::Listener;

use container_files::Files;

pub(crate) use fault_request::status;
pub(crate) use injected::Injected;

use crate::reflection;
use crate::state_file::StateFile;
use crate::tonic_service;

/// How long a client may take for the headers of a request.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(20);

/// How long to wait after a connection could not be accepted, since the next attempt would fail
/// likewise.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The running node, and what can be done to it.
pub(crate) struct Control {
    pub(crate) sim: Sim,
    /// The file that keeps the node.
    pub(crate) state: Option<StateFile>,
    pub(crate) trace: Arc<Trace>,
    faults: Mutex<Faults>,
    /// The number of runs of the daemon that have ended.
    ended_runs: Arc<AtomicU64>,
    /// Ends the run of the daemon as a crash does.
    pub(crate) crash: Notify,
    /// Whether all endpoints for drivers are open, as the health of the service "".
    pub(crate) health: HealthReporter,
    restarts: mpsc::Sender<Restart>,
}

/// The faults by number. If several faults disturb the same call, the faults with lower numbers are
/// the outer ones.
#[derive(Default)]
struct Faults {
    last: u64,
    /// Not locked while the condition of a fault runs, which may call the node.
    by_number: BTreeMap<u64, Arc<Injected>>,
}

impl Control {
    /// Controls a node whose daemon carries out the `restarts`.
    pub(crate) fn new(sim: Sim, state: Option<StateFile>, restarts: mpsc::Sender<Restart>) -> Self {
        let (trace, ended_runs) = (Arc::new(Trace::counting()), Arc::default());
        let (crash, health) = (Notify::new(), HealthReporter::new());
        Self {
            sim,
            state,
            trace,
            faults: Mutex::default(),
            ended_runs,
            crash,
            health,
            restarts,
        }
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        os::lock(&self.faults)
    }

    /// Returns the faults of RPCs, or those of primitives.
    pub(crate) fn faults_of(&self, rpcs: bool) -> Vec<Arc<Injected>> {
        let faults = self.faults();
        faults
            .by_number
            .values()
            .filter(|fault| fault.request.rpc.is_empty() != rpcs)
            .cloned()
            .collect()
    }

    /// Notes that a run of the daemon has ended, which releases its calls.
    pub(crate) fn run_has_ended(&self) {
        self.ended_runs.fetch_add(1, Ordering::SeqCst);
    }

    /// Writes the node to its file, if it has one.
    pub(crate) fn save(&self) -> Result<(), String> {
        self.state
            .as_ref()
            .map_or(Ok(()), |state| state.save(&self.sim))
    }
}

/// A request to restart the node or the daemon.
#[derive(Debug)]
pub(crate) struct Restart {
    /// Whether only the daemon restarts.
    pub(crate) daemon_only: bool,
    /// Chooses other numbers for the disks.
    pub(crate) renumber: Option<u64>,
    /// The node that takes the place of the present one.
    pub(crate) node: Option<Sim>,
    done: oneshot::Sender<()>,
}

impl Restart {
    /// Answers the request: the daemon serves again.
    pub(crate) fn done(self) {
        // The client may have gone.
        let _ = self.done.send(());
    }
}

/// Answers the requests of a connection, each with the service that its path names.
async fn answer<S>(services: &[BoxedService], stream: S) -> Result<(), h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = h2::server::Builder::new()
        .handshake(HeaderFilter::new(stream, HEADER_TIMEOUT))
        .await?;
    while let Some(accepted) = connection.accept().await {
        let (request, response) = accepted?;
        let mut response = ResponseStream::new(response);
        let name = request.uri().path().split('/').nth(1).unwrap_or_default();
        if let Some(service) = services.iter().find(|service| service.name() == name) {
            tokio::spawn(service.answer(request, response));
        } else {
            let refused = Status::unimplemented(format!("the control API has no service {name}"));
            response.send_headers(refused.into_http::<()>().into_parts().0.headers, true);
        }
    }
    Ok(())
}

/// Answers the clients of `listener`.
pub(crate) async fn serve<L: Listener>(control: Arc<Control>, mut listener: L) {
    let (sim, health) = (control.sim.clone(), control.health.clone());
    let files = tonic_service::boxed(|| ContainerFilesServer::new(Files(sim)));
    let health =
        tonic_service::boxed(|| HealthServer::new(HealthService::from_health_reporter(health)));
    let mut services = vec![
        tonic_service::boxed(|| SimulationServer::from_arc(control)),
        files,
        health,
    ];
    services.extend(reflection::of(vec![DESCRIPTORS]));
    let services: Arc<[BoxedService]> = services.into();
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client of the control API");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let services = Arc::clone(&services);
        tokio::spawn(async move {
            if let Err(error) = answer(&services, stream).await {
                tracing::debug!(%error, "a connection to the control API ended with an error");
            }
        });
    }
}
