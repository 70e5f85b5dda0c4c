//! Services and the BIOS serial number.

use crate::setup::{over, refused};
use node::{GetBiosSerialNumber, GetService, Kind, ServiceName, StartService, StopService};
use os::OsError;
use os_sim::Sim;
use os_sim::fault::{Fault, Moment};
use os_sim::probe::Verdict;
use std::time::Duration;

fn name(text: &str) -> ServiceName {
    ServiceName::parse(text).unwrap()
}

fn state(sim: &Sim, text: &str) -> u32 {
    over(sim).run(&GetService { name: name(text) }).unwrap().state
}

#[test]
fn contract_30_the_bios_serial_number_is_verbatim() {
    let serial = "VMware-56 4d 0d 12  34 aa bb cc-01 02 03 04 05 06 07 08";
    let sim = os_sim::node().bios_serial(serial).build();
    assert_eq!(over(&sim).run(&GetBiosSerialNumber).unwrap(), serial);
}

#[test]
fn contract_30_service_numbers_are_those_of_windows() {
    let sim = os_sim::node().service("a", "Service A").running().service("b", "Service B").disabled().build();
    let get = |text: &str| over(&sim).run(&GetService { name: name(text) }).unwrap();
    let (a, b) = (get("a"), get("B"));
    assert_eq!((a.display_name.as_str(), a.state), ("Service A", 4));
    assert_eq!((b.start_type, b.state), (4, 1));
    refused(&over(&sim), &GetService { name: name("missing") }, Kind::NotFound);
}

#[test]
fn contract_30_start_and_stop_wait_for_the_state() {
    let sim = os_sim::node().service("slow", "Slow").slow(Duration::from_secs(5)).build();
    let node = over(&sim);
    for _ in 0..2 {
        node.run(&StartService { name: name("slow") }).unwrap();
        assert_eq!(state(&sim, "slow"), 4);
    }
    for _ in 0..2 {
        node.run(&StopService { name: name("slow"), force: false }).unwrap();
        assert_eq!(state(&sim, "slow"), 1);
    }
}

#[test]
fn a_service_that_takes_longer_than_30_s_is_still_under_way() {
    let sim = os_sim::node().service("slow", "Slow").slow(Duration::from_mins(2)).build();
    refused(&over(&sim), &StartService { name: name("slow") }, Kind::StillRunning);
}

#[test]
fn a_disabled_service_does_not_start() {
    let sim = os_sim::node().service("off", "Off").disabled().build();
    refused(&over(&sim), &StartService { name: name("off") }, Kind::FailedPrecondition);
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
    let node = over(&sim);
    let error = refused(&node, &StopService { name: name("base"), force: false }, Kind::FailedPrecondition);
    assert!(error.to_string().contains("top"), "{error}");
    assert_eq!(state(&sim, "base"), 4);
    node.run(&StopService { name: name("base"), force: true }).unwrap();
    assert_eq!((state(&sim, "base"), state(&sim, "middle"), state(&sim, "top")), (1, 1, 1));
}

#[test]
fn a_service_is_started_once_the_others_have() {
    let sim = os_sim::node().service("late", "Late").build();
    let locked = Fault::at(0, Moment::Before, Verdict::Fail(OsError::SERVICE_DATABASE_LOCKED))
        .among(|call| call.primitive == "service start");
    crate::setup::probed(&sim, locked).run(&StartService { name: name("late") }).unwrap();
    assert_eq!(state(&sim, "late"), 4);
}
