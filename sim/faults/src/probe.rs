//! Observing and disturbing the calls of a process.
//!
//! [`Probed`] forwards every primitive to the node and calls a [`Probe`] before and after it. One
//! `Probed` stands for one process, such as one run of the daemon; a restarted daemon gets a new
//! one around the same node.
//!
//! A process that dies does not unwind. After [`FaultAction::Die`] no call of the process reaches
//! the node: its handles are closed, as the kernel closes them, and every later call fails with
//! `OPERATION_ABORTED`, even from a destructor or another thread. Work that the node has started,
//! such as a WMI method, continues.

mod changes;
mod objects;
mod process;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use os::{
    Clock, Handle, NtPath, Open, Os, OsError, OsResult, Service, ServiceAccess, U16Str, U16String,
    Uuid, Wmi,
};

use crate::primitives::node_primitives;
use objects::{ProbedHandle, ProbedService};
use process::ProbedProcess;

/// The first words of all primitives. The second word of some names a control code, a class or a
/// method.
pub const PRIMITIVES: [&str; 27] = [
    "open",
    "attributes",
    "open_child",
    "open_below",
    "control",
    "query",
    "set",
    "query_fs",
    "list",
    "final_path",
    "security_descriptor",
    "set_access_list",
    "read",
    "flush",
    "device_interfaces",
    "reenumerate",
    "volumes",
    "volume_paths",
    "set_volume_mount_point",
    "delete_volume_mount_point",
    "open_service",
    "service",
    "firmware_table",
    "registry_text",
    "set_volatile_text",
    "delete_registry_value",
    "wmi",
];

/// A call of a primitive. The names of objects are its only arguments, so it contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of primitives that the process called before this one.
    pub sequence: u64,
    /// The primitive, such as `open`, `control DISK_GET_DRIVE_LAYOUT_EX` or
    /// `wmi call MSFT_Volume.Format`.
    pub primitive: Cow<'static, str>,
    /// The object that it is called on: a path, the name of a service, a WMI query or a WMI object
    /// path.
    pub object: String,
    /// Whether the call can change the node.
    pub mutates: bool,
}

impl Call {
    /// Returns whether the call cannot change the node, or is in the table in `probe/changes.md`.
    pub fn is_known_change(&self) -> bool {
        !self.mutates || changes::is_listed(&self.primitive)
    }

    /// Returns whether this is a WMI query or method call.
    pub fn is_wmi(&self) -> bool {
        self.primitive.starts_with("wmi ")
    }
}

/// Returns whether a pattern names a primitive: all if it is empty, or all with this beginning if
/// `*` ends it.
pub fn matches(pattern: &str, primitive: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => primitive.starts_with(beginning),
        None => pattern.is_empty() || pattern == primitive,
    }
}

/// How a probe disturbs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// The call proceeds.
    Go,
    /// The call fails with this error: before it reaches the node, or after it did.
    Fail(OsError),
    /// The WMI method returns this code: without doing its work, or after it has ended. Other calls
    /// proceed.
    Return(u32),
    /// The call takes this much longer.
    Delay(Duration),
    /// The process dies.
    Die,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call succeeded.
    Done,
    /// A WMI method returned this code.
    Returned(u32),
    /// A WMI method was still running at its deadline.
    StillRunning,
    /// The call failed.
    Failed(OsError),
    /// The process died during the call.
    Died,
}

/// Observes every primitive that a process calls, and decides how to disturb the call.
///
/// Reading the clock, sleeping and closing a handle are not primitives.
pub trait Probe: Send + Sync {
    /// Called before the call reaches the node.
    fn before(&self, _call: &Call) -> FaultAction {
        FaultAction::Go
    }

    /// Called after the node has answered and before the caller sees the answer. If `before`
    /// prevented the call, this is called with that outcome and the returned action is ignored.
    fn after(&self, _call: &Call, _outcome: Outcome) -> FaultAction {
        FaultAction::Go
    }
}

impl<P: Probe + ?Sized> Probe for Arc<P> {
    fn before(&self, call: &Call) -> FaultAction {
        (**self).before(call)
    }

    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        (**self).after(call, outcome)
    }
}

/// Nested probes. The first probe is the outermost, nearest to the caller: it sees the failures
/// that later probes inject.
impl Probe for Vec<Arc<dyn Probe>> {
    fn before(&self, call: &Call) -> FaultAction {
        let mut delay = Duration::ZERO;
        for probe in self {
            match probe.before(call) {
                FaultAction::Go => {}
                FaultAction::Delay(more) => delay += more,
                last => return last,
            }
        }
        if delay.is_zero() {
            FaultAction::Go
        } else {
            FaultAction::Delay(delay)
        }
    }

    fn after(&self, call: &Call, mut outcome: Outcome) -> FaultAction {
        let mut action = FaultAction::Go;
        for probe in self.iter().rev() {
            let next = probe.after(call, outcome);
            (action, outcome) = match (action, next) {
                (FaultAction::Go, FaultAction::Delay(_)) => (next, outcome),
                (FaultAction::Delay(delay), FaultAction::Delay(more)) => {
                    (FaultAction::Delay(delay + more), outcome)
                }
                (FaultAction::Die, _) | (_, FaultAction::Go | FaultAction::Delay(_)) => {
                    (action, outcome)
                }
                (_, FaultAction::Return(code)) => (next, Outcome::Returned(code)),
                (_, FaultAction::Fail(error)) => (next, Outcome::Failed(error)),
                (_, FaultAction::Die) => (next, Outcome::Died),
            };
        }
        action
    }
}

/// A node as one process sees it, with a probe in between.
pub struct Probed {
    process: Arc<ProbedProcess>,
}

impl Probed {
    /// Starts a process on `node`.
    pub fn new(node: Arc<dyn Os>, probe: impl Probe + 'static) -> Self {
        Self {
            process: ProbedProcess::new(node, Box::new(probe)),
        }
    }

    /// Kills the process between two calls.
    pub fn kill(&self) {
        self.process.die();
    }

    /// Returns whether the process has died.
    pub fn is_dead(&self) -> bool {
        self.process.is_dead()
    }

    fn node(&self) -> &dyn Os {
        self.process.node()
    }
}

/// Makes the methods that call a primitive of the node through the probe.
macro_rules! probed {
    ($node:ty; $($name:ident($($argument:ident: $kind:ty),*) -> $result:ty,
        changes: $changes:expr, object: $object:expr;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> OsResult<$result> {
            let forward = || self.node().$name($($argument),*);
            self.process.run(stringify!($name), &$object, $changes, forward)
        })*
    };
}

impl Os for Probed {
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        let mutates = how.disposition == os::Disposition::Create;
        let inner = self
            .process
            .run("open", path, mutates, || self.node().open(path, how))?;
        Ok(Box::new(ProbedHandle::new(
            &self.process,
            path.clone(),
            inner,
        )))
    }

    node_primitives!(probed);

    fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>> {
        let open = || self.node().open_service(name, access);
        let inner = self
            .process
            .run("open_service", &name.display(), false, open)?;
        Ok(Box::new(ProbedService::new(
            &self.process,
            name.to_string_lossy(),
            inner,
        )))
    }

    fn wmi(&self) -> &dyn Wmi {
        self
    }

    fn clock(&self) -> &dyn Clock {
        self
    }
}

#[cfg(test)]
pub(crate) mod tests;
