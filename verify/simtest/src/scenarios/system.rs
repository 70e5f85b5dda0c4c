//! The operations on services, and on the machine's serial number.

use std::time::Duration;

use os_sim::Builder;
use storage_ops::{GetBiosSerialNumber, GetService, ServiceName, StartService, StopService};

use super::{Scenario, Spec, State, boxed, combine};

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
    State { name: "no service, and no serial number in the firmware", build: || os_sim::node().build() },
];

fn base() -> ServiceName {
    ServiceName::parse("base").expect("a name")
}

const OPERATIONS: &[Spec] = &[
    Spec::new("GetService", |_| boxed(GetService { name: base() })),
    Spec::new("StartService", |_| boxed(StartService { name: base() })).may_change(&["service base "]),
    Spec::new("StopService", |_| boxed(StopService { name: base(), force: false })).may_change(&["service base "]),
    Spec::new("StopService(with dependents)", |_| boxed(StopService { name: base(), force: true }))
        .may_change(&["service "]),
    Spec::new("GetBIOSSerialNumber", |_| boxed(GetBiosSerialNumber)),
];

/// Returns each operation in each state of a service.
pub fn scenarios() -> Vec<Scenario> {
    combine(OPERATIONS, STATES)
}
