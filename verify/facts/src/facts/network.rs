//! Calls that the checks of SMB and iSCSI make.

use std::time::Duration;

use os::{
    Access, CallStatus, Instance, MethodCall, Namespace, NtPath, Open, Options, OsResult, Returned,
    Secret, Time, U16String, Value,
};

use crate::network::{TargetKind, TestPortal, TestServer, TestTarget, TestUser};
use crate::node::{System, TestNode};

/// The class of SMB global mappings.
pub(crate) const MAPPING: &str = "MSFT_SmbGlobalMapping";
pub(crate) const PORTAL: &str = "MSFT_iSCSITargetPortal";
pub(crate) const TARGET: &str = "MSFT_iSCSITarget";
pub(crate) const SESSION: &str = "MSFT_iSCSISession";

fn deadline(node: &dyn TestNode) -> Time {
    node.os().clock().now() + Duration::from_mins(2)
}

/// Returns a text as an argument.
pub(crate) fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Runs a query.
pub(crate) fn query_in(
    node: &dyn TestNode,
    namespace: Namespace,
    wql: &str,
) -> OsResult<Vec<Instance>> {
    node.os().wmi().query(namespace, wql, deadline(node))
}

/// Runs a query that succeeds.
pub(crate) fn select(node: &dyn TestNode, namespace: Namespace, wql: &str) -> Vec<Instance> {
    query_in(node, namespace, wql).expect("the query succeeds")
}

/// Calls a method and waits until it ends.
pub(crate) fn invoke(
    node: &dyn TestNode,
    namespace: Namespace,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
) -> OsResult<Returned> {
    match node.os().wmi().call(
        &MethodCall::new(namespace, path, method, arguments),
        deadline(node),
    )? {
        CallStatus::Done(returned) => Ok(returned),
        CallStatus::StillRunning(_) => panic!("{method} takes more than two minutes"),
    }
}

/// Returns the path of the object whose only key has this value.
pub(crate) fn object_path(class: &str, key: &str, value: &str) -> String {
    format!(
        "{class}.{key}=\"{}\"",
        value.replace('\\', r"\\").replace('"', "\\\"")
    )
}

/// Quotes a text for WQL.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\"))
}

/// Returns the SMB server. No share of it is mapped.
pub(crate) fn server(node: &dyn TestNode) -> TestServer {
    let server = node.smb_server();
    if node.system() != System::Simulator {
        for row in mappings(node, &server) {
            unmap(node, &row);
        }
    }
    server
}

/// Returns the SMB server, whose first share is mapped for the first user.
pub(crate) fn mapped_server(node: &dyn TestNode) -> TestServer {
    let server = server(node);
    assert_eq!(map(node, &server.remote(0), &server.users[0]), Ok(0));
    server
}

/// Returns the mappings of the shares of a server.
pub(crate) fn mappings(node: &dyn TestNode, server: &TestServer) -> Vec<Instance> {
    let prefix = format!(r"\\{}\", server.host).to_lowercase();
    let mut rows = select(node, Namespace::Smb, &format!("SELECT * FROM {MAPPING}"));
    rows.retain(|row| {
        row.text("RemotePath")
            .is_some_and(|remote| remote.to_lowercase().starts_with(&prefix))
    });
    rows
}

/// Returns the remote paths that are mapped on a server.
pub(crate) fn mapped(node: &dyn TestNode, server: &TestServer) -> Vec<String> {
    let rows = mappings(node, server);
    rows.iter()
        .map(|row| {
            row.text("RemotePath")
                .expect("a remote path")
                .to_lowercase()
        })
        .collect()
}

/// Removes a mapping.
pub(crate) fn unmap(node: &dyn TestNode, row: &Instance) {
    let removed = invoke(
        node,
        Namespace::Smb,
        &row.path,
        "Remove",
        &[("Force", Value::Bool(true))],
    );
    assert_eq!(removed.expect("the mapping is removed").code, 0);
}

/// Returns the credentials of a user of the domain `FACTS`, as `Create` takes them.
pub(crate) fn credential(user: &TestUser, password: &str) -> Value {
    Value::Secret(Secret::new(format!(r"FACTS\\{}:{password}", user.name)))
}

/// Maps a remote path with these credentials and options. Returns the return value.
pub(crate) fn create(
    node: &dyn TestNode,
    remote: &str,
    credential: Value,
    options: &[(&str, Value)],
) -> OsResult<u32> {
    let mut arguments = vec![("RemotePath", text(remote)), ("Credential", credential)];
    arguments.extend_from_slice(options);
    invoke(node, Namespace::Smb, MAPPING, "Create", &arguments).map(|returned| returned.code)
}

/// Maps a remote path for a user of the server. Returns the return value.
pub(crate) fn map(node: &dyn TestNode, remote: &str, user: &TestUser) -> OsResult<u32> {
    create(node, remote, credential(user, &user.password), &[])
}

/// Opens a directory on a server for listing.
pub(crate) fn read(node: &dyn TestNode, remote: &str) -> OsResult<()> {
    let path = NtPath::from_win32(&U16String::from_str(&format!(r"{remote}\")));
    let how = Open::existing(
        Access::READ_DATA | Access::READ_ATTRIBUTES,
        Options::DIRECTORY,
    );
    node.os().open(&path, &how).map(drop)
}

/// Returns a target that is not connected and whose portal is not known.
pub(crate) fn target(node: &dyn TestNode, kind: TargetKind) -> TestTarget {
    let target = node.iscsi_target(kind);
    if node.system() != System::Simulator {
        for session in sessions(node, &target) {
            if session.bool("IsPersistent") == Some(true) {
                iscsi(node, &session.path, "Unregister", &[]).expect("the session is unregistered");
            }
            log_out(node, &target, &session).expect("the session ends");
        }
        if portal(node, &target.portal).is_some() {
            iscsi(node, PORTAL, "Remove", &address(&target.portal)).expect("the portal is removed");
        }
    }
    target
}

/// Calls a method of the initiator. Returns the return value.
pub(crate) fn iscsi(
    node: &dyn TestNode,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
) -> OsResult<u32> {
    invoke(node, Namespace::Storage, path, method, arguments).map(|returned| returned.code)
}

/// Returns the arguments that name a portal.
pub(crate) fn address(portal: &TestPortal) -> Vec<(&'static str, Value)> {
    vec![
        ("TargetPortalAddress", text(&portal.address)),
        ("TargetPortalPortNumber", Value::U32(portal.port.into())),
    ]
}

/// Returns the row of a portal, if the initiator knows it.
pub(crate) fn portal(node: &dyn TestNode, portal: &TestPortal) -> Option<Instance> {
    let address = quoted(&portal.address);
    let condition = format!(
        "TargetPortalAddress = {address} AND TargetPortalPortNumber = {}",
        portal.port
    );
    select(
        node,
        Namespace::Storage,
        &format!("SELECT * FROM {PORTAL} WHERE {condition}"),
    )
    .pop()
}

/// Adds the portal of a target, which discovers it.
pub(crate) fn add_portal(node: &dyn TestNode, target: &TestTarget) {
    assert_eq!(iscsi(node, PORTAL, "New", &address(&target.portal)), Ok(0));
}

/// Returns the arguments of a login to a target with its own method of authentication.
pub(crate) fn login(target: &TestTarget) -> Vec<(&'static str, Value)> {
    let mut arguments = address(&target.portal);
    arguments.push(("NodeAddress", text(&target.iqn)));
    let (user, secret) = &target.chap;
    if user.is_empty() {
        arguments.push(("AuthenticationType", text("NONE")));
    } else {
        arguments.push(("AuthenticationType", text("ONEWAYCHAP")));
        arguments.push(("ChapUsername", text(user)));
        arguments.push(("ChapSecret", Value::Secret(Secret::new(secret.clone()))));
    }
    arguments
}

/// Returns a target without authentication, with its portal added and logged in to.
pub(crate) fn connected_target(node: &dyn TestNode) -> TestTarget {
    let target = target(node, TargetKind::Open);
    add_portal(node, &target);
    assert_eq!(iscsi(node, TARGET, "Connect", &login(&target)), Ok(0));
    target
}

/// Returns the sessions with a target.
pub(crate) fn sessions(node: &dyn TestNode, target: &TestTarget) -> Vec<Instance> {
    let condition = format!("TargetNodeAddress = {}", quoted(&target.iqn));
    select(
        node,
        Namespace::Storage,
        &format!("SELECT * FROM {SESSION} WHERE {condition}"),
    )
}

/// Returns the row of a target.
pub(crate) fn known(node: &dyn TestNode, target: &TestTarget) -> Option<Instance> {
    let condition = format!("NodeAddress = {}", quoted(&target.iqn));
    select(
        node,
        Namespace::Storage,
        &format!("SELECT * FROM {TARGET} WHERE {condition}"),
    )
    .pop()
}

/// Ends a session with a target.
pub(crate) fn log_out(
    node: &dyn TestNode,
    target: &TestTarget,
    session: &Instance,
) -> OsResult<u32> {
    let row = known(node, target).expect("the target is listed");
    let session = session.text("SessionIdentifier").expect("an identifier");
    iscsi(
        node,
        &row.path,
        "Disconnect",
        &[("SessionIdentifier", text(session))],
    )
}
