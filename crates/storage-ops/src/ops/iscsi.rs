//! Operations on the iSCSI initiator: target portals, targets and their disks.
//!
//! Windows knows a target by its name alone, not by its portal. A session belongs to a request only
//! if one of its connections leads to the portal of the request. A dead session, without a
//! connection for longer than Windows holds requests to its disks, can be ended through any portal.

mod end_session;

use std::collections::BTreeSet;

use os::{Namespace, OsError, Value};

use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition};
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::iscsi_sessions::DEAD_AFTER;
use crate::node::run::Run;
use crate::ops::iscsi::end_session::end;
use crate::provider::msft_iscsi::{
    allow, associated, connections_to, created_session, discovered_target, disks_of, find_portal,
    find_target, if_known, invoke, invoke_of_portal, is_connected, session_path, target_path,
    targets_of,
};
use crate::provider::wmi::query;
use crate::readings::iscsi_session::{Session, sessions};
use crate::readings::node_volumes::MountedAt;
use crate::scheduling::{LockKey, PoolKind, Resource};
use crate::types::{Authentication, DiskNumber, Iqn, SecretText, TargetPortal};

impl TargetPortal {
    fn lock_key(&self) -> LockKey {
        LockKey::TargetPortal(self.to_string().to_lowercase())
    }

    fn resource(&self) -> Resource {
        Resource::TargetPortal(self.to_string().to_lowercase())
    }

    /// Refuses a portal that the administrator does not allow to be used.
    fn check_listed(&self, node: &Node) -> OperationResult<()> {
        match &node.config().iscsi_portals {
            Some(portals) if !portals.iter().any(|allowed| allowed.contains(self)) => Err(
                OperationError::not_listed("-iscsi-portals", format_args!("the portal {self}")),
            ),
            _ => Ok(()),
        }
    }
}

/// Adds a target portal to the initiator. Succeeds without a change if the portal has already been
/// added.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddTargetPortal {
    /// The portal.
    pub portal: TargetPortal,
}

impl Operation for AddTargetPortal {
    type Output = ();
    const NAME: &'static str = "AddTargetPortal";
    const POOL: PoolKind = PoolKind::Iscsi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn resource(&self) -> Option<Resource> {
        Some(self.portal.resource())
    }

    fn describe(&self) -> String {
        format!("add the target portal {}", self.portal)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        self.portal.check_listed(node)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![self.portal.lock_key()]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        if find_portal(run, &self.portal)?.is_some() {
            return Ok(());
        }
        let added = invoke(
            run,
            "MSFT_iSCSITargetPortal",
            "New",
            &self.portal.arguments(),
        );
        if added.as_ref().is_err_and(|error| {
            !matches!(error.kind, ErrorKind::StillRunning | ErrorKind::Unavailable)
        }) {
            // Windows also lists a portal that did not answer.
            if let Ok(Some(portal)) = find_portal(run, &self.portal) {
                let _ = invoke_of_portal(run, &portal, "Remove", &self.portal);
            }
        }
        added?;
        Ok(())
    }
}

/// Discovers the targets of a portal, and returns their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DiscoverTargetPortal {
    /// A target portal that was added.
    pub portal: TargetPortal,
}

impl Operation for DiscoverTargetPortal {
    type Output = Vec<String>;
    const NAME: &'static str = "DiscoverTargetPortal";
    const POOL: PoolKind = PoolKind::Iscsi;
    const COALESCE: Coalesce = Coalesce::Queued;

    fn resource(&self) -> Option<Resource> {
        Some(self.portal.resource())
    }

    fn describe(&self) -> String {
        format!("discover the targets of the portal {}", self.portal)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        self.portal.check_listed(node)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![self.portal.lock_key()]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<Self::Output> {
        let portal = find_portal(run, &self.portal)?.ok_or_else(|| {
            OperationError::not_found("the portal is not known; add it with AddTargetPortal")
        })?;
        invoke_of_portal(run, &portal, "Update", &self.portal)?;
        let targets = targets_of(run, &portal.path)?;
        Ok(targets
            .iter()
            .filter_map(|target| target.text("NodeAddress"))
            .map(str::to_owned)
            .collect())
    }
}

/// Removes a target portal from the initiator. Succeeds without a change if the portal is not
/// known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoveTargetPortal {
    /// The portal.
    pub portal: TargetPortal,
}

impl Operation for RemoveTargetPortal {
    type Output = ();
    const NAME: &'static str = "RemoveTargetPortal";
    const POOL: PoolKind = PoolKind::Iscsi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn resource(&self) -> Option<Resource> {
        Some(self.portal.resource())
    }

    fn describe(&self) -> String {
        format!("remove the target portal {}", self.portal)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        self.portal.check_listed(node)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![self.portal.lock_key()]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let Some(portal) = find_portal(run, &self.portal)? else {
            return Ok(());
        };
        let removed = invoke_of_portal(run, &portal, "Remove", &self.portal);
        allow(OsError::ISDSC_PORTAL_NOT_FOUND, removed, || {
            Ok(find_portal(run, &self.portal)?.is_none())
        })?;
        Ok(())
    }
}

/// Lists the target portals that were added.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListTargetPortals;

impl Operation for ListTargetPortals {
    type Output = Vec<TargetPortal>;
    const NAME: &'static str = "ListTargetPortals";
    const POOL: PoolKind = PoolKind::Iscsi;

    fn describe(&self) -> String {
        "list the target portals".into()
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<Self::Output> {
        let portals = query(
            run,
            Namespace::Iscsi,
            "SELECT * FROM MSFT_iSCSITargetPortal",
        )?;
        Ok(portals
            .iter()
            .filter_map(|instance| {
                let port = u16::try_from(instance.u32("TargetPortalPortNumber")?).ok()?;
                Some(TargetPortal {
                    address: instance.text("TargetPortalAddress")?.to_owned(),
                    port,
                })
            })
            .collect())
    }
}

/// Logs in to a target and waits for its disks. Succeeds without a change if the target is already
/// connected through the portal and with the authentication.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConnectTarget {
    /// A target portal that was added.
    pub portal: TargetPortal,
    /// A target that was discovered.
    pub iqn: Iqn,
    /// The authentication method.
    pub authentication: Authentication,
    /// The CHAP user name; empty for the name of the initiator.
    pub username: SecretText,
    /// The CHAP secret.
    pub secret: SecretText,
}

impl Operation for ConnectTarget {
    type Output = ();
    const NAME: &'static str = "ConnectTarget";
    const POOL: PoolKind = PoolKind::Iscsi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn resource(&self) -> Option<Resource> {
        Some(self.portal.resource())
    }

    fn describe(&self) -> String {
        format!("connect to the target {} at {}", self.iqn, self.portal)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        self.portal.check_listed(node)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        // The target too: it may be connected through one portal and disconnected through another.
        vec![
            self.portal.lock_key(),
            LockKey::Target(self.iqn.to_string().to_lowercase()),
        ]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let target = discovered_target(run, &self.portal, &self.iqn)?;
        // Look even if Windows says that the target is not connected: a session may have lost its
        // connection.
        if self.has_session(run)? {
            return Ok(());
        }
        let mut arguments = self.portal.arguments();
        arguments.push(("NodeAddress", Value::Text(self.iqn.to_string())));
        arguments.push((
            "AuthenticationType",
            Value::Text(self.authentication.name().into()),
        ));
        for (name, text) in [
            ("ChapUsername", self.username.secret()),
            ("ChapSecret", self.secret.secret()),
        ] {
            if !text.expose().is_empty() {
                arguments.push((name, Value::Secret(text.clone())));
            }
        }
        let connected = invoke(run, "MSFT_iSCSITarget", "Connect", &arguments);
        let returned = allow(OsError::ISDSC_TARGET_ALREADY_LOGGED_IN, connected, || {
            self.has_session(run)
        })?;
        let session = created_session(&returned).map(|identifier| {
            let sessions = &run.node().iscsi_sessions;
            sessions.open(&self.iqn, identifier, &self.portal);
            session_path(identifier)
        });
        // Drivers list the disks next, without a retry. A target without disks is not an error.
        run.windows()
            .poll(run.timeouts().arrival, || -> OperationResult<_> {
                if let Some(session) = &session
                    && !if_known(associated(
                        run,
                        session,
                        "MSFT_iSCSISessionToDisk",
                        "MSFT_Disk",
                    ))?
                    .is_empty()
                {
                    return Ok(Some(()));
                }
                let disks = disks_of(run, &connections_to(run, &self.portal, &target.path)?)?;
                Ok((!disks.is_empty()).then_some(()))
            })?;
        Ok(())
    }
}

impl ConnectTarget {
    /// Returns whether the target has a session through the portal of the request and with its
    /// authentication, which has a connection. Fails if the target has other sessions only.
    fn has_session(&self, run: Run<'_>) -> OperationResult<bool> {
        let (requested, mut others) = (self.authentication.name(), Vec::new());
        let mut remedies = BTreeSet::new();
        for session in sessions(run, &self.iqn)? {
            let authentication = session.instance.text("AuthenticationType");
            let authentication = authentication.unwrap_or_default();
            if !session.is_connected() || !session.is_through(&self.portal) {
                others.push(session.describe());
                remedies.insert(remedy(&session));
            } else if authentication.eq_ignore_ascii_case(requested) {
                return Ok(true);
            } else {
                others.push(format!(
                    "with the authentication {authentication} and not {requested}"
                ));
                remedies.insert(remedy(&session));
            }
        }
        if others.is_empty() {
            return Ok(false);
        }
        Err(OperationError::precondition(format!(
            "the node has a session with a target of this name, but {}; {}",
            others.join(", and "),
            joined(&remedies)
        )))
    }
}

/// Returns what to do about a session that stays and is in the way.
fn remedy(session: &Session) -> String {
    let seconds = DEAD_AFTER.as_secs();
    if session.is_connected() {
        "if no pod uses it, disconnect the target through the portal of the session".into()
    } else if session.is_dead() {
        "DisconnectTarget ends a dead session unless a volume of it is mounted".into()
    } else {
        format!(
            "repeat DisconnectTarget, which ends a session that has had no connection for \
             {seconds} s"
        )
    }
}

fn joined(remedies: &BTreeSet<String>) -> String {
    let remedies: Vec<&str> = remedies.iter().map(String::as_str).collect();
    remedies.join("; ")
}

/// Logs out of a target: ends its sessions through the portal, and its dead sessions, which have had
/// no connection for 150 s. Succeeds without a change if the target is not connected. Refused while
/// a volume of a session is mounted in a working directory, or that of a dead session at any path.
/// If sessions with a target of this name remain, the error names them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DisconnectTarget {
    /// The portal through which it was connected.
    pub portal: TargetPortal,
    /// The target.
    pub iqn: Iqn,
}

impl Operation for DisconnectTarget {
    type Output = ();
    const NAME: &'static str = "DisconnectTarget";
    const POOL: PoolKind = PoolKind::Iscsi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn resource(&self) -> Option<Resource> {
        Some(self.portal.resource())
    }

    fn describe(&self) -> String {
        format!("disconnect from the target {} at {}", self.iqn, self.portal)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        self.portal.check_listed(node)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![
            self.portal.lock_key(),
            LockKey::Target(self.iqn.to_string().to_lowercase()),
        ]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let sessions = sessions(run, &self.iqn)?;
        if sessions.is_empty()
            && find_target(run, &self.iqn)?
                .is_some_and(|target| is_connected(&target) == Some(true))
        {
            let reason = "the target is connected, but Windows lists no session to log out of";
            return failed_precondition(reason);
        }
        let (mut remaining, mut remedies) = (Vec::new(), BTreeSet::new());
        for session in &sessions {
            if session.is_through(&self.portal) {
                end(run, &self.iqn, session, MountedAt::WorkingDirectory)?;
            } else if let Some(reason) = obstacle(run.node(), session) {
                remaining.push(session.describe());
                remedies.insert(reason);
            } else {
                end(run, &self.iqn, session, MountedAt::AnyPath)?;
            }
        }
        if remaining.is_empty() {
            return Ok(());
        }
        failed_precondition(format!(
            "the node still has a session with a target of this name, {}; {}",
            remaining.join(", and "),
            joined(&remedies)
        ))
    }
}

/// Returns why a request may not end this session, which is not through its portal, and what to do.
/// Only a dead session can be ended, and only if its portal too may be used.
fn obstacle(node: &Node, session: &Session) -> Option<String> {
    if !session.is_dead() {
        return Some(remedy(session));
    }
    let portals = &session.portals;
    if portals.is_empty() && node.config().iscsi_portals.is_some() {
        return Some(
            "its portal is not known, so it cannot be compared with csi-proxy's flag \
             -iscsi-portals; end the session with Disconnect-IscsiTarget"
                .into(),
        );
    }
    let unlisted = portals
        .iter()
        .find_map(|portal| portal.check_listed(node).err());
    unlisted.map(|error| {
        format!(
            "{}; list it, or end the session with Disconnect-IscsiTarget",
            error.reason
        )
    })
}

/// Lists the disks of a target; the list is empty if the target is not connected through the
/// portal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetTargetDisks {
    /// The portal through which it is connected.
    pub portal: TargetPortal,
    /// The target.
    pub iqn: Iqn,
}

impl Operation for GetTargetDisks {
    type Output = Vec<DiskNumber>;
    const NAME: &'static str = "GetTargetDisks";
    const POOL: PoolKind = PoolKind::Iscsi;

    fn resource(&self) -> Option<Resource> {
        Some(self.portal.resource())
    }

    fn describe(&self) -> String {
        format!(
            "list the disks of the target {} at {}",
            self.iqn, self.portal
        )
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<Self::Output> {
        // A connection with the address of the portal tells that the portal offers the target. A
        // name is not compared.
        if self.portal.has_ip_address() {
            let connections = if_known(connections_to(
                run,
                &self.portal,
                &target_path(self.iqn.as_str()),
            ))?;
            if !connections.is_empty() {
                return disks_of(run, &connections);
            }
        }
        let target = discovered_target(run, &self.portal, &self.iqn)?;
        if is_connected(&target) != Some(true) {
            return Ok(Vec::new());
        }
        disks_of(run, &connections_to(run, &self.portal, &target.path)?)
    }
}

/// Sets the CHAP secret with which targets authenticate to this initiator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetMutualChapSecret {
    /// A secret of 12 to 16 bytes.
    pub secret: SecretText,
}

impl Operation for SetMutualChapSecret {
    type Output = ();
    const NAME: &'static str = "SetMutualChapSecret";
    const POOL: PoolKind = PoolKind::Iscsi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        "set the secret for mutual CHAP".into()
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Initiator]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        if !(12..=16).contains(&self.secret.secret().expose().len()) {
            return Err(OperationError::invalid(
                "the CHAP secret must have 12 to 16 bytes",
            ));
        }
        let arguments = [("ChapSecret", Value::Secret(self.secret.secret().clone()))];
        invoke(run, "MSFT_iSCSISession", "SetCHAPSecret", &arguments)?;
        Ok(())
    }
}
