//! The operations on services, and on the machine's serial number.

use std::time::Duration;

use os_sim::Builder;
use storage_ops::{GetBiosSerialNumber, GetService, ServiceName, StartService, StopService};

use super::{Scenario, Spec, State, boxed, combine, state};

fn service() -> Builder {
    os_sim::node()
        .bios_serial("VMware-56 4d")
        .service("base", "Base")
}

const STATES: &[State] = &[
    state("stopped", || service().build()),
    state("running", || service().running().build()),
    state("stopped, slow", || {
        service().slow(Duration::from_secs(5)).build()
    }),
    state("running, slow", || {
        service().running().slow(Duration::from_secs(5)).build()
    }),
    state("stopped, takes 2 min", || {
        service().slow(Duration::from_mins(2)).build()
    }),
    state("running, takes 2 min", || {
        service().running().slow(Duration::from_mins(2)).build()
    }),
    state("disabled", || service().disabled().build()),
    state("running with dependents", || {
        let middle = service()
            .running()
            .service("middle", "Middle")
            .depends_on("base")
            .running();
        middle
            .service("top", "Top")
            .depends_on("middle")
            .running()
            .build()
    }),
    state("running with slow dependents", || {
        let middle = service()
            .running()
            .service("middle", "Middle")
            .depends_on("base")
            .running();
        middle
            .slow(Duration::from_secs(3))
            .service("top", "Top")
            .depends_on("middle")
            .running()
            .build()
    }),
    state("no service, and no serial number in the firmware", || {
        os_sim::node().build()
    }),
];

fn base() -> ServiceName {
    ServiceName::parse("base").expect("a name")
}

const OPERATIONS: &[Spec] = &[
    Spec::new("GetService", |_| boxed(GetService { name: base() })),
    Spec::new("StartService", |_| boxed(StartService { name: base() }))
        .may_change(&["service base "]),
    Spec::new("StopService", |_| {
        boxed(StopService {
            name: base(),
            force: false,
        })
    })
    .may_change(&["service base "]),
    Spec::new("StopService(with dependents)", |_| {
        boxed(StopService {
            name: base(),
            force: true,
        })
    })
    .may_change(&["service "]),
    Spec::new("GetBIOSSerialNumber", |_| boxed(GetBiosSerialNumber)),
];

/// Returns each operation in each state of a service.
pub fn scenarios() -> Vec<Scenario> {
    combine(OPERATIONS, STATES)
}
