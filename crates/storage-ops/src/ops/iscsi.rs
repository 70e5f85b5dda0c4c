//! The iSCSI initiator: portals, targets and their disks.

use os::{Instance, Namespace, OsError, Secret, Value};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation, OperationContext, PoolKind};
use crate::node::Node;
use crate::types::DiskNumber;
use crate::windows::wmi::{call, query, quote};

/// The port of iSCSI, which is meant where 0 is given.
const PORT: u16 = 3260;

/// Where an iSCSI target can be reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Portal {
    /// An address or host name.
    pub address: String,
    /// The TCP port, never 0.
    pub port: u16,
}

impl Portal {
    /// Checks an address and a port, of which 0 means 3260.
    pub fn parse(address: &str, port: u32) -> OperationResult<Self> {
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_' | '%' | '[' | ']');
        if address.is_empty() || address.len() > 255 || !address.chars().all(named) {
            let address = crate::excerpt(address);
            return Err(OperationError::invalid(format!("{address:?} is not the address of a target portal")));
        }
        let port = u16::try_from(port).map_err(|_| OperationError::invalid(format!("{port} is not a TCP port")))?;
        Ok(Self { address: address.to_owned(), port: if port == 0 { PORT } else { port } })
    }

    fn lock_key(&self) -> LockKey {
        LockKey::Portal(self.to_string().to_lowercase())
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

impl std::fmt::Display for Portal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}

/// The iSCSI qualified name of a target (or its EUI or NAA name).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iqn(String);

impl Iqn {
    /// Checks a target's name.
    pub fn parse(text: &str) -> OperationResult<Self> {
        // RFC 3720, 3.2.6: at most 223 bytes; letters compare without case, targets are shown in lower case.
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | ':' | '_');
        let kind = ["iqn.", "eui.", "naa."].iter().any(|kind| text.to_ascii_lowercase().starts_with(kind));
        if !kind || text.len() > 223 || !text.chars().all(plain) {
            let text = crate::excerpt(text);
            return Err(OperationError::invalid(format!("{text:?} is not the name of an iSCSI target")));
        }
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Display for Iqn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// How initiator and target prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// Not at all.
    None,
    /// The initiator by CHAP.
    OneWayChap,
    /// Both by CHAP.
    MutualChap,
}

impl Authentication {
    fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::OneWayChap => "ONEWAYCHAP",
            Self::MutualChap => "MUTUALCHAP",
        }
    }
}

fn iscsi(
    node: &Node,
    ctx: &OperationContext,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
) -> OperationResult<()> {
    let timeout = node.config().timeouts.change;
    let returned = call(node, ctx, Namespace::Storage, path, method, arguments, timeout)?;
    if returned.code == 0 {
        return Ok(());
    }
    let code = OsError(returned.code);
    Err(OperationError {
        kind: Kind::FailedPrecondition,
        ..OperationError::of(code, format!("the iSCSI initiator refuses {method}"))
    })
}

fn portal_of(node: &Node, portal: &Portal) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM MSFT_iSCSITargetPortal WHERE {}", portal.condition());
    Ok(query(node, Namespace::Storage, &wql)?.into_iter().next())
}

fn target_of(node: &Node, iqn: &Iqn) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM MSFT_iSCSITarget WHERE NodeAddress = {}", quote(&iqn.0));
    Ok(query(node, Namespace::Storage, &wql)?.into_iter().next())
}

fn sessions_of(node: &Node, iqn: &Iqn) -> OperationResult<Vec<Instance>> {
    let wql = format!("SELECT * FROM MSFT_iSCSISession WHERE TargetNodeAddress = {}", quote(&iqn.0));
    query(node, Namespace::Storage, &wql)
}

fn known(node: &Node, portal: &Portal, iqn: &Iqn) -> OperationResult<Instance> {
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
    pub portal: Portal,
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
    pub portal: Portal,
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
        let targets = query(node, Namespace::Storage, &wql)?;
        Ok(targets.iter().filter_map(|target| target.text("NodeAddress")).map(str::to_owned).collect())
    }
}

/// Makes the initiator forget a portal. One that is not known is forgotten already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoveTargetPortal {
    /// The portal.
    pub portal: Portal,
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
    type Output = Vec<Portal>;
    const NAME: &'static str = "ListTargetPortals";
    const POOL: PoolKind = PoolKind::Wmi;

    fn describe(&self) -> String {
        "list the target portals".into()
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<Self::Output> {
        let portals = query(node, Namespace::Storage, "SELECT * FROM MSFT_iSCSITargetPortal")?;
        let portal = |instance: &Instance| {
            let port = u16::try_from(instance.u32("TargetPortalPortNumber")?).ok()?;
            Some(Portal { address: instance.text("TargetPortalAddress")?.to_owned(), port })
        };
        Ok(portals.iter().filter_map(portal).collect())
    }
}

/// Logs in to a target, whose disks then appear. Being logged in already is success.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConnectTarget {
    /// A portal that has been added.
    pub portal: Portal,
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
        arguments.push(("NodeAddress", Value::Text(self.iqn.0.clone())));
        arguments.push(("AuthenticationType", Value::Text(self.authentication.name().into())));
        if !self.username.is_empty() {
            arguments.push(("ChapUsername", Value::Text(self.username.clone())));
        }
        if !self.secret.expose().is_empty() {
            arguments.push(("ChapSecret", Value::Secret(self.secret.clone())));
        }
        iscsi(node, ctx, "MSFT_iSCSITarget", "Connect", &arguments)?;
        // The caller asks for the disks next, and once. A target may have none.
        node.poll(node.config().timeouts.arrival, || Ok((!disks_of(node, &self.iqn)?.is_empty()).then_some(())))?;
        Ok(())
    }
}

/// Logs out of a target, whose disks then vanish. Not being logged in is success.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DisconnectTarget {
    /// The portal it was connected through.
    pub portal: Portal,
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
    pub portal: Portal,
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
        let found = query(node, Namespace::Storage, &wql)?;
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
