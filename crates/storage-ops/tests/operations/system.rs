//! Tests of the operations on services, and of the BIOS serial number.

use crate::setup::{
    NoProbe, failing, failing_on, failing_once, has_code, node_on, probed, refused, refused_saying,
    says, traced,
};
use faults::{Fault, FaultAction, When};
use os::{Os, OsError, ServiceAccess, U16String};
use os_sim::Sim;
use std::time::Duration;
use storage_ops::{
    ErrorKind::{FailedPrecondition, NotFound, PermissionDenied, StillRunning},
    GetBiosSerialNumber, GetService, ServiceName, StartService, StopService,
};

fn name(text: &str) -> ServiceName {
    ServiceName::parse(text).unwrap()
}

fn state(sim: &Sim, text: &str) -> u32 {
    node_on(sim)
        .run(&GetService { name: name(text) })
        .unwrap()
        .state
}

#[test]
fn contract_30_the_bios_serial_number_is_verbatim() {
    let serial = "VMware-56 4d 0d 12  34 aa bb cc-01 02 03 04 05 06 07 08";
    let sim = os_sim::node().bios_serial(serial).build();
    assert_eq!(node_on(&sim).run(&GetBiosSerialNumber).unwrap(), serial);
}

#[test]
fn contract_30_service_numbers_are_those_of_windows() {
    let sim = os_sim::node()
        .service("a", "Service A")
        .running()
        .service("b", "Service B")
        .disabled()
        .build();
    let (a, b) = (
        node_on(&sim).run(&GetService { name: name("a") }).unwrap(),
        node_on(&sim).run(&GetService { name: name("B") }).unwrap(),
    );
    assert_eq!((a.display_name.as_str(), a.state), ("Service A", 4));
    assert_eq!((b.start_type, b.state), (4, 1));
    refused(
        &node_on(&sim),
        &GetService {
            name: name("missing"),
        },
        NotFound,
    );
}

#[test]
fn contract_30_start_and_stop_wait_for_the_state() {
    let sim = os_sim::node()
        .service("slow", "Slow")
        .slow(Duration::from_secs(5))
        .build();
    let node = node_on(&sim);
    for _ in 0..2 {
        node.run(&StartService { name: name("slow") }).unwrap();
        assert_eq!(state(&sim, "slow"), 4);
    }
    for _ in 0..2 {
        node.run(&StopService {
            name: name("slow"),
            force: false,
        })
        .unwrap();
        assert_eq!(state(&sim, "slow"), 1);
    }
}

#[test]
fn a_start_that_takes_longer_than_30_s_is_reported_as_still_running() {
    let sim = os_sim::node()
        .service("slow", "Slow")
        .slow(Duration::from_mins(2))
        .build();
    refused(
        &node_on(&sim),
        &StartService { name: name("slow") },
        StillRunning,
    );
}

#[test]
fn a_disabled_service_does_not_start() {
    let sim = os_sim::node().service("off", "Off").disabled().build();
    refused(
        &node_on(&sim),
        &StartService { name: name("off") },
        FailedPrecondition,
    );
}

#[test]
fn a_service_with_running_dependents_stops_only_with_force_and_after_them() {
    let sim = os_sim::node()
        .service("base", "Base")
        .running()
        .service("middle", "Middle")
        .depends_on("base")
        .running()
        .service("top", "Top")
        .depends_on("middle")
        .running()
        .build();
    let node = node_on(&sim);
    let error = refused(
        &node,
        &StopService {
            name: name("base"),
            force: false,
        },
        FailedPrecondition,
    );
    says(&error, "top");
    has_code(&error, OsError::DEPENDENT_SERVICES_RUNNING);
    assert_eq!(state(&sim, "base"), 4);
    node.run(&StopService {
        name: name("base"),
        force: true,
    })
    .unwrap();
    assert_eq!(
        (
            state(&sim, "base"),
            state(&sim, "middle"),
            state(&sim, "top")
        ),
        (1, 1, 1)
    );
}

#[test]
fn a_service_is_started_when_the_service_database_is_unlocked() {
    let sim = os_sim::node().service("late", "Late").build();
    let locked = failing_once("service start", OsError::SERVICE_DATABASE_LOCKED);
    probed(&sim, locked)
        .run(&StartService { name: name("late") })
        .unwrap();
    assert_eq!(state(&sim, "late"), 4);
}

/// Returns a node with one service, `a`, which stays in this state.
fn node_with_a_service_in(state: &str) -> Sim {
    let text = format!("[[service]]\nname = \"a\"\ndisplay_name = \"A\"\nstate = \"{state}\"\n");
    Sim::from_toml(&text).unwrap()
}

#[test]
fn starting_a_paused_service_is_refused_with_the_reason() {
    for (state, number) in [("paused", 7), ("pause_pending", 6)] {
        let sim = node_with_a_service_in(state);
        let (node, trace) = traced(&sim, NoProbe);
        refused_saying(
            &node,
            &StartService { name: name("a") },
            FailedPrecondition,
            "the service is paused",
        );
        assert_eq!(trace.counts().of("service start"), 0);
        assert_eq!(self::state(&sim, "a"), number);
    }
}

#[test]
fn a_service_that_is_stopping_is_started_when_it_has_stopped() {
    let sim = os_sim::node()
        .service("slow", "Slow")
        .running()
        .slow(Duration::from_secs(5))
        .build();
    let os = sim.process();
    os.open_service(&U16String::from_str("slow"), ServiceAccess::Stop)
        .unwrap()
        .stop()
        .unwrap();
    assert_eq!(state(&sim, "slow"), 3);
    node_on(&sim)
        .run(&StartService { name: name("slow") })
        .unwrap();
    assert_eq!(state(&sim, "slow"), 4);
}

#[test]
fn starting_a_service_that_never_finishes_stopping_is_reported_as_still_running() {
    let node = node_on(&node_with_a_service_in("stop_pending"));
    refused_saying(
        &node,
        &StartService { name: name("a") },
        StillRunning,
        "still in state 3, not 1",
    );
}

#[test]
fn a_starting_or_stopping_service_is_stopped_when_it_accepts_controls_again() {
    let sim = os_sim::node()
        .service("slow", "Slow")
        .slow(Duration::from_secs(5))
        .build();
    let open = |access| {
        sim.process()
            .open_service(&U16String::from_str("slow"), access)
            .unwrap()
    };
    open(ServiceAccess::Start).start().unwrap();
    assert_eq!(state(&sim, "slow"), 2);
    node_on(&sim)
        .run(&StopService {
            name: name("slow"),
            force: false,
        })
        .unwrap();
    assert_eq!(state(&sim, "slow"), 1);
    node_on(&sim)
        .run(&StartService { name: name("slow") })
        .unwrap();
    open(ServiceAccess::Stop).stop().unwrap();
    assert_eq!(state(&sim, "slow"), 3);
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&StopService {
        name: name("slow"),
        force: false,
    })
    .unwrap();
    assert_eq!(state(&sim, "slow"), 1);
    assert_eq!(
        trace.counts().of("service stop"),
        1,
        "the service is stopping already"
    );
}

#[test]
fn a_service_that_stops_by_itself_counts_as_stopped_whatever_windows_calls_it() {
    for code in [
        OsError::SERVICE_CANNOT_ACCEPT_CTRL,
        OsError::SERVICE_NOT_ACTIVE,
    ] {
        let sim = os_sim::node().service("a", "A").running().build();
        let gone = Fault::at(0, When::After, FaultAction::Fail(code))
            .among(|call| call.primitive == "service stop");
        let before = sim.now();
        probed(&sim, gone)
            .run(&StopService {
                name: name("a"),
                force: false,
            })
            .unwrap();
        assert_eq!((state(&sim, "a"), sim.now()), (1, before));
    }
}

#[test]
fn a_service_that_cannot_be_stopped_is_described_as_such() {
    let sim = os_sim::node().service("a", "A").running().build();
    let node = probed(
        &sim,
        failing("service stop", OsError::INVALID_SERVICE_CONTROL),
    );
    let error = refused(
        &node,
        &StopService {
            name: name("a"),
            force: false,
        },
        FailedPrecondition,
    );
    let reason = "cannot stop the service a: the service cannot be stopped: it does not accept the \
                  stop control";
    assert!(error.to_string().starts_with(reason), "{error}");
}

#[test]
fn contract_30_a_start_waits_for_that_of_another_service() {
    let sim = os_sim::node()
        .service("a", "A")
        .slow(Duration::from_secs(10))
        .service("b", "B")
        .slow(Duration::from_secs(10))
        .build();
    let os = sim.process();
    os.open_service(&U16String::from_str("a"), ServiceAccess::Start)
        .unwrap()
        .start()
        .unwrap();
    node_on(&sim)
        .run(&StartService { name: name("b") })
        .unwrap();
    assert_eq!((state(&sim, "a"), state(&sim, "b")), (4, 4));
    assert!(sim.now().0 >= Duration::from_secs(20), "{:?}", sim.now());
}

#[test]
fn the_error_names_the_dependent_that_could_not_be_stopped() {
    let sim = os_sim::node()
        .service("base", "Base")
        .running()
        .service("top", "Top")
        .depends_on("base")
        .running();
    let sim = sim.build();
    let refusing = failing_on(
        "service stop",
        |object| object == "top",
        OsError::ACCESS_DENIED,
    );
    let stop = StopService {
        name: name("base"),
        force: true,
    };
    refused_saying(
        &probed(&sim, refusing),
        &stop,
        PermissionDenied,
        "the dependent service top could not be stopped",
    );
    assert_eq!(state(&sim, "base"), 4);
}

#[test]
fn a_service_name_has_at_most_256_units_and_no_forbidden_character() {
    for unit in ["x", "\u{e9}"] {
        let longest = unit.repeat(256);
        assert_eq!(name(&longest).to_string(), longest);
        for more in ["x", "xx"] {
            assert!(ServiceName::parse(&format!("{longest}{more}")).is_err());
        }
    }
    for bad in ["", "a/b", r"a\b", "a\0b", "a\n"] {
        assert!(ServiceName::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_firmware_table_of_any_size_is_read() {
    for length in [1, 4000, 4096, 100_000] {
        let serial = "x".repeat(length);
        let sim = os_sim::node().bios_serial(&serial).build();
        assert_eq!(node_on(&sim).run(&GetBiosSerialNumber).unwrap(), serial);
    }
}
