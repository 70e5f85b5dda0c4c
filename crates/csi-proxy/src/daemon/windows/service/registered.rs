//! The services of this node and the processes that serve its pipes, from which the service of
//! csi-proxy is found.

use std::error::Error;
use std::ffi::OsStr;
use std::io;

use os::{Os as _, U16String};
use os_win32::{Windows, pipe, service};
use windows_service::service::{ServiceAccess, ServiceDependency};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

use super::failed;
use crate::doctor::pipes;
use crate::service::find::{Found, Registered, Server, Unread, find};

/// All instances of the pipe are connected.
const ERROR_PIPE_BUSY: i32 = 231;

/// Returns the service of csi-proxy, or `None` if it is not installed.
///
/// Errors: as [`find`].
pub(super) fn found() -> Result<Option<Found>, Box<dyn Error>> {
    Ok(find(&registered()?, &servers()?)?)
}

/// Returns the services of this node. Omits the command line of a service that cannot be read.
fn registered() -> Result<Vec<Registered>, Box<dyn Error>> {
    let listed = service::list().map_err(|error| Unread::Services(error.to_string()))?;
    let manager = ServiceManager::local_computer(None::<&OsStr>, ServiceManagerAccess::CONNECT)
        .map_err(|error| failed("cannot open the service control manager", &error))?;
    let windows = Windows::new();
    let services = listed.into_iter().map(|listed| {
        let name = listed.name.to_string_lossy();
        let config = manager
            .open_service(&name, ServiceAccess::QUERY_CONFIG)
            .and_then(|service| service.query_config());
        let parameters = format!(r"SYSTEM\CurrentControlSet\Services\{name}\Parameters");
        let application = windows.registry_text(
            &U16String::from_str(&parameters),
            &U16String::from_str("Application"),
        );
        let (command_line, dependencies) = config.map_or_else(
            |_| Default::default(),
            |config| {
                let names = config.dependencies.into_iter().filter_map(service_name);
                (
                    config.executable_path.to_string_lossy().into_owned(),
                    names.collect(),
                )
            },
        );
        Registered {
            name,
            command_line,
            application: application.ok().map(|program| program.to_string_lossy()),
            process: listed.process,
            shares_process: listed.shares_process,
            dependencies,
        }
    });
    Ok(services.collect())
}

fn service_name(dependency: ServiceDependency) -> Option<String> {
    match dependency {
        ServiceDependency::Service(name) => Some(name.to_string_lossy().into_owned()),
        ServiceDependency::Group(_) => None,
    }
}

/// Returns the processes that serve csi-proxy's pipes, each once.
fn servers() -> Result<Vec<Server>, Box<dyn Error>> {
    let mut servers = Vec::new();
    for name in pipes() {
        let server = match pipe::owner(&format!(r"\\.\pipe\{name}")) {
            Ok(owner) => Server {
                process: owner.process,
                program: owner.program.map(|program| program.display().to_string()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // Another pipe of the same process answers, unless the process is stopping.
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY) => continue,
            Err(error) => return Err(Unread::Pipe(name, error.to_string()).into()),
        };
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    Ok(servers)
}
