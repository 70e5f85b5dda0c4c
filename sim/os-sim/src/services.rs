//! Windows services and the service control manager's rules.
//!
//! Starting and stopping take time: a service is pending until [`Services::tick`] sees that its moment has come.
//! Moments are milliseconds of the node's clock, so that the state can be saved.

use std::collections::BTreeSet;
use std::time::Duration;

use os::{OsError, OsResult, ServiceAccess, ServiceConfig, Time, U16String};
use serde::Deserialize;

/// All services of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Services {
    /// The services, in no order.
    pub services: Vec<ServiceModel>,
    /// How many starts there have been, which gives the order of starts.
    starts: u64,
}

/// One service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceModel {
    /// The name it is opened by, compared without case.
    pub name: String,
    /// The name shown to people.
    pub display_name: String,
    /// When it starts.
    #[serde(default)]
    pub start_type: StartType,
    /// What it does now.
    #[serde(default)]
    pub state: State,
    /// The services that must run before it does.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// How long it takes to start.
    #[serde(default)]
    pub start_milliseconds: u64,
    /// How long it takes to stop.
    #[serde(default)]
    pub stop_milliseconds: u64,
    /// It ends instead of coming up.
    #[serde(default)]
    pub fails_to_start: bool,
    /// It takes no stop request.
    #[serde(default)]
    pub unstoppable: bool,
    /// Its security descriptor lets nobody start or stop it.
    #[serde(default)]
    pub protected: bool,
    /// When a pending state ends.
    #[serde(skip)]
    until: Option<u64>,
    /// The number of its last start.
    #[serde(skip)]
    started: u64,
}

/// `SERVICE_BOOT_START` to `SERVICE_DISABLED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartType {
    /// By the boot loader.
    Boot = 0,
    /// By the kernel.
    System = 1,
    /// With the system.
    Automatic = 2,
    /// When asked to.
    #[default]
    Manual = 3,
    /// Never.
    Disabled = 4,
}

/// `SERVICE_STOPPED` to `SERVICE_PAUSED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Stopped.
    #[default]
    Stopped = 1,
    /// On the way to running.
    StartPending = 2,
    /// On the way to stopped.
    StopPending = 3,
    /// Running.
    Running = 4,
    /// On the way from paused to running.
    ContinuePending = 5,
    /// On the way to paused.
    PausePending = 6,
    /// Paused.
    Paused = 7,
}

/// `ERROR_INVALID_SERVICE_CONTROL`.
pub const INVALID_SERVICE_CONTROL: OsError = OsError(1052);
/// `ERROR_CIRCULAR_DEPENDENCY`.
pub const CIRCULAR_DEPENDENCY: OsError = OsError(1059);
/// `ERROR_SERVICE_DEPENDENCY_FAIL`.
pub const SERVICE_DEPENDENCY_FAIL: OsError = OsError(1068);
/// `ERROR_SERVICE_DEPENDENCY_DELETED`.
pub const SERVICE_DEPENDENCY_DELETED: OsError = OsError(1075);

impl ServiceModel {
    /// A stopped service that starts on demand, at once.
    pub fn new(name: &str, display_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            display_name: display_name.to_owned(),
            start_type: StartType::default(),
            state: State::default(),
            depends_on: Vec::new(),
            start_milliseconds: 0,
            stop_milliseconds: 0,
            fails_to_start: false,
            unstoppable: false,
            protected: false,
            until: None,
            started: 0,
        }
    }

    fn tick(&mut self, now: u64) {
        if self.until.is_none_or(|until| now < until) {
            return;
        }
        self.until = None;
        self.state = match self.state {
            State::StartPending if !self.fails_to_start => State::Running,
            State::ContinuePending => State::Running,
            State::PausePending => State::Paused,
            State::StartPending | State::StopPending => State::Stopped,
            settled @ (State::Stopped | State::Running | State::Paused) => settled,
        };
    }

    fn becomes(&mut self, pending: State, at: u64, now: u64) {
        self.state = pending;
        self.until = Some(at);
        self.tick(now);
    }
}

impl Services {
    /// Lets the pending states end whose time has come.
    pub fn tick(&mut self, now: Time) {
        let now = milliseconds(now);
        for service in &mut self.services {
            service.tick(now);
        }
    }

    /// When the next pending state ends, if one does.
    pub fn next_change(&self) -> Option<Time> {
        let next = self.services.iter().filter_map(|service| service.until).min()?;
        Some(Time(Duration::from_millis(next)))
    }

    /// Whether `name` may be opened so.
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

    /// The configuration of `name`.
    pub fn config(&self, name: &str) -> OsResult<ServiceConfig> {
        let service = self.get(name)?;
        let display_name = U16String::from_str(&service.display_name);
        Ok(ServiceConfig { display_name, start_type: service.start_type as u32 })
    }

    /// The state of `name`.
    pub fn state(&mut self, name: &str, now: Time) -> OsResult<u32> {
        self.tick(now);
        Ok(self.get(name)?.state as u32)
    }

    /// Starts `name`, and first what it depends on.
    pub fn start(&mut self, name: &str, now: Time) -> OsResult<()> {
        self.tick(now);
        let service = self.get(name)?;
        if service.state != State::Stopped {
            return Err(OsError::SERVICE_ALREADY_RUNNING);
        }
        if service.start_type == StartType::Disabled {
            return Err(OsError::SERVICE_DISABLED);
        }
        let mut order = Vec::new();
        self.start_order(self.position(name)?, &mut Vec::new(), &mut order)?;
        let now = milliseconds(now);
        let mut ready = now;
        for position in order {
            self.starts += 1;
            let starts = self.starts;
            let service = &mut self.services[position];
            match service.state {
                State::Stopped => {
                    // One after the other: a service is started once those it needs are up.
                    ready = ready.saturating_add(service.start_milliseconds);
                    service.started = starts;
                    service.becomes(State::StartPending, ready, now);
                }
                _ => ready = ready.max(service.until.unwrap_or(now)),
            }
        }
        Ok(())
    }

    /// Stops `name`.
    pub fn stop(&mut self, name: &str, now: Time) -> OsResult<()> {
        self.tick(now);
        let service = self.get(name)?;
        match service.state {
            State::Stopped => return Err(OsError::SERVICE_NOT_ACTIVE),
            State::StartPending | State::StopPending => return Err(OsError::SERVICE_CANNOT_ACCEPT_CTRL),
            State::Running | State::ContinuePending | State::PausePending | State::Paused => {}
        }
        if !self.active_dependents(name, now)?.is_empty() {
            return Err(OsError::DEPENDENT_SERVICES_RUNNING);
        }
        if service.unstoppable {
            return Err(INVALID_SERVICE_CONTROL);
        }
        let now = milliseconds(now);
        let position = self.position(name)?;
        let service = &mut self.services[position];
        service.becomes(State::StopPending, now.saturating_add(service.stop_milliseconds), now);
        Ok(())
    }

    /// The names of the active services that depend on `name`, directly or not: those started last come first, so
    /// that none comes before one that depends on it.
    pub fn active_dependents(&self, name: &str, now: Time) -> OsResult<Vec<U16String>> {
        let current = {
            let mut current = self.clone();
            current.tick(now);
            current
        };
        let mut found = BTreeSet::new();
        let mut order = Vec::new();
        current.dependents(current.position(name)?, &mut found, &mut order);
        let active = order.into_iter().map(|position| &current.services[position]);
        let active = active.filter(|service| service.state != State::Stopped);
        Ok(active.map(|service| U16String::from_str(&service.name)).collect())
    }

    /// Starts the machine anew: what starts automatically runs, all else is stopped.
    pub fn reboot(&mut self, now: Time) {
        for service in &mut self.services {
            service.state = State::Stopped;
            service.until = None;
        }
        let boots = |service: &ServiceModel| !matches!(service.start_type, StartType::Manual | StartType::Disabled);
        let names: Vec<_> = self.services.iter().filter(|s| boots(s)).map(|service| service.name.clone()).collect();
        for name in names {
            // One that cannot start, or that another has started already, keeps no other from it.
            let _ = self.start(&name, now);
        }
    }

    /// Whether `name` runs.
    pub fn is_running(&mut self, name: &str, now: Time) -> bool {
        self.state(name, now) == Ok(State::Running as u32)
    }

    fn get(&self, name: &str) -> OsResult<&ServiceModel> {
        Ok(&self.services[self.position(name)?])
    }

    fn position(&self, name: &str) -> OsResult<usize> {
        let found = self.services.iter().position(|service| service.name.eq_ignore_ascii_case(name));
        found.ok_or(OsError::SERVICE_DOES_NOT_EXIST)
    }

    /// Puts the service and all it depends on in `order`, what is needed before what needs it.
    fn start_order(&self, position: usize, above: &mut Vec<usize>, order: &mut Vec<usize>) -> OsResult<()> {
        if above.contains(&position) {
            return Err(CIRCULAR_DEPENDENCY);
        }
        if order.contains(&position) {
            return Ok(());
        }
        above.push(position);
        for needed in &self.services[position].depends_on {
            let needed = self.position(needed).map_err(|_| SERVICE_DEPENDENCY_DELETED)?;
            let service = &self.services[needed];
            let cannot = service.start_type == StartType::Disabled || service.fails_to_start;
            if service.state == State::StopPending || service.state == State::Stopped && cannot {
                return Err(SERVICE_DEPENDENCY_FAIL);
            }
            self.start_order(needed, above, order)?;
        }
        above.pop();
        order.push(position);
        Ok(())
    }

    /// Puts all services that depend on the one at `position` in `order`, each behind those that depend on it and,
    /// where that leaves a choice, behind those that were started later.
    fn dependents(&self, position: usize, found: &mut BTreeSet<usize>, order: &mut Vec<usize>) {
        let name = &self.services[position].name;
        let needs = |service: &ServiceModel| service.depends_on.iter().any(|needed| needed.eq_ignore_ascii_case(name));
        let mut direct: Vec<_> = (0..self.services.len()).filter(|other| needs(&self.services[*other])).collect();
        direct.sort_by_key(|other| std::cmp::Reverse(self.services[*other].started));
        for other in direct {
            if found.insert(other) {
                self.dependents(other, found, order);
                order.push(other);
            }
        }
    }
}

fn milliseconds(time: Time) -> u64 {
    u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use os::{OsError, ServiceAccess, Time};

    use super::{CIRCULAR_DEPENDENCY, INVALID_SERVICE_CONTROL, SERVICE_DEPENDENCY_FAIL, ServiceModel, Services};
    use super::{StartType, State};

    const START: Time = Time(Duration::from_secs(100));

    fn services(edit: impl FnOnce(&mut Vec<ServiceModel>)) -> Services {
        let mut services = vec![ServiceModel::new("base", "The base")];
        for (name, needs) in [("a", "BASE"), ("b", "a"), ("c", "base"), ("d", "b"), ("alone", "")] {
            let mut service = ServiceModel::new(name, name);
            service.depends_on = if needs.is_empty() { Vec::new() } else { vec![needs.to_owned()] };
            services.push(service);
        }
        edit(&mut services);
        Services { services, ..Services::default() }
    }

    fn names(services: &Services, name: &str) -> Vec<String> {
        let dependents = services.active_dependents(name, START).expect("dependents");
        dependents.iter().map(|name| name.to_string_lossy()).collect()
    }

    fn state(services: &mut Services, name: &str, now: Time) -> u32 {
        services.state(name, now).expect("a state")
    }

    #[test]
    fn starting_and_stopping_take_their_time() {
        let mut services = services(|all| {
            all[0].start_milliseconds = 2000;
            all[0].stop_milliseconds = 500;
        });
        services.start("Base", START).expect("a start");
        assert_eq!(services.next_change(), Some(START + Duration::from_secs(2)));
        let almost = START + Duration::from_millis(1999);
        assert_eq!(state(&mut services, "base", almost), State::StartPending as u32);
        assert_eq!(services.stop("base", almost), Err(OsError::SERVICE_CANNOT_ACCEPT_CTRL));
        assert_eq!(services.start("base", almost), Err(OsError::SERVICE_ALREADY_RUNNING));

        let up = START + Duration::from_secs(2);
        assert!(services.is_running("base", up));
        services.stop("base", up).expect("a stop");
        assert_eq!(state(&mut services, "base", up), State::StopPending as u32);
        assert_eq!(state(&mut services, "base", up + Duration::from_millis(500)), State::Stopped as u32);
        assert_eq!(services.next_change(), None);
        assert_eq!(services.stop("base", up + Duration::from_secs(1)), Err(OsError::SERVICE_NOT_ACTIVE));
    }

    #[test]
    fn a_service_starts_what_it_needs_first() {
        let mut services = services(|all| {
            all[0].start_milliseconds = 1000;
            all[1].start_milliseconds = 1000;
        });
        services.start("b", START).expect("a start");
        let first = START + Duration::from_secs(1);
        assert!(services.is_running("base", first));
        assert!(!services.is_running("b", first));
        assert!(services.is_running("b", START + Duration::from_secs(2)));
    }

    #[test]
    fn dependents_are_listed_in_the_order_to_stop_them_in() {
        let mut services = services(|_| ());
        services.start("d", START).expect("a start");
        services.start("c", START).expect("a start");
        assert_eq!(names(&services, "base"), ["c", "d", "b", "a"]);
        assert_eq!(services.stop("base", START), Err(OsError::DEPENDENT_SERVICES_RUNNING));
        for name in names(&services, "base") {
            services.stop(&name, START).expect("its own dependents are down");
        }
        assert!(names(&services, "base").is_empty());
        services.stop("base", START).expect("a stop");
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_codes_of_windows() {
        let mut services = services(|all| {
            all[0].start_type = StartType::Disabled;
            all[5].unstoppable = true;
            all[5].depends_on = Vec::new();
        });
        assert_eq!(services.open("nobody", ServiceAccess::Query), Err(OsError::SERVICE_DOES_NOT_EXIST));
        assert_eq!(services.open("a/b", ServiceAccess::Query), Err(OsError::INVALID_NAME));
        assert_eq!(services.open("ALONE", ServiceAccess::Stop), Ok(()));
        assert_eq!(services.start("base", START), Err(OsError::SERVICE_DISABLED));
        assert_eq!(services.start("a", START), Err(SERVICE_DEPENDENCY_FAIL));
        services.start("alone", START).expect("a start");
        assert_eq!(services.stop("alone", START), Err(INVALID_SERVICE_CONTROL));
    }

    #[test]
    fn a_protected_service_can_be_read_only() {
        let services = services(|all| all[0].protected = true);
        assert_eq!(services.open("base", ServiceAccess::Query), Ok(()));
        assert_eq!(services.open("base", ServiceAccess::Start), Err(OsError::ACCESS_DENIED));
        let config = services.config("base").expect("a configuration");
        assert_eq!((config.display_name.to_string_lossy().as_str(), config.start_type), ("The base", 3));
    }

    #[test]
    fn a_service_that_fails_to_start_is_stopped_in_the_end() {
        let mut services = services(|all| {
            all[5].fails_to_start = true;
            all[5].start_milliseconds = 10;
        });
        services.start("alone", START).expect("the request is taken");
        assert_eq!(state(&mut services, "alone", START), State::StartPending as u32);
        assert_eq!(state(&mut services, "alone", START + Duration::from_millis(10)), State::Stopped as u32);
    }

    #[test]
    fn a_circle_of_dependencies_is_refused() {
        let mut services = services(|all| all[0].depends_on = vec!["d".to_owned()]);
        assert_eq!(services.start("a", START), Err(CIRCULAR_DEPENDENCY));
    }

    #[test]
    fn a_reboot_starts_what_starts_automatically() {
        let mut services = services(|all| all[2].start_type = StartType::Automatic);
        services.start("c", START).expect("a start");
        services.reboot(START);
        let running: Vec<_> =
            ["base", "a", "b", "c", "d"].into_iter().filter(|n| services.is_running(n, START)).collect();
        assert_eq!(running, ["base", "a", "b"]);
    }
}
