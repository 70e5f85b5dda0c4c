//! The service of the daemon, and the services of Windows that it needs.

use os::{OsError, OsResult, ServiceAccess, U16String};

use crate::examination::Examination;
use crate::redaction::NameKind;
use crate::system::{ServiceRegistration, program_of};
use crate::words::quoted;

const CHECK: &str = "Service";
const PREREQUISITES: &str = "Windows services";

/// `SERVICE_RUNNING`.
const RUNNING: u32 = 4;
/// `SERVICE_AUTO_START`.
const AUTOMATIC: u32 = 2;
/// `SERVICE_DISABLED`.
const DISABLED: u32 = 4;

/// Returns the start type and the state of a service.
fn state_of(examination: &Examination<'_>, name: &str) -> OsResult<(u32, u32)> {
    let service = examination
        .os
        .open_service(&U16String::from_str(name), ServiceAccess::Query)?;
    Ok((service.config()?.start_type, service.state()?))
}

/// `served_by` is the program that serves the pipes. Returns the program that the service starts,
/// if it is known.
pub(super) fn check(examination: &mut Examination<'_>, served_by: Option<&str>) -> Option<String> {
    let service = &examination.settings.service;
    let name = quoted(service);
    let registered = match examination.system.service(service) {
        Ok(registered) => registered,
        Err(OsError::SERVICE_DOES_NOT_EXIST) => {
            report_missing(
                examination,
                served_by.is_some() || examination.settings.is_in_container,
            );
            return None;
        }
        Err(code) => {
            examination.report.unchecked(
                CHECK,
                format!("the registration of service {name}"),
                code,
                Some(code),
            );
            check_state(examination);
            return None;
        }
    };
    let program = program_of(&registered.command_line);
    let other = served_by.filter(|other| !other.eq_ignore_ascii_case(program));
    if examination.settings.is_in_container && (other.is_some() || served_by.is_none()) {
        let seen =
            format!("service {name} is installed, although csi-proxy runs in this container");
        let advice = "csi-proxy.exe service uninstall; otherwise the service takes the pipes when \
                      Windows starts again";
        examination.report.warning(CHECK, seen, advice);
        return None;
    }
    check_state(examination);
    check_registration(examination, &registered);
    if let Some(other) = other {
        let name = quoted(&examination.settings.service);
        let (other, program) = (quoted(other), quoted(program));
        examination.report.warning(
            CHECK,
            format!("the pipes are served by {other}, and service {name} starts {program}"),
            "stop one of the two programs; Windows starts the other at the next boot",
        );
    }
    Some(program.to_owned())
}

fn report_missing(examination: &mut Examination<'_>, is_unneeded: bool) {
    let Examination {
        settings, report, ..
    } = examination;
    let name = quoted(&settings.service);
    if is_unneeded {
        return report.ok(
            CHECK,
            format!("service {name} is not installed; csi-proxy runs without it"),
        );
    }
    report.warning(
        CHECK,
        format!("service {name} is not installed"),
        "unless csi-proxy runs in a HostProcess container, install it: csi-proxy.exe service \
         install",
    );
}

/// Checks that the service starts with Windows, and runs.
fn check_state(examination: &mut Examination<'_>) {
    let service = &examination.settings.service;
    let name = quoted(service);
    let (start, state) = match state_of(examination, service) {
        Ok(state) => state,
        Err(code) => {
            return examination.report.unchecked(
                CHECK,
                format!("the state of service {name}"),
                code,
                Some(code),
            );
        }
    };
    let report = &mut examination.report;
    if start <= AUTOMATIC {
        report.ok(CHECK, format!("service {name} starts with Windows"));
    } else {
        report.problem(
            CHECK,
            format!("service {name} does not start with Windows"),
            format!("sc.exe config {name} start= auto"),
        );
    }
    if state == RUNNING {
        report.ok(CHECK, format!("service {name} is running"));
    } else {
        report.problem(
            CHECK,
            format!("service {name} is not running (state {state})"),
            format!(
                "sc.exe start {name}; if it stops again, its log file and the event log have the \
                 reason"
            ),
        );
    }
}

fn check_registration(examination: &mut Examination<'_>, registered: &ServiceRegistration) {
    let Examination {
        settings,
        names,
        report,
        ..
    } = examination;
    let name = quoted(&settings.service);
    match registered.restarts {
        Ok(true) => report.ok(
            CHECK,
            format!("Windows restarts service {name} after a failure"),
        ),
        Ok(false) => report.problem(
            CHECK,
            format!("Windows does not restart service {name} after a failure"),
            format!(
                "sc.exe failure {name} reset= 86400 actions= \
                 restart/10000/restart/10000/restart/10000"
            ),
        ),
        Err(code) => {
            report.unchecked(
                CHECK,
                format!("whether Windows restarts service {name}"),
                code,
                Some(code),
            );
        }
    }
    if let Some(account) = registered
        .account
        .as_ref()
        .filter(|account| !account.eq_ignore_ascii_case("LocalSystem"))
    {
        report.warning(
            CHECK,
            format!(
                "service {name} runs as {}",
                quoted(&names.of(NameKind::Account, account))
            ),
            format!("csi-proxy needs LocalSystem: sc.exe config {name} obj= LocalSystem"),
        );
    }
    let program = program_of(&registered.command_line);
    if !registered.command_line.starts_with('"') && program.contains(' ') {
        report.warning(
            CHECK,
            format!(
                "the path of the program of service {name} has a blank and no quotation marks in \
                 its registration: {}",
                quoted(program)
            ),
            "put it in quotation marks (sc.exe config binPath=): Windows tries C:\\Program.exe \
             first",
        );
    }
}

/// Checks the services that operations need. Returns whether the iSCSI initiator runs.
pub(super) fn check_prerequisites(examination: &mut Examination<'_>) -> bool {
    check_prerequisite(
        examination,
        "LanmanWorkstation",
        "SMB shares cannot be mapped",
    );
    check_prerequisite(examination, "MSiSCSI", "iSCSI targets cannot be connected")
}

/// Returns the state of a service that does not run.
fn idle_state(start: u32) -> &'static str {
    if start == DISABLED {
        "disabled"
    } else {
        "not running"
    }
}

fn check_prerequisite(examination: &mut Examination<'_>, name: &str, consequence: &str) -> bool {
    let state = state_of(examination, name);
    let report = &mut examination.report;
    let is_needed_for_iscsi = name == "MSiSCSI";
    match state {
        Ok((start, RUNNING)) if start <= AUTOMATIC => {
            report.ok(PREREQUISITES, format!("{name} is running"));
        }
        Ok((_, RUNNING)) => report.warning(
            PREREQUISITES,
            format!("{name} is running, but does not start with Windows"),
            format!("sc.exe config {name} start= auto"),
        ),
        // The iSCSI initiator is stopped unless somebody uses it.
        Ok((start, _)) if is_needed_for_iscsi => report.warning(
            PREREQUISITES,
            format!("{name} is {}: {consequence}", idle_state(start)),
            format!(
                "if this node uses iSCSI: sc.exe config {name} start= auto, then sc.exe start \
                 {name}"
            ),
        ),
        Ok((start, _)) => report.problem(
            PREREQUISITES,
            format!("{name} is {}: {consequence}", idle_state(start)),
            format!("sc.exe config {name} start= auto, then sc.exe start {name}"),
        ),
        Err(OsError::SERVICE_DOES_NOT_EXIST) => report.warning(
            PREREQUISITES,
            format!("{name} does not exist: {consequence}"),
            "if this node needs it, use an image of Windows that has it",
        ),
        Err(code) => report.unchecked(PREREQUISITES, format!("service {name}"), code, Some(code)),
    }
    matches!(state, Ok((_, RUNNING)))
}
