//! The service, on Windows.

use std::env;
use std::ffi::OsString;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use csi_proxy_os_win32::Windows;
use os::{Os as _, U16String};
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
    let mut child = start_application(&arguments[0].to_string_lossy());
    state(ServiceState::Running);
    let _ = stopped.recv();
    if let Some(child) = &mut child {
        child.kill().expect("the program can be ended");
        child.wait().expect("the program ends");
    }
    state(ServiceState::Stopped);
}

/// Starts the program that the service wraps, if it wraps one.
fn start_application(name: &str) -> Option<Child> {
    let key = format!(r"SYSTEM\CurrentControlSet\Services\{name}\Parameters");
    let value = U16String::from_str("Application");
    let program = Windows::new().registry_text(&U16String::from_str(&key), &value);
    let child = Command::new(program.ok()?.to_string_lossy()).spawn();
    Some(child.expect("the program starts"))
}
