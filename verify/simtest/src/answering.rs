//! A node whose WMI answers one method call with another return value.
//!
//! A probe can make a call fail; that a method was carried out and says otherwise, or says that it will not, is a
//! success of the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use faults::Moment;
use os::{
    CallStatus, Clock, Handle, Instance, Namespace, NtPath, Open, Os, OsResult, Returned, Service, ServiceAccess, Time,
    U16Str, U16String, Uuid, Value, Wmi,
};

use crate::forward::{forward_mounting, forward_the_rest};

/// The node, with one answer exchanged.
pub struct Answering {
    inner: Arc<dyn Os>,
    /// The number of the method call, the first being 0.
    nth: u64,
    code: u32,
    moment: Moment,
    seen: AtomicU64,
}

impl Answering {
    /// Lets the method call number `nth` answer `code`, instead of being carried out or after it.
    pub fn new(inner: Arc<dyn Os>, nth: u64, code: u32, moment: Moment) -> Self {
        Self { inner, nth, code, moment, seen: AtomicU64::new(0) }
    }
}

impl Wmi for Answering {
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        self.inner.wmi().query(namespace, wql, deadline)
    }

    fn call(
        &self,
        namespace: Namespace,
        path: &str,
        method: &str,
        arguments: &[(&str, Value)],
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let call = || self.inner.wmi().call(namespace, path, method, arguments, deadline);
        if self.seen.fetch_add(1, Ordering::SeqCst) != self.nth {
            return call();
        }
        let refusal = CallStatus::Done(Returned { code: self.code, ..Returned::default() });
        match self.moment {
            Moment::Before => Ok(refusal),
            Moment::After => Ok(match call()? {
                CallStatus::Done(_) => refusal,
                running @ CallStatus::StillRunning(_) => running,
            }),
        }
    }
}

impl Os for Answering {
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        self.inner.open(path, how)
    }

    fn wmi(&self) -> &dyn Wmi {
        self
    }

    fn clock(&self) -> &dyn Clock {
        self.inner.clock()
    }

    forward_mounting!();
    forward_the_rest!();
}
