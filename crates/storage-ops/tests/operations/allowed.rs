//! Tests of the lists with which an administrator restricts services, SMB servers and iSCSI target
//! portals.

use std::sync::Arc;

use faults::{Probed, Trace};
use os_sim::Sim;
use storage_ops::{
    AddTargetPortal, AllowedPortal, Authentication, Config, ConnectTarget, DisconnectTarget,
    DiscoverTargetPortal, Error, ErrorKind::PermissionDenied, Executor, GetService, GetTargetDisks,
    Iqn, ListTargetPortals, Node, Operation, RemoveSmbGlobalMapping, RemoveTargetPortal,
    SecretText, ServiceName, SmbServer, StartService, StopService, TargetPortal, UncPath,
};

use crate::setup::{GIB, map, mapped, node_on, refused};

const TARGET: &str = "iqn.2024-01.test:plain";

fn sim() -> Sim {
    os_sim::node()
        .service("MSiSCSI", "Microsoft iSCSI Initiator Service")
        .running()
        .service("base", "Base")
        .running()
        .service("other", "Other")
        .depends_on("base")
        .running()
        .smb_server("files")
        .share("one")
        .user("anna", "pw")
        .smb_server("other")
        .share("one")
        .user("anna", "pw")
        .iscsi_portal("10.0.0.5", 3260)
        .target(TARGET)
        .lun(GIB)
        .build()
}

/// Returns the settings with lists of the service `base`, the server `files` and the portal
/// `10.0.0.5`.
fn lists() -> Config {
    Config::default().with(|c| {
        c.services = Some(vec![service("Base")]);
        c.smb_servers = Some(vec![SmbServer::parse("Files").unwrap()]);
        c.iscsi_portals = Some(vec![AllowedPortal::parse("10.0.0.5").unwrap()]);
    })
}

fn empty_lists() -> Config {
    Config::default().with(|c| {
        c.services = Some(Vec::new());
        c.smb_servers = Some(Vec::new());
        c.iscsi_portals = Some(Vec::new());
    })
}

fn service(name: &str) -> ServiceName {
    ServiceName::parse(name).unwrap()
}

fn start(name: &str) -> StartService {
    StartService {
        name: service(name),
    }
}

fn stop(name: &str, force: bool) -> StopService {
    StopService {
        name: service(name),
        force,
    }
}

fn portal(address: &str) -> TargetPortal {
    TargetPortal::parse(address, 0).unwrap()
}

fn connect(portal: TargetPortal) -> ConnectTarget {
    let (iqn, authentication) = (Iqn::parse(TARGET).unwrap(), Authentication::None);
    ConnectTarget {
        portal,
        iqn,
        authentication,
        username: SecretText::default(),
        secret: SecretText::default(),
    }
}

/// Checks that `operation` is refused by a sentence that ends with `reason`, on a thread of the
/// caller and through an executor, before Windows is called or anything is locked.
fn check_refusal<O: Operation>(config: &Config, operation: &O, reason: &str) {
    let (sim, trace) = (sim(), Arc::new(Trace::recording()));
    let node = Node::new(
        Arc::new(Probed::new(sim.process(), Arc::clone(&trace))),
        config.clone(),
    );
    let check = |error: &Error| {
        assert_eq!(error.kind(), PermissionDenied, "{error}");
        assert!(
            error.to_string().starts_with("cannot ") && error.to_string().ends_with(reason),
            "{error}"
        );
        assert!(trace.take().is_empty(), "{error}");
    };
    check(&refused(&node, operation, PermissionDenied));
    let executor = Arc::new(Executor::new(Arc::new(node)));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let outcome = runtime.block_on(executor.run(operation.clone()));
    check(&outcome.expect_err("it is refused"));
    assert_eq!(
        (executor.running(), executor.node().locked_objects()),
        (0, 0)
    );
}

#[test]
fn a_service_that_is_not_listed_is_neither_started_nor_stopped() {
    let reason = "csi-proxy's flag -services does not list the service MSiSCSI";
    for config in [lists(), empty_lists()] {
        check_refusal(&config, &start("MSiSCSI"), reason);
        check_refusal(&config, &stop("MSiSCSI", false), reason);
        check_refusal(&config, &stop("MSiSCSI", true), reason);
    }
    let sim = sim();
    let node = Node::new(sim.process(), lists());
    assert_eq!(
        node.run(&GetService {
            name: service("MSiSCSI")
        })
        .unwrap()
        .state,
        4,
        "reading is not restricted"
    );
    node.run(&start("BASE")).unwrap();
}

#[test]
fn a_listed_service_is_not_stopped_together_with_one_that_is_not() {
    let sim = sim();
    let node = Node::new(sim.process(), lists());
    let error = refused(&node, &stop("base", true), PermissionDenied);
    assert!(
        error
            .to_string()
            .ends_with("-services does not list the service other"),
        "{error}"
    );
    for name in ["base", "other"] {
        assert_eq!(
            node.run(&GetService {
                name: service(name)
            })
            .unwrap()
            .state,
            4,
            "{name} still runs"
        );
    }
    let both =
        Config::default().with(|c| c.services = Some(vec![service("base"), service("other")]));
    Node::new(sim.process(), both)
        .run(&stop("base", true))
        .unwrap();
}

#[test]
fn a_share_of_a_server_that_is_not_listed_is_not_mapped_but_its_mapping_can_be_removed() {
    for config in [lists(), empty_lists()] {
        let reason = "csi-proxy's flag -smb-servers does not list the server other";
        check_refusal(&config, &map(r"\\OTHER\one", r"FILES\anna", "pw"), reason);
    }
    let sim = sim();
    node_on(&sim)
        .run(&map(r"\\other\one", r"FILES\anna", "pw"))
        .unwrap();
    let node = Node::new(sim.process(), lists());
    node.run(&map(r"\\FILES\one\sub", r"FILES\anna", "pw"))
        .unwrap();
    node.run(&RemoveSmbGlobalMapping {
        remote: UncPath::parse(r"\\other\one").unwrap(),
    })
    .unwrap();
    assert_eq!(mapped(&sim), [r"\\files\one"]);
}

#[test]
fn a_portal_that_is_not_listed_is_neither_contacted_nor_removed() {
    let (other, iqn) = (portal("10.0.0.6"), Iqn::parse(TARGET).unwrap());
    let reason = "csi-proxy's flag -iscsi-portals does not list the portal 10.0.0.6:3260";
    for config in [lists(), empty_lists()] {
        check_refusal(
            &config,
            &AddTargetPortal {
                portal: other.clone(),
            },
            reason,
        );
        check_refusal(
            &config,
            &DiscoverTargetPortal {
                portal: other.clone(),
            },
            reason,
        );
        check_refusal(
            &config,
            &RemoveTargetPortal {
                portal: other.clone(),
            },
            reason,
        );
        check_refusal(&config, &connect(other.clone()), reason);
        check_refusal(
            &config,
            &DisconnectTarget {
                portal: other.clone(),
                iqn: iqn.clone(),
            },
            reason,
        );
    }
    let sim = sim();
    let node = Node::new(sim.process(), lists());
    let portal = portal("10.0.0.5");
    node.run(&AddTargetPortal {
        portal: portal.clone(),
    })
    .unwrap();
    node.run(&DiscoverTargetPortal {
        portal: portal.clone(),
    })
    .unwrap();
    node.run(&connect(portal.clone())).unwrap();
    assert_eq!(
        node.run(&GetTargetDisks {
            portal: portal.clone(),
            iqn: iqn.clone()
        })
        .unwrap()
        .len(),
        1
    );
    node.run(&DisconnectTarget {
        portal: portal.clone(),
        iqn,
    })
    .unwrap();
    node.run(&RemoveTargetPortal { portal }).unwrap();
    assert!(node.run(&ListTargetPortals).unwrap().is_empty());
}
