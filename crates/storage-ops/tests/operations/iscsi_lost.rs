//! Tests of iSCSI sessions that have lost their connections.

use std::time::Duration;

use faults::{Layer, Race};
use os::abi::{ControlCode, StorageDeviceNumber};
use os::{Handle, Instance, Namespace, Os, OsError, OsResult, Time, Value, Wmi};
use os_sim::{Content, DiskDescription, Sim};
use storage_ops::{
    AllowedPortal, Config, ConnectTarget, DisconnectTarget, Error, ErrorKind, FormatVolume, Node,
    Operation, TargetPortal, VolumeId,
};
use zerocopy::IntoBytes;

use crate::iscsi::{
    CONNECT, DISCONNECT, PLAIN, connect_at, disconnect_at, disks_at, named_portal, two_portals,
    two_targets,
};
use crate::setup::{
    GIB, MOUNT, NoProbe, PARTITION, both, failing, failing_on, failing_once, layered, mount,
    node_on, probed, provider, refused, traced, unmount, volume_on,
};

/// A session that has had no connection for this time is dead.
const DEAD: Duration = Duration::from_secs(150);
const ALMOST_DEAD: Duration = Duration::from_secs(149);
const SECOND: Duration = Duration::from_secs(1);

/// The portal of the session, and another one with a target of the same name.
const VICTIM: &str = "10.0.0.5";
const OTHER: &str = "10.0.0.6";

const FILE: &str = r"C:\var\lib\kubelet\plugins\v\data";

/// Returns a node with a session through [`VICTIM`]. The other portal offers the same target.
fn one_target() -> (Sim, Node) {
    let sim = two_portals(&format!(
        "[[iscsi_target]]\niqn = '{PLAIN}'\nportals = [{{ address = '{VICTIM}' }}, \
         {{ address = '{OTHER}' }}]\nluns = [{{ number = 0, size = '1 GiB' }}]\n"
    ));
    let node = node_on(&sim);
    node.run(&connect_at(VICTIM)).unwrap();
    (sim, node)
}

/// Makes a volume on the disk of the session, and mounts it.
fn stage(sim: &Sim, node: &Node) -> VolumeId {
    node.run(&PARTITION).unwrap();
    let volume = volume_on(node, 1);
    node.run(&FormatVolume::new(volume)).unwrap();
    sim.external().mkdir_all(MOUNT).unwrap();
    node.run(&mount(volume, MOUNT)).unwrap();
    volume
}

fn set(sim: &Sim, address: &str, answers: bool) {
    assert!(sim.set_portal_reachable(address, 3260, answers));
}

/// Returns the error of `operation`, which must contain `part`.
fn error_with<O: Operation>(node: &Node, operation: &O, part: &str) -> Error {
    let error = refused(node, operation, ErrorKind::FailedPrecondition);
    assert!(error.to_string().contains(part), "{error}");
    error
}

/// Returns the identifiers of the sessions that the initiator has.
fn sessions(sim: &Sim) -> Vec<String> {
    let wql = "SELECT * FROM MSFT_iSCSISession";
    let deadline = Time(Duration::MAX);
    let found = sim.process().wmi().query(Namespace::Storage, wql, deadline);
    let identifier = |row: &Instance| row.text("SessionIdentifier").unwrap().to_owned();
    found.unwrap().iter().map(identifier).collect()
}

#[test]
fn contract_30_a_rogue_portal_cannot_end_a_session_whose_portal_does_not_answer_for_30_s() {
    let sim = two_targets();
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&connect_at(VICTIM)).unwrap();
    stage(&sim, &node);
    sim.external().write(FILE, "before").unwrap();
    let before = sessions(&sim);
    set(&sim, VICTIM, false);
    for _ in 0..30 {
        for portal in [OTHER, "rogue.test"] {
            let expected = format!("through {VICTIM}:3260, without a connection");
            error_with(&node, &disconnect_at(portal), &expected);
        }
        error_with(&node, &connect_at(OTHER), "without a connection");
        sim.advance(SECOND);
    }
    // Its own portal cannot either, because the volume is mounted.
    error_with(&node, &disconnect_at(VICTIM), MOUNT);
    set(&sim, VICTIM, true);
    assert_eq!(sessions(&sim), before);
    assert_eq!(sim.external().read(FILE).unwrap(), b"before");
    sim.external().write(FILE, "after").unwrap();
    assert_eq!(sim.external().read(FILE).unwrap(), b"after");
    error_with(&node, &disconnect_at(OTHER), "connected");
    // A login beside the session is not tried.
    assert_eq!(trace.counts().of(CONNECT), 1);
}

#[test]
fn contract_30_a_dead_session_is_ended_and_the_target_connected_through_another_portal() {
    let (sim, node) = one_target();
    set(&sim, VICTIM, false);
    error_with(
        &node,
        &connect_at(OTHER),
        "through 10.0.0.5:3260, without a connection; repeat DisconnectTarget",
    );
    error_with(&node, &disconnect_at(OTHER), "no connection for 150 s");
    sim.advance(ALMOST_DEAD);
    error_with(&node, &disconnect_at(OTHER), "without a connection");
    sim.advance(SECOND);
    // ConnectTarget ends no session.
    for _ in 0..2 {
        error_with(&node, &connect_at(OTHER), "through 10.0.0.5:3260, dead");
    }
    for _ in 0..2 {
        node.run(&disconnect_at(OTHER)).unwrap();
    }
    node.run(&connect_at(OTHER)).unwrap();
    assert_eq!(disks_at(&node, OTHER), [GIB]);
}

#[test]
fn a_session_is_dead_only_at_the_second_sighting() {
    let (sim, node) = one_target();
    set(&sim, VICTIM, false);
    sim.advance(DEAD * 10);
    error_with(&node, &disconnect_at(OTHER), "without a connection");
    sim.advance(DEAD);
    node.run(&disconnect_at(OTHER)).unwrap();
}

#[test]
fn a_session_that_was_seen_with_a_connection_in_between_is_not_dead() {
    let (sim, node) = one_target();
    for _ in 0..3 {
        set(&sim, VICTIM, false);
        error_with(&node, &disconnect_at(OTHER), "without a connection");
        sim.advance(ALMOST_DEAD);
        error_with(&node, &disconnect_at(OTHER), "without a connection");
        set(&sim, VICTIM, true);
        error_with(&node, &connect_at(OTHER), "connected");
    }
    node.run(&connect_at(VICTIM)).unwrap();
}

#[test]
fn a_restart_of_the_daemon_forgets_sightings_and_the_portal() {
    let (sim, node) = one_target();
    set(&sim, VICTIM, false);
    error_with(&node, &disconnect_at(OTHER), "without a connection");
    sim.advance(DEAD);
    let node = node_on(&sim);
    for portal in [OTHER, VICTIM] {
        let expected = "through a portal that is not known, without a connection";
        error_with(&node, &disconnect_at(portal), expected);
    }
    sim.advance(DEAD);
    node.run(&disconnect_at(OTHER)).unwrap();
    assert!(sessions(&sim).is_empty());
}

/// Returns a node whose administrator lists these portals.
fn listing(sim: &Sim, portals: &[&str]) -> Node {
    let portals = portals
        .iter()
        .map(|text| AllowedPortal::parse(text).unwrap());
    let config = Config::default().with(|config| config.iscsi_portals = Some(portals.collect()));
    Node::new(sim.process(), config)
}

#[test]
fn both_portals_must_be_listed_to_end_a_dead_session() {
    // The daemon learns the portal from the connections, because another one has opened it.
    for is_seen in [true, false] {
        for (portals, expected) in [
            (
                &[OTHER][..],
                Some("-iscsi-portals does not list the portal 10.0.0.5:3260"),
            ),
            (&[OTHER, VICTIM], None),
        ] {
            let (sim, _) = one_target();
            let node = listing(&sim, portals);
            if is_seen {
                error_with(&node, &disconnect_at(OTHER), "connected");
            }
            set(&sim, VICTIM, false);
            error_with(&node, &disconnect_at(OTHER), "without a connection");
            sim.advance(DEAD);
            let expected = if is_seen {
                expected
            } else {
                Some("its portal is not known")
            };
            match expected {
                Some(expected) => drop(error_with(&node, &disconnect_at(OTHER), expected)),
                None => node.run(&disconnect_at(OTHER)).unwrap(),
            }
        }
    }
}

#[test]
fn a_dead_session_is_not_ended_while_a_volume_of_it_is_mounted_anywhere() {
    let elsewhere = |sim: &Sim| {
        sim.external().mkdir_all(r"C:\mnt").unwrap();
        let volume = sim.volume_on(1).unwrap().id;
        sim.external().set_mount_point(r"C:\mnt", volume).unwrap();
    };
    let on_a_drive = |sim: &Sim| {
        let volume = sim.volume_on(1).unwrap().id;
        sim.external().set_drive_letter('E', volume);
    };
    let mounts: [fn(&Sim); 3] = [|_| {}, elsewhere, on_a_drive];
    for (mount, path) in mounts.iter().zip([MOUNT, r"C:\mnt", "E:"]) {
        for unlisted in [None, Some(Ok(())), Some(Err(OsError::WBEM_FAILED))] {
            let (sim, node) = one_target();
            let volume = stage(&sim, &node);
            if path != MOUNT {
                node.run(&unmount(volume, MOUNT)).unwrap();
                mount(&sim);
            }
            // As on a node whose administrator has lengthened the time.
            sim.set_iscsi_hold_time(DEAD * 2);
            set(&sim, VICTIM, false);
            let node = match unlisted {
                None => node,
                Some(answer) => layered(&sim, UnlistedDisks(answer)),
            };
            error_with(&node, &disconnect_at(OTHER), "without a connection");
            sim.advance(DEAD);
            let expected = format!("is mounted at {path}");
            let error = error_with(&node, &disconnect_at(OTHER), &expected);
            let is_doubtful = error.to_string().contains("may be one of the target");
            assert_eq!(is_doubtful, unlisted.is_some());
            assert_eq!(error.code(), unlisted.and_then(Result::err));
            assert_eq!(sessions(&sim).len(), 1);
            // Windows removes the disks, and with them the volume.
            sim.advance(DEAD);
            node.run(&disconnect_at(OTHER)).unwrap();
            assert!(sessions(&sim).is_empty());
        }
    }
}

/// Lists no disks of sessions without a connection, or fails.
struct UnlistedDisks(OsResult<()>);

impl Layer for UnlistedDisks {
    fn wmi_query(
        &self,
        wmi: &dyn Wmi,
        namespace: Namespace,
        wql: &str,
        deadline: Time,
    ) -> OsResult<Vec<Instance>> {
        let connections = wmi.query(namespace, "SELECT * FROM MSFT_iSCSIConnection", deadline)?;
        if wql.contains("MSFT_iSCSISessionToDisk") && connections.is_empty() {
            return self.0.map(|()| Vec::new());
        }
        wmi.query(namespace, wql, deadline)
    }
}

/// Makes the volume on disk 2 one of a DVD drive without a disc.
struct DvdDrive;

/// `FILE_DEVICE_CD_ROM`.
const DEVICE_TYPE_CD_ROM: u32 = 2;

impl Layer for DvdDrive {
    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        let mut extents = [0; 32];
        let asked = ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS;
        // The number of extents, four bytes of padding, and the disk of the first extent.
        let is_volume = handle.control(asked, &[], &mut extents).is_ok() && extents[8] == 2;
        if is_volume && code == asked {
            return Err(OsError::NOT_READY);
        }
        if is_volume && code == ControlCode::STORAGE_GET_DEVICE_NUMBER {
            let device = StorageDeviceNumber {
                device_type: DEVICE_TYPE_CD_ROM,
                device_number: 0,
                partition_number: u32::MAX,
            };
            let length = size_of_val(&device);
            output[..length].copy_from_slice(device.as_bytes());
            return Ok(length);
        }
        handle.control(code, input, output)
    }

    fn change_instances(&self, wql: &str, found: &mut Vec<Instance>) {
        if wql.contains("AssocClass = MSFT_PartitionToVolume") {
            found.clear();
        }
    }
}

#[test]
fn a_drive_that_is_no_disk_does_not_keep_a_dead_session() {
    for is_dvd in [true, false] {
        let (sim, _) = one_target();
        let disk = DiskDescription {
            content: Content::Partitioned,
            file_system: Some("NTFS".into()),
            ..DiskDescription::new(GIB)
        };
        assert_eq!(sim.attach_disk(&disk, true).unwrap(), 2);
        sim.advance(SECOND);
        let volume = sim.volume_on(2).unwrap().id;
        sim.external().set_drive_letter('D', volume);
        sim.set_iscsi_hold_time(DEAD * 2);
        set(&sim, VICTIM, false);
        let node = if is_dvd {
            layered(&sim, DvdDrive)
        } else {
            // A volume on a disk that cannot be read.
            let probe = failing("control VOLUME_GET_VOLUME_DISK_EXTENTS", OsError::NOT_READY);
            let provider = failing_on(
                "wmi query",
                |wql| wql.contains("MSFT_Volume"),
                OsError::WBEM_FAILED,
            );
            probed(&sim, both(probe, provider))
        };
        error_with(&node, &disconnect_at(OTHER), "without a connection");
        sim.advance(DEAD);
        if is_dvd {
            node.run(&disconnect_at(OTHER)).unwrap();
        } else {
            error_with(
                &node,
                &disconnect_at(OTHER),
                "it is not known whether volume",
            );
        }
    }
}

#[test]
fn the_mounted_volume_of_another_session_does_not_keep_a_dead_one() {
    let target = |iqn: &str, address: &str| {
        format!(
            "[[iscsi_target]]\niqn = '{iqn}'\nportals = [{{ address = '{address}' }}]\n\
             luns = [{{ number = 0, size = '1 GiB' }}]\n"
        )
    };
    let sim = two_portals(&[target("iqn.x:other", OTHER), target(PLAIN, VICTIM)].concat());
    let node = node_on(&sim);
    node.run(&ConnectTarget {
        iqn: storage_ops::Iqn::parse("iqn.x:other").unwrap(),
        ..connect_at(OTHER)
    })
    .unwrap();
    stage(&sim, &node);
    node.run(&connect_at(VICTIM)).unwrap();
    set(&sim, VICTIM, false);
    error_with(&node, &disconnect_at(OTHER), "without a connection");
    sim.advance(DEAD);
    node.run(&disconnect_at(OTHER)).unwrap();
    assert_eq!(sessions(&sim).len(), 1);
}

#[test]
fn a_session_without_a_connection_is_ended_through_its_own_portal() {
    let (sim, node) = one_target();
    let volume = stage(&sim, &node);
    set(&sim, VICTIM, false);
    error_with(&node, &connect_at(VICTIM), "without a connection");
    error_with(&node, &disconnect_at(VICTIM), MOUNT);
    node.run(&unmount(volume, MOUNT)).unwrap();
    error_with(
        &node,
        &disconnect_at("storage.test"),
        "without a connection",
    );
    node.run(&disconnect_at(VICTIM)).unwrap();
    assert!(sessions(&sim).is_empty() && sim.disks().len() == 1);
}

#[test]
fn a_session_that_was_opened_by_name_is_ended_by_this_name() {
    let (sim, node) = named_portal();
    node.run(&connect_at("storage.test")).unwrap();
    set(&sim, "storage.test", false);
    for other in ["192.0.2.1", "other.test"] {
        error_with(
            &node,
            &disconnect_at(other),
            "through storage.test:3260, without a connection",
        );
    }
    let other_port = DisconnectTarget {
        portal: TargetPortal::parse("storage.test", 3261).unwrap(),
        ..disconnect_at("storage.test")
    };
    error_with(&node, &other_port, "without a connection");
    node.run(&disconnect_at("Storage.Test")).unwrap();
    assert!(sessions(&sim).is_empty());
}

#[test]
fn only_the_dead_one_of_two_sessions_is_ended_through_another_portal() {
    let (sim, node) = one_target();
    // Multipath I/O opens the second session.
    let arguments = [
        ("NodeAddress", Value::Text(PLAIN.into())),
        ("TargetPortalAddress", Value::Text(OTHER.into())),
        ("TargetPortalPortNumber", Value::U32(3260)),
        ("IsMultipathEnabled", Value::Bool(true)),
    ];
    let target = "SELECT * FROM MSFT_iSCSITarget";
    provider(&sim, target, "Connect", &arguments);
    let [_, second] = &sessions(&sim)[..] else {
        panic!("two sessions")
    };
    set(&sim, VICTIM, false);
    let third = disconnect_at("10.0.0.7");
    let error = error_with(&node, &third, "through 10.0.0.5:3260, without a connection");
    let text = error.to_string();
    assert!(text.contains("through 10.0.0.6:3260, connected"), "{text}");
    sim.advance(DEAD);
    let error = error_with(&node, &third, "through 10.0.0.6:3260, connected");
    assert!(!error.to_string().contains("10.0.0.5"), "{error}");
    assert_eq!(&sessions(&sim), std::slice::from_ref(second));
    node.run(&connect_at(OTHER)).unwrap();
    node.run(&disconnect_at(OTHER)).unwrap();
    node.run(&third).unwrap();
}

#[test]
fn a_session_that_connects_again_right_before_its_end_is_kept() {
    for (primitive, is_own) in [
        ("wmi call MSFT_iSCSISession.Unregister", false),
        ("wmi call MSFT_iSCSISession.Unregister", true),
        // The first attempt fails.
        (DISCONNECT, false),
    ] {
        let (sim, _) = one_target();
        provider(&sim, "SELECT * FROM MSFT_iSCSISession", "Register", &[]);
        let other = sim.clone();
        let again = Race::before(0, move || set(&other, VICTIM, true))
            .among(move |call| call.primitive == primitive);
        let busy = failing_once(DISCONNECT, OsError::ISDSC_SESSION_BUSY);
        let node = probed(&sim, both(again, busy));
        node.run(&connect_at(VICTIM)).unwrap();
        set(&sim, VICTIM, false);
        let disconnect = if is_own {
            disconnect_at(VICTIM)
        } else {
            error_with(&node, &disconnect_at(OTHER), "without a connection");
            sim.advance(DEAD);
            disconnect_at(OTHER)
        };
        error_with(&node, &disconnect, "the session has a connection again");
        assert_eq!(sessions(&sim).len(), 1);
    }
}

/// What Windows may show of sessions without a connection: no document says.
#[derive(Clone, Copy)]
enum Shown {
    /// No connections, but sessions and targets that are connected.
    NoConnections,
    /// The last connections, of sessions that are not connected.
    LastConnections,
    /// No connections, of sessions of which Windows does not say whether they are connected.
    Nothing,
}

/// The address that the last connections lead to.
const LAST: &str = VICTIM;

impl Layer for Shown {
    fn change_instances(&self, wql: &str, found: &mut Vec<Instance>) {
        for instance in found.iter_mut() {
            if let Some(connected) = instance.properties.get_mut("IsConnected") {
                *connected = match self {
                    Self::NoConnections => Value::Bool(true),
                    Self::LastConnections => Value::Bool(false),
                    Self::Nothing => Value::Null,
                };
            }
        }
        if matches!(self, Self::LastConnections) && wql.ends_with("= MSFT_iSCSIConnection") {
            let properties = [
                ("TargetAddress", Value::Text(LAST.into())),
                ("TargetPortNumber", Value::U32(3260)),
            ];
            *found = vec![Instance {
                path: r#"MSFT_iSCSIConnection.ConnectionIdentifier="1""#.into(),
                properties: properties
                    .map(|(name, value)| (name.to_owned(), value))
                    .into(),
            }];
        }
    }
}

#[test]
fn a_session_has_no_connection_if_windows_lists_none_or_says_so() {
    for shown in [Shown::NoConnections, Shown::LastConnections, Shown::Nothing] {
        let (sim, _) = one_target();
        set(&sim, VICTIM, false);
        let node = layered(&sim, shown);
        let expected = match shown {
            Shown::LastConnections => "through 10.0.0.5:3260, without a connection",
            _ => "through a portal that is not known, without a connection",
        };
        for _ in 0..2 {
            error_with(&node, &connect_at(OTHER), expected);
            error_with(&node, &connect_at(VICTIM), expected);
            error_with(&node, &disconnect_at("storage.test"), expected);
        }
        sim.advance(DEAD);
        node.run(&disconnect_at(OTHER)).unwrap();
        assert!(sessions(&sim).is_empty());
    }
}
