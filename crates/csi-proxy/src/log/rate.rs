//! How many lines clients can cause, and how long all of them are.
//!
//! Each failure of a call is a line, and a client can cause thousands in a second. The lines of a minute are limited, so
//! that they neither use up the disk nor hide the lines that an operator looks for. Their bytes are limited too, because
//! the rotation deletes older lines to make room for them.
//!
//! Each statement that logs has limits of its own, so that a flood of one line leaves out no other. Therefore what an
//! operator must see among many failed calls has a statement of its own: each kind of refusal, a device that hangs, a
//! fallback.
//!
//! Lines that only a verbose log has are always written, because its reader wants them all.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::callsite::Identifier;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::writer::{MakeWriter, OptionalWriter};

use super::line::LineWriter;

const WINDOW: Duration = Duration::from_mins(1);
/// Maximum lines of a statement in a window.
const MAX_LINES: u32 = 1000;
/// KiB of a statement in a window. The line that exceeds them is the last one.
const MAX_KIB: usize = 256;

/// The lines of one output.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    state: Mutex<State>,
    /// Notified when a line was left out.
    has_left_out: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// When the window began, with the first line in it.
    began: Option<Instant>,
    /// The number of lines and bytes of each statement in the window. The program has a fixed number of statements.
    used: HashMap<Identifier, (u32, usize)>,
    left_out: u64,
}

impl RateLimit {
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
            tracing::warn!(
                lines,
                "left out lines that clients caused, of which {MAX_LINES} or {MAX_KIB} KiB of a kind are logged a minute"
            );
        }
    }

    /// Whether a line may be written; counts it. To be asked once for each line.
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
        state.left_out += 1;
        let is_first = state.left_out == 1;
        drop(guard);
        if is_first {
            self.has_left_out.notify_one();
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An output whose lines are limited.
#[derive(Debug)]
pub(super) struct Output<M> {
    inner: M,
    has_colours: bool,
    limit: &'static RateLimit,
}

impl<M> Output<M> {
    /// `has_colours`: whether lines contain escape sequences for colours.
    pub(super) fn new(inner: M, has_colours: bool, limit: &'static RateLimit) -> Self {
        Self { inner, has_colours, limit }
    }
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Output<M> {
    type Writer = OptionalWriter<LineWriter<Counted<M::Writer>>>;

    /// The layer that writes the lines calls only [`Self::make_writer_for`].
    fn make_writer(&'a self) -> Self::Writer {
        OptionalWriter::none()
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        if !self.limit.admits(metadata) {
            return OptionalWriter::none();
        }
        let inner = self.inner.make_writer_for(metadata);
        let line = Counted { inner, statement: metadata.callsite(), limit: self.limit };
        OptionalWriter::some(LineWriter::new(line, self.has_colours))
    }
}

/// Writes one line, and counts its bytes for its statement.
#[derive(Debug)]
pub(super) struct Counted<W> {
    inner: W,
    statement: Identifier,
    limit: &'static RateLimit,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.limit.add(&self.statement, written);
        Ok(written)
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
        log.text().lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
    }

    /// Logs to what it returns, as the daemon does with `-v=2`.
    fn log(limit: &'static RateLimit) -> (Buffer, DefaultGuard) {
        let log = Buffer::default();
        let writer = log.clone();
        let writer = Output::new(move || writer.clone(), false, limit);
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_max_level(Level::DEBUG).with_writer(writer);
        (log, tracing::subscriber::set_default(subscriber.finish()))
    }

    fn limit() -> &'static RateLimit {
        Box::leak(Box::default())
    }

    #[tokio::test(start_paused = true)]
    async fn lines_above_the_rate_are_left_out_and_counted_in_one_line() {
        let limit = limit();
        let (log, _default) = log(limit);
        let mut report = Box::pin(limit.report());
        let refuse = || tracing::info!(target: "server::rpc", "refused");

        for flood in [5, 3000, 3000, 2000] {
            (0..flood).for_each(|_| refuse());
        }
        (0..3000).for_each(|_| tracing::debug!(target: "server::rpc", "verbose"));
        assert_eq!((lines_with(&log, "refused").len(), lines_with(&log, "verbose").len()), (1000, 3000));
        assert!(lines_with(&log, "left out").is_empty());

        tokio::time::timeout(2 * WINDOW, &mut report).await.expect_err("it never returns");
        let reports = lines_with(&log, "left out");
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(reports[0].ends_with(" lines=7005"), "{reports:?}");
        refuse();
        assert_eq!(lines_with(&log, "refused").len(), 1001, "a new window has begun");
        limit.report_once();
        assert_eq!(lines_with(&log, "left out").len(), 1, "nothing more was left out");
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
            assert!((minute * (256 << 10)..minute * (261 << 10)).contains(&size()), "{}", size());
            tracing::warn!(target: "server::rpc", "another line");
            assert_eq!(lines_with(&log, "another line").len(), minute);
            tokio::time::advance(WINDOW).await;
        }
        let (before, verbose) = (size(), 1000);
        (0..verbose).for_each(|_| tracing::debug!(target: "server::rpc", "verbose {text}"));
        assert!(size() - before > verbose * 4096, "{}", size());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_one_line_leaves_out_no_other() {
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
        // About as much as storage_ops::host::fallback can ever log, in one minute.
        (0..300).for_each(|_| tracing::warn!(target: "storage_ops::host::fallback", "a fallback"));
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
