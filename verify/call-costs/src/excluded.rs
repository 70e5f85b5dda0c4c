//! What does not count: the simulated node, and the preparation of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use faults::{Layer, Layered};
use os::abi::ControlCode;
use os::{
    CallStatus, Clock, FileInfo, FsInfo, Handle, Instance, MethodCall, Namespace, NtPath, Open, Os, OsResult, PathForm,
    Time, U16Str, U16String, Uuid, WatchedWork, Wmi,
};

use crate::counts::Allocations;
use crate::daemon::Threads;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Runs `body` without counting it. Callgrind is stopped in this function, by its name.
#[inline(never)]
pub(crate) fn excluded<T>(body: impl FnOnce() -> T) -> T {
    let before = Allocations::of_process();
    let result = body();
    let made = Allocations::of_process() - before;
    ALLOCATIONS.fetch_add(made.count, Ordering::Relaxed);
    BYTES.fetch_add(made.bytes, Ordering::Relaxed);
    result
}

/// Returns the allocations that were not counted.
pub(crate) fn allocations() -> Allocations {
    Allocations { count: ALLOCATIONS.load(Ordering::Relaxed), bytes: BYTES.load(Ordering::Relaxed) }
}

/// Returns `node`, so that its own work does not count.
pub(crate) fn node(node: Arc<dyn Os>, threads: Threads) -> Arc<dyn Os> {
    Arc::new(Layered::around(node, Excluded { threads }))
}

struct Excluded {
    threads: Threads,
}

impl Layer for Excluded {
    fn open(&self, node: &dyn Os, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        excluded(|| node.open(path, how))
    }

    fn device_interfaces(&self, node: &dyn Os, class: Uuid) -> OsResult<Vec<U16String>> {
        excluded(|| node.device_interfaces(class))
    }

    fn volumes(&self, node: &dyn Os) -> OsResult<Vec<U16String>> {
        excluded(|| node.volumes())
    }

    fn volume_paths(&self, node: &dyn Os, volume: &U16Str) -> OsResult<Vec<U16String>> {
        excluded(|| node.volume_paths(volume))
    }

    fn set_volume_mount_point(&self, node: &dyn Os, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
        excluded(|| node.set_volume_mount_point(directory, volume))
    }

    fn delete_volume_mount_point(&self, node: &dyn Os, directory: &U16Str) -> OsResult<()> {
        excluded(|| node.delete_volume_mount_point(directory))
    }

    fn reenumerate(&self, node: &dyn Os, interface: &U16Str) -> OsResult<()> {
        excluded(|| node.reenumerate(interface))
    }

    fn open_child(&self, parent: &dyn Handle, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        excluded(|| parent.open_child(name, how))
    }

    fn open_below(&self, parent: &dyn Handle, path: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        excluded(|| parent.open_below(path, how))
    }

    fn control(&self, handle: &dyn Handle, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
        excluded(|| handle.control(code, input, output))
    }

    fn query(&self, handle: &dyn Handle, class: FileInfo, output: &mut [u8]) -> OsResult<()> {
        excluded(|| handle.query(class, output))
    }

    fn set(&self, handle: &dyn Handle, class: FileInfo, input: &[u8]) -> OsResult<()> {
        excluded(|| handle.set(class, input))
    }

    fn list(&self, handle: &dyn Handle, restart: bool, output: &mut [u8]) -> OsResult<()> {
        excluded(|| handle.list(restart, output))
    }

    fn flush(&self, handle: &dyn Handle) -> OsResult<()> {
        excluded(|| handle.flush())
    }

    fn close(&self, handle: Box<dyn Handle>) {
        excluded(|| drop(handle));
    }

    fn query_fs(&self, handle: &dyn Handle, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        excluded(|| handle.query_fs(class, output))
    }

    fn final_path(&self, handle: &dyn Handle, form: PathForm) -> OsResult<U16String> {
        excluded(|| handle.final_path(form))
    }

    fn wmi_query(&self, wmi: &dyn Wmi, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        excluded(|| wmi.query(namespace, wql, deadline))
    }

    fn wmi_call(&self, wmi: &dyn Wmi, call: &MethodCall<'_>, deadline: Time) -> OsResult<CallStatus> {
        excluded(|| wmi.call(call, deadline))
    }

    fn run_watched(&self, clock: &dyn Clock, patience: Duration, work: WatchedWork) -> bool {
        match self.threads {
            // The simulated clock has threads of its own, which are not those of the daemon.
            Threads::AsInService => Watched(clock).run_watched(patience, work),
            Threads::One => {
                work(&|| true);
                true
            }
        }
    }
}

/// A clock that watches work as that of Windows does.
struct Watched<'a>(&'a dyn Clock);

impl Clock for Watched<'_> {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn since_start_of_windows(&self) -> Duration {
        self.0.since_start_of_windows()
    }

    fn sleep(&self, span: Duration) {
        self.0.sleep(span);
    }
}
