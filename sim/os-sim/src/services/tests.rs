//! The rules of the service control manager.

use std::time::Duration;

use os::{OsError, ServiceAccess, Time};

use super::{CIRCULAR_DEPENDENCY, ServiceModel, Services};
use super::{ServiceState, StartType};

const START: Time = Time(Duration::from_secs(100));

fn services(edit: impl FnOnce(&mut Vec<ServiceModel>)) -> Services {
    let mut services = vec![ServiceModel::new("base", "The base")];
    for (name, needs) in [
        ("a", "BASE"),
        ("b", "a"),
        ("c", "base"),
        ("d", "b"),
        ("alone", ""),
    ] {
        let mut service = ServiceModel::new(name, name);
        service.depends_on = if needs.is_empty() {
            Vec::new()
        } else {
            vec![needs.to_owned()]
        };
        services.push(service);
    }
    edit(&mut services);
    Services {
        services,
        ..Services::default()
    }
}

fn state(services: &mut Services, name: &str, now: Time) -> u32 {
    services.state(name, now).expect("a state")
}

fn is_running(services: &mut Services, name: &str, now: Time) -> bool {
    state(services, name, now) == ServiceState::Running as u32
}

#[test]
fn a_service_starts_after_those_it_depends_on() {
    let mut services = services(|all| {
        all[0].start_takes = Duration::from_secs(1);
        all[1].start_takes = Duration::from_secs(1);
    });
    services.start("b", START).expect("a start");
    let first = START + Duration::from_secs(1);
    assert!(is_running(&mut services, "base", first));
    assert!(!is_running(&mut services, "b", first));
    assert!(is_running(
        &mut services,
        "b",
        START + Duration::from_secs(2)
    ));
}

#[test]
fn a_protected_service_can_only_be_queried() {
    let services = services(|all| all[0].protected = true);
    assert_eq!(services.open("base", ServiceAccess::Query), Ok(()));
    assert_eq!(
        services.open("base", ServiceAccess::Start),
        Err(OsError::ACCESS_DENIED)
    );
    let config = services.config("base").expect("a configuration");
    assert_eq!(
        (
            config.display_name.to_string_lossy().as_str(),
            config.start_type
        ),
        ("The base", 3)
    );
}

#[test]
fn a_circular_dependency_is_rejected() {
    let mut services = services(|all| all[0].depends_on = vec!["d".to_owned()]);
    assert_eq!(services.start("a", START), Err(CIRCULAR_DEPENDENCY));
}

#[test]
fn a_reboot_starts_the_automatic_services_and_their_dependencies() {
    let mut services = services(|all| all[2].start_type = StartType::Automatic);
    services.start("c", START).expect("a start");
    services.reboot(START);
    let running: Vec<_> = ["base", "a", "b", "c", "d"]
        .into_iter()
        .filter(|n| is_running(&mut services, n, START))
        .collect();
    assert_eq!(running, ["base", "a", "b"]);
}
