//! Services, and the serial number of the machine.

use std::time::Duration;

use os_sim::Builder;
use storage_ops::{GetBiosSerialNumber, GetService, ServiceName, StartService, StopService};

use super::ask;
use crate::request::{Asked, Scenario, State, all_of};

fn service() -> Builder {
    os_sim::node().bios_serial("VMware-56 4d").service("base", "Base")
}

const STATES: &[State] = &[
    State { name: "stopped", build: || service().build() },
    State { name: "running", build: || service().running().build() },
    State { name: "stopped, slow", build: || service().slow(Duration::from_secs(5)).build() },
    State { name: "running, slow", build: || service().running().slow(Duration::from_secs(5)).build() },
    State { name: "stopped, takes 2 min", build: || service().slow(Duration::from_mins(2)).build() },
    State { name: "running, takes 2 min", build: || service().running().slow(Duration::from_mins(2)).build() },
    State { name: "disabled", build: || service().disabled().build() },
    State {
        name: "running with dependents",
        build: || {
            let middle = service().running().service("middle", "Middle").depends_on("base").running();
            middle.service("top", "Top").depends_on("middle").running().build()
        },
    },
    State {
        name: "running with slow dependents",
        build: || {
            let middle = service().running().service("middle", "Middle").depends_on("base").running();
            middle.slow(Duration::from_secs(3)).service("top", "Top").depends_on("middle").running().build()
        },
    },
    State { name: "missing, and no serial in the firmware", build: || os_sim::node().build() },
];

fn base() -> ServiceName {
    ServiceName::parse("base").expect("a name")
}

const OPERATIONS: &[Asked] = &[
    Asked::new("GetService", |_| ask(GetService { name: base() })),
    Asked::new("StartService", |_| ask(StartService { name: base() })).changing(&["service base "]),
    Asked::new("StopService", |_| ask(StopService { name: base(), force: false })).changing(&["service base "]),
    Asked::new("StopService(with dependents)", |_| ask(StopService { name: base(), force: true }))
        .changing(&["service "]),
    Asked::new("GetBIOSSerialNumber", |_| ask(GetBiosSerialNumber)),
];

/// Each operation on services in each state of a service.
pub fn scenarios() -> Vec<Scenario> {
    all_of(OPERATIONS, STATES)
}
