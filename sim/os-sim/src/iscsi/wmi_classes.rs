//! The WMI classes of the iSCSI initiator.

use std::time::Duration;

use os::{Instance, OsError, OsResult, Returned, Uuid, Value};

use super::{AUTHENTICATIONS, DEFAULT_PORT, Effect, Iscsi, PortalAddress, Session};
use crate::wmi::method_call::{Arguments, Method, created, instance, method, returned, text};
use crate::wmi::wql::{Associators, ObjectPath};

const PORTAL: &str = "MSFT_iSCSITargetPortal";
const TARGET: &str = "MSFT_iSCSITarget";
const SESSION: &str = "MSFT_iSCSISession";
const CONNECTION: &str = "MSFT_iSCSIConnection";

impl Iscsi {
    /// Returns the instances of `class`, or `None` if the initiator does not have the class.
    pub fn rows(&self, class: &str) -> Option<Vec<Instance>> {
        Some(match class {
            PORTAL => self.initiator.portals.iter().map(portal_instance).collect(),
            TARGET => self.target_rows(|_| true),
            SESSION => self.session_rows(|_| true),
            CONNECTION => self
                .initiator
                .sessions
                .iter()
                .filter(|session| session.lost.is_none())
                .map(connection_instance)
                .collect(),
            _ => return None,
        })
    }

    /// Returns the objects that an association leads to, or `None` if the initiator does not have
    /// the association. The result is empty if `query.object` does not exist. `disks_of` returns
    /// the disks of the logical units with these identities.
    pub fn associated(
        &self,
        query: &Associators,
        disks_of: impl FnOnce(&[Uuid]) -> Vec<Instance>,
    ) -> Option<Vec<Instance>> {
        /// Each association that is simulated, with the class that it leads from and the class that
        /// it leads to.
        const ASSOCIATIONS: [(&str, &str, &str); 5] = [
            ("MSFT_iSCSITargetToiSCSITargetPortal", PORTAL, TARGET),
            ("MSFT_iSCSITargetToiSCSIConnection", TARGET, CONNECTION),
            ("MSFT_iSCSISessionToiSCSIConnection", SESSION, CONNECTION),
            ("MSFT_iSCSISessionToDisk", SESSION, "MSFT_Disk"),
            ("MSFT_iSCSIConnectionToDisk", CONNECTION, "MSFT_Disk"),
        ];
        let object = &query.object;
        let (_, from, to) = ASSOCIATIONS.into_iter().find(|(name, from, to)| {
            object.is_of(from)
                && query.association == Some(name)
                && query.result.is_none_or(|class| class == *to)
        })?;
        let sessions = self.initiator.sessions.iter();
        let has_session = |session: &&Session| match from {
            TARGET => object
                .text("NodeAddress")
                .is_some_and(|iqn| session.iqn.eq_ignore_ascii_case(iqn)),
            SESSION => object.text("SessionIdentifier") == Some(&session.identifier()),
            _ => object.text("ConnectionIdentifier") == Some(&session.connection_identifier()),
        };
        Some(match (from, to) {
            (PORTAL, _) => {
                let address = object.text("TargetPortalAddress").unwrap_or_default();
                let is_at = |portal: &PortalAddress| portal.address.eq_ignore_ascii_case(address);
                let is_reported = |iqn: &str| {
                    self.initiator
                        .discovered
                        .iter()
                        .any(|(known, portal)| known == iqn && is_at(portal))
                };
                self.target_rows(is_reported)
            }
            (_, CONNECTION) => sessions
                .filter(has_session)
                .filter(|session| session.lost.is_none())
                .map(connection_instance)
                .collect(),
            _ => {
                let luns = sessions
                    .filter(has_session)
                    .filter(|session| session.shows_disks)
                    .flat_map(|session| self.luns(session));
                disks_of(&luns.map(|lun| lun.id).collect::<Vec<_>>())
            }
        })
    }

    /// Calls `method` of the class or object at `target`, and returns the effects on the node's
    /// disks.
    ///
    /// On Windows the call takes [`Self::duration`]: call this when that time has passed.
    pub fn call(
        &mut self,
        target: &ObjectPath,
        method: &str,
        arguments: &[(&str, Value)],
    ) -> OsResult<(Returned, Vec<Effect>)> {
        let method = known_method(target, method)?;
        let arguments = method.arguments(arguments)?;
        let without_effects = |result: OsResult<()>| result.map(|()| (returned(0), Vec::new()));
        match (method.class, method.name) {
            (PORTAL, "New") => {
                let at = portal_of(arguments)?;
                self.add_portal(&at)?;
                Ok((
                    created("CreatedTargetPortal", portal_instance(&at)),
                    Vec::new(),
                ))
            }
            (PORTAL, "Remove") => without_effects(self.remove_portal(&portal_of(arguments)?)),
            (PORTAL, _) => without_effects(self.update_portal(&portal_of(arguments)?)),
            (TARGET, "Connect") => self.connect(target, arguments),
            (TARGET, "Disconnect") => self.disconnect(target, arguments),
            (TARGET, _) => {
                self.update_targets();
                without_effects(Ok(()))
            }
            (_, "SetCHAPSecret") => {
                self.initiator.secret = Some(
                    arguments
                        .secret("ChapSecret")?
                        .ok_or(OsError::INVALID_PARAMETER)?,
                );
                without_effects(Ok(()))
            }
            (_, name) => without_effects(self.set_persistent(target, name == "Register")),
        }
    }

    /// Returns how long a call takes. `timeout` is how long Windows waits for a portal that does
    /// not answer.
    pub fn duration(
        &self,
        target: &ObjectPath,
        method: &str,
        arguments: &[(&str, Value)],
        timeout: Duration,
    ) -> Duration {
        let uses_network = |method: &&Method| matches!(method.name, "New" | "Update" | "Connect");
        let method = known_method(target, method).ok().filter(uses_network);
        // A login without a portal and the update of all targets take no time.
        let portal = method.and_then(|method| portal_of(method.arguments(arguments).ok()?).ok());
        portal.map_or(Duration::ZERO, |at| {
            self.portal(&at)
                .map_or(timeout, |portal| portal.answer_takes)
        })
    }

    fn connect(
        &mut self,
        target: &ObjectPath,
        arguments: Arguments<'_>,
    ) -> OsResult<(Returned, Vec<Effect>)> {
        let iqn = arguments
            .text("NodeAddress")?
            .or(target.text("NodeAddress"))
            .unwrap_or_default();
        let requested = arguments.text("AuthenticationType")?.unwrap_or("NONE");
        let authentication = AUTHENTICATIONS
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(requested));
        let authentication = authentication.ok_or(OsError::INVALID_PARAMETER)?;
        let portal = arguments
            .text("TargetPortalAddress")?
            .map(|_| portal_of(arguments))
            .transpose()?;
        let user = arguments.text("ChapUsername")?.unwrap_or_default();
        let secret = arguments.secret("ChapSecret")?;
        let is_persistent = arguments.bool("IsPersistent")?.unwrap_or_default();
        let is_multipath = arguments.bool("IsMultipathEnabled")?.unwrap_or_default();
        let report = self
            .initiator
            .discovered
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(iqn));
        let (_, first) = report.ok_or(OsError::ISDSC_TARGET_NOT_FOUND)?;
        let portal = portal.unwrap_or_else(|| first.clone());
        if self.is_connected(iqn) && !is_multipath {
            return Err(OsError::ISDSC_TARGET_ALREADY_LOGGED_IN);
        }
        let found = self.target(iqn, &portal).filter(|_| self.answers(&portal));
        let found = found.ok_or(OsError::ISDSC_CONNECTION_FAILED)?;
        if !found.chap.accepts(
            authentication,
            user,
            secret.as_ref(),
            self.initiator.secret.as_ref(),
        ) {
            return Err(OsError::ISDSC_AUTHENTICATION_FAILURE);
        }
        let portal = found.redirects_to.clone().unwrap_or(portal);
        if !self.answers(&portal) {
            return Err(OsError::ISDSC_CONNECTION_FAILED);
        }
        let session = Session {
            number: 0,
            iqn: found.iqn.clone(),
            portal,
            authentication,
            lost: None,
            shows_disks: true,
        };
        if is_persistent {
            self.initiator.favourites.push(session.clone());
        }
        let effect = self.open_session(session);
        let session = self
            .session_rows(|session| session.number == self.initiator.logins)
            .pop();
        let session = session.ok_or(OsError::ISDSC_INVALID_SESSION_ID)?;
        Ok((
            created("CreatediSCSISession", session),
            effect.into_iter().collect(),
        ))
    }

    fn disconnect(
        &mut self,
        target: &ObjectPath,
        arguments: Arguments<'_>,
    ) -> OsResult<(Returned, Vec<Effect>)> {
        let session = arguments.text("SessionIdentifier")?;
        let iqn = target.text("NodeAddress");
        if session.is_none() && iqn.is_none() {
            return Err(OsError::ISDSC_INVALID_SESSION_ID);
        }
        let is_requested = |known: &Session| {
            session.is_none_or(|session| session == known.identifier())
                && iqn.is_none_or(|iqn| known.iqn.eq_ignore_ascii_case(iqn))
        };
        if !self.initiator.sessions.iter().any(is_requested) {
            return Err(OsError::ISDSC_INVALID_SESSION_ID);
        }
        let mut effects = Vec::new();
        while let Some(position) = self.initiator.sessions.iter().position(is_requested) {
            effects.extend(self.log_out(position));
        }
        Ok((returned(0), effects))
    }

    /// Registers a session as persistent, or removes one of its registrations.
    fn set_persistent(&mut self, target: &ObjectPath, persists: bool) -> OsResult<()> {
        let wanted = target.text("SessionIdentifier").unwrap_or_default();
        let session = self
            .initiator
            .sessions
            .iter()
            .find(|session| session.identifier() == wanted);
        let session = session.ok_or(OsError::ISDSC_INVALID_SESSION_ID)?.clone();
        if persists {
            self.initiator.favourites.push(session);
        } else if let Some(known) = self
            .initiator
            .favourites
            .iter()
            .position(|known| known.is_like(&session))
        {
            self.initiator.favourites.remove(known);
        }
        Ok(())
    }

    fn target_rows(&self, wanted: impl Fn(&str) -> bool) -> Vec<Instance> {
        let mut names: Vec<_> = self
            .initiator
            .discovered
            .iter()
            .map(|(iqn, _)| iqn.as_str())
            .collect();
        // A connected target is listed even if its portal was removed.
        names.extend(
            self.initiator
                .sessions
                .iter()
                .map(|session| session.iqn.as_str()),
        );
        names.sort_unstable();
        names.dedup();
        let has_connection = |iqn: &str| {
            self.initiator
                .sessions
                .iter()
                .any(|session| session.lost.is_none() && session.iqn.eq_ignore_ascii_case(iqn))
        };
        let row = |iqn: &str| {
            let properties = [
                ("IsConnected", Value::Bool(has_connection(iqn))),
                ("NodeAddress", text(iqn)),
            ];
            instance(&ObjectPath::object(TARGET, "NodeAddress", iqn), properties)
        };
        names
            .into_iter()
            .filter(|iqn| wanted(iqn))
            .map(row)
            .collect()
    }

    fn session_rows(&self, wanted: impl Fn(&Session) -> bool) -> Vec<Instance> {
        let row = |session: &Session| {
            let is_favourite = self
                .initiator
                .favourites
                .iter()
                .any(|known| known.is_like(session));
            let properties = [
                ("AuthenticationType", text(session.authentication)),
                ("IsConnected", Value::Bool(session.lost.is_none())),
                ("IsPersistent", Value::Bool(is_favourite)),
                ("SessionIdentifier", text(session.identifier())),
                ("TargetNodeAddress", text(&session.iqn)),
            ];
            instance(
                &ObjectPath::object(SESSION, "SessionIdentifier", &session.identifier()),
                properties,
            )
        };
        self.initiator
            .sessions
            .iter()
            .filter(|session| wanted(session))
            .map(row)
            .collect()
    }
}

impl Session {
    fn identifier(&self) -> String {
        format!("ffffab8e4d3c7010-4000013700{:06x}", self.number)
    }

    fn connection_identifier(&self) -> String {
        format!("ffffab8e4d3c7010-{:x}", self.number)
    }
}

pub(crate) static METHODS: [Method; 9] = [
    method(PORTAL, "New", PORTAL_KEYS),
    method(PORTAL, "Remove", PORTAL_KEYS),
    method(PORTAL, "Update", PORTAL_KEYS),
    method(
        TARGET,
        "Connect",
        "NodeAddress TargetPortalAddress TargetPortalPortNumber AuthenticationType ChapUsername \
         ChapSecret IsMultipathEnabled IsPersistent",
    ),
    method(TARGET, "Disconnect", "SessionIdentifier"),
    method(TARGET, "Update", ""),
    method(
        SESSION,
        "Register",
        "IsMultipathEnabled ChapUsername ChapSecret",
    ),
    method(SESSION, "Unregister", ""),
    method(SESSION, "SetCHAPSecret", "ChapSecret"),
];

const PORTAL_KEYS: &str = "TargetPortalAddress TargetPortalPortNumber";

fn known_method(target: &ObjectPath, method: &str) -> OsResult<&'static Method> {
    if ![PORTAL, TARGET, SESSION, CONNECTION]
        .iter()
        .any(|class| target.is_of(class))
    {
        return Err(OsError::WBEM_INVALID_CLASS);
    }
    Method::find(&METHODS, target, method).ok_or(OsError::WBEM_INVALID_METHOD)
}

/// Returns the portal that the arguments of a method call name.
fn portal_of(arguments: Arguments<'_>) -> OsResult<PortalAddress> {
    let address = arguments
        .text("TargetPortalAddress")?
        .ok_or(OsError::INVALID_PARAMETER)?;
    Ok(PortalAddress::new(
        address,
        arguments
            .u16("TargetPortalPortNumber")?
            .unwrap_or(DEFAULT_PORT),
    ))
}

fn portal_instance(at: &PortalAddress) -> Instance {
    let properties = [
        ("TargetPortalAddress", text(&at.address)),
        ("TargetPortalPortNumber", Value::U32(at.port.into())),
    ];
    // The port is not a key.
    instance(
        &ObjectPath::object(PORTAL, "TargetPortalAddress", &at.address),
        properties,
    )
}

/// The address that each name of a portal resolves to.
const RESOLVED: &str = "192.0.2.1";

fn connection_instance(session: &Session) -> Instance {
    let identifier = session.connection_identifier();
    let is_name = session.portal.address.parse::<std::net::IpAddr>().is_err();
    let address = if is_name {
        RESOLVED
    } else {
        &session.portal.address
    };
    let properties = [
        ("ConnectionIdentifier", text(&identifier)),
        ("TargetAddress", text(address)),
        ("TargetPortNumber", Value::U32(session.portal.port.into())),
    ];
    instance(
        &ObjectPath::object(CONNECTION, "ConnectionIdentifier", &identifier),
        properties,
    )
}
