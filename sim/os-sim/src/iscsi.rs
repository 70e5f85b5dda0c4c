//! iSCSI: portals and targets on the network, and the node's initiator.
//!
//! The model keeps what the initiator knows and answers its WMI classes. Disks are not its business: a call that
//! makes LUNs come or go says so with an [`Effect`]. The Microsoft iSCSI service, without which none of this works,
//! is not its business either.

mod return_code;
mod wmi_classes;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use os::{Secret, Uuid};
use serde::Deserialize;

pub use return_code::IscsiCode;
pub use wmi_classes::Associated;

/// How long a portal that does not answer is waited for.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The port of a portal that names none.
pub const DEFAULT_PORT: u16 = 3260;

/// The iSCSI side of a node's world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Iscsi {
    /// The portals on the network.
    pub portals: Vec<Portal>,
    /// The targets on the network.
    pub targets: Vec<Target>,
    /// What the node's initiator knows.
    initiator: Initiator,
}

/// Where a portal is sought.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortalAddress {
    /// A host name or an IP address.
    pub address: String,
    /// The TCP port.
    #[serde(default = "default_port")]
    pub port: u16,
}

/// A portal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portal {
    /// The host name or IP address it listens at.
    pub address: String,
    /// The TCP port it listens at.
    #[serde(default = "default_port")]
    pub port: u16,
    /// Whether it answers.
    #[serde(default = "yes")]
    pub reachable: bool,
    /// How long it takes over every answer.
    #[serde(default)]
    pub slow_milliseconds: u64,
}

/// A target.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its name.
    pub iqn: String,
    /// The portals it is found at.
    pub portals: Vec<PortalAddress>,
    /// Whom it lets in.
    #[serde(default)]
    pub chap: Chap,
    /// Its logical units.
    #[serde(default)]
    pub luns: Vec<Lun>,
}

/// How a target authenticates initiators, and itself.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Chap {
    /// It does not.
    #[default]
    None,
    /// The initiator proves that it knows the user's secret.
    OneWay {
        /// The user.
        user: String,
        /// Its secret.
        secret: String,
    },
    /// So does the target, with the secret that the initiator expects.
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lun {
    /// Its number in the target.
    pub number: u8,
    /// Its medium, which stays the same through all sessions; a description leaves it out, the node gives it one.
    #[serde(skip)]
    pub id: Uuid,
    /// Its size in bytes.
    pub size: u64,
}

/// What the node's disks have to do after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The target's units appear as disks.
    Attach {
        /// The target.
        iqn: String,
        /// Its units.
        luns: Vec<Lun>,
    },
    /// They disappear.
    Detach {
        /// The target.
        iqn: String,
        /// Its units.
        luns: Vec<Lun>,
    },
}

/// What the initiator knows and does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Initiator {
    portals: BTreeSet<PortalAddress>,
    /// Each target that was discovered, with each portal that told of it.
    discovered: BTreeSet<(String, PortalAddress)>,
    sessions: Vec<Session>,
    /// The sessions to open again after a restart.
    favourites: Vec<Session>,
    logins: u64,
    /// What a target must know in mutual CHAP.
    secret: Option<Secret>,
}

/// A session with a target.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Session {
    number: u64,
    iqn: String,
    portal: PortalAddress,
    authentication: Authentication,
}

/// `AuthenticationType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Authentication {
    None,
    OneWayChap,
    MutualChap,
}

/// What an initiator logs in to a target with.
struct Login<'a> {
    iqn: &'a str,
    portal: Option<PortalAddress>,
    authentication: Authentication,
    user: &'a str,
    secret: Option<Secret>,
    persistent: bool,
}

impl PortalAddress {
    /// A portal's address; port 0 is [`DEFAULT_PORT`].
    pub fn new(address: &str, port: u16) -> Self {
        Self { address: address.to_owned(), port: if port == 0 { DEFAULT_PORT } else { port } }
    }
}

impl fmt::Debug for Chap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::OneWay { user, .. } => f.debug_struct("OneWay").field("user", user).finish_non_exhaustive(),
            Self::Mutual { user, .. } => f.debug_struct("Mutual").field("user", user).finish_non_exhaustive(),
        }
    }
}

impl Chap {
    /// Whether a login is let in, and the initiator finds the target to be the right one.
    fn admits(&self, login: &Login<'_>, initiator: Option<&Secret>) -> bool {
        let knows = |user: &str, secret: &str| {
            user == login.user && login.secret.as_ref().is_some_and(|given| given.expose() == secret)
        };
        match (self, login.authentication) {
            (Self::None, Authentication::None) => true,
            (Self::OneWay { user, secret } | Self::Mutual { user, secret, .. }, Authentication::OneWayChap) => {
                knows(user, secret)
            }
            (Self::Mutual { user, secret, target_secret }, Authentication::MutualChap) => {
                knows(user, secret) && initiator.is_some_and(|expected| expected.expose() == target_secret)
            }
            _ => false,
        }
    }
}

impl Iscsi {
    /// Whether the initiator has a session with the target `iqn`.
    pub fn is_connected(&self, iqn: &str) -> bool {
        self.initiator.sessions.iter().any(|session| session.iqn.eq_ignore_ascii_case(iqn))
    }

    /// Starts the node anew: sessions end, and those that were to persist are opened again.
    pub fn reboot(&mut self) -> Vec<Effect> {
        let mut effects: Vec<_> =
            std::mem::take(&mut self.initiator.sessions).iter().map(|session| self.detach(&session.iqn)).collect();
        for favourite in self.initiator.favourites.clone() {
            let Some(target) = self.target(&favourite.iqn) else { continue };
            if target.portals.contains(&favourite.portal) && self.answers(&favourite.portal) {
                effects.push(self.open_session(favourite));
            }
        }
        effects
    }

    /// Adds a send-target portal and discovers what it offers.
    fn add_portal(&mut self, at: &PortalAddress) -> Result<(), IscsiCode> {
        if !self.answers(at) {
            return Err(IscsiCode::CONNECTION_FAILED);
        }
        self.initiator.portals.insert(at.clone());
        self.discover(at);
        Ok(())
    }

    /// Removes a send-target portal and what only it told of. Sessions stay.
    fn remove_portal(&mut self, at: &PortalAddress) -> Result<(), IscsiCode> {
        if !self.initiator.portals.remove(at) {
            return Err(IscsiCode::NOT_FOUND);
        }
        self.initiator.discovered.retain(|(_, portal)| portal != at);
        Ok(())
    }

    /// Asks a send-target portal again.
    fn update_portal(&mut self, at: &PortalAddress) -> Result<(), IscsiCode> {
        if !self.initiator.portals.contains(at) {
            return Err(IscsiCode::NOT_FOUND);
        }
        if !self.answers(at) {
            return Err(IscsiCode::CONNECTION_FAILED);
        }
        self.discover(at);
        Ok(())
    }

    /// Asks all send-target portals that answer again.
    fn update_targets(&mut self) {
        for portal in self.initiator.portals.clone() {
            if self.answers(&portal) {
                self.discover(&portal);
            }
        }
    }

    fn discover(&mut self, at: &PortalAddress) {
        self.initiator.discovered.retain(|(_, portal)| portal != at);
        let offered = self.targets.iter().filter(|target| target.portals.contains(at));
        self.initiator.discovered.extend(offered.map(|target| (target.iqn.clone(), at.clone())));
    }

    fn log_in(&mut self, login: &Login<'_>) -> Result<(u64, Effect), IscsiCode> {
        let told: Vec<_> =
            self.initiator.discovered.iter().filter(|(iqn, _)| iqn.eq_ignore_ascii_case(login.iqn)).collect();
        let (_, first) = told.first().ok_or(IscsiCode::TARGET_NOT_FOUND)?;
        let portal = login.portal.as_ref().unwrap_or(first).clone();
        if self.is_connected(login.iqn) {
            return Err(IscsiCode::SESSION_ALREADY_EXISTS);
        }
        let target = self.target(login.iqn).filter(|target| target.portals.contains(&portal));
        let target = target.filter(|_| self.answers(&portal)).ok_or(IscsiCode::CONNECTION_FAILED)?;
        if !target.chap.admits(login, self.initiator.secret.as_ref()) {
            return Err(IscsiCode::AUTHENTICATION_FAILURE);
        }
        let iqn = target.iqn.clone();
        let session = Session { number: 0, iqn, portal, authentication: login.authentication };
        if login.persistent {
            self.initiator.favourites.push(session.clone());
        }
        let effect = self.open_session(session);
        Ok((self.initiator.logins, effect))
    }

    fn open_session(&mut self, session: Session) -> Effect {
        self.initiator.logins += 1;
        let effect = Effect::Attach { iqn: session.iqn.clone(), luns: self.luns(&session.iqn) };
        self.initiator.sessions.push(Session { number: self.initiator.logins, ..session });
        effect
    }

    fn log_out(&mut self, position: usize) -> Effect {
        let session = self.initiator.sessions.remove(position);
        self.detach(&session.iqn)
    }

    fn detach(&self, iqn: &str) -> Effect {
        Effect::Detach { iqn: iqn.to_owned(), luns: self.luns(iqn) }
    }

    /// The initiator takes 12 to 16 bytes; more is for IPsec.
    fn set_secret(&mut self, secret: Secret) -> Result<(), IscsiCode> {
        if !(12..=16).contains(&secret.expose().len()) {
            return Err(IscsiCode::INVALID_PARAMETER);
        }
        self.initiator.secret = Some(secret);
        Ok(())
    }

    fn is_favourite(&self, session: &Session) -> bool {
        self.initiator.favourites.iter().any(|known| known.iqn == session.iqn)
    }

    fn answers(&self, at: &PortalAddress) -> bool {
        self.portal(at).is_some()
    }

    /// How long the portal takes to answer, or is waited for.
    fn answer_time(&self, at: &PortalAddress) -> Duration {
        self.portal(at).map_or(CONNECT_TIMEOUT, |portal| Duration::from_millis(portal.slow_milliseconds))
    }

    /// The portal that answers there.
    fn portal(&self, at: &PortalAddress) -> Option<&Portal> {
        let is_there = |portal: &Portal| portal.address.eq_ignore_ascii_case(&at.address) && portal.port == at.port;
        self.portals.iter().find(|portal| is_there(portal) && portal.reachable)
    }

    fn target(&self, iqn: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.iqn.eq_ignore_ascii_case(iqn))
    }

    fn luns(&self, iqn: &str) -> Vec<Lun> {
        self.target(iqn).map(|target| target.luns.clone()).unwrap_or_default()
    }
}

fn default_port() -> u16 {
    DEFAULT_PORT
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests;
