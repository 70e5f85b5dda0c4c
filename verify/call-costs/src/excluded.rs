//! What does not count: the simulated node, and the preparation of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use faults::{Layer, Layered};
use os::{Clock, Os, Time, WatchedWork};
use stats_alloc::INSTRUMENTED_SYSTEM;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Runs `body` without counting it. Callgrind is stopped in this function, by its name.
#[inline(never)]
pub(crate) fn excluded<T>(body: impl FnOnce() -> T) -> T {
    let before = INSTRUMENTED_SYSTEM.stats();
    let result = body();
    let made = INSTRUMENTED_SYSTEM.stats() - before;
    ALLOCATIONS.fetch_add(made.allocations + made.reallocations, Ordering::Relaxed);
    BYTES.fetch_add(made.bytes_allocated, Ordering::Relaxed);
    result
}

/// Returns how many allocations and reallocations of this process count so far, and their bytes: of
/// a reallocation, those by which it is larger.
pub(crate) fn counted_allocations() -> (usize, usize) {
    let all = INSTRUMENTED_SYSTEM.stats();
    let number = all.allocations + all.reallocations - ALLOCATIONS.load(Ordering::Relaxed);
    (number, all.bytes_allocated - BYTES.load(Ordering::Relaxed))
}

/// Returns `node`, so that its own work does not count.
pub(crate) fn node(node: Arc<dyn Os>) -> Arc<dyn Os> {
    Arc::new(Layered::around(node, Excluded))
}

struct Excluded;

impl Layer for Excluded {
    fn around<T>(&self, call: impl FnOnce() -> T) -> T {
        excluded(call)
    }

    fn run_watched(&self, clock: &dyn Clock, patience: Duration, work: WatchedWork) -> bool {
        // The simulated clock has threads of its own, which are not those of the daemon.
        Watched(clock).run_watched(patience, work)
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
