//! Operations on the iSCSI initiator: target portals, targets and their disks.
//!
//! Windows knows a target by its name alone, not by its portal. A session belongs to a request only
//! if one of its connections leads to the portal of the request.

use os::{Instance, Namespace, OsError, Secret, Value};

use crate::devices::disk::OPEN_FOR_QUERY;
use crate::devices::volume;
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::run::Run;
use crate::provider::msft_iscsi::{
    allow, associated, connections_of, connections_to, created_session, discovered_target,
    disks_of, find_portal, find_target, if_known, invoke, invoke_of_portal, is_connected,
    same_session, sessions_of, target_path, targets_of,
};
use crate::provider::report;
use crate::provider::wmi::query;
use crate::readings::node_volumes;
use crate::scheduling::{LockKey, PoolKind, Resource, RunResult, failed, failed_precondition};
use crate::types::{Authentication, DiskNumber, Iqn, TargetPortal};
use crate::windows::{Device, Fallback};

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

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        if find_portal(run, &self.portal)?.is_some() {
            return Ok(());
        }
        let added = invoke(
            run,
            "MSFT_iSCSITargetPortal",
            "New",
            &self.portal.arguments(),
        );
        let is_refused = |error: &OperationError| {
            !matches!(error.kind, ErrorKind::StillRunning | ErrorKind::Unavailable)
        };
        if added.as_ref().is_err_and(is_refused) {
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

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, run: Run<'_>) -> RunResult<Self::Output> {
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

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
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

    fn run(&self, run: Run<'_>) -> RunResult<Self::Output> {
        let portals = query(
            run,
            Namespace::Iscsi,
            "SELECT * FROM MSFT_iSCSITargetPortal",
        )?;
        let portal = |instance: &Instance| {
            let port = u16::try_from(instance.u32("TargetPortalPortNumber")?).ok()?;
            Some(TargetPortal {
                address: instance.text("TargetPortalAddress")?.to_owned(),
                port,
            })
        };
        Ok(portals.iter().filter_map(portal).collect())
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
        Ok(vec![
            self.portal.lock_key(),
            LockKey::Target(self.iqn.to_string().to_lowercase()),
        ])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        let target = discovered_target(run, &self.portal, &self.iqn)?;
        if is_connected(&target) && self.has_session(run)? {
            return Ok(());
        }
        let mut arguments = self.portal.arguments();
        arguments.push(("NodeAddress", Value::Text(self.iqn.to_string())));
        arguments.push((
            "AuthenticationType",
            Value::Text(self.authentication.name().into()),
        ));
        if !self.username.is_empty() {
            arguments.push(("ChapUsername", Value::Text(self.username.clone())));
        }
        if !self.secret.expose().is_empty() {
            arguments.push(("ChapSecret", Value::Secret(self.secret.clone())));
        }
        let connected = invoke(run, "MSFT_iSCSITarget", "Connect", &arguments);
        let returned = allow(OsError::ISDSC_TARGET_ALREADY_LOGGED_IN, connected, || {
            self.has_session(run)
        })?;
        let session = created_session(&returned);
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
    /// authentication. Fails if the target has other sessions only.
    fn has_session(&self, run: Run<'_>) -> OperationResult<bool> {
        let (requested, mut others) = (self.authentication.name(), Vec::new());
        for session in sessions_of(run, &self.iqn)? {
            let connections = connections_of(run, &session)?;
            let authentication = session.text("AuthenticationType").unwrap_or_default();
            if !connections
                .iter()
                .any(|connection| self.portal.is_end_of(connection))
            {
                others.push(match connections.first() {
                    Some(connection) => format!("through {}", end_of(connection)),
                    None => "without a connection".into(),
                });
            } else if authentication.eq_ignore_ascii_case(requested) {
                return Ok(true);
            } else {
                others.push(format!(
                    "with the authentication {authentication} and not {requested}"
                ));
            }
        }
        if others.is_empty() {
            return Ok(false);
        }
        Err(OperationError::precondition(format!(
            "the node has a session with a target of this name, but {}; if no pod uses it, \
             disconnect the target through the portal of the session",
            others.join(", and ")
        )))
    }
}

/// Returns the address and port to which a connection leads, as an error shows them.
fn end_of(connection: &Instance) -> String {
    let address = connection.text("TargetAddress").unwrap_or_default();
    format!(
        "{address}:{}",
        connection.u32("TargetPortNumber").unwrap_or_default()
    )
}

/// Logs out of a target. Succeeds without a change if the target is not connected through the
/// portal. Refused while a connection is up and a volume of the target is mounted in a working
/// directory.
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
        Ok(vec![
            self.portal.lock_key(),
            LockKey::Target(self.iqn.to_string().to_lowercase()),
        ])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        let sessions = sessions_of(run, &self.iqn)?;
        if sessions.is_empty()
            && find_target(run, &self.iqn)?
                .as_ref()
                .is_some_and(is_connected)
        {
            let reason = "the target is connected, but Windows lists no session to log out of";
            return failed_precondition(reason);
        }
        for session in &sessions {
            let connections = connections_of(run, session)?;
            // A session without a connection may belong to the portal: its target does not answer.
            let is_of_portal = match &connections[..] {
                [] => find_target(run, &self.iqn)?
                    .as_ref()
                    .is_some_and(is_connected),
                connections => connections
                    .iter()
                    .any(|connection| self.portal.is_end_of(connection)),
            };
            if !is_of_portal {
                continue;
            }
            // A session without a connection has no disks here, so it can be ended.
            let disks = disks_of(run, &connections)?;
            // No volume may be mounted between the check and the logout.
            let keys = disks.iter().copied().map(LockKey::Disk).collect();
            let Some(_locked) = run.try_lock(keys) else {
                let reason = "another request changes a disk of the target";
                return failed(OperationError::new(ErrorKind::Busy, reason));
            };
            refuse_mounted(run, &disks)?;
            end_persistence(run, session)?;
            log_out(run, &self.iqn, session)?;
        }
        Ok(())
    }
}

/// The most registrations of one session that are taken back. Windows restores a session once for
/// each.
const MAX_REGISTRATIONS: usize = 8;

/// Refuses to end a session while a volume on one of its disks is mounted in a working directory,
/// where a pod may use it.
fn refuse_mounted(run: Run<'_>, disks: &[DiskNumber]) -> OperationResult<()> {
    if disks.is_empty() {
        return Ok(());
    }
    let mounted = node_volumes::mounted_for_drivers(run.node())?;
    let targets = mounted
        .iter()
        .map(|(volume, _)| (Device::Volume(*volume), *volume));
    let answers = run.windows().query_each(targets, |os, volume, _| {
        volume::extents(&*os.open(&volume.device(), &OPEN_FOR_QUERY)?)
    });
    for ((volume, path), (_, extents)) in mounted.iter().zip(answers) {
        let extents = match extents.unwrap_or(Err(OsError::SEM_TIMEOUT)) {
            Ok(extents) => extents,
            // A volume that does not answer may be that of another target, which must not keep
            // this one.
            Err(code) => {
                let reported = report::extent(run.with_queries_only(), *volume);
                let fallbacks = &run.windows().fallbacks;
                fallbacks.record(Fallback::VolumeDisk, code);
                let extent = reported.map_err(|failed| {
                    let context = format!(
                        "it is not known whether volume {volume}, which is mounted at {path}, is \
                         on a disk of the target"
                    );
                    OperationError::of(code, context)
                        .with_kind(ErrorKind::FailedPrecondition)
                        .with_failed_fallback(&failed)
                })?;
                vec![extent]
            }
        };
        let is_on_disk = extents
            .iter()
            .any(|extent| disks.contains(&DiskNumber(extent.disk_number)));
        if is_on_disk {
            return Err(OperationError::precondition(format!(
                "volume {volume} of the target is mounted at {path}; unmount it first"
            )));
        }
    }
    Ok(())
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

/// Ends a session. Windows refuses that for as long as it uses a device of the session, such as a
/// new disk.
fn log_out(run: Run<'_>, iqn: &Iqn, session: &Instance) -> OperationResult<()> {
    const BUSY: [OsError; 2] = [
        OsError::ISDSC_SESSION_BUSY,
        OsError::ISDSC_DEVICE_BUSY_ON_SESSION,
    ];
    let id = session.text("SessionIdentifier").unwrap_or_default();
    let arguments = [("SessionIdentifier", Value::Text(id.to_owned()))];
    // Windows may spell the name otherwise than the request.
    let target = target_path(session.text("TargetNodeAddress").unwrap_or(iqn.as_str()));
    let mut busy = None;
    let ended = run.windows().poll(run.timeouts().arrival, || {
        match invoke(run, &target, "Disconnect", &arguments) {
            Err(error) if error.code.is_some_and(|code| BUSY.contains(&code)) => {
                busy = Some(error);
                Ok(None)
            }
            outcome => {
                let has_ended = || Ok(same_session(run, session)?.is_none());
                allow(OsError::ISDSC_INVALID_SESSION_ID, outcome, has_ended).map(|_| Some(()))
            }
        }
    })?;
    match (ended, busy) {
        (None, Some(error)) => Err(error),
        _ => Ok(()),
    }
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

    fn run(&self, run: Run<'_>) -> RunResult<Self::Output> {
        // A connection with the address of the portal tells that the portal offers the target. A
        // name is not compared.
        if self.portal.has_ip_address() {
            let connections = if_known(connections_to(
                run,
                &self.portal,
                &target_path(self.iqn.as_str()),
            ))?;
            if !connections.is_empty() {
                return Ok(disks_of(run, &connections)?);
            }
        }
        let target = discovered_target(run, &self.portal, &self.iqn)?;
        if !is_connected(&target) {
            return Ok(Vec::new());
        }
        Ok(disks_of(
            run,
            &connections_to(run, &self.portal, &target.path)?,
        )?)
    }
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
            return failed(OperationError::invalid(
                "the CHAP secret must have 12 to 16 bytes",
            ));
        }
        let arguments = [("ChapSecret", Value::Secret(self.secret.clone()))];
        invoke(run, "MSFT_iSCSISession", "SetCHAPSecret", &arguments)?;
        Ok(())
    }
}
