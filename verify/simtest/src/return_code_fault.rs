//! A node whose WMI answers one method call with another return value.
//!
//! A probe can make a call fail; that a method was carried out and says otherwise, or says that it will not, is a
//! success of the call.

use std::sync::atomic::{AtomicU64, Ordering};

use faults::{Layer, When};
use os::{CallStatus, Namespace, OsResult, Returned, Time, Value, Wmi};

/// The layer that exchanges one answer.
pub struct Answering {
    /// The number of the method call, the first being 0.
    nth: u64,
    code: u32,
    moment: When,
    seen: AtomicU64,
}

impl Answering {
    /// Lets the method call number `nth` answer `code`, instead of being carried out or after it.
    pub fn new(nth: u64, code: u32, moment: When) -> Self {
        Self { nth, code, moment, seen: AtomicU64::new(0) }
    }
}

impl Layer for Answering {
    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        namespace: Namespace,
        path: &str,
        method: &str,
        arguments: &[(&str, Value)],
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let call = || wmi.call(namespace, path, method, arguments, deadline);
        if self.seen.fetch_add(1, Ordering::SeqCst) != self.nth {
            return call();
        }
        let refusal = CallStatus::Done(Returned { code: self.code, ..Returned::default() });
        match self.moment {
            When::Before => Ok(refusal),
            When::After => Ok(match call()? {
                CallStatus::Done(_) => refusal,
                running @ CallStatus::StillRunning(_) => running,
            }),
        }
    }
}
