//! How many lines clients can cause.
//!
//! Each failure of a call is a line, and a client can cause thousands in a second. The lines of a minute are limited,
//! errors apart from all others, so that neither the disk nor what an operator looks for is buried. Lines about the
//! daemon itself are always written, and so are those that only a verbose log has, because its reader wants them all.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::{Level, Metadata};

const WINDOW: Duration = Duration::from_mins(1);
/// Maximum lines in a window: of errors, and of all others.
const MAX_LINES: u32 = 1000;

/// The lines of one output.
#[derive(Debug)]
pub(super) struct RateLimit {
    state: Mutex<State>,
    /// Notified when a line was left out.
    has_left_out: Notify,
}

#[derive(Debug)]
struct State {
    /// When the window began, with the first line in it.
    began: Option<Instant>,
    errors: u32,
    others: u32,
    left_out: u64,
}

impl RateLimit {
    pub(super) const fn new() -> Self {
        let state = State { began: None, errors: 0, others: 0, left_out: 0 };
        Self { state: Mutex::new(state), has_left_out: Notify::const_new() }
    }

    /// Logs how many lines were left out, at the end of each window in which that happened. Never returns.
    pub(super) async fn report(&self) {
        loop {
            self.has_left_out.notified().await;
            let began = self.state().began;
            sleep_until(began.unwrap_or_else(Instant::now) + WINDOW).await;
            self.report_once();
        }
    }

    /// Logs how many lines were left out, if any were.
    pub(super) fn report_once(&self) {
        let lines = std::mem::take(&mut self.state().left_out);
        if lines > 0 {
            tracing::warn!(lines, "left out lines that clients caused, of which {MAX_LINES} a minute are logged");
        }
    }

    /// Whether a line may be written; counts it. To be asked once for each line.
    pub(super) fn admits(&self, metadata: &Metadata<'_>) -> bool {
        if *metadata.level() > Level::INFO || metadata.target().starts_with("csi_proxy") {
            return true;
        }
        let now = Instant::now();
        let mut guard = self.state();
        let state = &mut *guard;
        if state.began.is_none_or(|began| now - began >= WINDOW) {
            (state.began, state.errors, state.others) = (Some(now), 0, 0);
        }
        let lines = if *metadata.level() == Level::ERROR { &mut state.errors } else { &mut state.others };
        if *lines < MAX_LINES {
            *lines += 1;
            return true;
        }
        state.left_out += 1;
        let is_first = state.left_out == 1;
        drop(guard);
        if is_first {
            self.has_left_out.notify_one();
        }
        false
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tracing_subscriber::fmt::writer::MakeWriterExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Log {
        fn lines_with(&self, word: &str) -> Vec<String> {
            let log = self.0.lock().unwrap();
            String::from_utf8_lossy(&log).lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
        }
    }

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lines_above_the_rate_are_left_out_and_counted_in_one_line() {
        let limit: &'static RateLimit = Box::leak(Box::new(RateLimit::new()));
        let log = Log::default();
        let writer = log.clone();
        let writer = (move || writer.clone()).with_filter(|metadata| limit.admits(metadata));
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_max_level(Level::DEBUG).with_writer(writer);
        let _default = tracing::subscriber::set_default(subscriber.finish());
        let mut report = Box::pin(limit.report());

        for (flood, errors) in [(5, 2), (3000, 1002), (3000, 0), (2000, 2000)] {
            for _ in 0..flood {
                tracing::info!(target: "server::rpc", "refused");
            }
            for _ in 0..errors {
                tracing::error!(target: "server::rpc", "defect");
            }
        }
        assert_eq!((log.lines_with("refused").len(), log.lines_with("defect").len()), (1000, 1000));
        tracing::info!(target: "csi_proxy::serve", "stopping");
        tracing::debug!(target: "server::rpc", "verbose");
        assert_eq!((log.lines_with("stopping").len(), log.lines_with("verbose").len()), (1, 1));
        assert!(log.lines_with("left out").is_empty());

        tokio::time::timeout(2 * WINDOW, &mut report).await.expect_err("it never returns");
        let reports = log.lines_with("left out");
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(reports[0].ends_with(" lines=9009"), "{reports:?}");
        tracing::info!(target: "server::rpc", "refused");
        assert_eq!(log.lines_with("refused").len(), 1001, "a new window has begun");
        limit.report_once();
        assert_eq!(log.lines_with("left out").len(), 1, "nothing more was left out");
    }
}
