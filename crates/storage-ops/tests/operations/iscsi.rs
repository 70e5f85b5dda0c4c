//! Tests of the operations on the iSCSI initiator.

use crate::setup::{
    GIB, NoProbe, both, failing, failing_once, has_code, layered, node_on, probed, provider,
    refused, refused_saying, secret_text, traced,
};

use std::collections::BTreeSet;
use std::sync::Mutex;

use faults::{Fault, FaultAction, Layer, Probe, Race, When};
use os::{
    Access, CallStatus, Instance, MethodCall, Namespace, NtPath, Open, Options, Os, OsError,
    OsResult, Returned, Time, Value, Wmi,
};
use os_sim::Sim;
use storage_ops::{
    AddTargetPortal, Authentication, ConnectTarget, DisconnectTarget, DiscoverTargetPortal,
    ErrorKind::{FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unavailable},
    GetDiskStats, GetTargetDisks, Iqn, ListTargetPortals, Node, RemoveTargetPortal, ServiceName,
    SetMutualChapSecret, StartService, TargetPortal,
};

pub(crate) const PLAIN: &str = "iqn.2024-01.test:plain";
pub(crate) const CHAP: &str = "iqn.2024-01.test:chap";
const MUTUAL: &str = "iqn.2024-01.test:mutual";

pub(crate) fn sim() -> Sim {
    os_sim::node()
        .service("MSiSCSI", "Microsoft iSCSI Initiator Service")
        .running()
        .iscsi_portal("10.0.0.5", 3260)
        .target(PLAIN)
        .lun(GIB)
        .target(CHAP)
        .lun(GIB)
        .chap("user", "secret-secret")
        .target(MUTUAL)
        .lun(GIB)
        .chap("user", "secret-secret")
        .mutual("mutual-secret")
        .build()
}

pub(crate) fn portal() -> TargetPortal {
    TargetPortal::parse("10.0.0.5", 0).unwrap()
}

/// Returns a node that knows the portal and its targets.
fn discovered(sim: &Sim) -> Node {
    let node = node_on(sim);
    node.run(&AddTargetPortal { portal: portal() }).unwrap();
    node.run(&DiscoverTargetPortal { portal: portal() })
        .unwrap();
    node
}

pub(crate) fn plain() -> Iqn {
    Iqn::parse(PLAIN).unwrap()
}

pub(crate) fn connect(iqn: &str, authentication: Authentication, secret: &str) -> ConnectTarget {
    let username = if secret.is_empty() { "" } else { "user" };
    ConnectTarget {
        portal: portal(),
        iqn: Iqn::parse(iqn).unwrap(),
        authentication,
        username: secret_text(username),
        secret: secret_text(secret),
    }
}

#[test]
fn contract_30_port_0_is_3260_and_adding_twice_succeeds() {
    let sim = sim();
    let node = node_on(&sim);
    assert!(node.run(&ListTargetPortals).unwrap().is_empty());
    for _ in 0..2 {
        node.run(&AddTargetPortal { portal: portal() }).unwrap();
    }
    assert_eq!(
        node.run(&ListTargetPortals).unwrap(),
        [TargetPortal::parse("10.0.0.5", 3260).unwrap()]
    );
    let mut found = node
        .run(&DiscoverTargetPortal { portal: portal() })
        .unwrap();
    found.sort();
    assert_eq!(found, [CHAP, MUTUAL, PLAIN]);
    for _ in 0..2 {
        node.run(&RemoveTargetPortal { portal: portal() }).unwrap();
    }
    assert!(node.run(&ListTargetPortals).unwrap().is_empty());
    refused(&node, &DiscoverTargetPortal { portal: portal() }, NotFound);
}

#[test]
fn contract_30_connecting_and_disconnecting_twice_succeeds_and_an_unconnected_target_has_no_disks()
{
    let sim = sim();
    let node = node_on(&sim);
    let iqn = plain();
    let disks = GetTargetDisks {
        portal: portal(),
        iqn: iqn.clone(),
    };
    refused(&node, &disks, NotFound);
    assert!(discovered(&sim).run(&disks).unwrap().is_empty());
    for _ in 0..2 {
        node.run(&connect(PLAIN, Authentication::None, "")).unwrap();
    }
    let found = node.run(&disks).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        node.run(&storage_ops::GetDiskStats { disk: found[0] })
            .unwrap(),
        GIB
    );
    for _ in 0..2 {
        node.run(&DisconnectTarget {
            portal: portal(),
            iqn: iqn.clone(),
        })
        .unwrap();
    }
    assert!(node.run(&disks).unwrap().is_empty());
    refused(
        &node,
        &storage_ops::GetDiskStats { disk: found[0] },
        NotFound,
    );
}

fn mutual(secret: &str) -> SetMutualChapSecret {
    SetMutualChapSecret {
        secret: secret_text(secret),
    }
}

#[test]
fn a_target_checks_the_chap_secret_and_the_initiator_the_mutual_one() {
    let sim = sim();
    let node = discovered(&sim);
    refused(
        &node,
        &connect(CHAP, Authentication::None, ""),
        PermissionDenied,
    );
    refused(
        &node,
        &connect(CHAP, Authentication::OneWayChap, "wrong-wrong-1"),
        PermissionDenied,
    );
    node.run(&connect(CHAP, Authentication::OneWayChap, "secret-secret"))
        .unwrap();
    refused(
        &node,
        &connect(MUTUAL, Authentication::MutualChap, "secret-secret"),
        PermissionDenied,
    );
    refused(&node, &mutual("too-short"), InvalidArgument);
    node.run(&mutual("mutual-secret")).unwrap();
    node.run(&connect(
        MUTUAL,
        Authentication::MutualChap,
        "secret-secret",
    ))
    .unwrap();
}

fn parsed(address: &str, port: u32) -> Option<String> {
    TargetPortal::parse(address, port)
        .ok()
        .map(|portal| portal.to_string())
}

#[test]
fn a_portal_has_an_address_of_up_to_255_bytes_and_a_port_of_16_bits() {
    for address in [
        "10.0.0.5",
        "fe80::1%eth0",
        "[2001:db8::1]",
        "Target_1.example-net.org",
        &"a".repeat(255),
    ] {
        assert_eq!(parsed(address, 65_535), Some(format!("{address}:65535")));
        assert_eq!(parsed(address, 0), Some(format!("{address}:3260")));
    }
    for address in [
        "",
        "a b",
        "a'b",
        r"a\b",
        "a/b",
        "\u{e4}",
        "a\0",
        &"a".repeat(256),
    ] {
        assert_eq!(parsed(address, 3260), None, "{address}");
    }
    assert_eq!(parsed("10.0.0.5", 65_536), None);
    assert_eq!(parsed("10.0.0.5", u32::MAX), None);
}

#[test]
fn a_target_name_has_up_to_223_bytes_and_one_of_three_prefixes() {
    let longest = format!("iqn.{}", "a".repeat(219));
    for name in [
        PLAIN,
        "IQN.2024-01.Test:X_1",
        "eui.02004567A425678D",
        "naa.52004567BA64678D",
        &longest,
    ] {
        assert_eq!(Iqn::parse(name).unwrap().to_string(), name);
    }
    let too_long = format!("{longest}a");
    for name in [
        "", "iqn", "xyz.a", "iqn.a b", "iqn.a'b", "iqn.a/b", "iqn.a\0", &too_long,
    ] {
        assert_eq!(
            Iqn::parse(name).unwrap_err().in_request_of("x").kind(),
            InvalidArgument,
            "{name}"
        );
    }
}

#[test]
fn connecting_a_target_returns_as_soon_as_its_disks_have_arrived() {
    let sim = sim();
    let node = discovered(&sim);
    let before = sim.now();
    node.run(&connect(PLAIN, Authentication::None, "")).unwrap();
    assert_eq!(sim.now(), before);
}

#[test]
fn a_persistent_session_is_not_restored_after_it_was_disconnected() {
    const UNREGISTER: &str = "wmi call MSFT_iSCSISession.Unregister";
    for registrations in 0..3 {
        let sim = sim();
        let (_, disconnect) = connected(&sim, NoProbe);
        for _ in 0..registrations {
            provider(&sim, "SELECT * FROM MSFT_iSCSISession", "Register", &[]);
        }
        let (node, trace) = traced(&sim, NoProbe);
        node.run(&disconnect).unwrap();
        assert_eq!(trace.counts().of(UNREGISTER), registrations);
        sim.reboot();
        assert_eq!(sim.disks().len(), 1);
    }
}

#[test]
fn a_portal_that_does_not_answer_is_not_left_behind() {
    let sim = sim();
    let node = node_on(&sim);
    let silent = TargetPortal::parse("10.0.0.6", 0).unwrap();
    for _ in 0..2 {
        let error = refused(
            &node,
            &AddTargetPortal {
                portal: silent.clone(),
            },
            FailedPrecondition,
        );
        has_code(&error, OsError::ISDSC_CONNECTION_FAILED);
        assert!(node.run(&ListTargetPortals).unwrap().is_empty());
    }
}

/// Returns a node that is connected to [`PLAIN`], with this probe.
pub(crate) fn connected(sim: &Sim, probe: impl Probe + 'static) -> (Node, DisconnectTarget) {
    discovered(sim)
        .run(&connect(PLAIN, Authentication::None, ""))
        .unwrap();
    (
        probed(sim, probe),
        DisconnectTarget {
            portal: portal(),
            iqn: plain(),
        },
    )
}

pub(crate) const CONNECT: &str = "wmi call MSFT_iSCSITarget.Connect";
pub(crate) const DISCONNECT: &str = "wmi call MSFT_iSCSITarget.Disconnect";

#[test]
fn a_session_that_is_busy_for_a_while_ends() {
    for code in [
        OsError::ISDSC_SESSION_BUSY,
        OsError::ISDSC_DEVICE_BUSY_ON_SESSION,
    ] {
        let sim = sim();
        let busy = failing_once(DISCONNECT, code);
        let (node, disconnect) = connected(&sim, busy);
        node.run(&disconnect).unwrap();
        assert_eq!(sim.disks().len(), 1);
    }
}

#[test]
fn a_session_whose_disk_stays_open_is_reported_and_kept() {
    let sim = sim();
    let (node, disconnect) = connected(&sim, NoProbe);
    let how = Open::existing(Access::GENERIC_READ, Options::empty());
    let disk = sim.open(&NtPath::disk(1), &how).unwrap();
    let error = refused(&node, &disconnect, FailedPrecondition);
    has_code(&error, OsError::ISDSC_DEVICE_BUSY_ON_SESSION);
    drop(disk);
    node.run(&disconnect).unwrap();
}

#[test]
fn a_target_that_another_program_connects_or_disconnects_first_is_no_error() {
    let sim = sim();
    let (node, disconnect) = connected(
        &sim,
        Fault::at(
            0,
            When::After,
            FaultAction::Fail(OsError::ISDSC_INVALID_SESSION_ID),
        )
        .among(|call| call.primitive == DISCONNECT),
    );
    node.run(&disconnect).unwrap();
    let taken = Fault::at(
        0,
        When::After,
        FaultAction::Fail(OsError::ISDSC_TARGET_ALREADY_LOGGED_IN),
    );
    probed(&sim, taken.among(|call| call.primitive == CONNECT))
        .run(&connect(PLAIN, Authentication::None, ""))
        .unwrap();
    node.run(&disconnect).unwrap();
    // The initiator claims it, but the target has no session.
    let wrong = failing(CONNECT, OsError::ISDSC_TARGET_ALREADY_LOGGED_IN);
    let error = refused(
        &probed(&sim, wrong),
        &connect(PLAIN, Authentication::None, ""),
        FailedPrecondition,
    );
    has_code(&error, OsError::ISDSC_TARGET_ALREADY_LOGGED_IN);
}

#[test]
fn both_sessions_of_a_target_are_disconnected_after_a_restart() {
    let sim = sim();
    let (node, disconnect) = connected(&sim, NoProbe);
    for _ in 0..2 {
        provider(&sim, "SELECT * FROM MSFT_iSCSISession", "Register", &[]);
    }
    sim.reboot();
    node.run(&StartService {
        name: ServiceName::parse("MSiSCSI").unwrap(),
    })
    .unwrap();
    let disks = GetTargetDisks {
        portal: portal(),
        iqn: plain(),
    };
    assert_eq!(
        node.run(&disks).unwrap().len(),
        1,
        "both sessions lead to one disk"
    );
    node.run(&disconnect).unwrap();
    assert!(node.run(&disks).unwrap().is_empty());
    sim.reboot();
    assert_eq!(sim.disks().len(), 1);
}

#[test]
fn a_portal_that_another_program_has_added_is_kept_if_the_request_was_not_started() {
    for code in [OsError::WMI_TIMED_OUT, OsError::WMI_QUEUE_FULL] {
        let sim = sim();
        let other = sim.clone();
        let adding = Race::before(0, move || {
            node_on(&other)
                .run(&AddTargetPortal { portal: portal() })
                .unwrap();
        })
        .among(|call| call.primitive == NEW);
        let probes = both(adding, failing(NEW, code));
        refused(
            &probed(&sim, probes),
            &AddTargetPortal { portal: portal() },
            Unavailable,
        );
        assert_eq!(node_on(&sim).run(&ListTargetPortals).unwrap(), [portal()]);
    }
}

const NEW: &str = "wmi call MSFT_iSCSITargetPortal.New";

/// Lists no session.
struct NoSessions;

impl Layer for NoSessions {
    fn change_instances(&self, wql: &str, found: &mut Vec<Instance>) {
        if wql.contains("FROM MSFT_iSCSISession") {
            found.clear();
        }
    }
}

#[test]
fn a_connected_target_without_sessions_is_not_reported_as_disconnected() {
    let sim = sim();
    let (node, disconnect) = connected(&sim, NoProbe);
    let without = layered(&sim, NoSessions);
    refused_saying(&without, &disconnect, FailedPrecondition, "no session");
    node.run(&disconnect).unwrap();
    without.run(&disconnect).unwrap();
}

/// Returns a node on which the portals 10.0.0.5 and 10.0.0.6, which were added, have targets of one
/// name: one target with two portals, or two.
pub(crate) fn two_portals(targets: &str) -> Sim {
    let service = "[[service]]\nname = 'MSiSCSI'\ndisplay_name = 'Microsoft iSCSI Initiator \
                   Service'\nstate = 'running'\n";
    let portals =
        "[[iscsi_portal]]\naddress = '10.0.0.5'\n[[iscsi_portal]]\naddress = '10.0.0.6'\n";
    let sim = Sim::from_toml(&format!("{service}{portals}{targets}")).unwrap();
    for address in ["10.0.0.5", "10.0.0.6"] {
        node_on(&sim)
            .run(&AddTargetPortal {
                portal: at(address),
            })
            .unwrap();
    }
    sim
}

pub(crate) fn two_targets() -> Sim {
    let target = |address: &str, size: &str| {
        format!(
            "[[iscsi_target]]\niqn = '{PLAIN}'\nportals = [{{ address = '{address}' }}]\n\
             luns = [{{ number = 0, size = '{size}' }}]\n"
        )
    };
    two_portals(&[target("10.0.0.5", "1 GiB"), target("10.0.0.6", "2 GiB")].concat())
}

pub(crate) fn at(address: &str) -> TargetPortal {
    TargetPortal::parse(address, 0).unwrap()
}

pub(crate) fn connect_at(address: &str) -> ConnectTarget {
    ConnectTarget {
        portal: at(address),
        ..connect(PLAIN, Authentication::None, "")
    }
}

pub(crate) fn disconnect_at(address: &str) -> DisconnectTarget {
    DisconnectTarget {
        portal: at(address),
        iqn: plain(),
    }
}

pub(crate) fn disks_at(node: &Node, address: &str) -> Vec<u64> {
    sizes_of(node, at(address))
}

/// Returns the sizes of the disks.
fn sizes_of(node: &Node, portal: TargetPortal) -> Vec<u64> {
    let disks = node
        .run(&GetTargetDisks {
            portal,
            iqn: plain(),
        })
        .unwrap();
    disks
        .into_iter()
        .map(|disk| node.run(&GetDiskStats { disk }).unwrap())
        .collect()
}

#[test]
fn a_session_with_a_target_of_the_same_name_at_another_portal_is_not_that_of_the_request() {
    let sim = two_targets();
    let node = node_on(&sim);
    node.run(&connect_at("10.0.0.6")).unwrap();
    refused_saying(
        &node,
        &connect_at("10.0.0.5"),
        FailedPrecondition,
        "through 10.0.0.6",
    );
    assert_eq!(disks_at(&node, "10.0.0.5"), [0; 0]);
    refused_saying(
        &node,
        &disconnect_at("10.0.0.5"),
        FailedPrecondition,
        "through 10.0.0.6:3260, connected",
    );
    assert_eq!(
        disks_at(&node, "10.0.0.6"),
        [2 * GIB],
        "the session of the other portal stays"
    );
    node.run(&disconnect_at("10.0.0.6")).unwrap();
    node.run(&connect_at("10.0.0.5")).unwrap();
    assert_eq!(
        (disks_at(&node, "10.0.0.5"), disks_at(&node, "10.0.0.6")),
        (vec![GIB], vec![])
    );
}

#[test]
fn a_session_that_another_client_opens_during_the_request_is_not_that_of_the_request() {
    let sim = two_targets();
    let other = sim.clone();
    let first = Race::before(0, move || {
        node_on(&other).run(&connect_at("10.0.0.6")).unwrap();
    })
    .among(|call| call.primitive == CONNECT);
    refused_saying(
        &probed(&sim, first),
        &connect_at("10.0.0.5"),
        FailedPrecondition,
        "through 10.0.0.6",
    );
}

#[test]
fn a_target_that_the_portal_does_not_offer_is_unknown_there_though_it_is_connected() {
    let sim = two_portals(&format!(
        "[[iscsi_target]]\niqn = '{PLAIN}'\nportals = [{{ address = '10.0.0.6' }}]\n"
    ));
    let node = node_on(&sim);
    node.run(&connect_at("10.0.0.6")).unwrap();
    refused(&node, &connect_at("10.0.0.5"), NotFound);
    let disks = GetTargetDisks {
        portal: portal(),
        iqn: plain(),
    };
    refused(&node, &disks, NotFound);
    // Names are compared without regard to case.
    let upper = ConnectTarget {
        iqn: Iqn::parse(&PLAIN.to_uppercase()).unwrap(),
        ..connect_at("10.0.0.6")
    };
    node.run(&upper).unwrap();
}

fn of(authentication: Authentication) -> ConnectTarget {
    connect(MUTUAL, authentication, "secret-secret")
}

#[test]
fn a_session_that_was_made_with_another_authentication_is_not_that_of_the_request() {
    let sim = sim();
    let node = node_on(&sim);
    node.run(&AddTargetPortal { portal: portal() }).unwrap();
    node.run(&SetMutualChapSecret {
        secret: secret_text("mutual-secret"),
    })
    .unwrap();
    node.run(&of(Authentication::OneWayChap)).unwrap();
    for other in [Authentication::None, Authentication::MutualChap] {
        refused_saying(
            &node,
            &of(other),
            FailedPrecondition,
            "with the authentication ONEWAYCHAP and not ",
        );
    }
    node.run(&of(Authentication::OneWayChap)).unwrap();
    node.run(&DisconnectTarget {
        portal: portal(),
        iqn: Iqn::parse(MUTUAL).unwrap(),
    })
    .unwrap();
    node.run(&of(Authentication::MutualChap)).unwrap();
}

#[test]
fn a_target_with_sessions_through_two_portals_is_connected_through_both() {
    let sim = two_portals(&format!(
        "[[iscsi_target]]\niqn = '{PLAIN}'\nportals = [{{ address = '10.0.0.5' }}, \
         {{ address = '10.0.0.6' }}]\n\
         luns = [{{ number = 0, size = '1 GiB' }}]\n"
    ));
    let node = node_on(&sim);
    node.run(&connect_at("10.0.0.5")).unwrap();
    // Multipath I/O opens the second session.
    let arguments = [
        ("NodeAddress", Value::Text(PLAIN.into())),
        ("TargetPortalAddress", Value::Text("10.0.0.6".into())),
        ("TargetPortalPortNumber", Value::U32(3260)),
        ("IsMultipathEnabled", Value::Bool(true)),
    ];
    provider(
        &sim,
        "SELECT * FROM MSFT_iSCSITarget",
        "Connect",
        &arguments,
    );
    for address in ["10.0.0.5", "10.0.0.6"] {
        node.run(&connect_at(address)).unwrap();
        assert_eq!(disks_at(&node, address), [GIB]);
    }
    refused_saying(
        &node,
        &disconnect_at("10.0.0.5"),
        FailedPrecondition,
        "through 10.0.0.6",
    );
    assert_eq!(
        (disks_at(&node, "10.0.0.5"), disks_at(&node, "10.0.0.6")),
        (vec![], vec![GIB]),
        "its own session has ended"
    );
    node.run(&disconnect_at("10.0.0.6")).unwrap();
    assert_eq!(sim.disks().len(), 1);
}

/// Returns a node to which a portal was added that is given by its name.
pub(crate) fn named_portal() -> (Sim, Node) {
    let service = os_sim::node()
        .service("MSiSCSI", "Microsoft iSCSI Initiator Service")
        .running();
    let sim = service
        .iscsi_portal("storage.test", 3260)
        .target(PLAIN)
        .lun(GIB)
        .build();
    let node = node_on(&sim);
    node.run(&AddTargetPortal {
        portal: at("storage.test"),
    })
    .unwrap();
    (sim, node)
}

#[test]
fn a_portal_that_is_given_by_name_is_compared_by_its_port() {
    let (sim, node) = named_portal();
    for _ in 0..2 {
        node.run(&connect_at("storage.test")).unwrap();
        assert_eq!(disks_at(&node, "storage.test"), [GIB]);
    }
    node.run(&disconnect_at("storage.test")).unwrap();
    assert_eq!(sim.disks().len(), 1);
}

/// Refuses queries about paths that it has not returned, and returns no session from Connect.
#[derive(Default)]
struct NoOtherPaths(Mutex<BTreeSet<String>>);

impl Layer for NoOtherPaths {
    fn wmi_query(
        &self,
        wmi: &dyn Wmi,
        namespace: Namespace,
        wql: &str,
        deadline: Time,
    ) -> OsResult<Vec<Instance>> {
        const INVALID_OBJECT_PATH: OsError = OsError(0x8004_103a);
        let path = wql
            .strip_prefix("ASSOCIATORS OF {")
            .and_then(|rest| rest.split_once('}'));
        if path.is_some_and(|(path, _)| !self.0.lock().unwrap().contains(path)) {
            return Err(INVALID_OBJECT_PATH);
        }
        let found = wmi.query(namespace, wql, deadline)?;
        self.0
            .lock()
            .unwrap()
            .extend(found.iter().map(|instance| instance.path.clone()));
        Ok(found)
    }

    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        Ok(match wmi.call(call, deadline)? {
            CallStatus::Done(returned) => CallStatus::Done(Returned {
                code: returned.code,
                ..Returned::default()
            }),
            running @ CallStatus::StillRunning(_) => running,
        })
    }
}

#[test]
fn an_object_that_windows_does_not_find_by_its_key_is_looked_up() {
    let sim = sim();
    discovered(&sim);
    layered(&sim, NoOtherPaths::default())
        .run(&connect(PLAIN, Authentication::None, ""))
        .unwrap();
    let disks = GetTargetDisks {
        portal: portal(),
        iqn: plain(),
    };
    assert_eq!(
        layered(&sim, NoOtherPaths::default())
            .run(&disks)
            .unwrap()
            .len(),
        1
    );
    layered(&sim, NoOtherPaths::default())
        .run(&DisconnectTarget {
            portal: portal(),
            iqn: plain(),
        })
        .unwrap();
    assert_eq!(sim.disks().len(), 1);
}

#[test]
fn the_disks_of_a_session_are_listed_after_its_portal_was_removed() {
    let sim = sim();
    let (node, _) = connected(&sim, NoProbe);
    node.run(&RemoveTargetPortal { portal: portal() }).unwrap();
    let disks = GetTargetDisks {
        portal: portal(),
        iqn: plain(),
    };
    assert_eq!(node.run(&disks).unwrap().len(), 1);
    // The address of a portal that is given by name is not compared, so the portal must be known.
    refused(
        &node,
        &GetTargetDisks {
            portal: at("storage.test"),
            ..disks
        },
        NotFound,
    );
}

#[test]
fn a_target_is_connected_through_another_port_of_the_address_of_a_known_portal() {
    let service = os_sim::node()
        .service("MSiSCSI", "Microsoft iSCSI Initiator Service")
        .running();
    let service = service
        .iscsi_portal("10.0.0.5", 3260)
        .target(PLAIN)
        .lun(GIB);
    let sim = service
        .iscsi_portal("10.0.0.5", 3261)
        .target(PLAIN)
        .lun(2 * GIB)
        .build();
    let node = discovered(&sim);
    let other = TargetPortal::parse("10.0.0.5", 3261).unwrap();
    node.run(&ConnectTarget {
        portal: other.clone(),
        ..connect(PLAIN, Authentication::None, "")
    })
    .unwrap();
    assert_eq!(sizes_of(&node, other.clone()), [2 * GIB]);
    // The session belongs to its own port.
    assert_eq!(disks_at(&node, "10.0.0.5"), [0; 0]);
    refused_saying(
        &node,
        &connect_at("10.0.0.5"),
        FailedPrecondition,
        "through 10.0.0.5:3261",
    );
    let silent = ConnectTarget {
        portal: TargetPortal::parse("10.0.0.5", 9).unwrap(),
        ..connect_at("10.0.0.5")
    };
    node.run(&DisconnectTarget {
        portal: other,
        iqn: plain(),
    })
    .unwrap();
    let error = refused(&node, &silent, FailedPrecondition);
    has_code(&error, OsError::ISDSC_CONNECTION_FAILED);
}
