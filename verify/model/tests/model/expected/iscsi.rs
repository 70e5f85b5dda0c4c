//! The calls of the iSCSI group.

use super::{Expected, INVALID, NOT_FOUND, PRECONDITION};
use crate::messages::Payload;
use crate::reference_model::{CHAP, MUTUAL, Model, OTHER_PORTAL, PLAIN, PORTAL};

/// A portal, and the name of a target.
type Target = (&'static str, &'static str);

/// The logical units of a target, by the keys of their disks.
fn units(target: Target) -> &'static [u8] {
    match target {
        (PORTAL, PLAIN) => &[20, 21],
        (PORTAL, CHAP) => &[22],
        (PORTAL, MUTUAL) => &[23],
        (OTHER_PORTAL, PLAIN) => &[24],
        _ => &[],
    }
}

impl Model {
    pub(super) fn list_target_portals(&self) -> Expected {
        let known = self.initiator.portals.iter().map(|at| format!("{at}:3260"));
        Expected::Returns(Payload::Set(known.collect()))
    }

    pub(super) fn add_target_portal(&mut self, at: &'static str) -> Expected {
        if ![PORTAL, OTHER_PORTAL].contains(&at) {
            return Expected::fails(PRECONDITION);
        }
        self.initiator.portals.insert(at);
        Expected::nothing()
    }

    pub(super) fn discover_target_portal(&self, at: &str) -> Expected {
        if !self.initiator.portals.contains(at) {
            return Expected::fails(NOT_FOUND);
        }
        let targets: &[&str] = if at == PORTAL { &[PLAIN, CHAP, MUTUAL] } else { &[PLAIN] };
        Expected::Returns(Payload::Set(targets.iter().map(|iqn| (*iqn).to_owned()).collect()))
    }

    pub(super) fn remove_target_portal(&mut self, at: &str) -> Expected {
        self.initiator.portals.remove(at);
        Expected::nothing()
    }

    fn is_offered(&self, target: Target) -> bool {
        self.initiator.portals.contains(target.0) && !units(target).is_empty()
    }

    /// Returns whether the session of the target's name is with this target.
    fn is_connected(&self, (at, iqn): Target) -> bool {
        self.initiator.sessions.get(iqn).is_some_and(|session| session.0 == at)
    }

    pub(super) fn connect_target(&mut self, target: Target, method: &'static str, secret: &str) -> Expected {
        if !self.is_offered(target) {
            return Expected::fails(NOT_FOUND);
        }
        let (at, iqn) = target;
        if let Some(session) = self.initiator.sessions.get(iqn) {
            return if *session == (at, method) { Expected::nothing() } else { Expected::fails(PRECONDITION) };
        }
        let secret_is_right = secret == "secret-secret";
        let admitted = match (iqn, method) {
            (PLAIN, "NONE") => true,
            (CHAP | MUTUAL, "ONE_WAY_CHAP") => secret_is_right,
            (MUTUAL, "MUTUAL_CHAP") => secret_is_right && self.initiator.secret == Some("mutual-secret"),
            _ => false,
        };
        if !admitted {
            return Expected::fails(PRECONDITION);
        }
        self.initiator.sessions.insert(iqn, (at, method));
        for disk in self.initiator.disconnected.remove(&target).unwrap_or_default() {
            self.attach(disk);
        }
        Expected::nothing()
    }

    pub(super) fn disconnect_target(&mut self, target: Target) -> Expected {
        if self.is_connected(target) {
            self.initiator.sessions.remove(target.1);
            let mut disconnected = Vec::new();
            for key in units(target) {
                let number = self.disks.iter().find(|(_, disk)| disk.key == *key).map(|(number, _)| *number);
                let mut disk = number.and_then(|number| self.disks.remove(&number)).expect("a session has its disks");
                // Windows does not bring shared disks online.
                (disk.online, disk.read_only) = (false, true);
                disconnected.push(disk);
            }
            self.initiator.disconnected.insert(target, disconnected);
        }
        Expected::nothing()
    }

    pub(super) fn get_target_disks(&self, target: Target) -> Expected {
        if !self.is_offered(target) && !self.is_connected(target) {
            return Expected::fails(NOT_FOUND);
        }
        let own = units(target);
        let disks = self.disks.iter().filter(|(_, disk)| own.contains(&disk.key)).map(|(number, _)| number.to_string());
        Expected::Returns(Payload::Set(disks.collect()))
    }

    pub(super) fn set_mutual_chap_secret(&mut self, secret: &'static str) -> Expected {
        if !(12..=16).contains(&secret.len()) {
            return Expected::fails(INVALID);
        }
        self.initiator.secret = Some(secret);
        Expected::nothing()
    }
}
