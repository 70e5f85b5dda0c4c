//! WMI queries, and methods that may outlive their caller.

use std::time::Duration;

use os::{CallStatus, Instance, MethodCall, Namespace, Returned};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::OperationContext;
use crate::windows::Host;
use crate::windows::error_class::ErrorClass;

/// Runs a query that must find exactly one instance; `object` names it in errors.
pub(crate) fn query_one(host: &Host, namespace: Namespace, wql: &str, object: &str) -> OperationResult<Instance> {
    let mut found = query(host, namespace, wql)?;
    match (found.pop(), found.is_empty()) {
        (Some(instance), true) => Ok(instance),
        (None, _) => Err(OperationError::not_found(format!("WMI found no {object}"))),
        (Some(_), false) => Err(OperationError::precondition(format!("WMI found more than one {object}"))),
    }
}

/// Runs a query.
pub(crate) fn query(host: &Host, namespace: Namespace, wql: &str) -> OperationResult<Vec<Instance>> {
    let deadline = host.clock().now() + host.timeouts().query;
    host.os().wmi().query(namespace, wql, deadline).map_err(|code| {
        if ErrorClass::NotStarted.contains(code) {
            let error = OperationError::of(code, "WMI did not answer the query in time");
            return OperationError { kind: Kind::Unavailable, ..error };
        }
        OperationError::of(code, "the WMI query failed")
    })
}

/// Calls a method and waits until it ends. If it takes longer than `timeout`, the method keeps the locks until it ends.
pub(crate) fn call(
    host: &Host,
    ctx: &OperationContext,
    call: &MethodCall<'_>,
    timeout: Duration,
) -> OperationResult<Returned> {
    ctx.begin_mutation()?;
    let deadline = host.clock().now() + timeout;
    let method = call.method;
    match host.os().wmi().call(call, deadline) {
        Ok(CallStatus::Done(returned)) => Ok(returned),
        Ok(CallStatus::StillRunning(pending)) => {
            ctx.hold_locks_until(pending);
            let seconds = timeout.as_secs();
            let reason = format!("{method} is still running after {seconds} s; repeat the request to wait for it");
            Err(OperationError::new(Kind::StillRunning, reason))
        }
        Err(code) if ErrorClass::NotStarted.contains(code) => Err(OperationError {
            kind: Kind::Unavailable,
            ..OperationError::of(code, format!("WMI did not start {method} in time"))
        }),
        Err(code) if ErrorClass::OutcomeUnknown.contains(code) => Err(OperationError {
            kind: Kind::StillRunning,
            ..OperationError::of(code, format!("the connection to WMI broke, and {method} may still be running"))
        }),
        Err(code) => Err(OperationError::of(code, format!("{method} failed"))),
    }
}

/// Quotes `text` as a WQL string.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}
