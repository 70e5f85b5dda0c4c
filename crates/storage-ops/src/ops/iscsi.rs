//! The iSCSI initiator: portals, targets and their disks.

use os::{Instance, Namespace, OsError, Secret, Value};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::{OperationContext, PoolKind};
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::types::{Authentication, DiskNumber, Iqn, TargetPortal};
use crate::windows::wmi::{call, query, quote};

impl TargetPortal {
    fn lock_key(&self) -> LockKey {
        LockKey::TargetPortal(self.to_string().to_lowercase())
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
}

fn iscsi(
    node: &Node,
    ctx: &OperationContext,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
) -> OperationResult<()> {
    let timeout = node.host.timeouts().change;
    let returned = call(&node.host, ctx, Namespace::Storage, path, method, arguments, timeout)?;
    if returned.code == 0 {
        return Ok(());
    }
    let code = OsError(returned.code);
    Err(OperationError {
        kind: Kind::FailedPrecondition,
        ..OperationError::of(code, format!("the iSCSI initiator refuses {method}"))
    })
}

fn portal_of(node: &Node, portal: &TargetPortal) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM MSFT_iSCSITargetPortal WHERE {}", portal.condition());
    Ok(query(&node.host, Namespace::Storage, &wql)?.into_iter().next())
}

fn target_of(node: &Node, iqn: &Iqn) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM MSFT_iSCSITarget WHERE NodeAddress = {}", quote(iqn.as_str()));
    Ok(query(&node.host, Namespace::Storage, &wql)?.into_iter().next())
}

fn sessions_of(node: &Node, iqn: &Iqn) -> OperationResult<Vec<Instance>> {
    let wql = format!("SELECT * FROM MSFT_iSCSISession WHERE TargetNodeAddress = {}", quote(iqn.as_str()));
    query(&node.host, Namespace::Storage, &wql)
}

fn known(node: &Node, portal: &TargetPortal, iqn: &Iqn) -> OperationResult<Instance> {
    if portal_of(node, portal)?.is_none() {
        return Err(OperationError::not_found(format!("the target portal {portal} has not been added")));
    }
    target_of(node, iqn)?.ok_or_else(|| OperationError::not_found(format!("the target {iqn} has not been discovered")))
}

fn is_connected(target: &Instance) -> bool {
    target.bool("IsConnected") == Some(true)
}

/// Makes a target portal known to the initiator. One that is known already is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddTargetPortal {
    /// The portal.
    pub portal: TargetPortal,
}

impl Operation for AddTargetPortal {
    type Output = ();
    const NAME: &'static str = "AddTargetPortal";
    const POOL: PoolKind = PoolKind::Wmi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("add the target portal {}", self.portal)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        if portal_of(node, &self.portal)?.is_some() {
            return Ok(());
        }
        iscsi(node, ctx, "MSFT_iSCSITargetPortal", "New", &self.portal.arguments())
    }
}

/// Asks a portal for its targets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DiscoverTargetPortal {
    /// A portal that has been added.
    pub portal: TargetPortal,
}

impl Operation for DiscoverTargetPortal {
    type Output = Vec<String>;
    const NAME: &'static str = "DiscoverTargetPortal";
    const POOL: PoolKind = PoolKind::Wmi;
    const COALESCE: Coalesce = Coalesce::Queued;

    fn describe(&self) -> String {
        format!("discover the targets of the portal {}", self.portal)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<Self::Output> {
        let portal =
            portal_of(node, &self.portal)?.ok_or_else(|| OperationError::not_found("it has not been added"))?;
        iscsi(node, ctx, &portal.path, "Update", &[])?;
        let wql = format!(
            "ASSOCIATORS OF {{{}}} WHERE AssocClass = MSFT_iSCSITargetToiSCSITargetPortal ResultClass = MSFT_iSCSITarget",
            portal.path
        );
        let targets = query(&node.host, Namespace::Storage, &wql)?;
        Ok(targets.iter().filter_map(|target| target.text("NodeAddress")).map(str::to_owned).collect())
    }
}

/// Makes the initiator forget a portal. One that is not known is forgotten already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoveTargetPortal {
    /// The portal.
    pub portal: TargetPortal,
}

impl Operation for RemoveTargetPortal {
    type Output = ();
    const NAME: &'static str = "RemoveTargetPortal";
    const POOL: PoolKind = PoolKind::Wmi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("remove the target portal {}", self.portal)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let Some(portal) = portal_of(node, &self.portal)? else { return Ok(()) };
        iscsi(node, ctx, &portal.path, "Remove", &self.portal.arguments())
    }
}

/// The portals that have been added.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListTargetPortals;

impl Operation for ListTargetPortals {
    type Output = Vec<TargetPortal>;
    const NAME: &'static str = "ListTargetPortals";
    const POOL: PoolKind = PoolKind::Wmi;

    fn describe(&self) -> String {
        "list the target portals".into()
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<Self::Output> {
        let portals = query(&node.host, Namespace::Storage, "SELECT * FROM MSFT_iSCSITargetPortal")?;
        let portal = |instance: &Instance| {
            let port = u16::try_from(instance.u32("TargetPortalPortNumber")?).ok()?;
            Some(TargetPortal { address: instance.text("TargetPortalAddress")?.to_owned(), port })
        };
        Ok(portals.iter().filter_map(portal).collect())
    }
}

/// Logs in to a target, whose disks then appear. Being logged in already is success.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConnectTarget {
    /// A portal that has been added.
    pub portal: TargetPortal,
    /// A target that has been discovered.
    pub iqn: Iqn,
    /// How to authenticate.
    pub authentication: Authentication,
    /// The CHAP user; empty for the initiator's own name.
    pub username: String,
    /// The CHAP secret.
    pub secret: Secret,
}

impl Operation for ConnectTarget {
    type Output = ();
    const NAME: &'static str = "ConnectTarget";
    const POOL: PoolKind = PoolKind::Wmi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("connect to the target {} at {}", self.iqn, self.portal)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        if is_connected(&known(node, &self.portal, &self.iqn)?) {
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
        iscsi(node, ctx, "MSFT_iSCSITarget", "Connect", &arguments)?;
        // The caller asks for the disks next, and once. A target may have none.
        node.host.poll(node.host.timeouts().arrival, || Ok((!disks_of(node, &self.iqn)?.is_empty()).then_some(())))?;
        Ok(())
    }
}

/// Logs out of a target, whose disks then vanish. Not being logged in is success.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DisconnectTarget {
    /// The portal it was connected through.
    pub portal: TargetPortal,
    /// The target.
    pub iqn: Iqn,
}

impl Operation for DisconnectTarget {
    type Output = ();
    const NAME: &'static str = "DisconnectTarget";
    const POOL: PoolKind = PoolKind::Wmi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("disconnect from the target {} at {}", self.iqn, self.portal)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![self.portal.lock_key()])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let Some(target) = target_of(node, &self.iqn)?.filter(is_connected) else { return Ok(()) };
        for session in sessions_of(node, &self.iqn)? {
            if session.bool("IsPersistent") == Some(true) {
                iscsi(node, ctx, &session.path, "Unregister", &[])?;
            }
            let id = session.text("SessionIdentifier").unwrap_or_default();
            iscsi(node, ctx, &target.path, "Disconnect", &[("SessionIdentifier", Value::Text(id.into()))])?;
        }
        Ok(())
    }
}

/// The disks of a target; none while it is not connected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetTargetDisks {
    /// The portal it is connected through.
    pub portal: TargetPortal,
    /// The target.
    pub iqn: Iqn,
}

impl Operation for GetTargetDisks {
    type Output = Vec<DiskNumber>;
    const NAME: &'static str = "GetTargetDisks";
    const POOL: PoolKind = PoolKind::Wmi;

    fn describe(&self) -> String {
        format!("list the disks of the target {} at {}", self.iqn, self.portal)
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<Self::Output> {
        if !is_connected(&known(node, &self.portal, &self.iqn)?) {
            return Ok(Vec::new());
        }
        disks_of(node, &self.iqn)
    }
}

fn disks_of(node: &Node, iqn: &Iqn) -> OperationResult<Vec<DiskNumber>> {
    let mut disks = Vec::new();
    for session in sessions_of(node, iqn)? {
        let wql = format!(
            "ASSOCIATORS OF {{{}}} WHERE AssocClass = MSFT_iSCSISessionToDisk ResultClass = MSFT_Disk",
            session.path
        );
        let found = query(&node.host, Namespace::Storage, &wql)?;
        disks.extend(found.iter().filter_map(|disk| disk.u32("Number")).map(DiskNumber));
    }
    disks.sort_unstable();
    // Two paths to one disk are one disk.
    disks.dedup();
    Ok(disks)
}

/// Sets the secret by which targets prove themselves to this initiator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetMutualChapSecret {
    /// 12 to 16 bytes.
    pub secret: Secret,
}

impl Operation for SetMutualChapSecret {
    type Output = ();
    const NAME: &'static str = "SetMutualChapSecret";
    const POOL: PoolKind = PoolKind::Wmi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        "set the secret for mutual CHAP".into()
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![LockKey::Initiator])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        if !(12..=16).contains(&self.secret.expose().len()) {
            return Err(OperationError::invalid("the secret must have 12 to 16 bytes"));
        }
        let arguments = [("ChapSecret", Value::Secret(self.secret.clone()))];
        iscsi(node, ctx, "MSFT_iSCSISession", "SetCHAPSecret", &arguments)
    }
}
