//! The iSCSI initiator of Windows: its WMI classes, and whether a session belongs to a request.
//!
//! An object whose key the request has is queried by the path that the key makes, without looking
//! it up. If Windows finds nothing at that path, the object is looked up as the Go program does,
//! which tells what is missing.

use std::net::IpAddr;

use os::{Instance, MethodCall, Namespace, OsError, Returned, Value};

use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::{codes, is_of_initiator};
use crate::node::run::Run;
use crate::provider::wmi::{call, object_path, query, quote};
use crate::types::{DiskNumber, Iqn, TargetPortal};

impl TargetPortal {
    pub(crate) fn arguments(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("TargetPortalAddress", Value::Text(self.address.clone())),
            ("TargetPortalPortNumber", Value::U32(self.port.into())),
        ]
    }

    /// Returns the path of the portal. Its only key is the address, so the portals of an address
    /// have one path.
    pub(crate) fn path(&self) -> String {
        object_path(
            "MSFT_iSCSITargetPortal",
            "TargetPortalAddress",
            &self.address,
        )
    }

    /// Returns whether the portal is given by its IP address and not by a name.
    pub(crate) fn has_ip_address(&self) -> bool {
        ip_address(&self.address).is_some()
    }

    /// Returns whether an address is that of this portal, perhaps in another spelling. The zone of
    /// an address is compared as text.
    fn has_address(&self, address: &str) -> bool {
        let has_zone = self.address.contains('%') || address.contains('%');
        self.address.eq_ignore_ascii_case(address)
            || (!has_zone
                && self.has_ip_address()
                && ip_address(&self.address) == ip_address(address))
    }

    /// Returns whether a connection leads to this portal. A connection has an address, so a portal
    /// that is given by name is compared by its port alone.
    pub(crate) fn is_end_of(&self, connection: &Instance) -> bool {
        let is_same = match ip_address(&self.address) {
            Some(own) => connection.text("TargetAddress").and_then(ip_address) == Some(own),
            None => true,
        };
        is_same && connection.u32("TargetPortNumber") == Some(self.port.into())
    }

    /// Returns whether both are the same portal. A name is the same as this name only.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same = match (ip_address(&self.address), ip_address(&other.address)) {
            (Some(own), Some(other)) => own == other,
            _ => self.address.eq_ignore_ascii_case(&other.address),
        };
        is_same && self.port == other.port
    }
}

/// Parses an IP address, with or without brackets. Ignores the zone, by which only the node
/// distinguishes its networks.
fn ip_address(text: &str) -> Option<IpAddr> {
    let text = text
        .trim_start_matches('[')
        .trim_end_matches(']')
        .split('%')
        .next()?;
    text.parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical())
}

/// Calls a method of the initiator.
pub(crate) fn invoke(
    run: Run<'_>,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
) -> OperationResult<Returned> {
    let timeout = run.timeouts().change;
    let method_call = MethodCall::new(Namespace::Iscsi, path, method, arguments);
    let code = match call(run, &method_call, timeout) {
        Ok(returned) if returned.code == 0 => return Ok(returned),
        Ok(returned) => OsError(returned.code),
        Err(OperationError {
            code: Some(code), ..
        }) if is_of_initiator(code) => code,
        Err(error) => return Err(error),
    };
    let error = OperationError::of(code, format!("the iSCSI initiator refused {method}"));
    // The initiator also returns codes of Windows. With each, it refuses.
    let kind = match error.kind {
        ErrorKind::Internal => ErrorKind::FailedPrecondition,
        kind => kind,
    };
    let error = error.with_kind(kind);
    let remedy = REMEDIES.iter().find(|(codes, _)| codes.contains(&code));
    Err(match remedy {
        Some((_, remedy)) => error.followed_by(remedy),
        None => error,
    })
}

/// What an administrator can do about statuses of the initiator.
const REMEDIES: &[(&[OsError], &str)] = &[
    (
        codes! { ISDSC_CONNECTION_FAILED ISDSC_SEND_FAILED ISDSC_TRANSPORT_ERROR },
        "check that the node reaches the TCP port of the portal",
    ),
    (
        codes! { ISDSC_AUTHENTICATION_FAILURE ISDSC_TARGET_AUTHINFO_UNAVAILABLE },
        "check the CHAP user and the secret of the driver and of the target",
    ),
    (
        codes! { ISDSC_AUTHORIZATION_FAILURE },
        "check that the access list of the target has the initiator of this node, whose name is \
      (Get-InitiatorPort).NodeAddress in PowerShell",
    ),
    (
        codes! { ISDSC_TARGET_MOVED_TEMPORARILY ISDSC_TARGET_MOVED_PERMANENTLY },
        "use the portal to which the target has moved",
    ),
    (
        codes! { ISDSC_NOT_FOUND ISDSC_TARGET_NOT_FOUND ISDSC_TARGET_REMOVED },
        "check the name of the target, and discover it again with DiscoverTargetPortal",
    ),
    (
        codes! {
            ISDSC_TOO_MANY_CONNECTIONS ISDSC_OUT_OF_RESOURCES ISDSC_TARGET_OUT_OF_RESOURCES
            ISDSC_TOO_MANY_SESSIONS
        },
        "disconnect targets that no pod uses, or raise the limit of sessions",
    ),
    (
        codes! {
            ISDSC_LOGIN_FAILED ISDSC_LOGON_FAILED ISDSC_INITIATOR_ERROR ISDSC_TARGET_ERROR
            ISDSC_SERVICE_UNAVAILABLE
        },
        "the log of the target has the reason",
    ),
    (
        codes! {
            ISDSC_SHORT_CHAP_SECRET ISDSC_INVALID_CHAP_SECRET ISDSC_INVALID_TARGET_CHAP_SECRET
            ISDSC_INVALID_INITIATOR_CHAP_SECRET
        },
        "a CHAP secret has 12 to 16 bytes",
    ),
    (
        codes! { ISDSC_DNS_NAME_UNRESOLVED },
        "check that the node resolves the name of the portal",
    ),
    (
        codes! { ISDSC_SERVICE_NOT_RUNNING ISDSC_SERVICE_DID_NOT_RESPOND },
        "start or restart the service MSiSCSI",
    ),
    (
        codes! { ISDSC_OPERATION_REQUIRES_REBOOT ISDSC_REQUIRES_REBOOT },
        "restart the node",
    ),
];

/// Returns an empty result for an error with `code`, with which the initiator says that the change
/// is made already, if `is_made`.
pub(crate) fn allow(
    code: OsError,
    outcome: OperationResult<Returned>,
    is_made: impl FnOnce() -> OperationResult<bool>,
) -> OperationResult<Returned> {
    match outcome {
        Err(error) if error.code == Some(code) && is_made()? => Ok(Returned::default()),
        outcome => outcome,
    }
}

/// Finds a portal that was added, also if it was added with another spelling of its address.
pub(crate) fn find_portal(
    run: Run<'_>,
    portal: &TargetPortal,
) -> OperationResult<Option<Instance>> {
    let wql = format!(
        "SELECT * FROM MSFT_iSCSITargetPortal WHERE TargetPortalPortNumber = {}",
        portal.port
    );
    Ok(query(run, Namespace::Iscsi, &wql)?
        .into_iter()
        .find(|found| {
            let address = found.text("TargetPortalAddress");
            address.is_some_and(|address| portal.has_address(address))
        }))
}

/// Calls a method of a portal that was added, with the address as the initiator spells it.
pub(crate) fn invoke_of_portal(
    run: Run<'_>,
    found: &Instance,
    method: &str,
    portal: &TargetPortal,
) -> OperationResult<Returned> {
    let address = found.text("TargetPortalAddress").unwrap_or_default();
    let spelled = TargetPortal {
        address: address.to_owned(),
        port: portal.port,
    };
    invoke(run, &found.path, method, &spelled.arguments())
}

pub(crate) fn find_target(run: Run<'_>, iqn: &Iqn) -> OperationResult<Option<Instance>> {
    let wql = format!(
        "SELECT * FROM MSFT_iSCSITarget WHERE NodeAddress = {}",
        quote(iqn.as_str())
    );
    Ok(query(run, Namespace::Iscsi, &wql)?.into_iter().next())
}

pub(crate) fn sessions_of(run: Run<'_>, iqn: &Iqn) -> OperationResult<Vec<Instance>> {
    let wql = format!(
        "SELECT * FROM MSFT_iSCSISession WHERE TargetNodeAddress = {}",
        quote(iqn.as_str())
    );
    query(run, Namespace::Iscsi, &wql)
}

/// Returns the instances of `class` that `association` associates with the object at `path`.
pub(crate) fn associated(
    run: Run<'_>,
    path: &str,
    association: &str,
    class: &str,
) -> OperationResult<Vec<Instance>> {
    let wql =
        format!("ASSOCIATORS OF {{{path}}} WHERE AssocClass = {association} ResultClass = {class}");
    query(run, Namespace::Iscsi, &wql)
}

/// Returns no instances if Windows refuses a query about an object at a path that was made of its
/// key. The caller then looks the object up, which takes another query and tells what is missing.
pub(crate) fn if_known(found: OperationResult<Vec<Instance>>) -> OperationResult<Vec<Instance>> {
    match found {
        Err(error)
            if !matches!(
                error.kind,
                ErrorKind::Unavailable | ErrorKind::PermissionDenied
            ) =>
        {
            Ok(Vec::new())
        }
        found => found,
    }
}

pub(crate) fn targets_of(run: Run<'_>, portal: &str) -> OperationResult<Vec<Instance>> {
    associated(
        run,
        portal,
        "MSFT_iSCSITargetToiSCSITargetPortal",
        "MSFT_iSCSITarget",
    )
}

pub(crate) fn connections_of(run: Run<'_>, session: &Instance) -> OperationResult<Vec<Instance>> {
    associated(
        run,
        &session.path,
        "MSFT_iSCSISessionToiSCSIConnection",
        "MSFT_iSCSIConnection",
    )
}

fn has_name(target: &Instance, iqn: &Iqn) -> bool {
    target
        .text("NodeAddress")
        .is_some_and(|name| name.eq_ignore_ascii_case(iqn.as_str()))
}

/// Finds a discovered target of a portal that was added.
pub(crate) fn discovered_target(
    run: Run<'_>,
    portal: &TargetPortal,
    iqn: &Iqn,
) -> OperationResult<Instance> {
    if let Some(target) = if_known(targets_of(run, &portal.path()))?
        .into_iter()
        .find(|target| has_name(target, iqn))
    {
        return Ok(target);
    }
    let added = find_portal(run, portal)?.ok_or_else(|| {
        OperationError::not_found(format!(
            "the target portal {portal} is not known; add it with AddTargetPortal"
        ))
    })?;
    targets_of(run, &added.path)?
        .into_iter()
        .find(|target| has_name(target, iqn))
        .ok_or_else(|| {
            let reason = format!(
                "the target {iqn} is not known at the portal; discover it with DiscoverTargetPortal"
            );
            OperationError::not_found(reason)
        })
}

/// Returns the path of a target. Its only key is its name.
pub(crate) fn target_path(name: &str) -> String {
    object_path("MSFT_iSCSITarget", "NodeAddress", name)
}

/// Returns whether a target or session is connected, if Windows says so.
pub(crate) fn is_connected(instance: &Instance) -> Option<bool> {
    instance.bool("IsConnected")
}

/// Returns the portal to which a connection leads.
pub(crate) fn end_of(connection: &Instance) -> Option<TargetPortal> {
    let address = connection.text("TargetAddress")?;
    TargetPortal::parse(address, connection.u32("TargetPortNumber")?).ok()
}

/// Returns the identifier of the session that Connect has created.
pub(crate) fn created_session(returned: &Returned) -> Option<&str> {
    let Value::Object(session) = returned.out.get("CreatediSCSISession")? else {
        return None;
    };
    session.text("SessionIdentifier")
}

/// Returns the path of a session. Its only key is its identifier. The instance that Connect returns
/// has no path.
pub(crate) fn session_path(identifier: &str) -> String {
    object_path("MSFT_iSCSISession", "SessionIdentifier", identifier)
}

/// Finds a session again. Returns `None` if it has ended.
pub(crate) fn same_session(run: Run<'_>, session: &Instance) -> OperationResult<Option<Instance>> {
    let id = session.text("SessionIdentifier").unwrap_or_default();
    let wql = format!(
        "SELECT * FROM MSFT_iSCSISession WHERE SessionIdentifier = {}",
        quote(id)
    );
    Ok(query(run, Namespace::Iscsi, &wql)?.into_iter().next())
}

/// Returns the connections that lead from the sessions of a target to the portal.
pub(crate) fn connections_to(
    run: Run<'_>,
    portal: &TargetPortal,
    target: &str,
) -> OperationResult<Vec<Instance>> {
    let mut connections = associated(
        run,
        target,
        "MSFT_iSCSITargetToiSCSIConnection",
        "MSFT_iSCSIConnection",
    )?;
    connections.retain(|connection| portal.is_end_of(connection));
    Ok(connections)
}

/// Returns the disks of a session, as far as Windows lists them.
pub(crate) fn disks_of_session(
    run: Run<'_>,
    session: &Instance,
) -> OperationResult<Vec<DiskNumber>> {
    let found = associated(run, &session.path, "MSFT_iSCSISessionToDisk", "MSFT_Disk")?;
    Ok(numbers(&found).collect())
}

/// Returns the iSCSI disks that are not those of a session other than `session`.
pub(crate) fn disks_without_another_session(
    run: Run<'_>,
    session: &Instance,
) -> OperationResult<Vec<DiskNumber>> {
    // 9 is the bus iSCSI.
    let wql = "SELECT Number FROM MSFT_Disk WHERE BusType = 9";
    let mut disks: Vec<_> = numbers(&query(run, Namespace::Iscsi, wql)?).collect();
    for other in query(run, Namespace::Iscsi, "SELECT * FROM MSFT_iSCSISession")? {
        if disks.is_empty() {
            break;
        }
        if other.path != session.path {
            let of_other = disks_of_session(run, &other)?;
            disks.retain(|disk| !of_other.contains(disk));
        }
    }
    Ok(disks)
}

fn numbers(disks: &[Instance]) -> impl Iterator<Item = DiskNumber> {
    disks
        .iter()
        .filter_map(|disk| disk.u32("Number"))
        .map(DiskNumber)
}

/// Returns the disks of connections.
pub(crate) fn disks_of(run: Run<'_>, connections: &[Instance]) -> OperationResult<Vec<DiskNumber>> {
    let mut disks = Vec::new();
    for connection in connections {
        let found = associated(
            run,
            &connection.path,
            "MSFT_iSCSIConnectionToDisk",
            "MSFT_Disk",
        )?;
        disks.extend(numbers(&found));
    }
    disks.sort_unstable();
    // Several connections may lead to the same disk.
    disks.dedup();
    Ok(disks)
}

#[cfg(test)]
mod tests {
    use os::{Instance, Value};

    use crate::types::TargetPortal;

    fn is_end(portal: &str, address: &str, port: u32) -> bool {
        let properties = [
            ("TargetAddress", Value::Text(address.into())),
            ("TargetPortNumber", Value::U32(port)),
        ];
        let properties = properties
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        TargetPortal::parse(portal, 860)
            .unwrap()
            .is_end_of(&Instance {
                path: String::new(),
                properties,
            })
    }

    #[test]
    fn a_connection_leads_to_the_portal_of_its_address_and_port() {
        for (portal, address) in [
            ("10.0.0.5", "10.0.0.5"),
            ("::ffff:10.0.0.5", "10.0.0.5"),
            ("FD00:0::1", "fd00::1"),
            ("[fd00::1]", "fd00::1"),
            ("fe80::1%4", "fe80::1"),
            ("storage.test", "10.0.0.5"),
        ] {
            assert!(
                is_end(portal, address, 860) && !is_end(portal, address, 3260),
                "{portal}"
            );
        }
        for (portal, address) in [
            ("10.0.0.5", "10.0.0.50"),
            ("fd00::1", "fd00::2"),
            ("10.0.0.5", ""),
            ("10.0.0.5", "x"),
        ] {
            assert!(!is_end(portal, address, 860), "{portal} {address}");
        }
    }
}
