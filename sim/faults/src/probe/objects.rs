//! The objects that a probed node returns. Their calls go through the probe too.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use os::abi::{AccessEntry, ControlCode, SecurityDescriptor};
use os::{
    CallStatus, Clock, Disposition, FileInfo, FsInfo, Handle, Instance, MethodCall, Namespace,
    NtPath, Open, OsResult, PathForm, PendingCall, Service, ServiceConfig, Time, U16Str, U16String,
    WatchedWork, Wmi,
};

use super::Probed;
use super::process::{Owned, ProbedProcess};
use crate::primitives::handle_primitives;

/// The control codes that only read. Every other code counts as a change, regardless of the access
/// that it needs.
const READ_ONLY_CODES: [ControlCode; 9] = [
    ControlCode::STORAGE_GET_DEVICE_NUMBER,
    ControlCode::STORAGE_QUERY_PROPERTY,
    ControlCode::DISK_GET_DRIVE_GEOMETRY_EX,
    ControlCode::DISK_GET_LENGTH_INFO,
    ControlCode::DISK_GET_DISK_ATTRIBUTES,
    ControlCode::DISK_GET_DRIVE_LAYOUT_EX,
    ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS,
    ControlCode::FSCTL_GET_REPARSE_POINT,
    ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION,
];

pub(super) type ProbedHandle = Owned<dyn Handle, NtPath>;

impl ProbedHandle {
    fn open_relative(
        &self,
        primitive: &'static str,
        name: &U16Str,
        how: &Open,
        open: impl FnOnce(&dyn Handle) -> OsResult<Box<dyn Handle>>,
    ) -> OsResult<Box<dyn Handle>> {
        let path = self.name.join(name);
        let mutates = how.disposition == Disposition::Create;
        let opened = self
            .process
            .run(primitive, &path, mutates, || open(&*self.get()?))?;
        Ok(Box::new(Self::new(&self.process, path, opened)))
    }
}

/// Makes the methods that call a primitive of the handle through the probe.
macro_rules! probed {
    ($handle:ty; $($name:ident($($argument:ident: $kind:ty),*) -> $result:ty,
        changes: $changes:expr, name: $called:expr;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> OsResult<$result> {
            self.run($called, $changes, |inner| inner.$name($($argument),*))
        })*
    };
}

impl Handle for ProbedHandle {
    fn open_child(&self, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        self.open_relative("open_child", name, how, |inner| inner.open_child(name, how))
    }

    fn open_below(&self, path: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        self.open_relative("open_below", path, how, |inner| inner.open_below(path, how))
    }

    handle_primitives!(probed);
}

pub(super) type ProbedService = Owned<dyn Service, String>;

impl Service for ProbedService {
    fn config(&self) -> OsResult<ServiceConfig> {
        self.run("service config", false, Service::config)
    }

    fn state(&self) -> OsResult<u32> {
        self.run("service state", false, Service::state)
    }

    fn start(&self) -> OsResult<()> {
        self.run("service start", true, Service::start)
    }

    fn stop(&self) -> OsResult<()> {
        self.run("service stop", true, Service::stop)
    }

    fn active_dependents(&self) -> OsResult<Vec<U16String>> {
        self.run(
            "service active_dependents",
            false,
            Service::active_dependents,
        )
    }
}

impl Wmi for Probed {
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        self.process.run("wmi query", &wql, false, || {
            self.node().wmi().query(namespace, wql, deadline)
        })
    }

    fn call(&self, call: &MethodCall<'_>, deadline: Time) -> OsResult<CallStatus> {
        let mutates = !call.method.starts_with("Get");
        let primitive = format!("wmi call {}.{}", os::class_of(call.path), call.method);
        let forward = || self.node().wmi().call(call, deadline);
        let status = self.process.run(primitive, &call.path, mutates, forward)?;
        Ok(match status {
            CallStatus::StillRunning(inner) => {
                CallStatus::StillRunning(Box::new(ProbedPendingCall {
                    process: Arc::clone(&self.process),
                    inner,
                }))
            }
            done @ CallStatus::Done(_) => done,
        })
    }
}

/// A pending call whose callback does not run in a process that has died.
struct ProbedPendingCall {
    process: Arc<ProbedProcess>,
    inner: Box<dyn PendingCall>,
}

impl PendingCall for ProbedPendingCall {
    fn when_ended(self: Box<Self>, then: Box<dyn FnOnce() + Send>) {
        let Self { process, inner } = *self;
        if process.is_dead() {
            return;
        }
        inner.when_ended(Box::new(move || {
            if !process.is_dead() {
                then();
            }
        }));
    }
}

impl Clock for Probed {
    // In a dead process every deadline has passed, so that no loop waits for a call to succeed.
    fn now(&self) -> Time {
        if self.is_dead() {
            Time(Duration::MAX)
        } else {
            self.node().clock().now()
        }
    }

    fn since_start_of_windows(&self) -> Duration {
        self.node().clock().since_start_of_windows()
    }

    fn sleep(&self, span: Duration) {
        if !self.is_dead() {
            self.node().clock().sleep(span);
        }
    }

    // Blocks even in a dead process, until the process's own threads have ended, whose calls fail
    // soon. If it returned early, this thread would act on a condition that does not hold.
    fn block_on(&self, wait: Pin<&mut dyn Future<Output = ()>>) {
        self.node().clock().block_on(wait);
    }

    fn run_watched(&self, patience: Duration, work: WatchedWork) -> bool {
        self.node().clock().run_watched(patience, work)
    }
}
