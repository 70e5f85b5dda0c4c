//! Operations on Windows services, and the BIOS serial number.

use os::{OsError, Service, ServiceAccess, U16Str, U16String};

use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition};
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::run::Run;
use crate::readings::firmware;
use crate::scheduling::{LockKey, PoolKind};
use crate::types::{ServiceInfo, ServiceName};

/// `SERVICE_STOPPED`.
const STOPPED: u32 = 1;
/// `SERVICE_STOP_PENDING`.
const STOP_PENDING: u32 = 3;
/// `SERVICE_RUNNING`.
const RUNNING: u32 = 4;
/// `SERVICE_PAUSE_PENDING`.
const PAUSE_PENDING: u32 = 6;
/// `SERVICE_PAUSED`.
const PAUSED: u32 = 7;

impl ServiceName {
    fn open(&self, node: &Node, access: ServiceAccess) -> OperationResult<Box<dyn Service>> {
        Ok(node
            .windows
            .os()
            .open_service(&U16String::from_str(self.as_str()), access)?)
    }

    fn lock_key(&self) -> LockKey {
        LockKey::Service(self.as_str().to_lowercase())
    }
}

/// Refuses a service that the administrator does not allow to be started and stopped.
fn check_listed(node: &Node, name: &str) -> OperationResult<()> {
    match &node.config().services {
        // Other letters are compared exactly: whether Windows considers them equal is not certain.
        Some(services)
            if !services
                .iter()
                .any(|service| service.as_str().eq_ignore_ascii_case(name)) =>
        {
            Err(OperationError::not_listed(
                "-services",
                format_args!("the service {name}"),
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the key of a service that Windows has named.
fn lock_key_of(service: &U16Str) -> LockKey {
    LockKey::Service(service.to_string_lossy().to_lowercase())
}

/// Queries the configuration and state of a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetService {
    /// The service.
    pub name: ServiceName,
}

impl Operation for GetService {
    type Output = ServiceInfo;
    const NAME: &'static str = "GetService";
    const POOL: PoolKind = PoolKind::System;

    fn describe(&self) -> String {
        format!("query the service {}", self.name)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<ServiceInfo> {
        let service = self.name.open(run.node(), ServiceAccess::Query)?;
        let (config, state) = (service.config()?, service.state()?);
        Ok(ServiceInfo {
            display_name: config.display_name.to_string_lossy(),
            start_type: config.start_type,
            state,
        })
    }
}

/// Starts a service and waits until it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StartService {
    /// The service.
    pub name: ServiceName,
}

impl Operation for StartService {
    type Output = ();
    const NAME: &'static str = "StartService";
    const POOL: PoolKind = PoolKind::System;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("start the service {}", self.name)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        check_listed(node, self.name.as_str())
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![self.name.lock_key()]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let service = self.name.open(run.node(), ServiceAccess::Start)?;
        match service.state()? {
            STOP_PENDING => wait_for_state(run.node(), &*service, STOPPED)?,
            PAUSE_PENDING | PAUSED => {
                return failed_precondition("the service is paused; continue or stop it first");
            }
            _ => {}
        }
        run.begin_mutation()?;
        // While Windows starts another service, for instance right after booting, it refuses to
        // start this one.
        let accepted = run
            .windows()
            .poll(run.timeouts().service, || match service.start() {
                Ok(()) | Err(OsError::SERVICE_ALREADY_RUNNING) => Ok(Some(())),
                Err(OsError::SERVICE_DATABASE_LOCKED) => Ok(None),
                Err(code) => Err(code),
            })?;
        accepted.ok_or(OperationError::from(OsError::SERVICE_DATABASE_LOCKED))?;
        wait_for_state(run.node(), &*service, RUNNING)
    }
}

/// Stops a service and waits until it has stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StopService {
    /// The service.
    pub name: ServiceName,
    /// Whether to stop running services that depend on it first.
    pub force: bool,
}

impl Operation for StopService {
    type Output = ();
    const NAME: &'static str = "StopService";
    const POOL: PoolKind = PoolKind::System;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const LOOKS_UP_LOCKS: bool = true;

    fn describe(&self) -> String {
        format!("stop the service {}", self.name)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        check_listed(node, self.name.as_str())
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![self.name.lock_key()]
    }

    async fn look_up_lock_keys(&self, run: Run<'_>) -> OperationResult<Vec<LockKey>> {
        if !self.force {
            return Ok(Vec::new());
        }
        let service = self.name.open(run.node(), ServiceAccess::Stop)?;
        let dependents = service.active_dependents()?;
        Ok(dependents.iter().map(|name| lock_key_of(name)).collect())
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let service = self.name.open(run.node(), ServiceAccess::Stop)?;
        if service.state()? == STOPPED {
            return Ok(());
        }
        let dependents = service.active_dependents()?;
        if !dependents.is_empty() && !self.force {
            let names: Vec<_> = dependents
                .iter()
                .map(|name| name.to_string_lossy())
                .collect();
            let reason = format!(
                "running services depend on it: {}; stop them first, or set force",
                names.join(", ")
            );
            return Err(OperationError {
                code: Some(OsError::DEPENDENT_SERVICES_RUNNING),
                ..OperationError::precondition(reason)
            });
        }
        for name in &dependents {
            check_listed(run.node(), &name.to_string_lossy())?;
            run.ensure_locked(&lock_key_of(name))?;
        }
        run.begin_mutation()?;
        for name in dependents {
            let dependent = run.os().open_service(&name, ServiceAccess::Stop)?;
            stop(run.node(), &*dependent).map_err(|error| {
                let name = name.display();
                error.in_context(format_args!(
                    "the dependent service {name} could not be stopped"
                ))
            })?;
        }
        stop(run.node(), &*service)
    }
}

fn stop(node: &Node, service: &dyn Service) -> OperationResult<()> {
    // A service that is starting refuses controls until it runs.
    let accepted = node
        .windows
        .poll(node.windows.timeouts.service, || match service.stop() {
            Ok(()) | Err(OsError::SERVICE_NOT_ACTIVE) => Ok(Some(())),
            Err(OsError::SERVICE_CANNOT_ACCEPT_CTRL) => {
                Ok(matches!(service.state()?, STOPPED | STOP_PENDING).then_some(()))
            }
            Err(code @ OsError::INVALID_SERVICE_CONTROL) => Err(OperationError::of(
                code,
                "the service cannot be stopped: it does not accept the stop control",
            )),
            Err(code) => Err(code.into()),
        })?;
    accepted.ok_or(OperationError::from(OsError::SERVICE_CANNOT_ACCEPT_CTRL))?;
    wait_for_state(node, service, STOPPED)
}

fn wait_for_state(node: &Node, service: &dyn Service, wanted: u32) -> OperationResult<()> {
    let mut last = 0;
    let reached = node.windows.poll(node.windows.timeouts.service, || {
        last = service.state()?;
        if wanted == RUNNING && last == STOPPED {
            return Err(OperationError::precondition(
                "the service stopped while it was starting",
            ));
        }
        Ok((last == wanted).then_some(()))
    })?;
    let seconds = node.windows.timeouts.service.as_secs();
    reached.ok_or_else(|| {
        OperationError::new(
            ErrorKind::StillRunning,
            format!("after {seconds} s the service is still in state {last}, not {wanted}"),
        )
    })
}

/// Queries the serial number of the machine, as its firmware reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetBiosSerialNumber;

impl Operation for GetBiosSerialNumber {
    type Output = String;
    const NAME: &'static str = "GetBIOSSerialNumber";
    const POOL: PoolKind = PoolKind::System;

    fn describe(&self) -> String {
        "query the BIOS serial number".into()
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<String> {
        firmware::serial_number(run).await
    }
}
