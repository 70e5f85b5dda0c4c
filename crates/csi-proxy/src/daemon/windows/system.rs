//! What `doctor` reads of this node beyond the traits of `os`.

use std::ffi::OsStr;
use std::io;

use ::doctor::{Pipe, ServiceRegistration, System};
use os::{OsError, OsResult};
use os_win32::pipe::owner_and_access;
use os_win32::system;
use windows_service::service::{Service, ServiceAccess, ServiceActionType};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

pub(super) struct ThisNode;

impl System for ThisNode {
    fn build(&self) -> OsResult<u32> {
        system::build()
    }

    fn pipe(&self, name: &str) -> OsResult<Pipe> {
        let (owner, access) =
            owner_and_access(&format!(r"\\.\pipe\{name}")).map_err(|error| code(&error))?;
        Ok(Pipe {
            process: owner.process,
            program: owner.program.map(|program| program.display().to_string()),
            access,
        })
    }

    fn service(&self, name: &str) -> OsResult<ServiceRegistration> {
        let opened = ServiceManager::local_computer(None::<&OsStr>, ServiceManagerAccess::CONNECT)
            .and_then(|manager| manager.open_service(name, ServiceAccess::QUERY_CONFIG));
        let service = opened.map_err(|error| code_of_service(&error))?;
        let config = service
            .query_config()
            .map_err(|error| code_of_service(&error))?;
        Ok(ServiceRegistration {
            command_line: config.executable_path.display().to_string(),
            account: config
                .account_name
                .map(|account| account.to_string_lossy().into_owned()),
            restarts: restarts(&service).map_err(|error| code_of_service(&error)),
        })
    }
}

/// Returns whether the first action after a failure of the service is to restart it.
fn restarts(service: &Service) -> windows_service::Result<bool> {
    let actions = service.get_failure_actions()?.actions.unwrap_or_default();
    Ok(actions
        .first()
        .is_some_and(|action| action.action_type == ServiceActionType::Restart))
}

fn code(error: &io::Error) -> OsError {
    error
        .raw_os_error()
        .map_or(OsError::GEN_FAILURE, |code| OsError(code.cast_unsigned()))
}

fn code_of_service(error: &windows_service::Error) -> OsError {
    match error {
        windows_service::Error::Winapi(error) => code(error),
        _ => OsError::GEN_FAILURE,
    }
}
