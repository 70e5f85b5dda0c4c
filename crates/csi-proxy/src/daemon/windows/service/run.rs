//! Running as the service, from its start to its stop.
//!
//! The service reports each state to the service control manager as it reaches it, and its progress
//! every second while calls drain. After an error that ends the daemon it reports nothing: Windows
//! treats a process that ends without having reported STOPPED as failed, and restarts it if the
//! service is configured that way.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::process;
use std::sync::OnceLock;
use std::time::Duration;

use os_win32::event_log;
use tokio::sync::Notify;
use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{
    self, ServiceControlHandlerResult, ServiceStatusHandle,
};
use windows_service::{define_windows_service, service_dispatcher};

use super::super::{backend, named_pipes};
use super::{REPORT_INTERVAL, WAIT_HINT, code, failed, folders};
use crate::flags::Flags;
use crate::service::{NAME, report_until_stopped};
use crate::{log, serve};

/// The service control manager did not start this process.
const FAILED_SERVICE_CONTROLLER_CONNECT: i32 = 1063;

/// The flags for the entry point, and the signal of the handler of controls. Windows calls both
/// functions without a context.
static FLAGS: OnceLock<Flags> = OnceLock::new();
static STOP: Notify = Notify::const_new();

define_windows_service!(entry, main);

/// Serves as the service, and returns when it has stopped. After an error that ends the daemon,
/// ends the process.
pub(in super::super) fn run(flags: Flags) -> Result<(), Box<dyn Error>> {
    // The program runs the service once.
    let _ = FLAGS.set(flags);
    service_dispatcher::start(NAME, entry).map_err(|error| {
        if code(&error) == Some(FAILED_SERVICE_CONTROLLER_CONNECT) {
            "only the service control manager can start csi-proxy with -windows-service; to serve \
             in this console, leave the flag out"
                .into()
        } else {
            failed("cannot connect to the service control manager", &error)
        }
    })
}

fn main(_arguments: Vec<OsString>) {
    let Some(flags) = FLAGS.get() else { return };
    if let Err(error) = serve_until_stopped(flags) {
        tracing::error!(%error, "the service failed");
        // A service has no standard error, and opening the log may be what failed.
        let _ = event_log::error(NAME, &format!("csi-proxy failed: {error}"));
        process::exit(1);
    }
}

fn serve_until_stopped(flags: &Flags) -> Result<(), Box<dyn Error>> {
    let reporter = StatusReporter::register()?;
    reporter.starting()?;
    folders::create_for_log(&flags.log)?;
    log::start(&flags.log)?;
    let runtime = serve::runtime()?;
    let served = runtime.block_on(serve_and_report(flags, &reporter));
    // Abandon operations still running after the drain.
    runtime.shutdown_background();
    served?;
    reporter.stopped()?;
    Ok(())
}

async fn serve_and_report(flags: &Flags, reporter: &StatusReporter) -> Result<(), Box<dyn Error>> {
    let stopping = Notify::new();
    let stop = async {
        STOP.notified().await;
        stopping.notify_one();
    };
    let ready = || reporter.running();
    let mut serving = pin!(serve::until(
        flags,
        backend(),
        named_pipes(flags)?,
        io::sink(),
        stop,
        ready
    ));
    tokio::select! {
        served = serving.as_mut() => return served,
        () = stopping.notified() => tracing::info!("stopping: waiting for running calls"),
    }
    report_until_stopped(serving, REPORT_INTERVAL, |checkpoint| {
        reporter.stopping(checkpoint)
    })
    .await
}

/// Handles a control from the service control manager.
///
/// This is a function, not a closure, because `windows-service` frees the handler's context at the
/// first stop, and more controls may arrive while calls drain. A function has no context to free.
fn on_control(control: ServiceControl) -> ServiceControlHandlerResult {
    match control {
        ServiceControl::Stop | ServiceControl::Shutdown => {
            STOP.notify_one();
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::ParamChange => {
            tracing::info!("changed flags take effect when the service is started again");
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    }
}

/// Reports the states of the service to the service control manager.
struct StatusReporter(ServiceStatusHandle);

impl StatusReporter {
    fn register() -> Result<Self, Box<dyn Error>> {
        let registered = service_control_handler::register(NAME, on_control);
        registered
            .map(Self)
            .map_err(|error| failed("cannot register the handler of the service", &error))
    }

    fn starting(&self) -> Result<(), Box<dyn Error>> {
        self.report(ServiceState::StartPending, ServiceControlAccept::empty(), 1)
    }

    fn running(&self) -> Result<(), Box<dyn Error>> {
        // Not pre-shutdown, which comes first: kubelet stops pods and waits for drivers to unmount
        // their volumes then.
        let accepted = ServiceControlAccept::STOP
            | ServiceControlAccept::SHUTDOWN
            | ServiceControlAccept::PARAM_CHANGE;
        self.report(ServiceState::Running, accepted, 0)
    }

    fn stopping(&self, checkpoint: u32) -> Result<(), Box<dyn Error>> {
        self.report(
            ServiceState::StopPending,
            ServiceControlAccept::empty(),
            checkpoint,
        )
    }

    fn stopped(&self) -> Result<(), Box<dyn Error>> {
        self.report(ServiceState::Stopped, ServiceControlAccept::empty(), 0)
    }

    /// Reports a state. `checkpoint` is 0 unless the service is on the way to another state.
    fn report(
        &self,
        state: ServiceState,
        accepted: ServiceControlAccept,
        checkpoint: u32,
    ) -> Result<(), Box<dyn Error>> {
        let status = ServiceStatus {
            service_type: ServiceType::OWN_PROCESS,
            current_state: state,
            controls_accepted: accepted,
            exit_code: ServiceExitCode::NO_ERROR,
            checkpoint,
            wait_hint: if checkpoint == 0 {
                Duration::ZERO
            } else {
                WAIT_HINT
            },
            process_id: None,
        };
        let reported = self.0.set_service_status(status);
        reported.map_err(|error| failed(&format!("cannot report the state {state:?}"), &error))
    }
}
