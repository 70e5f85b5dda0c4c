//! A layer that replaces the return value of one WMI method call, or of all calls of one method.
//!
//! A probe makes a call fail. A method that refuses, or that does its work and reports a failure, is a call that
//! succeeds with another return value.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use faults::{Layer, When};
use os::{CallStatus, MethodCall, OsResult, Returned, Time, Wmi};

/// Replaces the return value of one WMI method call, or of all calls of its method from then on.
pub struct ReturnCodeFault {
    /// The number of the method call, counted from 0.
    nth: u64,
    code: u32,
    when: When,
    seen: AtomicU64,
    /// Whether later calls of the same method are replaced too.
    repeated: bool,
    method: OnceLock<String>,
}

impl ReturnCodeFault {
    /// Makes the method call number `nth`, counted from 0, return `code`: instead of doing its work, or after it.
    pub fn new(nth: u64, code: u32, when: When) -> Self {
        Self { nth, code, when, seen: AtomicU64::new(0), repeated: false, method: OnceLock::new() }
    }

    /// Makes the method call number `nth`, counted from 0, and all later calls of the same method return `code` instead
    /// of doing their work.
    pub fn from(nth: u64, code: u32) -> Self {
        Self { repeated: true, ..Self::new(nth, code, When::Before) }
    }

    fn replaces(&self, call: &MethodCall<'_>) -> bool {
        if self.seen.fetch_add(1, Ordering::SeqCst) == self.nth {
            let _ = self.method.set(call.method.to_owned());
            return true;
        }
        self.repeated && self.method.get().is_some_and(|method| method == call.method)
    }
}

impl Layer for ReturnCodeFault {
    fn wmi_call(&self, wmi: &dyn Wmi, call: &MethodCall<'_>, deadline: Time) -> OsResult<CallStatus> {
        if !self.replaces(call) {
            return wmi.call(call, deadline);
        }
        let replaced = CallStatus::Done(Returned { code: self.code, ..Returned::default() });
        match self.when {
            When::Before => Ok(replaced),
            When::After => Ok(match wmi.call(call, deadline)? {
                CallStatus::Done(_) => replaced,
                running @ CallStatus::StillRunning(_) => running,
            }),
        }
    }
}
