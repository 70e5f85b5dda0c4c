//! Simulates Windows services and the rules of the service control manager.
//!
//! Starting and stopping take time: a service stays pending until [`Services::tick`] is called
//! after that time. Services start one after another, because each start locks the service
//! database.

use std::collections::BTreeSet;
use std::time::Duration;

use os::{OsError, OsResult, ServiceAccess, ServiceConfig, Time, U16String};
use serde::{Deserialize, Serialize};

use crate::description::quantity;

/// All services of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Services {
    /// The services, in no order.
    pub services: Vec<ServiceModel>,
    /// The number of starts so far, which numbers the next start.
    starts: u64,
}

/// A service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceModel {
    /// The name of the service, compared without regard to case.
    pub name: String,
    /// The display name.
    pub display_name: String,
    /// The start type.
    #[serde(default)]
    pub start_type: StartType,
    /// The current state.
    #[serde(default)]
    pub state: ServiceState,
    /// The services that must run before this service starts.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// How long starting takes.
    #[serde(default, with = "quantity::duration")]
    pub start_takes: Duration,
    /// How long stopping takes.
    #[serde(default, with = "quantity::duration")]
    pub stop_takes: Duration,
    /// Whether the service stops instead of entering the running state.
    #[serde(default)]
    pub fails_to_start: bool,
    /// Whether the service does not accept a stop request.
    #[serde(default)]
    pub unstoppable: bool,
    /// Whether its security descriptor denies starting and stopping.
    #[serde(default)]
    pub protected: bool,
    /// When a pending state ends, in milliseconds of the node's clock.
    #[serde(skip)]
    until: Option<Time>,
    /// The sequence number of its last start.
    #[serde(skip)]
    started: u64,
}

/// `SERVICE_BOOT_START` to `SERVICE_DISABLED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartType {
    /// Started by the boot loader.
    Boot = 0,
    /// Started by the kernel.
    System = 1,
    /// Started with the system.
    Automatic = 2,
    /// Started on demand.
    #[default]
    Manual = 3,
    /// Never started.
    Disabled = 4,
}

/// `SERVICE_STOPPED` to `SERVICE_PAUSED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceState {
    /// Stopped.
    #[default]
    Stopped = 1,
    /// Starting.
    StartPending = 2,
    /// Stopping.
    StopPending = 3,
    /// Running.
    Running = 4,
    /// Resuming.
    ContinuePending = 5,
    /// Pausing.
    PausePending = 6,
    /// Paused.
    Paused = 7,
}

impl ServiceState {
    /// Returns the state that a pending state leads to. Returns any other state unchanged.
    pub(crate) fn settled(self) -> Self {
        match self {
            Self::Stopped | Self::StopPending => Self::Stopped,
            Self::Running | Self::StartPending | Self::ContinuePending => Self::Running,
            Self::Paused | Self::PausePending => Self::Paused,
        }
    }
}

/// `ERROR_CIRCULAR_DEPENDENCY`.
pub const CIRCULAR_DEPENDENCY: OsError = OsError(1059);
/// `ERROR_SERVICE_DEPENDENCY_FAIL`.
pub const SERVICE_DEPENDENCY_FAIL: OsError = OsError(1068);
/// `ERROR_SERVICE_DEPENDENCY_DELETED`.
pub const SERVICE_DEPENDENCY_DELETED: OsError = OsError(1075);

impl ServiceModel {
    /// Returns a stopped service that starts on demand and without delay.
    pub fn new(name: &str, display_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            display_name: display_name.to_owned(),
            ..Self::default()
        }
    }

    /// Ends a pending state that is due.
    fn tick(&mut self, now: Time) {
        if self.until.is_none_or(|until| now < until) {
            return;
        }
        self.until = None;
        let fails = self.state == ServiceState::StartPending && self.fails_to_start;
        self.state = if fails {
            ServiceState::Stopped
        } else {
            self.state.settled()
        };
    }

    fn enter(&mut self, pending: ServiceState, at: Time, now: Time) {
        self.state = pending;
        self.until = Some(at);
        self.tick(now);
    }
}

impl Services {
    /// Ends the pending states that are due.
    pub fn tick(&mut self, now: Time) {
        self.services
            .iter_mut()
            .for_each(|service| service.tick(now));
    }

    /// Checks that `name` can be opened with `access`.
    pub fn open(&self, name: &str, access: ServiceAccess) -> OsResult<()> {
        if name.is_empty() || name.chars().count() > 256 || name.contains(['/', '\\']) {
            return Err(OsError::INVALID_NAME);
        }
        let service = self.get(name)?;
        if service.protected && access != ServiceAccess::Query {
            return Err(OsError::ACCESS_DENIED);
        }
        Ok(())
    }

    /// Returns the configuration of `name`.
    pub fn config(&self, name: &str) -> OsResult<ServiceConfig> {
        let service = self.get(name)?;
        let display_name = U16String::from_str(&service.display_name);
        Ok(ServiceConfig {
            display_name,
            start_type: service.start_type as u32,
        })
    }

    /// Returns the state of `name`.
    pub fn state(&mut self, name: &str, now: Time) -> OsResult<u32> {
        self.tick(now);
        Ok(self.get(name)?.state as u32)
    }

    /// Starts `name` after the services that it depends on, and after the services that are
    /// starting now.
    pub fn start(&mut self, name: &str, now: Time) -> OsResult<()> {
        self.tick(now);
        let service = self.get(name)?;
        if service.state != ServiceState::Stopped {
            return Err(OsError::SERVICE_ALREADY_RUNNING);
        }
        if service.start_type == StartType::Disabled {
            return Err(OsError::SERVICE_DISABLED);
        }
        let mut order = Vec::new();
        self.start_order(self.position(name)?, &mut Vec::new(), &mut order)?;
        let starting = self
            .services
            .iter()
            .filter(|service| service.state == ServiceState::StartPending);
        let mut ready_at = starting
            .filter_map(|service| service.until)
            .max()
            .unwrap_or(now);
        for position in order {
            self.starts += 1;
            let starts = self.starts;
            let service = &mut self.services[position];
            match service.state {
                ServiceState::Stopped => {
                    // A service starts when its dependencies run.
                    ready_at = ready_at + service.start_takes;
                    service.started = starts;
                    service.enter(ServiceState::StartPending, ready_at, now);
                }
                _ => ready_at = ready_at.max(service.until.unwrap_or(now)),
            }
        }
        Ok(())
    }

    /// Stops `name`.
    pub fn stop(&mut self, name: &str, now: Time) -> OsResult<()> {
        self.tick(now);
        let service = self.get(name)?;
        match service.state {
            ServiceState::Stopped => return Err(OsError::SERVICE_NOT_ACTIVE),
            ServiceState::StartPending | ServiceState::StopPending => {
                return Err(OsError::SERVICE_CANNOT_ACCEPT_CTRL);
            }
            _ => {}
        }
        if !self.running_dependents(name)?.is_empty() {
            return Err(OsError::DEPENDENT_SERVICES_RUNNING);
        }
        if service.unstoppable {
            return Err(OsError::INVALID_SERVICE_CONTROL);
        }
        let position = self.position(name)?;
        let service = &mut self.services[position];
        service.enter(ServiceState::StopPending, now + service.stop_takes, now);
        Ok(())
    }

    /// Returns the names of the active services that depend on `name`, directly or indirectly, in
    /// the order in which to stop them: the service that was started last is first.
    pub fn active_dependents(&mut self, name: &str, now: Time) -> OsResult<Vec<U16String>> {
        self.tick(now);
        self.running_dependents(name)
    }

    fn running_dependents(&self, name: &str) -> OsResult<Vec<U16String>> {
        let mut found = BTreeSet::new();
        let mut order = Vec::new();
        self.dependents(self.position(name)?, &mut found, &mut order);
        let active = order.into_iter().map(|position| &self.services[position]);
        let mut active: Vec<_> = active
            .filter(|service| service.state != ServiceState::Stopped)
            .collect();
        active.sort_by_key(|service| std::cmp::Reverse(service.started));
        Ok(active
            .into_iter()
            .map(|service| U16String::from_str(&service.name))
            .collect())
    }

    /// Restarts the node: stops all services and starts the automatic services.
    pub fn reboot(&mut self, now: Time) {
        for service in &mut self.services {
            service.state = ServiceState::Stopped;
            service.until = None;
        }
        let boots = |service: &ServiceModel| {
            !matches!(service.start_type, StartType::Manual | StartType::Disabled)
        };
        let names: Vec<_> = self
            .services
            .iter()
            .filter(|s| boots(s))
            .map(|service| service.name.clone())
            .collect();
        for name in names {
            // Ignore a service that cannot start, or that already runs as a dependency.
            let _ = self.start(&name, now);
        }
    }

    fn get(&self, name: &str) -> OsResult<&ServiceModel> {
        Ok(&self.services[self.position(name)?])
    }

    fn position(&self, name: &str) -> OsResult<usize> {
        let found = self
            .services
            .iter()
            .position(|service| service.name.eq_ignore_ascii_case(name));
        found.ok_or(OsError::SERVICE_DOES_NOT_EXIST)
    }

    /// Appends the service and its direct and indirect dependencies to `order`, each service after
    /// its dependencies.
    fn start_order(
        &self,
        position: usize,
        above: &mut Vec<usize>,
        order: &mut Vec<usize>,
    ) -> OsResult<()> {
        if above.contains(&position) {
            return Err(CIRCULAR_DEPENDENCY);
        }
        if order.contains(&position) {
            return Ok(());
        }
        above.push(position);
        for needed in &self.services[position].depends_on {
            let needed = self
                .position(needed)
                .map_err(|_| SERVICE_DEPENDENCY_DELETED)?;
            let service = &self.services[needed];
            let cannot = service.start_type == StartType::Disabled || service.fails_to_start;
            if service.state == ServiceState::StopPending
                || service.state == ServiceState::Stopped && cannot
            {
                return Err(SERVICE_DEPENDENCY_FAIL);
            }
            self.start_order(needed, above, order)?;
        }
        above.pop();
        order.push(position);
        Ok(())
    }

    /// Appends the direct and indirect dependents of a service to `order`, each after its own
    /// dependents. Of two services that may come in any order, the service that was started later
    /// comes first.
    fn dependents(&self, position: usize, found: &mut BTreeSet<usize>, order: &mut Vec<usize>) {
        let name = &self.services[position].name;
        let needs = |service: &ServiceModel| {
            service
                .depends_on
                .iter()
                .any(|needed| needed.eq_ignore_ascii_case(name))
        };
        let mut direct: Vec<_> = (0..self.services.len())
            .filter(|other| needs(&self.services[*other]))
            .collect();
        direct.sort_by_key(|other| std::cmp::Reverse(self.services[*other].started));
        for other in direct {
            if found.insert(other) {
                self.dependents(other, found, order);
                order.push(other);
            }
        }
    }
}

#[cfg(test)]
mod tests;
