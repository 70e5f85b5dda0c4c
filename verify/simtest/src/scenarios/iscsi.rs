//! The iSCSI initiator, its portals and its targets.

use os_sim::Sim;
use storage_ops::{
    AddTargetPortal, Authentication, Config, ConnectTarget, DisconnectTarget, DiscoverTargetPortal, GetTargetDisks,
    Iqn, ListTargetPortals, Node, RemoveTargetPortal, Secret, SetMutualChapSecret, TargetPortal,
};

use super::{GIB, ask};
use crate::scenario::{Asked, Request, Scenario, State, all_of};

const SECRET: &str = "hunter2-secret";
const MUTUAL: &str = "hunter2-mutual";

fn network(initiator_runs: bool) -> Sim {
    let service = os_sim::node().service("MSiSCSI", "Microsoft iSCSI Initiator Service");
    let service = if initiator_runs { service.running() } else { service };
    let portal = service.iscsi_portal("10.0.0.5", 3260);
    portal
        .target("iqn.2024-01.test:plain")
        .lun(GIB)
        .target("iqn.2024-01.test:chap")
        .lun(GIB)
        .chap("user", SECRET)
        .build()
}

fn portal() -> TargetPortal {
    TargetPortal::parse("10.0.0.5", 0).expect("an address")
}

fn iqn(name: &str) -> Iqn {
    Iqn::parse(name).expect("a name")
}

fn after(steps: &[fn() -> Box<dyn Request>]) -> Sim {
    let sim = network(true);
    let node = Node::new(sim.process(), Config::default());
    for step in steps {
        let answer = step().run(&node);
        assert!(matches!(answer, crate::scenario::Answer::Done(_)), "{answer}");
    }
    sim
}

fn add() -> Box<dyn Request> {
    ask(AddTargetPortal { portal: portal() })
}

fn discover() -> Box<dyn Request> {
    ask(DiscoverTargetPortal { portal: portal() })
}

fn connect() -> Box<dyn Request> {
    ask(ConnectTarget {
        portal: portal(),
        iqn: iqn("iqn.2024-01.test:plain"),
        authentication: Authentication::None,
        username: String::new(),
        secret: Secret::new(String::new()),
    })
}

fn connect_by_chap() -> Box<dyn Request> {
    ask(ConnectTarget {
        portal: portal(),
        iqn: iqn("iqn.2024-01.test:chap"),
        authentication: Authentication::OneWayChap,
        username: "user".into(),
        secret: Secret::new(SECRET.into()),
    })
}

const STATES: &[State] = &[
    State { name: "no portal", build: || after(&[]) },
    State { name: "a portal", build: || after(&[add]) },
    State { name: "targets discovered", build: || after(&[add, discover]) },
    State { name: "connected", build: || after(&[add, discover, connect]) },
    State { name: "both connected", build: || after(&[add, discover, connect, connect_by_chap]) },
    State { name: "initiator not running", build: || network(false) },
];

const DISKS: &[&str] = &["portal ", "target ", "disk 1 ", "disk 2 "];

const OPERATIONS: &[Asked] = &[
    Asked::new("AddTargetPortal", |_| add()).changing(&["portal ", "target "]),
    Asked::new("DiscoverTargetPortal", |_| discover()).changing(&["target "]),
    Asked::new("RemoveTargetPortal", |_| ask(RemoveTargetPortal { portal: portal() }))
        .changing(&["portal ", "target "]),
    Asked::new("ListTargetPortals", |_| ask(ListTargetPortals)),
    Asked::new("ConnectTarget", |_| connect()).changing(DISKS),
    Asked::new("ConnectTarget(by CHAP)", |_| connect_by_chap()).changing(DISKS),
    Asked::new("DisconnectTarget", |_| ask(DisconnectTarget { portal: portal(), iqn: iqn("iqn.2024-01.test:plain") }))
        .changing(DISKS),
    Asked::new("GetTargetDisks", |_| ask(GetTargetDisks { portal: portal(), iqn: iqn("iqn.2024-01.test:plain") })),
    Asked::new("SetMutualChapSecret", |_| ask(SetMutualChapSecret { secret: Secret::new(MUTUAL.into()) })),
];

/// Each operation of the initiator in each of its states.
pub fn scenarios() -> Vec<Scenario> {
    all_of(OPERATIONS, STATES)
}
