//! Services: `SVC`.

use std::time::Duration;

use os::{OsError, OsResult, Service, ServiceAccess, U16String};

use super::calls::assert_fails;
use super::devices::wait_until;
use crate::fact::Fact;
use crate::network::ServiceKind;
use crate::node::TestNode;

/// `SERVICE_STOPPED`.
pub(crate) const STOPPED: u32 = 1;
const START_PENDING: u32 = 2;
const STOP_PENDING: u32 = 3;
/// `SERVICE_RUNNING`.
pub(crate) const RUNNING: u32 = 4;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("SVC-01", |node| {
        stop(node, &[ServiceKind::Slow]);
        let service = opened(node, ServiceKind::Slow, ServiceAccess::Start);
        service.start().expect("the service starts");
        assert_eq!(service.state(), Ok(START_PENDING));
        wait_for(node, &*service, RUNNING);
        stop(node, &[ServiceKind::Slow]);
    }),
    Fact::new("SVC-02", |node| {
        stop(node, &[ServiceKind::Plain]);
        start(node, ServiceKind::Plain);
        let refused = |kind| opened(node, kind, ServiceAccess::Start).start();
        assert_eq!(
            refused(ServiceKind::Plain),
            Err(OsError::SERVICE_ALREADY_RUNNING)
        );
        assert_eq!(
            refused(ServiceKind::Disabled),
            Err(OsError::SERVICE_DISABLED)
        );
        assert_eq!(refused(ServiceKind::NeedsDisabled), Err(OsError(1068)));
        assert_eq!(refused(ServiceKind::NeedsMissing), Err(OsError(1075)));
        stop(node, &[ServiceKind::Plain]);
    }),
    Fact::new("SVC-04", |node| {
        stop(node, &[ServiceKind::First, ServiceKind::Plain]);
        start(node, ServiceKind::First);
        let refused = opened(node, ServiceKind::Plain, ServiceAccess::Stop).stop();
        assert_eq!(refused, Err(OsError::DEPENDENT_SERVICES_RUNNING));
        stop(node, &[ServiceKind::First, ServiceKind::Plain]);
        let stubborn = opened(node, ServiceKind::Unstoppable, ServiceAccess::Stop);
        if stubborn.state() == Ok(STOPPED) {
            start(node, ServiceKind::Unstoppable);
        }
        assert_eq!(stubborn.stop(), Err(OsError::INVALID_SERVICE_CONTROL));
    }),
    Fact::new("SVC-05", |node| {
        stop(node, &[ServiceKind::Slow]);
        opened(node, ServiceKind::Slow, ServiceAccess::Start)
            .start()
            .expect("the service starts");
        let service = opened(node, ServiceKind::Slow, ServiceAccess::Stop);
        match service.stop() {
            Ok(()) => wait_for(node, &*service, STOPPED),
            Err(code) => {
                assert_eq!(code, OsError::SERVICE_CANNOT_ACCEPT_CTRL);
                wait_for(node, &*service, RUNNING);
            }
        }
        stop(node, &[ServiceKind::Slow]);
    }),
    Fact::new("SVC-06", |node| {
        stop(node, &[ServiceKind::Plain]);
        let stopped = opened(node, ServiceKind::Plain, ServiceAccess::Stop).stop();
        assert_fails(
            stopped,
            &[
                OsError::SERVICE_NOT_ACTIVE,
                OsError::SERVICE_CANNOT_ACCEPT_CTRL,
            ],
        );
    }),
    Fact::new("SVC-07", |node| {
        use ServiceKind::{First, Plain, Second, Third};
        stop(node, &[Third, Second, First, Plain]);
        let base = opened(node, Plain, ServiceAccess::Stop);
        start(node, Plain);
        assert_eq!(base.active_dependents(), Ok(Vec::new()));
        for kind in [First, Second, Third] {
            start(node, kind);
        }
        let expected = [Third, Second, First].map(|kind| U16String::from_str(&node.service(kind)));
        assert_eq!(base.active_dependents(), Ok(expected.into()));
        stop(node, &[Third, Second, First, Plain]);
    }),
    Fact::new("SVC-12", |node| {
        use ServiceKind::{Slow, SlowToo};
        stop(node, &[Slow, SlowToo]);
        let [first, second] = [
            opened(node, Slow, ServiceAccess::Start),
            opened(node, SlowToo, ServiceAccess::Start),
        ];
        let clock = node.os().clock();
        let before = clock.now();
        for service in [&first, &second] {
            service.start().expect("the service starts");
        }
        wait_for(node, &*second, RUNNING);
        assert_eq!(first.state(), Ok(RUNNING));
        // Each takes two seconds.
        assert!(
            clock.now() - before > Duration::from_secs(3),
            "the services started side by side"
        );
        stop(node, &[Slow, SlowToo]);
    }),
    Fact::new("SVC-13", |node| {
        assert_eq!(
            open(node, "csi-proxy-no-such-service"),
            Err(OsError::SERVICE_DOES_NOT_EXIST)
        );
    }),
    Fact::new("SVC-16", |node| {
        for name in ["a/b", r"a\b", &"x".repeat(257)] {
            assert_eq!(open(node, name), Err(OsError::INVALID_NAME), "{name}");
        }
        assert_eq!(
            open(node, &"x".repeat(256)),
            Err(OsError::SERVICE_DOES_NOT_EXIST)
        );
        let name = node.service(ServiceKind::Plain);
        for name in [name.to_uppercase(), name.to_lowercase()] {
            assert_eq!(open(node, &name), Ok(()), "{name}");
        }
    }),
    Fact::new("SVC-19", |node| {
        for (kind, start_type) in [(ServiceKind::Plain, 3), (ServiceKind::Disabled, 4)] {
            let config = opened(node, kind, ServiceAccess::Query)
                .config()
                .expect("the configuration");
            assert_eq!(config.start_type, start_type);
            assert!(!config.display_name.is_empty());
        }
    }),
    Fact::new("SVC-20", |node| {
        let service = opened(node, ServiceKind::Plain, ServiceAccess::Query);
        assert_eq!(service.start(), Err(OsError::ACCESS_DENIED));
        assert_eq!(service.stop(), Err(OsError::ACCESS_DENIED));
    }),
    Fact::new("SVC-21", |node| {
        let service = opened(node, ServiceKind::Failing, ServiceAccess::Start);
        service.start().expect("the service begins to start");
        assert_eq!(service.state(), Ok(START_PENDING));
        wait_for(node, &*service, STOPPED);
    }),
    Fact::new("SVC-22", |node| {
        stop(node, &[ServiceKind::Slow]);
        start(node, ServiceKind::Slow);
        let service = opened(node, ServiceKind::Slow, ServiceAccess::Stop);
        service.stop().expect("the service stops");
        assert_eq!(service.state(), Ok(STOP_PENDING));
        assert_eq!(service.stop(), Err(OsError::SERVICE_CANNOT_ACCEPT_CTRL));
        wait_for(node, &*service, STOPPED);
    }),
];

/// Opens a service of this kind.
fn opened(node: &dyn TestNode, kind: ServiceKind, access: ServiceAccess) -> Box<dyn Service> {
    let name = U16String::from_str(&node.service(kind));
    node.os()
        .open_service(&name, access)
        .expect("the service opens")
}

/// Waits until a service has a state.
pub(crate) fn wait_for(node: &dyn TestNode, service: &dyn Service, wanted: u32) {
    let reached = wait_until(node, || service.state().expect("the state") == wanted);
    assert!(reached, "the service has not reached the state {wanted}");
}

/// Stops those services that run, in this order.
fn stop(node: &dyn TestNode, kinds: &[ServiceKind]) {
    for kind in kinds {
        let service = opened(node, *kind, ServiceAccess::Stop);
        if service.state().expect("the state") != STOPPED {
            service.stop().expect("the service stops");
            wait_for(node, &*service, STOPPED);
        }
    }
}

/// Starts a service and waits until it runs.
fn start(node: &dyn TestNode, kind: ServiceKind) {
    let service = opened(node, kind, ServiceAccess::Start);
    service.start().expect("the service starts");
    wait_for(node, &*service, RUNNING);
}

/// Opens a service by this name.
fn open(node: &dyn TestNode, name: &str) -> OsResult<()> {
    node.os()
        .open_service(&U16String::from_str(name), ServiceAccess::Query)
        .map(drop)
}
