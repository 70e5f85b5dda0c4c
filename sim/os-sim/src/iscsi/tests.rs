//! Discovering, connecting and disconnecting targets through WMI.

use std::time::Duration;

use os::{Instance, OsError, OsResult, Secret, Uuid, Value};

use super::{CONNECT_TIMEOUT, Chap, Effect, Iscsi, Lun, Portal, PortalAddress, Target};
use crate::wmi::wql::ObjectPath;

const PORTAL: &str = "MSFT_iSCSITargetPortal";
const TARGET: &str = "MSFT_iSCSITarget";
const SESSION: &str = "MSFT_iSCSISession";
const USER: &str = "initiator";
const SECRET: &str = "one-way-secret";
const OWN: &str = "target-secret-";

fn network() -> Iscsi {
    let one_way = Chap::OneWay { user: USER.to_owned(), secret: SECRET.to_owned() };
    let mutual = Chap::Mutual { user: USER.to_owned(), secret: SECRET.to_owned(), target_secret: OWN.to_owned() };
    let at = PortalAddress::new("10.0.0.1", 0);
    let target = |(number, chap): (u8, Chap)| Target {
        iqn: format!("iqn.2020-01.org:t{number}"),
        portals: vec![at.clone()],
        chap,
        luns: vec![Lun { number, id: Uuid::from_u128(number.into()), size: 1 << 30 }],
    };
    let portal = |address: &str, reachable| Portal {
        address: address.to_owned(),
        port: 3260,
        reachable,
        answer_takes: Duration::ZERO,
    };
    Iscsi {
        portals: vec![portal("10.0.0.1", true), portal("10.0.0.2", false)],
        targets: [(0, Chap::None), (1, one_way), (2, mutual)].into_iter().map(target).collect(),
        ..Iscsi::default()
    }
}

fn value(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn portal(iscsi: &mut Iscsi, method: &str, address: &str, port: u32) -> OsResult<u32> {
    let arguments = [("TargetPortalAddress", value(address)), ("TargetPortalPortNumber", Value::U32(port))];
    iscsi.call(&ObjectPath::class(PORTAL), method, &arguments).map(|(returned, _)| returned.code)
}

fn connect(iscsi: &mut Iscsi, iqn: &str, kind: &str, secret: &str) -> OsResult<Vec<Effect>> {
    let arguments = [
        ("NodeAddress", value(iqn)),
        ("TargetPortalAddress", value("10.0.0.1")),
        ("TargetPortalPortNumber", Value::U32(3260)),
        ("AuthenticationType", value(kind)),
        ("ChapUsername", value(USER)),
        ("ChapSecret", Value::Secret(Secret::new(secret.to_owned()))),
    ];
    iscsi.call(&ObjectPath::class(TARGET), "Connect", &arguments).map(|(_, effects)| effects)
}

fn set_secret(iscsi: &mut Iscsi, secret: &str) {
    let arguments = [("ChapSecret", Value::Secret(Secret::new(secret.to_owned())))];
    iscsi.call(&ObjectPath::class(SESSION), "SetCHAPSecret", &arguments).expect("the secret is set");
}

fn rows(iscsi: &Iscsi, class: &str) -> Vec<Instance> {
    iscsi.rows(class).expect("a class of the initiator")
}

#[test]
fn adding_a_portal_that_does_not_answer_fails_after_the_timeout() {
    let mut iscsi = network();
    let arguments = [("TargetPortalAddress", value("10.0.0.2"))];
    assert_eq!(iscsi.duration(&ObjectPath::class(PORTAL), "New", &arguments), CONNECT_TIMEOUT);
    assert_eq!(portal(&mut iscsi, "New", "10.0.0.2", 0), Err(OsError::ISDSC_CONNECTION_FAILED));
}

#[test]
fn a_login_needs_the_authentication_of_both_sides() {
    let mut iscsi = network();
    portal(&mut iscsi, "New", "10.0.0.1", 0).expect("the portal answers");
    let denied = Some(OsError::ISDSC_AUTHENTICATION_FAILURE);
    for (target, kind, secret, code) in [
        ("t0", "ONEWAYCHAP", SECRET, denied),
        ("t1", "NONE", "", denied),
        ("t1", "ONEWAYCHAP", "wrong", denied),
        ("t1", "MUTUALCHAP", SECRET, denied),
        ("t1", "CHAP", SECRET, Some(OsError::INVALID_PARAMETER)),
        ("t1", "OneWayChap", SECRET, None),
        ("t2", "MUTUALCHAP", SECRET, denied),
    ] {
        let connected = connect(&mut iscsi, &format!("iqn.2020-01.org:{target}"), kind, secret);
        assert_eq!(connected.err(), code, "{target} {kind}");
    }
    set_secret(&mut iscsi, "not-that-one");
    assert_eq!(connect(&mut iscsi, "iqn.2020-01.org:t2", "MUTUALCHAP", SECRET).err(), denied);
    set_secret(&mut iscsi, OWN);
    assert!(connect(&mut iscsi, "iqn.2020-01.org:t2", "MUTUALCHAP", SECRET).is_ok());
}

#[test]
fn the_disks_of_two_sessions_are_attached_once_and_detached_with_the_last_session() {
    let mut iscsi = network();
    let (iqn, luns) = ("iqn.2020-01.org:t0".to_owned(), iscsi.targets[0].luns.clone());
    portal(&mut iscsi, "New", "10.0.0.1", 0).expect("the portal answers");
    let attach = Effect::Attach(luns.clone());
    assert_eq!(connect(&mut iscsi, &iqn, "NONE", ""), Ok(vec![attach.clone()]));
    let session: ObjectPath = rows(&iscsi, SESSION)[0].path.parse().expect("a path");
    for _ in 0..2 {
        iscsi.call(&session, "Register", &[]).expect("the session is registered");
    }
    let detach = Effect::Detach(luns);
    assert_eq!(iscsi.reboot(), [detach.clone(), attach]);
    let target: ObjectPath = rows(&iscsi, TARGET)[0].path.parse().expect("a path");
    for effects in [vec![], vec![detach]] {
        let session = value(rows(&iscsi, SESSION)[0].text("SessionIdentifier").expect("an identifier"));
        let ended = iscsi.call(&target, "Disconnect", &[("SessionIdentifier", session)]).expect("the session ends");
        assert_eq!(ended.1, effects);
    }
}

#[test]
fn no_secret_is_printed() {
    let mut iscsi = network();
    portal(&mut iscsi, "New", "10.0.0.1", 0).expect("the portal answers");
    set_secret(&mut iscsi, "initiators-own");
    connect(&mut iscsi, "iqn.2020-01.org:t1", "ONEWAYCHAP", SECRET).expect("the secret is right");
    let printed = format!("{iscsi:?}");
    for secret in [SECRET, OWN, "initiators-own"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}
