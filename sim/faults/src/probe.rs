//! Watching and disturbing a process on a node, from between the process and the node.
//!
//! [`Probed`] forwards every primitive to the node and asks a [`Probe`] before and after. What one process (one
//! life of the daemon) sees of the node is one `Probed`; a restarted daemon gets a new one around the same node.
//!
//! Dying is not unwinding. Once a probe has said [`FaultAction::Die`], nothing of that process reaches the node any
//! more: its open handles are closed as the kernel closes them, and each later call, be it from a destructor or
//! from another thread, is answered `OPERATION_ABORTED`. What the node was asked to do and does by itself, such as
//! a WMI method, goes on.

mod objects;
mod process;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use os::{Clock, Handle, NtPath, Open, Os, OsError, OsResult, Service, ServiceAccess, U16Str, U16String, Uuid, Wmi};

use objects::{ProbedClock, ProbedHandle, ProbedService, ProbedWmi};
use process::Process;

/// A primitive that is about to be called or has been. It never holds a secret: no argument is in it but names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// How many primitives the process called before this one.
    pub sequence: u64,
    /// The primitive: `open`, `control DISK_GET_DRIVE_LAYOUT_EX`, `wmi call MSFT_Volume.Format`.
    pub primitive: Cow<'static, str>,
    /// What it is called on: a path, a service's name, a WMI query or object path.
    pub object: String,
    /// Whether it can change the node.
    pub mutates: bool,
}

impl Call {
    /// Whether the call goes to WMI.
    pub fn is_wmi(&self) -> bool {
        self.primitive.starts_with("wmi ")
    }
}

/// What shall become of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// It goes its way.
    Go,
    /// The caller gets this error: instead of the call, or instead of its result.
    Fail(OsError),
    /// It takes this much longer.
    Delay(Duration),
    /// The process ends here.
    Die,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// A WMI method ended with this code.
    Returned(u32),
    /// A WMI method goes on without its caller.
    StillRunning,
    /// It failed.
    Failed(OsError),
    /// The process died in it.
    Died,
}

/// Sees every primitive a process calls.
///
/// Clock readings and sleeps are not primitives, and neither is the closing of a handle.
pub trait Probe: Send + Sync {
    /// Asked before the call reaches the node.
    fn before(&self, _call: &Call) -> FaultAction {
        FaultAction::Go
    }

    /// Asked when the call has come back from the node, before its caller sees that; also told of a call that
    /// did not get there because of `before`, whose verdict is then final.
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

/// Probes around one another, the first one nearest to the caller: it sees a failure that a later one made up.
impl Probe for Vec<Arc<dyn Probe>> {
    fn before(&self, call: &Call) -> FaultAction {
        let mut delay = Duration::ZERO;
        for probe in self {
            match probe.before(call) {
                FaultAction::Go => {}
                FaultAction::Delay(more) => delay += more,
                end @ (FaultAction::Fail(_) | FaultAction::Die) => return end,
            }
        }
        if delay.is_zero() { FaultAction::Go } else { FaultAction::Delay(delay) }
    }

    fn after(&self, call: &Call, mut outcome: Outcome) -> FaultAction {
        let mut verdict = FaultAction::Go;
        for probe in self.iter().rev() {
            match (probe.after(call, outcome), verdict) {
                (FaultAction::Go, _) | (_, FaultAction::Die) | (FaultAction::Delay(_), FaultAction::Fail(_)) => {}
                (FaultAction::Delay(more), FaultAction::Delay(delay)) => verdict = FaultAction::Delay(more + delay),
                (delay @ FaultAction::Delay(_), FaultAction::Go) => verdict = delay,
                (fail @ FaultAction::Fail(error), _) => {
                    verdict = fail;
                    outcome = Outcome::Failed(error);
                }
                (FaultAction::Die, _) => {
                    verdict = FaultAction::Die;
                    outcome = Outcome::Died;
                }
            }
        }
        verdict
    }
}

/// A node as one process sees it, with a probe in between.
pub struct Probed {
    process: Arc<Process>,
    wmi: ProbedWmi,
    clock: ProbedClock,
}

impl Probed {
    /// A new process on `node`.
    pub fn new(node: Arc<dyn Os>, probe: impl Probe + 'static) -> Self {
        let process = Process::new(node, Box::new(probe));
        Self { wmi: ProbedWmi(Arc::clone(&process)), clock: ProbedClock(Arc::clone(&process)), process }
    }

    /// Ends the process between two calls.
    pub fn kill(&self) {
        self.process.die();
    }

    /// Whether the process has died.
    pub fn is_dead(&self) -> bool {
        self.process.is_dead()
    }

    fn node(&self) -> &dyn Os {
        self.process.node()
    }
}

impl Os for Probed {
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        let mutates = how.disposition == os::Disposition::Create;
        let inner = self.process.run("open", path, mutates, || self.node().open(path, how))?;
        Ok(ProbedHandle::wrap(&self.process, path.clone(), inner))
    }

    fn device_interfaces(&self, class: Uuid) -> OsResult<Vec<U16String>> {
        self.process.run("device_interfaces", &class, false, || self.node().device_interfaces(class))
    }

    fn reenumerate(&self, interface: &U16Str) -> OsResult<()> {
        self.process.run("reenumerate", &interface.display(), true, || self.node().reenumerate(interface))
    }

    fn volumes(&self) -> OsResult<Vec<U16String>> {
        self.process.run("volumes", &"", false, || self.node().volumes())
    }

    fn volume_paths(&self, volume: &U16Str) -> OsResult<Vec<U16String>> {
        self.process.run("volume_paths", &volume.display(), false, || self.node().volume_paths(volume))
    }

    fn set_volume_mount_point(&self, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
        self.process.run("set_volume_mount_point", &directory.display(), true, || {
            self.node().set_volume_mount_point(directory, volume)
        })
    }

    fn delete_volume_mount_point(&self, directory: &U16Str) -> OsResult<()> {
        self.process.run("delete_volume_mount_point", &directory.display(), true, || {
            self.node().delete_volume_mount_point(directory)
        })
    }

    fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>> {
        let open = || self.node().open_service(name, access);
        let inner = self.process.run("open_service", &name.display(), false, open)?;
        Ok(ProbedService::wrap(&self.process, name.to_string_lossy(), inner))
    }

    fn firmware_table(&self, provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
        let object = format_args!("{provider:#x}/{table}");
        self.process.run("firmware_table", &object, false, || self.node().firmware_table(provider, table, output))
    }

    fn wmi(&self) -> &dyn Wmi {
        &self.wmi
    }

    fn clock(&self) -> &dyn Clock {
        &self.clock
    }
}

#[cfg(test)]
pub(crate) mod tests;
