//! Simulates iSCSI: portals and targets on the network, and the node's initiator with its WMI
//! classes.
//!
//! A failed method is an error with the code of the initiator (`ISDSC_...`) and not a return value,
//! as Windows posts it.
//!
//! This module does not change disks: a call that attaches or detaches logical units returns an
//! [`Effect`] for its caller to apply. The caller also checks that the Microsoft iSCSI service runs
//! and that no disk to be detached is in use.

pub(crate) mod wmi_classes;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use os::{OsError, OsResult, Secret, Uuid};
use serde::{Deserialize, Serialize};

use crate::description::quantity;

/// The default port of a portal.
pub const DEFAULT_PORT: u16 = 3260;

/// The default of [`Iscsi::hold_time`], which is that of Windows.
const HOLD_TIME: Duration = Duration::from_mins(1);

/// The iSCSI network and the initiator of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iscsi {
    /// The portals on the network.
    pub portals: Vec<Portal>,
    /// The targets on the network.
    pub targets: Vec<Target>,
    /// How long the initiator holds requests to the disks of a session that has lost its connection
    /// (`MaxRequestHoldTime`). It then removes the disks. On this node, requests to files succeed
    /// meanwhile instead of waiting, as if from a cache.
    pub hold_time: Duration,
    /// The node's initiator.
    initiator: Initiator,
}

impl Default for Iscsi {
    fn default() -> Self {
        Self {
            portals: Vec::new(),
            targets: Vec::new(),
            hold_time: HOLD_TIME,
            initiator: Initiator::default(),
        }
    }
}

/// The address of a portal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortalAddress {
    /// A host name or an IP address.
    pub address: String,
    /// The TCP port.
    #[serde(default = "default_port")]
    pub port: u16,
}

/// An iSCSI portal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portal {
    /// The host name or IP address on which it listens.
    pub address: String,
    /// The TCP port on which it listens.
    #[serde(default = "default_port")]
    pub port: u16,
    /// Whether it answers.
    #[serde(default = "quantity::yes")]
    pub reachable: bool,
    /// How long it takes to answer a request.
    #[serde(default, with = "quantity::duration")]
    pub answer_takes: Duration,
}

/// An iSCSI target. Targets at different portals may have the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its iSCSI qualified name.
    pub iqn: String,
    /// The portals through which it can be reached.
    pub portals: Vec<PortalAddress>,
    /// The portal to which each login is redirected. Default: logins are not redirected.
    #[serde(default)]
    pub redirects_to: Option<PortalAddress>,
    /// How it authenticates initiators.
    #[serde(default)]
    pub chap: Chap,
    /// Its logical units.
    #[serde(default)]
    pub luns: Vec<Lun>,
}

/// The CHAP authentication that a target requires.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Chap {
    /// No authentication.
    #[default]
    None,
    /// The initiator authenticates itself to the target.
    OneWay {
        /// The user.
        user: String,
        /// Its secret.
        secret: String,
    },
    /// The initiator and the target authenticate each other.
    Mutual {
        /// The user.
        user: String,
        /// Its secret.
        secret: String,
        /// The target's own secret.
        target_secret: String,
    },
}

/// A logical unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lun {
    /// Its number (LUN).
    pub number: u8,
    /// Its identity, which the node assigns and which is the same in all sessions.
    #[serde(skip)]
    pub id: Uuid,
    /// Its size.
    #[serde(with = "quantity::size")]
    pub size: u64,
}

/// A change of the node's disks that follows from a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// These logical units of a target become disks.
    Attach(Vec<Lun>),
    /// The disks of these logical units disappear.
    Detach(Vec<Lun>),
}

/// The state of the initiator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Initiator {
    portals: BTreeSet<PortalAddress>,
    /// The discovered targets, each with every portal that reported it.
    discovered: BTreeSet<(String, PortalAddress)>,
    sessions: Vec<Session>,
    /// The sessions to open again after a restart (favorite targets). A session that was registered
    /// twice is in the list twice.
    favourites: Vec<Session>,
    logins: u64,
    /// The secret that a target must know in mutual CHAP.
    secret: Option<Secret>,
}

/// A session with a target.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Session {
    number: u64,
    iqn: String,
    portal: PortalAddress,
    /// One of [`AUTHENTICATIONS`].
    authentication: &'static str,
    /// When its connection was lost, which its portal has not answered since.
    lost: Option<Duration>,
    /// Whether the initiator shows its disks: from the login or a new connection until the hold
    /// time has passed without a connection.
    shows_disks: bool,
}

/// The values of `AuthenticationType`.
const AUTHENTICATIONS: [&str; 3] = ["NONE", "ONEWAYCHAP", "MUTUALCHAP"];

impl PortalAddress {
    /// Returns the address of a portal. Port 0 stands for [`DEFAULT_PORT`].
    pub fn new(address: &str, port: u16) -> Self {
        Self {
            address: address.to_owned(),
            port: if port == 0 { DEFAULT_PORT } else { port },
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.address.eq_ignore_ascii_case(&other.address) && self.port == other.port
    }
}

impl Portal {
    fn is_at(&self, at: &PortalAddress) -> bool {
        self.address.eq_ignore_ascii_case(&at.address) && self.port == at.port
    }
}

impl fmt::Debug for Chap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::OneWay { user, .. } => f
                .debug_struct("OneWay")
                .field("user", user)
                .finish_non_exhaustive(),
            Self::Mutual { user, .. } => f
                .debug_struct("Mutual")
                .field("user", user)
                .finish_non_exhaustive(),
        }
    }
}

impl Chap {
    /// Returns whether the target accepts a login and, in mutual CHAP, the initiator accepts the
    /// target.
    fn accepts(
        &self,
        authentication: &str,
        user: &str,
        secret: Option<&Secret>,
        initiator: Option<&Secret>,
    ) -> bool {
        let is_known = |known: &str, expected: &str| {
            known == user && secret.is_some_and(|given| given.expose() == expected)
        };
        match (self, authentication) {
            (Self::None, "NONE") => true,
            (Self::OneWay { user, secret } | Self::Mutual { user, secret, .. }, "ONEWAYCHAP") => {
                is_known(user, secret)
            }
            (
                Self::Mutual {
                    user,
                    secret,
                    target_secret,
                },
                "MUTUALCHAP",
            ) => {
                is_known(user, secret)
                    && initiator.is_some_and(|expected| expected.expose() == target_secret)
            }
            _ => false,
        }
    }
}

impl Iscsi {
    /// Returns whether the initiator has a session with a target of the name `iqn`, with or without
    /// a connection.
    pub fn is_connected(&self, iqn: &str) -> bool {
        self.sessions_with(iqn) > 0
    }

    /// Returns how many sessions the initiator has with targets of the name `iqn`, with or without a
    /// connection.
    pub fn sessions_with(&self, iqn: &str) -> usize {
        let sessions = self.initiator.sessions.iter();
        sessions
            .filter(|session| session.iqn.eq_ignore_ascii_case(iqn))
            .count()
    }

    /// Sets whether a portal answers, at the time `now`. Its sessions lose their connections, and
    /// connect again as soon as it answers. Returns the effects on the node's disks, or `None` if
    /// there is no such portal.
    pub fn set_reachable(
        &mut self,
        at: &PortalAddress,
        reachable: bool,
        now: Duration,
    ) -> Option<Vec<Effect>> {
        let portal = self.portals.iter_mut().find(|portal| portal.is_at(at))?;
        portal.reachable = reachable;
        let mut effects = Vec::new();
        for position in 0..self.initiator.sessions.len() {
            let session = &mut self.initiator.sessions[position];
            if !session.portal.is_same(at) {
                continue;
            }
            if !reachable {
                session.lost.get_or_insert(now);
                continue;
            }
            session.lost = None;
            if session.shows_disks {
                continue;
            }
            let session = session.clone();
            if !self.others_show_disks(&session) {
                effects.push(Effect::Attach(self.luns(&session)));
            }
            self.initiator.sessions[position].shows_disks = true;
        }
        Some(effects)
    }

    /// Removes the disks of the sessions that have had no connection for the hold time. The sessions
    /// stay.
    pub fn stop_holding(&mut self, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        for position in 0..self.initiator.sessions.len() {
            let session = &mut self.initiator.sessions[position];
            let is_over = session
                .lost
                .is_some_and(|lost| lost + self.hold_time <= now);
            if !is_over || !session.shows_disks {
                continue;
            }
            session.shows_disks = false;
            let session = session.clone();
            if !self.others_show_disks(&session) {
                effects.push(Effect::Detach(self.luns(&session)));
            }
        }
        effects
    }

    /// Restarts the node: ends all sessions and opens the persistent sessions again.
    pub fn reboot(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while !self.initiator.sessions.is_empty() {
            effects.extend(self.log_out(0));
        }
        for favourite in self.initiator.favourites.clone() {
            if self.target(&favourite.iqn, &favourite.portal).is_some()
                && self.answers(&favourite.portal)
            {
                effects.extend(self.open_session(favourite));
            }
        }
        effects
    }

    /// Adds a target portal and discovers its targets. Adds the portal even if it does not answer,
    /// and fails then.
    fn add_portal(&mut self, at: &PortalAddress) -> OsResult<()> {
        self.initiator.portals.insert(at.clone());
        self.update_portal(at)
    }

    /// Removes a target portal and the targets discovered only through it. Sessions stay.
    fn remove_portal(&mut self, at: &PortalAddress) -> OsResult<()> {
        if !self.initiator.portals.remove(at) {
            return Err(OsError::ISDSC_PORTAL_NOT_FOUND);
        }
        self.initiator.discovered.retain(|(_, portal)| portal != at);
        Ok(())
    }

    /// Repeats the discovery at a target portal.
    fn update_portal(&mut self, at: &PortalAddress) -> OsResult<()> {
        if !self.initiator.portals.contains(at) {
            return Err(OsError::ISDSC_PORTAL_NOT_FOUND);
        }
        if !self.answers(at) {
            return Err(OsError::ISDSC_CONNECTION_FAILED);
        }
        self.discover(at);
        Ok(())
    }

    /// Repeats the discovery at all target portals that answer.
    fn update_targets(&mut self) {
        for portal in self.initiator.portals.clone() {
            if self.answers(&portal) {
                self.discover(&portal);
            }
        }
    }

    fn discover(&mut self, at: &PortalAddress) {
        self.initiator.discovered.retain(|(_, portal)| portal != at);
        let offered = self
            .targets
            .iter()
            .filter(|target| target.portals.contains(at));
        self.initiator
            .discovered
            .extend(offered.map(|target| (target.iqn.clone(), at.clone())));
    }

    /// Opens a session. The first session of a target attaches its disks.
    fn open_session(&mut self, session: Session) -> Option<Effect> {
        let effect = Effect::Attach(self.luns(&session));
        let is_first = !self.others_show_disks(&session);
        self.initiator.logins += 1;
        self.initiator.sessions.push(Session {
            number: self.initiator.logins,
            lost: None,
            shows_disks: true,
            ..session
        });
        is_first.then_some(effect)
    }

    /// Ends a session. The last session of a target detaches its disks.
    fn log_out(&mut self, position: usize) -> Option<Effect> {
        let session = self.initiator.sessions.remove(position);
        let is_last = session.shows_disks && !self.others_show_disks(&session);
        is_last.then(|| Effect::Detach(self.luns(&session)))
    }

    /// Returns whether another session shows the disks of the same target.
    fn others_show_disks(&self, session: &Session) -> bool {
        let target = |session: &Session| {
            (
                session.iqn.clone(),
                self.position(&session.iqn, &session.portal),
            )
        };
        self.initiator
            .sessions
            .iter()
            .filter(|other| other.number != session.number && other.shows_disks)
            .any(|other| target(other) == target(session))
    }

    fn answers(&self, at: &PortalAddress) -> bool {
        self.portal(at).is_some()
    }

    /// Returns the portal that answers at an address.
    fn portal(&self, at: &PortalAddress) -> Option<&Portal> {
        self.portals
            .iter()
            .find(|portal| portal.is_at(at) && portal.reachable)
    }

    /// Returns the position of the target of a name at a portal.
    fn position(&self, iqn: &str, at: &PortalAddress) -> Option<usize> {
        self.targets
            .iter()
            .position(|target| target.iqn.eq_ignore_ascii_case(iqn) && target.is_at(at))
    }

    fn target(&self, iqn: &str, at: &PortalAddress) -> Option<&Target> {
        self.position(iqn, at)
            .map(|position| &self.targets[position])
    }

    fn luns(&self, session: &Session) -> Vec<Lun> {
        self.target(&session.iqn, &session.portal)
            .map(|target| target.luns.clone())
            .unwrap_or_default()
    }
}

impl Target {
    /// Returns whether the target can be reached through a portal.
    fn is_at(&self, at: &PortalAddress) -> bool {
        self.portals.contains(at) || self.redirects_to.as_ref() == Some(at)
    }

    /// Returns whether both targets have the same name at the same portal.
    pub(crate) fn collides_with(&self, other: &Self) -> bool {
        self.iqn.eq_ignore_ascii_case(&other.iqn)
            && self
                .portals
                .iter()
                .any(|portal| other.portals.contains(portal))
    }
}

impl Session {
    /// Returns whether both sessions lead to the same target, through the same portal.
    fn is_like(&self, other: &Self) -> bool {
        self.iqn == other.iqn && self.portal == other.portal
    }
}

fn default_port() -> u16 {
    DEFAULT_PORT
}
