//! The service, on Windows.

use std::env;
use std::ffi::OsString;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult};
use windows_service::{define_windows_service, service_dispatcher};

define_windows_service!(entry, idle);

pub(crate) fn run() {
    let mut arguments = env::args().skip(1);
    let name = arguments.next().expect("the service's name");
    let delay = arguments
        .next()
        .map_or(0, |delay| delay.parse().expect("milliseconds"));
    thread::sleep(Duration::from_millis(delay));
    service_dispatcher::start(name, entry).expect("started by the service control manager");
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro passes it by value"
)]
fn idle(arguments: Vec<OsString>) {
    let (stop, stopped) = mpsc::channel();
    let status = service_control_handler::register(&arguments[0], move |control| match control {
        ServiceControl::Stop => {
            let _ = stop.send(());
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    })
    .expect("a service registers once");
    let state = |current_state| {
        let status = status.set_service_status(ServiceStatus {
            service_type: ServiceType::OWN_PROCESS,
            current_state,
            controls_accepted: ServiceControlAccept::STOP,
            exit_code: ServiceExitCode::Win32(0),
            checkpoint: 0,
            wait_hint: Duration::ZERO,
            process_id: None,
        });
        status.expect("the service control manager accepts the status");
    };
    state(ServiceState::Running);
    let _ = stopped.recv();
    state(ServiceState::Stopped);
}
