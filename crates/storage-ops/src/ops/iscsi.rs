//! Operations on the iSCSI initiator: target portals, targets and their disks.
//!
//! Windows knows a target by its name alone, not by its portal. A session belongs to a request only if one of its
//! connections leads to the portal of the request.

use std::net::IpAddr;

use os::{Instance, MethodCall, Namespace, OsError, Secret, Value};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::run::Run;
use crate::provider::wmi::{call, query, quote};
use crate::scheduling::{LockKey, PoolKind, Resource, RunResult, failed, failed_precondition};
use crate::types::{Authentication, DiskNumber, Iqn, TargetPortal};

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
            Some(portals) if !portals.iter().any(|allowed| allowed.contains(self)) => {
                Err(OperationError::not_listed("-iscsi-portals", format_args!("the portal {self}")))
            }
            _ => Ok(()),
        }
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("TargetPortalAddress", Value::Text(self.address.clone())),
            ("TargetPortalPortNumber", Value::U32(self.port.into())),
        ]
    }

    fn condition(&self) -> String {
        format!("TargetPortalAddress = {} AND TargetPortalPortNumber = {}", quote(&self.address), self.port)
    }

    /// Returns whether a connection leads to this portal. A connection has an address, so a portal that is given by name
    /// is compared by its port alone.
    fn is_end_of(&self, connection: &Instance) -> bool {
        let is_same = match ip_address(&self.address) {
            Some(own) => connection.text("TargetAddress").and_then(ip_address) == Some(own),
            None => true,
        };
        is_same && connection.u32("TargetPortNumber") == Some(self.port.into())
    }
}

/// Parses an IP address, with or without brackets. Ignores the zone, by which only the node distinguishes its networks.
fn ip_address(text: &str) -> Option<IpAddr> {
    let text = text.trim_start_matches('[').trim_end_matches(']').split('%').next()?;
    text.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// Calls a method of the initiator.
fn invoke(run: Run<'_>, path: &str, method: &str, arguments: &[(&str, Value)]) -> OperationResult<()> {
    let timeout = run.timeouts().change;
    let method_call = MethodCall::new(Namespace::Iscsi, path, method, arguments);
    let code = match call(run, &method_call, timeout) {
        Ok(returned) if returned.code == 0 => return Ok(()),
        Ok(returned) => OsError(returned.code),
        Err(OperationError { code: Some(code), .. }) if is_of_initiator(code) => code,
        Err(error) => return Err(error),
    };
    let error = OperationError::of(code, format!("the iSCSI initiator refused {method}"));
    Err(error.with_kind(Kind::FailedPrecondition))
}

/// Returns whether the initiator has returned the code (`ISDSC_...`).
fn is_of_initiator(code: OsError) -> bool {
    code.0 >> 16 == 0xefff
}

/// Ignores an error with `code`, with which the initiator says that the change is made already, if `is_made`.
fn allow(
    code: OsError,
    outcome: OperationResult<()>,
    is_made: impl FnOnce() -> OperationResult<bool>,
) -> OperationResult<()> {
    match outcome {
        Err(error) if error.code == Some(code) && is_made()? => Ok(()),
        outcome => outcome,
    }
}

fn find_portal(run: Run<'_>, portal: &TargetPortal) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM MSFT_iSCSITargetPortal WHERE {}", portal.condition());
    Ok(query(run, Namespace::Iscsi, &wql)?.into_iter().next())
}

fn find_target(run: Run<'_>, iqn: &Iqn) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM MSFT_iSCSITarget WHERE NodeAddress = {}", quote(iqn.as_str()));
    Ok(query(run, Namespace::Iscsi, &wql)?.into_iter().next())
}

fn sessions_of(run: Run<'_>, iqn: &Iqn) -> OperationResult<Vec<Instance>> {
    let wql = format!("SELECT * FROM MSFT_iSCSISession WHERE TargetNodeAddress = {}", quote(iqn.as_str()));
    query(run, Namespace::Iscsi, &wql)
}

/// Returns the instances of `class` that `association` associates with an object.
fn associated(run: Run<'_>, object: &Instance, association: &str, class: &str) -> OperationResult<Vec<Instance>> {
    let wql = format!("ASSOCIATORS OF {{{}}} WHERE AssocClass = {association} ResultClass = {class}", object.path);
    query(run, Namespace::Iscsi, &wql)
}

fn targets_of(run: Run<'_>, portal: &Instance) -> OperationResult<Vec<Instance>> {
    associated(run, portal, "MSFT_iSCSITargetToiSCSITargetPortal", "MSFT_iSCSITarget")
}

fn connections_of(run: Run<'_>, session: &Instance) -> OperationResult<Vec<Instance>> {
    associated(run, session, "MSFT_iSCSISessionToiSCSIConnection", "MSFT_iSCSIConnection")
}

/// Finds a discovered target of a portal that was added.
fn discovered_target(run: Run<'_>, portal: &TargetPortal, iqn: &Iqn) -> OperationResult<Instance> {
    let added = find_portal(run, portal)?.ok_or_else(|| {
        OperationError::not_found(format!("the target portal {portal} is not known; add it with AddTargetPortal"))
    })?;
    let is_it =
        |target: &Instance| target.text("NodeAddress").is_some_and(|name| name.eq_ignore_ascii_case(iqn.as_str()));
    targets_of(run, &added)?.into_iter().find(is_it).ok_or_else(|| {
        let reason = format!("the target {iqn} is not known at the portal; discover it with DiscoverTargetPortal");
        OperationError::not_found(reason)
    })
}

fn is_connected(target: &Instance) -> bool {
    target.bool("IsConnected") == Some(true)
}

/// Adds a target portal to the initiator. Succeeds without a change if the portal has already been added.
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

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        if find_portal(run, &self.portal)?.is_some() {
            return Ok(());
        }
        let added = invoke(run, "MSFT_iSCSITargetPortal", "New", &self.portal.arguments());
        let is_refused = |error: &OperationError| !matches!(error.kind, Kind::StillRunning | Kind::Unavailable);
        if added.as_ref().is_err_and(is_refused) {
            // Windows also lists a portal that did not answer.
            if let Ok(Some(portal)) = find_portal(run, &self.portal) {
                let _ = invoke(run, &portal.path, "Remove", &self.portal.arguments());
            }
        }
        Ok(added?)
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

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, run: Run<'_>) -> RunResult<Self::Output> {
        let portal = find_portal(run, &self.portal)?
            .ok_or_else(|| OperationError::not_found("the portal is not known; add it with AddTargetPortal"))?;
        invoke(run, &portal.path, "Update", &self.portal.arguments())?;
        let targets = targets_of(run, &portal)?;
        Ok(targets.iter().filter_map(|target| target.text("NodeAddress")).map(str::to_owned).collect())
    }
}

/// Removes a target portal from the initiator. Succeeds without a change if the portal is not known.
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

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        let Some(portal) = find_portal(run, &self.portal)? else { return Ok(()) };
        let removed = invoke(run, &portal.path, "Remove", &self.portal.arguments());
        Ok(allow(OsError::ISDSC_PORTAL_NOT_FOUND, removed, || Ok(find_portal(run, &self.portal)?.is_none()))?)
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

    fn run(&self, run: Run<'_>) -> RunResult<Self::Output> {
        let portals = query(run, Namespace::Iscsi, "SELECT * FROM MSFT_iSCSITargetPortal")?;
        let portal = |instance: &Instance| {
            let port = u16::try_from(instance.u32("TargetPortalPortNumber")?).ok()?;
            Some(TargetPortal { address: instance.text("TargetPortalAddress")?.to_owned(), port })
        };
        Ok(portals.iter().filter_map(portal).collect())
    }
}

/// Logs in to a target and waits for its disks. Succeeds without a change if the target is already connected through the
/// portal and with the authentication.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConnectTarget {
    /// A target portal that was added.
    pub portal: TargetPortal,
    /// A target that was discovered.
    pub iqn: Iqn,
    /// The authentication method.
    pub authentication: Authentication,
    /// The CHAP user name; empty for the name of the initiator.
    pub username: String,
    /// The CHAP secret.
    pub secret: Secret,
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

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        // The target too: it may be connected through one portal and disconnected through another.
        Ok(vec![self.portal.lock_key(), LockKey::Target(self.iqn.to_string().to_lowercase())])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        let target = discovered_target(run, &self.portal, &self.iqn)?;
        if is_connected(&target) && self.has_session(run)? {
            return Ok(());
        }
        let mut arguments = self.portal.arguments();
        arguments.push(("NodeAddress", Value::Text(self.iqn.to_string())));
        arguments.push(("AuthenticationType", Value::Text(self.authentication.name().into())));
        if !self.username.is_empty() {
            arguments.push(("ChapUsername", Value::Text(self.username.clone())));
        }
        if !self.secret.expose().is_empty() {
            arguments.push(("ChapSecret", Value::Secret(self.secret.clone())));
        }
        let connected = invoke(run, "MSFT_iSCSITarget", "Connect", &arguments);
        allow(OsError::ISDSC_TARGET_ALREADY_LOGGED_IN, connected, || self.has_session(run))?;
        // Drivers list the disks next, without a retry. A target without disks is not an error.
        let has_disks =
            || -> OperationResult<_> { Ok((!disks_of(run, &target, &self.portal)?.is_empty()).then_some(())) };
        run.host().poll(run.timeouts().arrival, has_disks)?;
        Ok(())
    }
}

impl ConnectTarget {
    /// Returns whether the target has a session through the portal of the request and with its authentication. Fails if
    /// the target has other sessions only.
    fn has_session(&self, run: Run<'_>) -> OperationResult<bool> {
        let (requested, mut others) = (self.authentication.name(), Vec::new());
        for session in sessions_of(run, &self.iqn)? {
            let connections = connections_of(run, &session)?;
            let authentication = session.text("AuthenticationType").unwrap_or_default();
            if !connections.iter().any(|connection| self.portal.is_end_of(connection)) {
                others.push(match connections.first() {
                    Some(connection) => format!("through {}", end_of(connection)),
                    None => "without a connection".into(),
                });
            } else if authentication.eq_ignore_ascii_case(requested) {
                return Ok(true);
            } else {
                others.push(format!("with the authentication {authentication} and not {requested}"));
            }
        }
        if others.is_empty() {
            return Ok(false);
        }
        Err(OperationError::precondition(format!(
            "the node has a session with a target of this name, but {}; if no pod uses it, disconnect the target through \
             the portal of the session",
            others.join(", and ")
        )))
    }
}

/// Returns the address and port to which a connection leads, as an error shows them.
fn end_of(connection: &Instance) -> String {
    let address = connection.text("TargetAddress").unwrap_or_default();
    format!("{address}:{}", connection.u32("TargetPortNumber").unwrap_or_default())
}

/// Logs out of a target. Succeeds without a change if the target is not connected through the portal.
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

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key(), LockKey::Target(self.iqn.to_string().to_lowercase())])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        let Some(target) = find_target(run, &self.iqn)?.filter(is_connected) else { return Ok(()) };
        let sessions = sessions_of(run, &self.iqn)?;
        for session in &sessions {
            let connections = connections_of(run, session)?;
            // A session without a connection may belong to the portal: its target does not answer.
            if !connections.is_empty() && !connections.iter().any(|connection| self.portal.is_end_of(connection)) {
                continue;
            }
            end_persistence(run, session)?;
            log_out(run, &target, session)?;
        }
        // The target may have been disconnected since.
        if sessions.is_empty() && find_target(run, &self.iqn)?.as_ref().is_some_and(is_connected) {
            let reason = "the target is connected, but Windows lists no session to log out of";
            return failed_precondition(reason);
        }
        Ok(())
    }
}

/// The most registrations of one session that are taken back. Windows restores a session once for each.
const MAX_REGISTRATIONS: usize = 8;

/// Finds a session again. Returns `None` if it has ended.
fn same_session(run: Run<'_>, session: &Instance) -> OperationResult<Option<Instance>> {
    let id = session.text("SessionIdentifier").unwrap_or_default();
    let wql = format!("SELECT * FROM MSFT_iSCSISession WHERE SessionIdentifier = {}", quote(id));
    Ok(query(run, Namespace::Iscsi, &wql)?.into_iter().next())
}

/// Makes Windows not restore a session after a restart.
fn end_persistence(run: Run<'_>, session: &Instance) -> OperationResult<()> {
    let mut current = Some(session.clone());
    for _ in 0..MAX_REGISTRATIONS {
        if current.and_then(|session| session.bool("IsPersistent")) != Some(true) {
            return Ok(());
        }
        invoke(run, &session.path, "Unregister", &[])?;
        current = same_session(run, session)?;
    }
    Ok(())
}

/// Ends a session. Windows refuses that for as long as it uses a device of the session, such as a new disk.
fn log_out(run: Run<'_>, target: &Instance, session: &Instance) -> OperationResult<()> {
    const BUSY: [OsError; 2] = [OsError::ISDSC_SESSION_BUSY, OsError::ISDSC_DEVICE_BUSY_ON_SESSION];
    let id = session.text("SessionIdentifier").unwrap_or_default();
    let arguments = [("SessionIdentifier", Value::Text(id.to_owned()))];
    let mut busy = None;
    let ended =
        run.host().poll(run.timeouts().arrival, || match invoke(run, &target.path, "Disconnect", &arguments) {
            Err(error) if error.code.is_some_and(|code| BUSY.contains(&code)) => {
                busy = Some(error);
                Ok(None)
            }
            outcome => {
                let has_ended = || Ok(same_session(run, session)?.is_none());
                allow(OsError::ISDSC_INVALID_SESSION_ID, outcome, has_ended).map(Some)
            }
        })?;
    match (ended, busy) {
        (None, Some(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Lists the disks of a target; the list is empty if the target is not connected through the portal.
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
        format!("list the disks of the target {} at {}", self.iqn, self.portal)
    }

    fn run(&self, run: Run<'_>) -> RunResult<Self::Output> {
        let target = discovered_target(run, &self.portal, &self.iqn)?;
        if is_connected(&target) { Ok(disks_of(run, &target, &self.portal)?) } else { Ok(Vec::new()) }
    }
}

/// Returns the disks of the connections that lead from the sessions of a target to the portal.
fn disks_of(run: Run<'_>, target: &Instance, portal: &TargetPortal) -> OperationResult<Vec<DiskNumber>> {
    let mut disks = Vec::new();
    let connections = associated(run, target, "MSFT_iSCSITargetToiSCSIConnection", "MSFT_iSCSIConnection")?;
    for connection in connections.iter().filter(|connection| portal.is_end_of(connection)) {
        let found = associated(run, connection, "MSFT_iSCSIConnectionToDisk", "MSFT_Disk")?;
        disks.extend(found.iter().filter_map(|disk| disk.u32("Number")).map(DiskNumber));
    }
    disks.sort_unstable();
    // Several connections may lead to the same disk.
    disks.dedup();
    Ok(disks)
}

/// Sets the CHAP secret with which targets authenticate to this initiator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetMutualChapSecret {
    /// A secret of 12 to 16 bytes.
    pub secret: Secret,
}

impl Operation for SetMutualChapSecret {
    type Output = ();
    const NAME: &'static str = "SetMutualChapSecret";
    const POOL: PoolKind = PoolKind::Iscsi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        "set the secret for mutual CHAP".into()
    }

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![LockKey::Initiator])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        if !(12..=16).contains(&self.secret.expose().len()) {
            return failed(OperationError::invalid("the CHAP secret must have 12 to 16 bytes"));
        }
        let arguments = [("ChapSecret", Value::Secret(self.secret.clone()))];
        Ok(invoke(run, "MSFT_iSCSISession", "SetCHAPSecret", &arguments)?)
    }
}

#[cfg(test)]
mod tests {
    use os::{Instance, Value};

    use crate::types::TargetPortal;

    #[test]
    fn a_connection_leads_to_the_portal_of_its_address_and_port() {
        let is_end = |portal: &str, address: &str, port: u32| {
            let properties = [("TargetAddress", Value::Text(address.into())), ("TargetPortNumber", Value::U32(port))];
            let properties = properties.map(|(name, value)| (name.to_owned(), value)).into();
            TargetPortal::parse(portal, 860).unwrap().is_end_of(&Instance { path: String::new(), properties })
        };
        for (portal, address) in [
            ("10.0.0.5", "10.0.0.5"),
            ("::ffff:10.0.0.5", "10.0.0.5"),
            ("FD00:0::1", "fd00::1"),
            ("[fd00::1]", "fd00::1"),
            ("fe80::1%4", "fe80::1"),
            ("storage.test", "10.0.0.5"),
        ] {
            assert!(is_end(portal, address, 860) && !is_end(portal, address, 3260), "{portal}");
        }
        for (portal, address) in
            [("10.0.0.5", "10.0.0.50"), ("fd00::1", "fd00::2"), ("10.0.0.5", ""), ("10.0.0.5", "x")]
        {
            assert!(!is_end(portal, address, 860), "{portal} {address}");
        }
    }
}
