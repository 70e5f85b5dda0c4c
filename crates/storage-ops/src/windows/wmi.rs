//! Asking WMI, and calling methods that may outlive their caller.

use std::time::Duration;

use os::{Instance, Namespace, OsError, Progress, Returned, Value};

use crate::error::{Fault, Kind, Outcome};
use crate::executor::operation::Run;
use crate::node::Node;

/// A query that must answer exactly one object.
pub(crate) fn one(node: &Node, namespace: Namespace, wql: &str, what: &str) -> Outcome<Instance> {
    let mut found = query(node, namespace, wql)?;
    match (found.pop(), found.is_empty()) {
        (Some(instance), true) => Ok(instance),
        (None, _) => Err(Fault::not_found(format!("WMI knows no {what}"))),
        (Some(_), false) => Err(Fault::precondition(format!("WMI knows more than one {what}"))),
    }
}

/// The answers to a query.
pub(crate) fn query(node: &Node, namespace: Namespace, wql: &str) -> Outcome<Vec<Instance>> {
    let deadline = node.after(node.config().patience.query);
    node.os().wmi().query(namespace, wql, deadline).map_err(|code| match code {
        OsError::WAIT_TIMEOUT | OsError::BUSY => {
            Fault { kind: Kind::Unavailable, ..Fault::of(code, "WMI did not answer") }
        }
        code => Fault::of(code, "WMI"),
    })
}

/// Calls a method and waits for its end. Where that takes longer than `patience`, the locks stay with it.
pub(crate) fn call(
    node: &Node,
    run: &Run,
    namespace: Namespace,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
    patience: Duration,
) -> Outcome<Returned> {
    run.commit()?;
    match node.os().wmi().call(namespace, path, method, arguments, node.after(patience)) {
        Ok(Progress::Done(returned)) => Ok(returned),
        Ok(Progress::StillRunning(job)) => {
            run.outlived_by(job);
            let seconds = patience.as_secs();
            Err(Fault::new(Kind::StillRunning, format!("{method} goes on after {seconds} s; ask again later")))
        }
        Err(code @ (OsError::WAIT_TIMEOUT | OsError::BUSY)) => {
            Err(Fault { kind: Kind::Unavailable, ..Fault::of(code, format!("{method} was not begun")) })
        }
        // The connection broke while it ran, or before, or after.
        Err(code) if may_run_on(code) => {
            Err(Fault { kind: Kind::StillRunning, ..Fault::of(code, format!("{method} may be going on")) })
        }
        Err(code) => Err(Fault::of(code, method)),
    }
}

/// Whether after this error nobody knows if the method ran.
pub(crate) fn may_run_on(code: OsError) -> bool {
    matches!(code, OsError::RPC_CALL_FAILED | OsError::WBEM_TRANSPORT_FAILURE)
}

/// Text as it stands in a WQL string.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}
