//! The service's entry in the list of services.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use os_win32::event_log;
use windows_service::service::{
    Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceErrorControl, ServiceFailureActions,
    ServiceFailureResetPeriod, ServiceInfo, ServiceStartType, ServiceState, ServiceType,
};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

use super::{ServiceError, code};
use crate::program::CSI_PROXY;
use crate::service::NAME;

const DISPLAY_NAME: &str = "CSI Proxy";
const DESCRIPTION: &str = "Does storage work on this node for CSI drivers that run in containers without privileges.";
/// How long after a failure the service is started again.
const RESTART: Duration = Duration::from_secs(10);
/// After so long without a failure, the next counts as the first.
const RESET: Duration = Duration::from_hours(24);
/// What a stop takes beyond its drain: farewells, and the process's end.
const BEYOND_DRAIN: Duration = Duration::from_secs(15);

/// How long a deleted service may go on to exist because a program, its own as it ends, has it open.
const LINGERING: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

const SERVICE_DOES_NOT_EXIST: i32 = 1060;
const SERVICE_NOT_ACTIVE: i32 = 1062;
const SERVICE_MARKED_FOR_DELETE: i32 = 1072;
const SERVICE_EXISTS: i32 = 1073;

/// Enters this program into the list of services: started with Windows, and again after a failure.
///
/// What the service cannot have of that is told when the rest is done.
pub fn install(flags: &[String], mut out: impl Write) -> Result<(), ServiceError> {
    let service = create(flags)?;
    let lacking = configure(&service, flags);
    if !lacking.is_empty() {
        return Err(ServiceError::new(format!(
            "the service {NAME} is installed without {}",
            lacking.join(", without ")
        )));
    }
    writeln!(out, "The service {NAME} is installed and starts with Windows; 'sc.exe start {NAME}' starts it now.")?;
    Ok(())
}

/// Stops the service, waits for its end, and removes it from the list.
pub fn uninstall(mut out: impl Write) -> Result<(), ServiceError> {
    let service = open(ServiceAccess::STOP | ServiceAccess::QUERY_STATUS | ServiceAccess::DELETE)?;
    match service.stop() {
        Ok(_) => wait_for_end(&service)?,
        Err(error) if code(&error) == Some(SERVICE_NOT_ACTIVE) => {}
        Err(error) => return Err(ServiceError::windows(&format!("the service {NAME} cannot be stopped"), &error)),
    }
    let deleted = service.delete();
    deleted.map_err(|error| ServiceError::windows(&format!("the service {NAME} cannot be deleted"), &error))?;
    drop(service);
    event_log::remove_source(NAME)?;
    if is_gone()? {
        writeln!(out, "The service {NAME} is removed.")?;
    } else {
        writeln!(out, "The service {NAME} is deleted, and gone when the last program closes it ('services.msc'?).")?;
    }
    Ok(())
}

/// The new entry. One that is deleted and still open somewhere is waited for.
fn create(flags: &[String]) -> Result<Service, ServiceError> {
    let manager = manager(ServiceManagerAccess::CREATE_SERVICE)?;
    let information = information(flags)?;
    let give_up = Instant::now() + LINGERING;
    loop {
        let error = match manager.create_service(&information, ServiceAccess::ALL_ACCESS) {
            Ok(service) => return Ok(service),
            Err(error) => error,
        };
        match code(&error) {
            Some(SERVICE_MARKED_FOR_DELETE) if Instant::now() < give_up => thread::sleep(PAUSE),
            Some(SERVICE_MARKED_FOR_DELETE) => {
                return Err(ServiceError::new(format!(
                    "the service {NAME} is deleted, but not gone while a program has it open ('services.msc'?)"
                )));
            }
            Some(SERVICE_EXISTS) => {
                return Err(ServiceError::new(format!(
                    "there is a service {NAME} already; 'sc.exe config {NAME} binPath= ...' lets it start this program"
                )));
            }
            _ => return Err(ServiceError::windows(&format!("the service {NAME} cannot be created"), &error)),
        }
    }
}

/// Whether the deleted service has left the list, for which there is some time.
fn is_gone() -> Result<bool, ServiceError> {
    let manager = manager(ServiceManagerAccess::CONNECT)?;
    let give_up = Instant::now() + LINGERING;
    while Instant::now() < give_up {
        // The handle of a service that can be opened is closed at once: it would keep the service itself.
        match manager.open_service(NAME, ServiceAccess::QUERY_STATUS) {
            Err(error) if code(&error) == Some(SERVICE_DOES_NOT_EXIST) => return Ok(true),
            Ok(_) | Err(_) => thread::sleep(PAUSE),
        }
    }
    Ok(false)
}

/// Tells whether it runs, when it starts, and what it starts.
pub fn status(mut out: impl Write) -> Result<(), ServiceError> {
    let cannot = |error: windows_service::Error| ServiceError::windows(&format!("{NAME} cannot be asked"), &error);
    let service = open(ServiceAccess::QUERY_STATUS | ServiceAccess::QUERY_CONFIG)?;
    let now = service.query_status().map_err(cannot)?;
    let config = service.query_config().map_err(cannot)?;
    let process = now.process_id.map_or_else(String::new, |process| format!(" in process {process}"));
    writeln!(out, "{NAME}: {}{process}, {}", state(now.current_state), start(config.start_type))?;
    writeln!(out, "  {}", config.executable_path.display())?;
    Ok(())
}

/// What a service should have beyond its entry; returns what it could not be given, and why.
fn configure(service: &Service, flags: &[String]) -> Vec<String> {
    let restart = ServiceAction { action_type: ServiceActionType::Restart, delay: RESTART };
    let actions = ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(RESET),
        reboot_msg: None,
        command: None,
        actions: Some(vec![restart; 3]),
    };
    let drain = CSI_PROXY.parse(flags.iter().cloned()).unwrap_or_else(|_| CSI_PROXY.defaults()).drain;
    let lacks = |what: &str, error: windows_service::Error| ServiceError::windows(what, &error).to_string();
    let outcomes = [
        service.update_failure_actions(actions).map_err(|error| lacks("a restart after a failure", error)),
        // An error that ends the service is a failure too, not only a crash.
        service.set_failure_actions_on_non_crash_failures(true).map_err(|error| lacks("its failure flag", error)),
        service.set_description(DESCRIPTION).map_err(|error| lacks("a description", error)),
        service
            .set_preshutdown_timeout(drain + BEYOND_DRAIN)
            .map_err(|error| lacks("time for its drain when Windows shuts down", error)),
        event_log::add_source(NAME).map_err(|error| format!("an event source: {error}")),
    ];
    outcomes.into_iter().filter_map(Result::err).collect()
}

fn information(flags: &[String]) -> Result<ServiceInfo, ServiceError> {
    let mut launch_arguments = vec![OsString::from("-windows-service")];
    launch_arguments.extend(flags.iter().map(OsString::from));
    Ok(ServiceInfo {
        name: NAME.into(),
        display_name: DISPLAY_NAME.into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: env::current_exe()?,
        launch_arguments,
        dependencies: Vec::new(),
        account_name: None,
        account_password: None,
    })
}

fn manager(access: ServiceManagerAccess) -> Result<ServiceManager, ServiceError> {
    let opened = ServiceManager::local_computer(None::<&OsStr>, access | ServiceManagerAccess::CONNECT);
    opened.map_err(|error| ServiceError::windows("the service control manager does not let us", &error))
}

fn open(access: ServiceAccess) -> Result<Service, ServiceError> {
    manager(ServiceManagerAccess::CONNECT)?.open_service(NAME, access).map_err(|error| match code(&error) {
        Some(SERVICE_DOES_NOT_EXIST) => ServiceError::new(format!("there is no service {NAME}")),
        _ => ServiceError::windows(&format!("the service {NAME} cannot be opened"), &error),
    })
}

/// Waits until a service that was told to stop has, or no longer says that it comes nearer.
fn wait_for_end(service: &Service) -> Result<(), ServiceError> {
    let mut checkpoint = 0;
    let mut news = Instant::now();
    loop {
        let cannot = |error: windows_service::Error| ServiceError::windows(&format!("{NAME} cannot be asked"), &error);
        let status = service.query_status().map_err(cannot)?;
        if status.current_state == ServiceState::Stopped {
            return Ok(());
        }
        if status.checkpoint != checkpoint {
            (checkpoint, news) = (status.checkpoint, Instant::now());
        }
        if news.elapsed() > status.wait_hint.max(BEYOND_DRAIN) {
            return Err(ServiceError::new(format!("the service {NAME} does not stop")));
        }
        thread::sleep(PAUSE);
    }
}

fn state(state: ServiceState) -> &'static str {
    match state {
        ServiceState::Stopped => "stopped",
        ServiceState::StartPending => "starting",
        ServiceState::StopPending => "stopping",
        ServiceState::Running => "running",
        ServiceState::ContinuePending | ServiceState::PausePending | ServiceState::Paused => "paused",
    }
}

fn start(start: ServiceStartType) -> &'static str {
    match start {
        ServiceStartType::AutoStart | ServiceStartType::SystemStart | ServiceStartType::BootStart => {
            "starts with Windows"
        }
        ServiceStartType::OnDemand => "starts when told to",
        ServiceStartType::Disabled => "disabled",
    }
}
