//! Installing and uninstalling the service, and its state.

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use os_win32::event_log;
use windows_service::service::{
    Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceConfig, ServiceErrorControl,
    ServiceFailureActions, ServiceFailureResetPeriod, ServiceInfo, ServiceStartType, ServiceState,
    ServiceType,
};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

use super::registered::found;
use super::{FAILURE_RESET, RESTART_DELAY, STOP_MARGIN, code, failed, folders};
use crate::doctor::program_and_flags;
use crate::program::CSI_PROXY;
use crate::serve::is_in_host_process_container;
use crate::service::find::Found;
use crate::service::{Installation, NAME};

const DISPLAY_NAME: &str = "CSI Proxy";
const DESCRIPTION: &str =
    "Performs storage operations on this node for CSI drivers in unprivileged containers.";

/// How long to wait until Windows has removed a deleted service. Windows removes it when the last
/// program that has it open, such as the service's own process, closes it.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often to request the stop of a service that is running but accepts no stop.
const STOP_ATTEMPTS: u32 = 50;

const SERVICE_DOES_NOT_EXIST: i32 = 1060;
const SERVICE_CANNOT_ACCEPT_CTRL: i32 = 1061;
/// Wine answers this for a service that is starting.
const INVALID_SERVICE_CONTROL: i32 = 1052;
const SERVICE_NOT_ACTIVE: i32 = 1062;
const SERVICE_MARKED_FOR_DELETE: i32 = 1072;
const SERVICE_EXISTS: i32 = 1073;

/// Installs this program as a service that Windows starts at boot, and restarts after a failure.
///
/// Creates the folder of the log. Warns, or with `-require-safe-folders` refuses, if ordinary users
/// may replace the program or its log. If a part of the configuration cannot be set, sets the
/// remaining parts, and returns an error that names it.
pub(super) fn install(
    installation: &Installation,
    mut out: impl Write,
) -> Result<(), Box<dyn Error>> {
    let program = env::current_exe()?;
    if let Some(found) = found()?.filter(|found| found.name != NAME) {
        return Err(format!(
            "{found} is installed already; replace its program, or remove the service with \
             'csi-proxy service uninstall' first"
        )
        .into());
    }
    check_folders(&program, installation, "is not installed", &mut out)?;
    let service = create(program, &installation.arguments)?;
    let failures = configure(&service);
    if !failures.is_empty() {
        let failures = failures.join("; ");
        return Err(
            format!("service {NAME} is installed, but not fully configured: {failures}").into(),
        );
    }
    writeln!(
        out,
        "Service {NAME} is installed and starts with Windows. To start it now: sc.exe start {NAME}"
    )?;
    Ok(())
}

/// How an administrator can protect the folders.
const REMEDY: &str = "An account that can replace the program or its log controls the node. To let \
                      only administrators write: icacls <folder> /inheritance:r /grant \
                      *S-1-5-18:(OI)(CI)F *S-1-5-32-544:(OI)(CI)F *S-1-5-32-545:(OI)(CI)RX";

/// Creates the folder of the log if it does not exist. Warns, or with `-require-safe-folders`
/// refuses, if ordinary users may replace `program` or the log.
fn check_folders(
    program: &Path,
    installation: &Installation,
    refused: &str,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let flags = CSI_PROXY
        .parse(installation.arguments.iter().cloned())
        .unwrap_or_else(|_| CSI_PROXY.defaults());
    let log = folders::create_for_log(&flags.log)?;
    let mut warnings = Vec::new();
    for file in [Some(program), log.as_deref()].into_iter().flatten() {
        match folders::unsafe_objects(file) {
            Ok(objects) => warnings.extend(objects.iter().map(ToString::to_string)),
            Err(error) => warnings.push(error.to_string()),
        }
    }
    // The program and the log may have folders in common.
    let mut seen = HashSet::new();
    warnings.retain(|warning| seen.insert(warning.clone()));
    if warnings.is_empty() {
        return Ok(());
    }
    if installation.require_safe_folders {
        return Err(format!(
            "service {NAME} {refused}: {} ({REMEDY})",
            warnings.join("; ")
        )
        .into());
    }
    warnings
        .iter()
        .try_for_each(|warning| writeln!(out, "Warning: {warning}"))?;
    writeln!(out, "{REMEDY}")?;
    Ok(())
}

/// Prints the command line of the service, and replaces its flags by those of `change` if there are
/// any. The service keeps its program. Checks the folders as [`install`] does, with
/// `-require-safe-folders` also if no flag changes.
pub(super) fn flags(change: &Installation, mut out: impl Write) -> Result<(), Box<dyn Error>> {
    let found = installed()?;
    let name = &found.name;
    let service = open(
        name,
        ServiceAccess::QUERY_CONFIG | ServiceAccess::CHANGE_CONFIG,
    )?;
    let cannot = |error| failed(&format!("cannot query or change service {name}"), &error);
    let config = service.query_config().map_err(cannot)?;
    if let Some(wrapper) = &found.wrapper {
        return flags_of_wrapper(&found, wrapper, change, &mut out);
    }
    let line = config.executable_path.to_string_lossy();
    writeln!(out, "{line}")?;
    let (program, flags) = program_and_flags(&line);
    let changed = information(program.into(), &change.arguments);
    if change.arguments.is_empty()
        || changed
            .launch_arguments
            .iter()
            .eq(flags.iter().map(String::as_str))
    {
        let unchanged = Installation {
            arguments: flags,
            ..*change
        };
        return if change.require_safe_folders {
            check_folders(Path::new(program), &unchanged, "is not safe", &mut out)
        } else {
            Ok(())
        };
    }
    check_folders(Path::new(program), change, "keeps its flags", &mut out)?;
    let ServiceConfig {
        start_type,
        error_control,
        display_name,
        dependencies,
        ..
    } = config;
    let changed = ServiceInfo {
        start_type,
        error_control,
        display_name,
        dependencies,
        ..changed
    };
    service.change_config(&changed).map_err(cannot)?;
    let now = service.query_config().map_err(cannot)?.executable_path;
    writeln!(
        out,
        "changed to {}\nTo apply the new flags: sc.exe stop {name}, sc.exe start {name}",
        now.display()
    )?;
    Ok(())
}

/// Checks the folders of a program that a wrapper starts. Refuses to change its flags: each wrapper
/// keeps them in its own way.
fn flags_of_wrapper(
    found: &Found,
    wrapper: &str,
    change: &Installation,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    writeln!(out, "{found}")?;
    let name = &found.name;
    if !change.arguments.is_empty() {
        return Err(format!(
            "service {name} keeps its flags, because its wrapper has them; with nssm: {wrapper} set \
             {name} AppParameters FLAGS"
        )
        .into());
    }
    if change.require_safe_folders {
        check_folders(Path::new(&found.program), change, "is not safe", out)?;
        check_folders(Path::new(wrapper), change, "is not safe", out)?;
    }
    Ok(())
}

/// Stops the service, waits until it has stopped, and deletes it. Does nothing if it is not
/// installed. Refuses if another service depends on it, because Windows would not start that one.
pub(super) fn uninstall(mut out: impl Write) -> Result<(), Box<dyn Error>> {
    let Some(found) = found()? else {
        writeln!(out, "Service {NAME} is not installed.")?;
        return Ok(());
    };
    let name = &found.name;
    if !found.dependents.is_empty() {
        return Err(format!(
            "{found} is needed by: {}; Windows would not start these without it",
            found.dependents.join(", ")
        )
        .into());
    }
    writeln!(out, "Removing {found}.")?;
    let service = open(
        name,
        ServiceAccess::STOP | ServiceAccess::QUERY_STATUS | ServiceAccess::DELETE,
    )?;
    stop(&service, name)?;
    let deleted = service.delete();
    deleted.map_err(|error| failed(&format!("cannot delete service {name}"), &error))?;
    drop(service);
    event_log::remove_source(NAME)?;
    if is_removed(name)? {
        writeln!(out, "Service {name} is removed.")?;
    } else {
        writeln!(
            out,
            "Service {name} is marked for deletion; Windows removes it when the last program that \
             has it open (such as services.msc) closes it."
        )?;
    }
    Ok(())
}

/// Prints the service as JSON, or `null` if it is not installed.
pub(super) fn print_found(mut out: impl Write) -> Result<(), Box<dyn Error>> {
    let json = found()?.map_or(serde_json::Value::Null, |found| found.to_json());
    writeln!(out, "{json}")?;
    Ok(())
}

/// Creates the service. Waits for a deleted service of that name to be removed.
fn create(program: PathBuf, arguments: &[String]) -> Result<Service, Box<dyn Error>> {
    let manager = manager(ServiceManagerAccess::CREATE_SERVICE)?;
    let information = information(program, arguments);
    let deadline = Instant::now() + REMOVAL_TIMEOUT;
    loop {
        let error = match manager.create_service(&information, ServiceAccess::ALL_ACCESS) {
            Ok(service) => return Ok(service),
            Err(error) => error,
        };
        match code(&error) {
            Some(SERVICE_MARKED_FOR_DELETE) if Instant::now() < deadline => {
                thread::sleep(POLL_INTERVAL);
            }
            Some(SERVICE_MARKED_FOR_DELETE) => {
                return Err(format!(
                    "cannot create service {NAME}: it is marked for deletion, and a program (such \
                     as services.msc) still has it open"
                )
                .into());
            }
            Some(SERVICE_EXISTS) => {
                return Err(format!(
                    "service {NAME} is already installed; 'csi-proxy service flags' changes its \
                     flags, and 'sc.exe config {NAME} binPath= ...' its program"
                )
                .into());
            }
            _ => return Err(failed(&format!("cannot create service {NAME}"), &error)),
        }
    }
}

/// Waits at most `REMOVAL_TIMEOUT` until Windows has removed the deleted service. Returns whether
/// it has.
fn is_removed(name: &str) -> Result<bool, Box<dyn Error>> {
    let manager = manager(ServiceManagerAccess::CONNECT)?;
    let deadline = Instant::now() + REMOVAL_TIMEOUT;
    while Instant::now() < deadline {
        // Closed at once: an open handle would keep the service from being removed.
        match manager.open_service(name, ServiceAccess::QUERY_STATUS) {
            Err(error) if code(&error) == Some(SERVICE_DOES_NOT_EXIST) => return Ok(true),
            Ok(_) | Err(_) => thread::sleep(POLL_INTERVAL),
        }
    }
    Ok(false)
}

/// Prints whether the service runs, when it starts, and its command line.
pub(super) fn status(mut out: impl Write) -> Result<(), Box<dyn Error>> {
    let found = installed()?;
    let name = &found.name;
    let cannot =
        |error: windows_service::Error| failed(&format!("cannot query service {name}"), &error);
    let service = open(
        name,
        ServiceAccess::QUERY_STATUS | ServiceAccess::QUERY_CONFIG,
    )?;
    let now = service.query_status().map_err(cannot)?;
    let config = service.query_config().map_err(cannot)?;
    let process = now
        .process_id
        .map_or_else(String::new, |process| format!(" in process {process}"));
    writeln!(
        out,
        "{name}: {}{process}, {}",
        state(now.current_state),
        start(config.start_type)
    )?;
    writeln!(out, "  {}", config.executable_path.display())?;
    if found.wrapper.is_some() {
        writeln!(out, "  which starts {}", found.program)?;
    }
    Ok(())
}

/// Sets the parts of the configuration that creating a service leaves out. Returns an error for
/// each that fails.
fn configure(service: &Service) -> Vec<String> {
    let restart = ServiceAction {
        action_type: ServiceActionType::Restart,
        delay: RESTART_DELAY,
    };
    let actions = ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(FAILURE_RESET),
        reboot_msg: None,
        command: None,
        actions: Some(vec![restart; 3]),
    };
    let cannot = |what: &str, error: windows_service::Error| failed(what, &error).to_string();
    // Windows restarts the service after an error that ends it, not only after a crash.
    let after_errors = service.set_failure_actions_on_non_crash_failures(true);
    let results = [
        service
            .update_failure_actions(actions)
            .map_err(|error| cannot("cannot set the restart after a failure", error)),
        after_errors.map_err(|error| cannot("cannot set the restart after an error", error)),
        service
            .set_description(DESCRIPTION)
            .map_err(|error| cannot("cannot set the description", error)),
        event_log::add_source(NAME)
            .map_err(|error| format!("cannot register the event source: {error}")),
    ];
    results.into_iter().filter_map(Result::err).collect()
}

fn information(program: PathBuf, arguments: &[String]) -> ServiceInfo {
    let mut launch_arguments = vec![OsString::from("-windows-service")];
    launch_arguments.extend(arguments.iter().map(OsString::from));
    ServiceInfo {
        name: NAME.into(),
        display_name: DISPLAY_NAME.into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: program,
        launch_arguments,
        dependencies: Vec::new(),
        account_name: None,
        account_password: None,
    }
}

fn manager(access: ServiceManagerAccess) -> Result<ServiceManager, Box<dyn Error>> {
    let opened =
        ServiceManager::local_computer(None::<&OsStr>, access | ServiceManagerAccess::CONNECT);
    opened.map_err(|error| failed("cannot open the service control manager", &error))
}

/// Returns the service of csi-proxy.
fn installed() -> Result<Found, Box<dyn Error>> {
    let hint = if is_in_host_process_container() {
        "; for csi-proxy in a container, see its pod and 'kubectl logs'"
    } else {
        ""
    };
    found()?.ok_or_else(|| format!("service {NAME} is not installed{hint}").into())
}

fn open(name: &str, access: ServiceAccess) -> Result<Service, Box<dyn Error>> {
    manager(ServiceManagerAccess::CONNECT)?
        .open_service(name, access)
        .map_err(|error| failed(&format!("cannot open service {name}"), &error))
}

/// Stops the service, and waits until it has stopped. A service that is starting or stopping
/// accepts no stop, so this waits until it has started or stopped.
fn stop(service: &Service, name: &str) -> Result<(), Box<dyn Error>> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let Err(error) = service.stop() else {
            return wait_until(service, name, |state| state == ServiceState::Stopped).map(drop);
        };
        match code(&error) {
            Some(SERVICE_NOT_ACTIVE) => return Ok(()),
            Some(SERVICE_CANNOT_ACCEPT_CTRL | INVALID_SERVICE_CONTROL)
                if attempts < STOP_ATTEMPTS =>
            {
                let is_settled = |state| {
                    !matches!(
                        state,
                        ServiceState::StartPending | ServiceState::StopPending
                    )
                };
                if wait_until(service, name, is_settled)? == ServiceState::Stopped {
                    return Ok(());
                }
                thread::sleep(POLL_INTERVAL);
            }
            _ => return Err(failed(&format!("cannot stop service {name}"), &error)),
        }
    }
}

/// Waits until the service has reached a state, for as long as it reports progress, and returns
/// that state.
fn wait_until(
    service: &Service,
    name: &str,
    is_reached: impl Fn(ServiceState) -> bool,
) -> Result<ServiceState, Box<dyn Error>> {
    let mut last = None;
    let mut last_progress = Instant::now();
    loop {
        let status = service.query_status();
        let status =
            status.map_err(|error| failed(&format!("cannot query service {name}"), &error))?;
        if is_reached(status.current_state) {
            return Ok(status.current_state);
        }
        let progress = Some((status.current_state, status.checkpoint));
        if progress != last {
            (last, last_progress) = (progress, Instant::now());
        }
        if last_progress.elapsed() > status.wait_hint.max(STOP_MARGIN) {
            let state = state(status.current_state);
            return Err(format!("service {name} is {state} but reports no progress").into());
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn state(state: ServiceState) -> &'static str {
    match state {
        ServiceState::Stopped => "stopped",
        ServiceState::StartPending => "starting",
        ServiceState::StopPending => "stopping",
        ServiceState::Running => "running",
        ServiceState::ContinuePending | ServiceState::PausePending | ServiceState::Paused => {
            "paused"
        }
    }
}

fn start(start: ServiceStartType) -> &'static str {
    match start {
        ServiceStartType::AutoStart
        | ServiceStartType::SystemStart
        | ServiceStartType::BootStart => "starts with Windows",
        ServiceStartType::OnDemand => "starts on demand",
        ServiceStartType::Disabled => "disabled",
    }
}
