//! How long the run is to be, and how far it is, as all who take part in it see it.

use std::env;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// From when the daemon is warm.
pub(crate) fn length() -> Duration {
    let seconds = env::var("CSI_PROXY_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(10))
}

/// Open until it is closed.
#[derive(Default)]
pub(crate) struct Stage {
    been_through: AtomicU32,
    closed: AtomicBool,
}

impl Stage {
    /// One on which everybody gives up after one cycle.
    pub(crate) fn closed() -> Self {
        Self { closed: AtomicBool::new(true), ..Self::default() }
    }

    /// Asks everybody to come to an end.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// A client has been through the life of a volume for the first time.
    pub(crate) fn go_through(&self) {
        self.been_through.fetch_add(1, Ordering::Relaxed);
    }

    /// How many clients have.
    pub(crate) fn been_through(&self) -> u32 {
        self.been_through.load(Ordering::Relaxed)
    }
}
