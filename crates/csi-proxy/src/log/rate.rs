//! Limits on the lines of a minute and on their bytes.
//!
//! Each failure of a call is a line, and a client can cause thousands of failures in a second.
//! Without limits, these lines would hide the lines that an operator looks for, and the rotation
//! would delete older lines to make room for them.
//!
//! Each statement that logs has its own limits, so that a flood of one line drops no other line. An
//! event that an operator must see among many failed calls therefore has its own statement: each
//! kind of refusal, a device that hangs, a fallback.
//!
//! Debug and trace lines are not limited: a user who asks for a verbose log wants all of it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::callsite::Identifier;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::writer::{MakeWriter, OptionalWriter};

use super::line;

const WINDOW: Duration = Duration::from_mins(1);
/// Maximum lines of a statement in a window.
const MAX_LINES: u32 = 1000;
/// Maximum KiB of a statement in a window. The line that exceeds the limit is still written.
const MAX_KIB: usize = 256;

/// The lines of one output.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    state: Mutex<State>,
    /// Notified when the first line of a window is dropped.
    has_dropped: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// When the window began, with the first line in it.
    began: Option<Instant>,
    /// The lines and bytes of each statement in the window. The number of statements is that of the
    /// program's source.
    used: HashMap<Identifier, (u32, usize)>,
    dropped: u64,
}

impl RateLimit {
    /// Logs at the end of each window how many lines were dropped in it, if any. Never returns.
    pub(super) async fn report(&self) {
        loop {
            self.has_dropped.notified().await;
            let began = self.state().began;
            sleep_until(began.unwrap_or_else(Instant::now) + WINDOW).await;
            self.report_once();
        }
    }

    /// Logs how many lines have been dropped since the last report, if any.
    pub(super) fn report_once(&self) {
        let lines = std::mem::take(&mut self.state().dropped);
        if lines > 0 {
            tracing::warn!(
                lines,
                "dropped log lines: each log statement is limited to {MAX_LINES} lines or \
                 {MAX_KIB} KiB a minute"
            );
        }
    }

    /// Counts a line, and returns whether it may be written. Must be called once for each line.
    fn admits(&self, metadata: &Metadata<'_>) -> bool {
        if *metadata.level() > Level::INFO {
            return true;
        }
        let now = Instant::now();
        let mut guard = self.state();
        let state = &mut *guard;
        if state.began.is_none_or(|began| now - began >= WINDOW) {
            state.began = Some(now);
            state.used.clear();
        }
        let (lines, bytes) = state.used.entry(metadata.callsite()).or_default();
        if *lines < MAX_LINES && *bytes < MAX_KIB << 10 {
            *lines += 1;
            return true;
        }
        state.dropped += 1;
        let is_first = state.dropped == 1;
        drop(guard);
        if is_first {
            self.has_dropped.notify_one();
        }
        false
    }

    /// Counts the bytes of a line that was admitted.
    fn add(&self, statement: &Identifier, bytes: usize) {
        if let Some((_, used)) = self.state().used.get_mut(statement) {
            *used += bytes;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        os::lock(&self.state)
    }
}

/// An output whose lines are limited.
#[derive(Debug)]
pub(super) struct Output<M> {
    inner: M,
    limit: &'static RateLimit,
}

impl<M> Output<M> {
    pub(super) fn new(inner: M, limit: &'static RateLimit) -> Self {
        Self { inner, limit }
    }
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Output<M> {
    type Writer = OptionalWriter<LineWriter<M::Writer>>;

    /// The layer that writes the lines calls only [`Self::make_writer_for`].
    fn make_writer(&'a self) -> Self::Writer {
        OptionalWriter::none()
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        if !self.limit.admits(metadata) {
            return OptionalWriter::none();
        }
        let inner = self.inner.make_writer_for(metadata);
        OptionalWriter::some(LineWriter {
            inner,
            statement: metadata.callsite(),
            limit: self.limit,
        })
    }
}

/// Writes one line with each call of `write`, and counts its bytes for its statement.
#[derive(Debug)]
pub(super) struct LineWriter<W> {
    inner: W,
    statement: Identifier,
    limit: &'static RateLimit,
}

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = line::safe(line);
        self.inner.write_all(&written)?;
        self.limit.add(&self.statement, written.len());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::DefaultGuard;

    use super::super::tests::Buffer;
    use super::*;

    /// Returns the lines of the log that contain a word.
    fn lines_with(log: &Buffer, word: &str) -> Vec<String> {
        log.text()
            .lines()
            .filter(|line| line.contains(word))
            .map(str::to_owned)
            .collect()
    }

    /// Logs to what it returns, as the daemon does with `-v=2`.
    fn log(limit: &'static RateLimit) -> (Buffer, DefaultGuard) {
        let log = Buffer::default();
        let writer = log.clone();
        let writer = Output::new(move || writer.clone(), limit);
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(Level::DEBUG)
            .with_writer(writer);
        (log, tracing::subscriber::set_default(subscriber.finish()))
    }

    fn limit() -> &'static RateLimit {
        Box::leak(Box::default())
    }

    #[tokio::test(start_paused = true)]
    async fn lines_above_the_rate_are_dropped_and_counted_in_one_line() {
        let limit = limit();
        let (log, _default) = log(limit);
        let mut report = Box::pin(limit.report());
        let refuse = || tracing::info!(target: "server::rpc", "refused");

        for flood in [5, 3000, 3000, 2000] {
            (0..flood).for_each(|_| refuse());
        }
        (0..3000).for_each(|_| tracing::debug!(target: "server::rpc", "verbose"));
        assert_eq!(
            (
                lines_with(&log, "refused").len(),
                lines_with(&log, "verbose").len()
            ),
            (1000, 3000)
        );
        assert!(lines_with(&log, "dropped").is_empty());

        tokio::time::timeout(2 * WINDOW, &mut report)
            .await
            .expect_err("it never returns");
        let reports = lines_with(&log, "dropped");
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(reports[0].ends_with(" lines=7005"), "{reports:?}");
        refuse();
        assert_eq!(
            lines_with(&log, "refused").len(),
            1001,
            "a new window has begun"
        );
        limit.report_once();
        assert_eq!(
            lines_with(&log, "dropped").len(),
            1,
            "nothing more was dropped"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn long_lines_fill_no_more_than_their_share_of_the_log() {
        let limit = limit();
        let (log, _default) = log(limit);
        // Each becomes six characters, and the line is cut off.
        let text = "\x7f".repeat(4000);
        let size = || log.text().len();
        for minute in 1..=2 {
            (0..1000).for_each(|_| tracing::warn!(target: "server::rpc", "invalid {text}"));
            assert!(
                (minute * (256 << 10)..minute * (261 << 10)).contains(&size()),
                "{}",
                size()
            );
            tracing::warn!(target: "server::rpc", "another line");
            assert_eq!(lines_with(&log, "another line").len(), minute);
            tokio::time::advance(WINDOW).await;
        }
        let (before, verbose) = (size(), 1000);
        (0..verbose).for_each(|_| tracing::debug!(target: "server::rpc", "verbose {text}"));
        assert!(size() - before > verbose * 4096, "{}", size());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_one_line_drops_no_other() {
        let limit = limit();
        let (log, _default) = log(limit);
        for _ in 0..3000 {
            tracing::info!(target: "server::rpc", "not found");
            tracing::warn!(target: "server::rpc", "invalid");
            tracing::error!(target: "server::rpc", "defect");
        }
        tracing::info!(target: "server::rpc", "found");
        tracing::warn!(target: "storage_ops::ops::smb", "another password");
        tracing::error!(target: "csi_proxy::service", "the service failed");
        // About as much as storage_ops::windows::fallback can ever log, in one minute.
        (0..300)
            .for_each(|_| tracing::warn!(target: "storage_ops::windows::fallback", "a fallback"));
        for (word, lines) in [
            ("not found", 1000),
            ("invalid", 1000),
            ("defect", 1000),
            (" found", 1001),
            ("another password", 1),
            ("the service failed", 1),
            ("a fallback", 300),
        ] {
            assert_eq!(lines_with(&log, word).len(), lines, "{word}");
        }
    }
}
