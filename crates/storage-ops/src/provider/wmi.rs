//! WMI queries, and methods that may outlive their caller.

use std::time::Duration;

use os::{CallStatus, Instance, MethodCall, Namespace, OsError, Returned, class_of};

use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::node::run::Run;

/// Runs a query that must find exactly one instance; `object` names it in errors.
pub(crate) fn query_one(
    run: Run<'_>,
    namespace: Namespace,
    wql: &str,
    object: &str,
) -> OperationResult<Instance> {
    only(query(run, namespace, wql)?, object)
}

/// Returns the only one of the instances; `object` names it in errors.
pub(crate) fn only(mut found: Vec<Instance>, object: &str) -> OperationResult<Instance> {
    match (found.pop(), found.is_empty()) {
        (Some(instance), true) => Ok(instance),
        (None, _) => Err(OperationError::not_found(format!("WMI found no {object}"))),
        (Some(_), false) => Err(OperationError::precondition(format!(
            "WMI found more than one {object}"
        ))),
    }
}

/// Runs a query.
pub(crate) fn query(
    run: Run<'_>,
    namespace: Namespace,
    wql: &str,
) -> OperationResult<Vec<Instance>> {
    let began = run.clock().now();
    let found = run
        .os()
        .wmi()
        .query(namespace, wql, began + run.timeouts().query);
    run.windows().wmi_calls.add(
        class_in(wql),
        "query",
        found.is_err(),
        run.clock().now() - began,
    );
    found.map_err(|code| {
        if ErrorClass::NotInstalled.contains(code) {
            return not_installed(code, class_in(wql));
        }
        if ErrorClass::NotStarted.contains(code) {
            return OperationError::of(code, "WMI did not answer the query in time")
                .with_kind(ErrorKind::Unavailable);
        }
        OperationError::of(code, "the WMI query failed")
    })
}

/// Calls a method and waits until it ends. If it takes longer than `timeout`, the method keeps the
/// locks until it ends.
pub(crate) fn call(
    run: Run<'_>,
    call: &MethodCall<'_>,
    timeout: Duration,
) -> OperationResult<Returned> {
    let method = call.method;
    // WMI takes an empty path for that of a new class, and reports that it does not have the
    // method.
    if call.path.is_empty() {
        let reason = format!("WMI returned an object without a path, so {method} cannot be called");
        return Err(OperationError::new(ErrorKind::Internal, reason));
    }
    run.begin_mutation()?;
    let began = run.clock().now();
    let status = run.os().wmi().call(call, began + timeout);
    let has_failed = !matches!(&status, Ok(CallStatus::Done(returned)) if returned.code == 0);
    run.windows().wmi_calls.add(
        class_of(call.path),
        method,
        has_failed,
        run.clock().now() - began,
    );
    match status {
        Ok(CallStatus::Done(returned)) => Ok(returned),
        Ok(CallStatus::StillRunning(pending)) => {
            run.hold_locks_until(pending);
            let seconds = timeout.as_secs();
            let reason = format!(
                "{method} is still running after {seconds} s; repeat the request to wait for it"
            );
            Err(OperationError::new(ErrorKind::StillRunning, reason))
        }
        Err(code) if ErrorClass::NotInstalled.contains(code) => {
            Err(not_installed(code, class_of(call.path)))
        }
        Err(code) if ErrorClass::NotStarted.contains(code) => {
            let error = OperationError::of(code, format!("WMI did not start {method} in time"));
            Err(error.with_kind(ErrorKind::Unavailable))
        }
        Err(code) if ErrorClass::OutcomeUnknown.contains(code) => {
            let reason = format!("the connection to WMI broke, and {method} may still be running");
            Err(OperationError::of(code, reason).with_kind(ErrorKind::StillRunning))
        }
        Err(code) => Err(OperationError::of(code, format!("{method} failed"))),
    }
}

fn not_installed(code: OsError, class: &str) -> OperationError {
    OperationError::of(
        code,
        format!("this Windows lacks the feature that provides the WMI class {class}"),
    )
}

/// Returns the class whose instances a query returns.
fn class_in(wql: &str) -> &str {
    let rest = wql
        .split_once(" ResultClass = ")
        .map(|(_, rest)| rest)
        .or_else(|| wql.split_once(" FROM ").map(|(_, rest)| rest))
        .unwrap_or(wql);
    rest.split(' ').next().unwrap_or(rest)
}

/// Returns the path of the object whose only key has this value.
pub(crate) fn object_path(class: &str, key: &str, value: &str) -> String {
    format!(
        "{class}.{key}=\"{}\"",
        value.replace('\\', r"\\").replace('"', "\\\"")
    )
}

/// Quotes `text` as a WQL string.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use os::{MethodCall, Namespace};

    use super::{call, class_in};
    use crate::error::ErrorKind;
    use crate::node::run::Run;
    use crate::scheduling::OperationContext;
    use crate::{Config, Node};

    #[test]
    fn an_object_without_a_path_is_not_reported_as_missing() {
        let node = Node::new(os_sim::node().build().process(), Config::default());
        let context = OperationContext::new(None);
        let format = MethodCall::new(Namespace::Storage, "", "Format", &[]);
        let error = call(Run::new(&node, &context), &format, Duration::from_secs(1)).unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::Internal, None));
        assert!(
            error.to_string().contains("without a path, so Format"),
            "{error}"
        );
    }

    #[test]
    fn the_class_of_a_query_is_found() {
        assert_eq!(class_in("SELECT * FROM MSFT_Disk"), "MSFT_Disk");
        assert_eq!(
            class_in("SELECT Number, Size FROM MSFT_Disk WHERE Number = 1"),
            "MSFT_Disk"
        );
        let associated =
            "ASSOCIATORS OF {MSFT_A.Id=\"1\"} WHERE AssocClass = MSFT_AToB ResultClass = MSFT_B";
        assert_eq!(class_in(associated), "MSFT_B");
    }
}
