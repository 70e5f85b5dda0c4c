//! The calls of the iSCSI group.

use super::{Expected, INVALID, NOT_FOUND, PRECONDITION};
use crate::messages::Payload;
use crate::reference_model::{CHAP, MUTUAL, Model, PLAIN, PORTAL};

/// The logical units of a target, by the keys of their disks.
fn units(iqn: &str) -> &'static [u8] {
    match iqn {
        PLAIN => &[20, 21],
        CHAP => &[22],
        MUTUAL => &[23],
        _ => &[],
    }
}

impl Model {
    pub(super) fn list_target_portals(&self) -> Expected {
        let known = self.initiator.portal.then(|| format!("{PORTAL}:3260"));
        Expected::Returns(Payload::Set(known.into_iter().collect()))
    }

    pub(super) fn add_target_portal(&mut self, at: &str) -> Expected {
        if at != PORTAL {
            return Expected::fails(PRECONDITION);
        }
        self.initiator.portal = true;
        Expected::nothing()
    }

    pub(super) fn discover_target_portal(&self, at: &str) -> Expected {
        if at != PORTAL || !self.initiator.portal {
            return Expected::fails(NOT_FOUND);
        }
        Expected::Returns(Payload::Set([PLAIN, CHAP, MUTUAL].map(str::to_owned).into()))
    }

    pub(super) fn remove_target_portal(&mut self, at: &str) -> Expected {
        self.initiator.portal &= at != PORTAL;
        Expected::nothing()
    }

    pub(super) fn connect_target(&mut self, iqn: &'static str, method: &str, secret: &str) -> Expected {
        if !self.initiator.portal || units(iqn).is_empty() {
            return Expected::fails(NOT_FOUND);
        }
        if self.initiator.sessions.contains(iqn) {
            return Expected::nothing();
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
        self.initiator.sessions.insert(iqn);
        for disk in self.initiator.disconnected.remove(iqn).unwrap_or_default() {
            self.attach(disk);
        }
        Expected::nothing()
    }

    pub(super) fn disconnect_target(&mut self, iqn: &'static str) -> Expected {
        if self.initiator.sessions.remove(iqn) {
            let mut disconnected = Vec::new();
            for key in units(iqn) {
                let number = self.disks.iter().find(|(_, disk)| disk.key == *key).map(|(number, _)| *number);
                let mut disk = number.and_then(|number| self.disks.remove(&number)).expect("a session has its disks");
                // Windows does not bring shared disks online.
                (disk.online, disk.read_only) = (false, true);
                disconnected.push(disk);
            }
            self.initiator.disconnected.insert(iqn, disconnected);
        }
        Expected::nothing()
    }

    pub(super) fn get_target_disks(&self, iqn: &str) -> Expected {
        if !self.initiator.portal || units(iqn).is_empty() {
            return Expected::fails(NOT_FOUND);
        }
        let own = units(iqn);
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
