//! The duration of the run, and its state as all its tasks and threads share it.

use std::env;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Returns how long the load lasts after warming up.
pub(crate) fn duration() -> Duration {
    let seconds = env::var("CSI_PROXY_SOAK_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(10))
}

/// The state of a run.
#[derive(Default)]
pub(crate) struct RunControl {
    warmed_up: AtomicU32,
    stopping: AtomicBool,
}

impl RunControl {
    /// Asks all clients to end after their current cycle.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Counts a client that has completed its first cycle.
    pub(crate) fn add_warmed_up(&self) {
        self.warmed_up.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many clients have completed a cycle.
    pub(crate) fn warmed_up(&self) -> u32 {
        self.warmed_up.load(Ordering::Relaxed)
    }
}
