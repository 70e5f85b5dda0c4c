//! The life of the service, from its start to its end.
//!
//! The service control manager is told each state as it is reached; while calls drain, it is told every second that
//! the end is nearer. After an error that ends the daemon it is told nothing: a process that is gone without having
//! reported STOPPED has failed, and is started again if the installation says so.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use os_win32::event_log;
use tokio::sync::Notify;
use tokio::time::timeout;
use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle};
use windows_service::{define_windows_service, service_dispatcher};

use super::{ServiceError, code};
use crate::flags::Flags;
use crate::service::NAME;
use crate::{backend, endpoints, log, serve};

/// How often the service control manager hears of a drain.
const BEAT: Duration = Duration::from_secs(1);
/// When it may take a state that does not change for a hang.
const HINT: Duration = Duration::from_secs(10);

/// This program was not started by the service control manager.
const FAILED_SERVICE_CONTROLLER_CONNECT: i32 = 1063;

/// What the service is to do. Windows calls its entry without any context, as it does the handler of controls.
static FLAGS: Mutex<Option<Flags>> = Mutex::new(None);
static STOP: Notify = Notify::const_new();

define_windows_service!(entry, main);

/// Serves as the service. Returns when it was stopped; does not return after an error.
pub fn run(flags: Flags) -> Result<(), ServiceError> {
    *FLAGS.lock().unwrap_or_else(PoisonError::into_inner) = Some(flags);
    service_dispatcher::start(NAME, entry).map_err(|error| {
        if code(&error) == Some(FAILED_SERVICE_CONTROLLER_CONNECT) {
            ServiceError::new("-windows-service is for the service control manager; without it csi-proxy serves here")
        } else {
            ServiceError::windows("the service control manager does not answer", &error)
        }
    })
}

fn main(_arguments: Vec<OsString>) {
    let flags = FLAGS.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(flags) = flags else { return };
    if let Err(error) = live(&flags) {
        tracing::error!(%error, "the service ends");
        // Nobody sees the standard error of a service, and the log may be what failed.
        let _ = event_log::error(NAME, &format!("csi-proxy ends: {error}"));
        process::exit(1);
    }
}

fn live(flags: &Flags) -> Result<(), Box<dyn Error>> {
    let manager = Manager::register()?;
    manager.starting()?;
    log::start(&flags.log)?;
    let runtime = serve::runtime()?;
    let served = runtime.block_on(serve_and_report(flags, &manager));
    // What has not ended by now is not waited for.
    runtime.shutdown_background();
    served?;
    manager.stopped()?;
    Ok(())
}

async fn serve_and_report(flags: &Flags, manager: &Manager) -> Result<(), Box<dyn Error>> {
    let told = Notify::new();
    let stop = async {
        STOP.notified().await;
        told.notify_one();
    };
    let ready = || manager.running().map_err(Into::into);
    let mut serving =
        pin!(serve::until(flags, backend::windows()?, endpoints::named_pipes(flags)?, io::sink(), stop, ready));
    tokio::select! {
        served = serving.as_mut() => return served,
        () = told.notified() => tracing::info!("told to stop"),
    }
    let mut checkpoint = 0;
    loop {
        checkpoint += 1;
        manager.stopping(checkpoint)?;
        if let Ok(served) = timeout(BEAT, serving.as_mut()).await {
            return served;
        }
    }
}

/// Answers what the service control manager sends.
///
/// A function and not a closure: `windows-service` frees the handler's context at the first stop, and more controls may
/// come while calls drain. A function has no context to free.
fn on_control(control: ServiceControl) -> ServiceControlHandlerResult {
    match control {
        ServiceControl::Stop | ServiceControl::Shutdown | ServiceControl::Preshutdown => {
            STOP.notify_one();
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::ParamChange => {
            tracing::info!("the flags are read at the start: changed ones hold from the next start on");
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    }
}

/// The service control manager, to whom states are reported.
struct Manager(ServiceStatusHandle);

impl Manager {
    fn register() -> Result<Self, ServiceError> {
        let registered = service_control_handler::register(NAME, on_control);
        registered.map(Self).map_err(|error| ServiceError::windows("the service cannot be registered", &error))
    }

    fn starting(&self) -> Result<(), ServiceError> {
        self.report(ServiceState::StartPending, ServiceControlAccept::empty(), 1)
    }

    fn running(&self) -> Result<(), ServiceError> {
        // Pre-shutdown comes before all services are shut down at once, so that mounts still work while calls drain.
        let accepted =
            ServiceControlAccept::STOP | ServiceControlAccept::PRESHUTDOWN | ServiceControlAccept::PARAM_CHANGE;
        self.report(ServiceState::Running, accepted, 0)
    }

    fn stopping(&self, checkpoint: u32) -> Result<(), ServiceError> {
        self.report(ServiceState::StopPending, ServiceControlAccept::empty(), checkpoint)
    }

    fn stopped(&self) -> Result<(), ServiceError> {
        self.report(ServiceState::Stopped, ServiceControlAccept::empty(), 0)
    }

    /// `checkpoint` is 0 in a state that stays.
    fn report(&self, state: ServiceState, accepted: ServiceControlAccept, checkpoint: u32) -> Result<(), ServiceError> {
        let status = ServiceStatus {
            service_type: ServiceType::OWN_PROCESS,
            current_state: state,
            controls_accepted: accepted,
            exit_code: ServiceExitCode::NO_ERROR,
            checkpoint,
            wait_hint: if checkpoint == 0 { Duration::ZERO } else { HINT },
            process_id: None,
        };
        let reported = self.0.set_service_status(status);
        reported.map_err(|error| ServiceError::windows(&format!("the state {state:?} cannot be reported"), &error))
    }
}
