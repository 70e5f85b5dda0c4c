//! Asking WMI, and calling methods that may outlive their caller.

use std::time::Duration;

use os::{CallStatus, Instance, Namespace, Returned, Value};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::OperationContext;
use crate::windows::Host;
use crate::windows::error_class::ErrorClass;

/// A query that must answer exactly one object.
pub(crate) fn one(host: &Host, namespace: Namespace, wql: &str, what: &str) -> OperationResult<Instance> {
    let mut found = query(host, namespace, wql)?;
    match (found.pop(), found.is_empty()) {
        (Some(instance), true) => Ok(instance),
        (None, _) => Err(OperationError::not_found(format!("WMI knows no {what}"))),
        (Some(_), false) => Err(OperationError::precondition(format!("WMI knows more than one {what}"))),
    }
}

/// The answers to a query.
pub(crate) fn query(host: &Host, namespace: Namespace, wql: &str) -> OperationResult<Vec<Instance>> {
    let deadline = host.after(host.timeouts().query);
    host.os().wmi().query(namespace, wql, deadline).map_err(|code| match code {
        code if ErrorClass::NotStarted.contains(code) => {
            OperationError { kind: Kind::Unavailable, ..OperationError::of(code, "WMI did not answer") }
        }
        code => OperationError::of(code, "WMI"),
    })
}

/// Calls a method and waits for its end. Where that takes longer than `timeout`, the locks stay with it.
pub(crate) fn call(
    host: &Host,
    ctx: &OperationContext,
    namespace: Namespace,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
    timeout: Duration,
) -> OperationResult<Returned> {
    ctx.begin_mutation()?;
    match host.os().wmi().call(namespace, path, method, arguments, host.after(timeout)) {
        Ok(CallStatus::Done(returned)) => Ok(returned),
        Ok(CallStatus::StillRunning(job)) => {
            ctx.hold_locks_until(job);
            let seconds = timeout.as_secs();
            Err(OperationError::new(Kind::StillRunning, format!("{method} goes on after {seconds} s; ask again later")))
        }
        Err(code) if ErrorClass::NotStarted.contains(code) => Err(OperationError {
            kind: Kind::Unavailable,
            ..OperationError::of(code, format!("{method} was not begun"))
        }),
        // The connection broke while it ran, or before, or after.
        Err(code) if ErrorClass::OutcomeUnknown.contains(code) => Err(OperationError {
            kind: Kind::StillRunning,
            ..OperationError::of(code, format!("{method} may be going on"))
        }),
        Err(code) => Err(OperationError::of(code, method)),
    }
}

/// Text as it stands in a WQL string.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}
