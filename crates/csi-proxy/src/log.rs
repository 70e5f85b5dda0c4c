//! The log: lines of text or JSON on standard error, in a file, or both, as klog's flags choose.
//!
//! Clients cause most lines and parts of their text. Therefore the size of all files and the lines
//! of a minute are limited, and characters that could make a text read as another are escaped.

mod json;
mod line;
mod rate;
mod rotation;
mod text;

use std::path::Path;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use os::OsError;
use tracing::level_filters::LevelFilter;
use tracing::span::Record;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::writer::MakeWriterExt as _;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::{LookupSpan, Scope};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::flags::LogFlags;
use rate::{Output, RateLimit};
use rotation::RotatingFile;

/// The crates of this workspace, by the prefixes of their events' targets.
const OURS: [&str; 3] = ["csi_proxy", "server", "storage_ops"];

/// How long the start waits for a file that another program holds.
const LONGEST_HOLD: Duration = Duration::from_secs(5);

static RATE: LazyLock<RateLimit> = LazyLock::new(RateLimit::default);

/// Starts logging. Fails if logging has already been started in this process.
pub fn start(flags: &LogFlags) -> io::Result<()> {
    // klog ignores -log_file unless -logtostderr=false is given too. A user who names a file
    // expects it to be written.
    let layer = if let Some(path) = flags.file.as_deref() {
        let file = open(path, flags.megabytes).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot log to {}: {error}", path.display()),
            )
        })?;
        let to_stderr = flags.to_stderr || flags.also_to_stderr;
        let least = if to_stderr {
            LevelFilter::TRACE
        } else {
            LevelFilter::from(flags.stderr_threshold)
        };
        layer(
            flags,
            Output::new(both(Mutex::new(file), io::stderr, least), &RATE),
        )
    } else {
        layer(flags, Output::new(io::stderr, &RATE))
    };
    tracing_subscriber::registry()
        .with(layer)
        .try_init()
        .map_err(io::Error::other)
}

/// Returns a writer of all lines to `file`, and of lines of at least the level `least` to `stderr`.
fn both<F, E>(file: F, stderr: E, least: LevelFilter) -> impl for<'a> MakeWriter<'a> + Send + Sync
where
    F: for<'a> MakeWriter<'a> + Send + Sync,
    E: for<'a> MakeWriter<'a> + Send + Sync,
{
    file.and(stderr.with_filter(move |metadata: &Metadata<'_>| *metadata.level() <= least))
}

/// A layer that writes lines.
pub type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Returns the layer that writes the lines that `flags` select to `output`.
pub fn layer<W>(flags: &LogFlags, output: W) -> BoxedLayer
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = Lines {
        is_json: flags.is_json,
    };
    let layer = tracing_subscriber::fmt::layer()
        .fmt_fields(lines)
        .event_format(lines)
        .with_writer(output);
    layer.with_filter(wanted(flags)).boxed()
}

/// The format of lines: klog's, or JSON.
#[derive(Clone, Copy, Debug)]
struct Lines {
    is_json: bool,
}

impl<'a> FormatFields<'a> for Lines {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'a>, fields: R) -> fmt::Result {
        if self.is_json {
            json::write_fields(writer, fields)
        } else {
            text::write_fields(writer, fields)
        }
    }

    fn add_fields(&self, fields: &'a mut FormattedFields<Self>, added: &Record<'_>) -> fmt::Result {
        self.format_fields(fields.as_writer(), added)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> FormatEvent<S, Self> for Lines {
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Self>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut of_spans = String::new();
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            of_spans += span
                .extensions()
                .get::<FormattedFields<Self>>()
                .map_or("", |fields| fields.as_str());
        }
        let write = if self.is_json {
            json::write_line
        } else {
            text::write_line
        };
        write(writer, event, &of_spans)
    }
}

/// Logs each minute how many lines were dropped, if any. Never returns.
pub(crate) async fn report_dropped() {
    RATE.report().await;
}

/// Logs how many lines have been dropped since the last report. Called at the end, when no more
/// lines are expected.
pub(crate) fn report_dropped_at_end() {
    RATE.report_once();
}

/// Returns which events are logged: more of this workspace's crates than of the libraries.
fn wanted(flags: &LogFlags) -> Targets {
    let (ours, theirs) = match flags.verbosity {
        ..=1 => (LevelFilter::INFO, LevelFilter::WARN),
        2..=4 => (LevelFilter::DEBUG, LevelFilter::WARN),
        5.. => (LevelFilter::DEBUG, LevelFilter::INFO),
    };
    Targets::new()
        .with_default(theirs)
        .with_targets(OURS.map(|name| (name, ours)))
}

/// Opens the file to append to it, and creates its folder. Waits if another program holds the file,
/// as a virus scanner does for a moment after a change, such as the last line of an earlier start.
fn open(path: &Path, megabytes: usize) -> io::Result<RotatingFile> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let bytes = u64::try_from(megabytes)
        .unwrap_or(u64::MAX)
        .saturating_mul(1 << 20);
    let limit = (megabytes > 0).then_some(bytes);
    let begun = Instant::now();
    loop {
        match RotatingFile::open(path, limit) {
            Err(error) if is_held(&error) && begun.elapsed() < LONGEST_HOLD => {
                thread::sleep(LONGEST_HOLD / 100);
            }
            opened => return opened,
        }
    }
}

fn is_held(error: &io::Error) -> bool {
    error.raw_os_error() == Some(OsError::SHARING_VIOLATION.0.cast_signed())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing::field::Empty;

    use super::*;

    /// A writer that keeps what is written.
    #[derive(Clone, Default)]
    pub(super) struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Buffer {
        pub(super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns what `act` logs to a file, and to standard error from the level `least` on.
    fn logged(flags: &LogFlags, least: LevelFilter, act: impl FnOnce()) -> [String; 2] {
        let [file, stderr] = [Buffer::default(), Buffer::default()];
        let writer = |buffer: &Buffer| {
            let buffer = buffer.clone();
            move || buffer.clone()
        };
        let output = Output::new(
            both(writer(&file), writer(&stderr), least),
            Box::leak(Box::default()),
        );
        let subscriber = tracing_subscriber::registry().with(layer(flags, output));
        tracing::subscriber::with_default(subscriber, act);
        [file.text(), stderr.text()]
    }

    #[test]
    fn fields_can_be_parsed_as_logfmt_and_a_path_without_blanks_is_not_escaped() {
        let path = r"C:\var\lib\new folder\";
        let text = |is_json| {
            let flags = LogFlags {
                is_json,
                ..LogFlags::default()
            };
            let [text, _] = logged(&flags, LevelFilter::TRACE, || {
                let span = tracing::info_span!("call", id = 7, object = Empty);
                span.record("object", path);
                let error = io::Error::other(format!("cannot open {path}"));
                let text = "a \"b\" \u{1b}[1m\n";
                span.in_scope(
                    || tracing::warn!(count = 1, seconds = 0.00001, folder = r"C:\var\", text, %error, "no {path}"),
                );
            });
            text
        };
        let fields = r#"count=1 seconds=0.00001 folder=C:\var\ text="a \"b\" \u{1b}[1m\u{a}" error="cannot open C:\\var\\lib\\new folder\\""#;
        let line =
            format!("no {path} {fields} id=7 object=\"C:\\\\var\\\\lib\\\\new folder\\\\\"\n");
        assert!(
            text(false).ends_with(&line),
            "{} is not {line}",
            text(false)
        );
        let json: serde_json::Value = serde_json::from_str(&text(true)).unwrap();
        assert_eq!(
            (&json["object"], &json["msg"]),
            (&path.into(), &format!("no {path}").into())
        );
        assert_eq!(json["err"], format!("cannot open {path}"));
    }

    #[test]
    fn a_line_of_text_has_the_header_of_klog_and_short_numbers() {
        let flags = LogFlags {
            verbosity: 2,
            ..LogFlags::default()
        };
        let [text, _] = logged(&flags, LevelFilter::TRACE, || {
            tracing::error!("one");
            tracing::warn!("two");
            tracing::debug!(seconds = 6.948_852_245_999_999_5, "three \u{1b}[33m");
        });
        for (line, (severity, end)) in text.lines().zip([
            ('E', "one"),
            ('W', "two"),
            ('I', r"three \u{1b}[33m seconds=6.948852"),
        ]) {
            let (header, message) = line.split_once("] ").expect("a header");
            assert_eq!(message, end);
            let digits: String = header
                .chars()
                .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
                .collect();
            let line_number = digits.rsplit_once(':').expect("a line number").1;
            let process = format!("{:>7}", std::process::id())
                .replace(|digit: char| digit.is_ascii_digit(), "0");
            assert_eq!(
                digits,
                format!("{severity}0000 00:00:00.000000 {process} log.rs:{line_number}")
            );
        }
    }

    #[test]
    fn a_long_message_is_cut_off_before_the_number_of_its_call() {
        for letter in ["x", "\u{202e}"] {
            let [text, _] = logged(&LogFlags::default(), LevelFilter::TRACE, || {
                let message = letter.repeat(20_000);
                tracing::info_span!("call", id = 7, object = "disk 1")
                    .in_scope(|| tracing::warn!("{message}"));
            });
            assert!(
                text.ends_with(" more bytes) id=7 object=\"disk 1\"\n"),
                "{text}"
            );
        }
    }

    #[test]
    fn standard_error_has_the_lines_that_are_severe_enough() {
        let flags = LogFlags::default();
        let texts = logged(&flags, LevelFilter::ERROR, || {
            tracing::info_span!("call", id = 7, object = "disk 1")
                .in_scope(|| tracing::error!("failed"));
            tracing::warn!("warned");
        });
        assert_eq!(
            texts.each_ref().map(|text| text.lines().count()),
            [2, 1],
            "{texts:?}"
        );
        assert!(
            texts[1].contains("failed") && !texts[1].contains("warned"),
            "{texts:?}"
        );
        assert!(
            texts
                .iter()
                .all(|text| text.contains("id=7") && text.contains("disk 1")),
            "{texts:?}"
        );
    }
}
