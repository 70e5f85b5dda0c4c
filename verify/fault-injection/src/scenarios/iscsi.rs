//! The operations of the iSCSI initiator, on one portal with two targets. Another portal offers a
//! target that has the name of one of them.

use std::time::Duration;

use os_sim::Sim;
use storage_ops::{
    AddTargetPortal, Authentication, Config, ConnectTarget, DisconnectTarget, DiscoverTargetPortal,
    DiskNumber, ErrorKind, GetTargetDisks, Iqn, ListTargetPortals, PartitionDisk,
    RemoveTargetPortal, SecretText, SetMutualChapSecret, TargetPortal,
};

use super::{GIB, Scenario, Spec, State, boxed, combine, secret_text, state};
use crate::request::{Answer, Request};
use crate::started_node::{Driver, StartedNode};

const SECRET: &str = "hunter2-secret";
const MUTUAL: &str = "hunter2-mutual";

fn network(initiator_runs: bool) -> Sim {
    let service = os_sim::node().service("MSiSCSI", "Microsoft iSCSI Initiator Service");
    let service = if initiator_runs {
        service.running()
    } else {
        service
    };
    let portal = service.iscsi_portal("10.0.0.5", 3260);
    portal
        .target("iqn.2024-01.test:plain")
        .lun(GIB)
        .target("iqn.2024-01.test:chap")
        .lun(GIB)
        .chap("user", SECRET)
        .iscsi_portal("10.0.0.6", 3260)
        .target("iqn.2024-01.test:plain")
        .lun(GIB)
        .build()
}

fn portal() -> TargetPortal {
    portal_at("10.0.0.5")
}

fn portal_at(address: &str) -> TargetPortal {
    TargetPortal::parse(address, 0).expect("an address")
}

fn iqn(name: &str) -> Iqn {
    Iqn::parse(name).expect("a name")
}

fn after(steps: &[fn() -> Box<dyn Request>]) -> Sim {
    let sim = network(true);
    let node = StartedNode::new(&sim, sim.process(), Config::default(), Driver::Thread);
    for step in steps {
        let answer = step().run(&node);
        assert!(matches!(answer, Answer::Succeeded(_)), "{answer}");
    }
    sim
}

fn add() -> Box<dyn Request> {
    boxed(AddTargetPortal { portal: portal() })
}

fn discover() -> Box<dyn Request> {
    boxed(DiscoverTargetPortal { portal: portal() })
}

fn connect() -> Box<dyn Request> {
    connect_at(portal())
}

fn connect_at(portal: TargetPortal) -> Box<dyn Request> {
    boxed(ConnectTarget {
        portal,
        iqn: iqn("iqn.2024-01.test:plain"),
        authentication: Authentication::None,
        username: SecretText::default(),
        secret: SecretText::default(),
    })
}

fn connect_by_chap() -> Box<dyn Request> {
    boxed(ConnectTarget {
        portal: portal(),
        iqn: iqn("iqn.2024-01.test:chap"),
        authentication: Authentication::OneWayChap,
        username: secret_text("user"),
        secret: secret_text(SECRET),
    })
}

const STATES: &[State] = &[
    state("no portal", || after(&[])),
    state("a portal", || after(&[add])),
    state("targets discovered", || after(&[add, discover])),
    state("connected", || after(&[add, discover, connect])),
    state("both targets connected", || {
        after(&[add, discover, connect, connect_by_chap])
    }),
    state("a volume of the target mounted", || {
        let sim = after(&[add, discover, connect, || {
            boxed(PartitionDisk {
                disk: DiskNumber(1),
            })
        }]);
        let volume = sim.volume_on(1).expect("a volume").id;
        let directory = r"C:\var\lib\kubelet\plugins\v";
        sim.external().mkdir_all(directory).expect("a directory");
        sim.external()
            .set_mount_point(directory, volume)
            .expect("a mount point");
        sim
    }),
    state(
        "a target of the same name connected at another portal",
        || {
            let add_other = || {
                boxed(AddTargetPortal {
                    portal: portal_at("10.0.0.6"),
                })
            };
            after(&[add, discover, add_other, || {
                connect_at(portal_at("10.0.0.6"))
            }])
        },
    ),
    state("initiator not running", || network(false)),
];

const DISKS: &[&str] = &["portal ", "target ", "disk 1 ", "disk 2 "];

const OPERATIONS: &[Spec] = &[
    Spec::new("AddTargetPortal", |_| add()).may_change(&["portal ", "target "]),
    Spec::new("DiscoverTargetPortal", |_| discover()).may_change(&["target "]),
    Spec::new("RemoveTargetPortal", |_| {
        boxed(RemoveTargetPortal { portal: portal() })
    })
    .may_change(&["portal ", "target "]),
    Spec::new("ListTargetPortals", |_| boxed(ListTargetPortals)),
    Spec::new("ConnectTarget", |_| connect()).may_change(DISKS),
    Spec::new("ConnectTarget(by CHAP)", |_| connect_by_chap()).may_change(DISKS),
    Spec::new("DisconnectTarget", |_| {
        boxed(DisconnectTarget {
            portal: portal(),
            iqn: iqn("iqn.2024-01.test:plain"),
        })
    })
    .may_change(DISKS),
    Spec::new("GetTargetDisks", |_| {
        boxed(GetTargetDisks {
            portal: portal(),
            iqn: iqn("iqn.2024-01.test:plain"),
        })
    }),
    Spec::new("SetMutualChapSecret", |_| {
        boxed(SetMutualChapSecret {
            secret: secret_text(MUTUAL),
        })
    }),
];

/// The other portal, which offers a target of the same name.
const OTHER: &str = "10.0.0.6";

/// Longer than the time after which a session without a connection is dead.
const DEAD: Duration = Duration::from_mins(3);

/// Returns a node whose session has lost its connection ten minutes ago, and has a disk for as long
/// as Windows holds requests.
fn lost(holds: Duration, steps: &[fn() -> Box<dyn Request>]) -> Sim {
    let add_other = || {
        boxed(AddTargetPortal {
            portal: portal_at(OTHER),
        })
    };
    let connected: &[fn() -> _] = &[add, discover, add_other, connect];
    let sim = after(&[connected, steps].concat());
    sim.set_iscsi_hold_time(holds);
    set_answering(&sim, false);
    sim.advance(Duration::from_mins(10));
    sim
}

fn set_answering(sim: &Sim, answers: bool) {
    assert!(sim.set_portal_reachable("10.0.0.5", 3260, answers));
}

const HELD: Duration = Duration::from_hours(1000);

const LOST_STATES: &[State] = &[
    state("a session without a connection, its disk removed", || {
        lost(Duration::from_mins(1), &[])
    }),
    state("a session without a connection", || lost(HELD, &[])),
    state("a session without a connection, its volume mounted", || {
        let partition = || {
            boxed(PartitionDisk {
                disk: DiskNumber(1),
            })
        };
        let sim = lost(HELD, &[partition]);
        let volume = sim.volume_on(1).expect("a volume").id;
        sim.external().set_drive_letter('E', volume);
        sim
    }),
];

const LOST_OPERATIONS: &[Spec] = &[
    Spec::new("ConnectTarget(without a connection)", |_| connect()),
    Spec::new("ConnectTarget(of a lost session)", |_| {
        connect_at(portal_at(OTHER))
    }),
    Spec::new("GetTargetDisks(without a connection)", |_| {
        boxed(GetTargetDisks {
            portal: portal(),
            iqn: iqn("iqn.2024-01.test:plain"),
        })
    }),
    Spec::new("DisconnectTarget(of a dead session)", |sim| {
        Box::new(Twice {
            sim: sim.clone(),
            request: disconnect_other(),
            before: |_| {},
            between: |sim| sim.advance(DEAD),
        })
    })
    .may_change(DISKS)
    .ensures(|sim| sim.disks().len() == 1),
    Spec::new("DisconnectTarget(of a lost session)", |sim| {
        Box::new(Twice {
            sim: sim.clone(),
            request: disconnect_other(),
            before: |sim| set_answering(sim, true),
            between: |sim| set_answering(sim, false),
        })
    })
    .may_change(DISKS),
];

fn disconnect_other() -> Box<dyn Request> {
    boxed(DisconnectTarget {
        portal: portal_at(OTHER),
        iqn: iqn("iqn.2024-01.test:plain"),
    })
}

/// A request that is repeated after a refusal, while the network of the node changes.
struct Twice {
    sim: Sim,
    request: Box<dyn Request>,
    before: fn(&Sim),
    between: fn(&Sim),
}

impl Request for Twice {
    fn operation(&self) -> &'static str {
        self.request.operation()
    }

    fn describe(&self) -> String {
        self.request.describe()
    }

    fn run(&self, node: &StartedNode) -> Answer {
        (self.before)(&self.sim);
        let answer = self.request.run(node);
        let is_refused = matches!(
            &answer,
            Answer::Failed(error)
                if error.kind() == ErrorKind::FailedPrecondition && error.code().is_none()
        );
        if !is_refused {
            return answer;
        }
        (self.between)(&self.sim);
        self.request.run(node)
    }
}

/// Returns each operation of the initiator in each of its states.
pub fn scenarios() -> Vec<Scenario> {
    let lost = combine(LOST_OPERATIONS, LOST_STATES);
    [combine(OPERATIONS, STATES), lost].concat()
}
