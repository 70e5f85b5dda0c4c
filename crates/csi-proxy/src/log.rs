//! The log: lines of text or JSON on standard error, in a file, or both, as klog's flags choose.
//!
//! Clients cause most lines and parts of their text. Therefore the size of all files and the lines of a minute are limited, and
//! characters that could make a text read as another are escaped.

mod json;
mod line;
mod rate;
mod rotation;
mod text;

use std::fmt;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::{FilterExt as _, Targets, filter_fn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::flags::{LogFlags, Severity};
use json::{JsonFields, JsonLines};
use rate::{Output, RateLimit};
use rotation::RotatingFile;
use text::TextFields;

/// The crates of this workspace, by the prefixes of their events' targets.
const OURS: [&str; 4] = ["csi_proxy", "server", "storage_ops", "transport"];

static FILE_RATE: LazyLock<RateLimit> = LazyLock::new(RateLimit::default);
static STDERR_RATE: LazyLock<RateLimit> = LazyLock::new(RateLimit::default);

/// Starts logging. Fails if logging has already been started in this process.
pub fn start(flags: &LogFlags) -> io::Result<()> {
    // klog ignores -log_file unless -logtostderr=false is given too. A user who names a file expects it to be written.
    let file = match flags.file.as_deref() {
        None => None,
        Some(path) => Some(
            open(path, flags.megabytes)
                .map_err(|error| io::Error::new(error.kind(), format!("cannot log to {}: {error}", path.display())))?,
        ),
    };
    let to_stderr = flags.to_stderr || flags.also_to_stderr || file.is_none();
    let least = if to_stderr { LevelFilter::TRACE } else { threshold(flags.stderr_threshold) };
    let mut layers: Vec<BoxedLayer> = Vec::new();
    if let Some(file) = file {
        let file = Output::new(Mutex::new(file), false, &FILE_RATE);
        layers.push(lines::<FILE, _>(flags, file, false, LevelFilter::TRACE));
    }
    let ansi = io::stderr().is_terminal() && !flags.is_json;
    layers.push(lines::<STDERR, _>(flags, Output::new(io::stderr, ansi, &STDERR_RATE), ansi, least));
    tracing_subscriber::registry().with(layers).try_init().map_err(io::Error::other)
}

/// The numbers of the outputs, which their [`Fields`] have.
const FILE: u8 = 0;
const STDERR: u8 = 1;

/// The format of fields of one output.
///
/// tracing-subscriber keeps one text of a span's fields for each type of format. If both outputs had the same type, each would
/// append later fields to the same text, and these fields would appear twice.
#[derive(Debug)]
struct Fields<F, const OUTPUT: u8>(F);

impl<'a, F: FormatFields<'a>, const OUTPUT: u8> FormatFields<'a> for Fields<F, OUTPUT> {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'a>, fields: R) -> fmt::Result {
        self.0.format_fields(writer, fields)
    }
}

/// Returns the layer that writes the lines that `flags` select to `output`, without limits.
pub fn layer<W>(flags: &LogFlags, output: W) -> BoxedLayer
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    lines::<STDERR, _>(flags, output, false, LevelFilter::TRACE)
}

/// A layer that writes lines.
pub type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Returns the layer that writes lines of at least the level `least` to `output`.
fn lines<const OUTPUT: u8, W>(flags: &LogFlags, output: W, ansi: bool, least: LevelFilter) -> BoxedLayer
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_target(false).with_ansi(ansi).with_writer(output);
    // Spans of all levels, because they say which call an event belongs to.
    let is_severe = filter_fn(move |metadata| metadata.is_span() || *metadata.level() <= least);
    let wanted = wanted(flags).and(is_severe.with_max_level_hint(LevelFilter::TRACE));
    if flags.is_json {
        let lines = lines.fmt_fields(Fields::<_, OUTPUT>(JsonFields)).event_format(JsonLines);
        lines.with_filter(wanted).boxed()
    } else {
        lines.fmt_fields(Fields::<_, OUTPUT>(TextFields)).with_filter(wanted).boxed()
    }
}

/// Returns the level from which on lines are at least as severe as `severity`.
fn threshold(severity: Severity) -> LevelFilter {
    match severity {
        Severity::Info => LevelFilter::INFO,
        Severity::Warning => LevelFilter::WARN,
        Severity::Error => LevelFilter::ERROR,
        Severity::Fatal => LevelFilter::OFF,
    }
}

/// Logs each minute how many lines were dropped, if any. Never returns.
pub(crate) async fn report_dropped() {
    tokio::join!(FILE_RATE.report(), STDERR_RATE.report());
}

/// Logs how many lines have been dropped since the last report. Called at the end, when no more lines are expected.
pub(crate) fn report_dropped_at_end() {
    FILE_RATE.report_once();
    STDERR_RATE.report_once();
}

/// Returns which events are logged: more of this workspace's crates than of the libraries.
fn wanted(flags: &LogFlags) -> Targets {
    let (ours, theirs) = match flags.verbosity {
        ..=1 => (LevelFilter::INFO, LevelFilter::WARN),
        2..=4 => (LevelFilter::DEBUG, LevelFilter::WARN),
        5.. => (LevelFilter::TRACE, LevelFilter::INFO),
    };
    Targets::new().with_default(theirs).with_targets(OURS.map(|name| (name, ours)))
}

/// Opens the file to append to it, and creates its folder.
fn open(path: &Path, megabytes: usize) -> io::Result<RotatingFile> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let bytes = u64::try_from(megabytes).unwrap_or(u64::MAX).saturating_mul(1 << 20);
    RotatingFile::open(path, (megabytes > 0).then_some(bytes))
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
        let limit: &RateLimit = Box::leak(Box::default());
        let [file, stderr] = [Buffer::default(), Buffer::default()];
        let output = |buffer: &Buffer| {
            let buffer = buffer.clone();
            Output::new(move || buffer.clone(), false, limit)
        };
        let layers = vec![
            lines::<FILE, _>(flags, output(&file), false, LevelFilter::TRACE),
            lines::<STDERR, _>(flags, output(&stderr), false, least),
        ];
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layers), act);
        [file.text(), stderr.text()]
    }

    #[test]
    fn what_is_recorded_later_is_in_the_lines_of_each_output_once() {
        for is_json in [false, true] {
            let flags = LogFlags { is_json, verbosity: 2, ..LogFlags::default() };
            let texts = logged(&flags, LevelFilter::TRACE, || {
                let span = tracing::info_span!("call", id = 7, object = Empty);
                span.record("object", "disk 1");
                span.in_scope(|| tracing::debug!("the call began"));
            });
            for text in texts {
                assert_eq!((text.matches("object").count(), text.matches("disk 1").count()), (1, 1), "{text}");
                assert!(text.contains("the call began"), "{text}");
            }
        }
    }

    #[test]
    fn a_path_is_the_same_text_in_a_field_and_in_a_message() {
        let path = r"C:\var\lib\new folder\";
        let text = |is_json| {
            let flags = LogFlags { is_json, ..LogFlags::default() };
            let [text, _] = logged(&flags, LevelFilter::TRACE, || {
                let span = tracing::info_span!("call", id = 7, object = Empty);
                span.record("object", path);
                let error = io::Error::other(format!("cannot open {path}"));
                span.in_scope(
                    || tracing::warn!(count = 1, seconds = 0.00001, text = "a \"b\" \u{1b}[1m\n", %error, "no {path}"),
                );
            });
            text
        };
        let fields =
            r#"count=1 seconds=0.00001 text="a ""b"" \u{1b}[1m\u{a}" error=cannot open C:\var\lib\new folder\"#;
        let line = format!("call{{id=7 object=\"{path}\"}}: no {path} {fields}\n");
        assert!(text(false).ends_with(&line), "{} is not {line}", text(false));
        let json: serde_json::Value = serde_json::from_str(&text(true)).unwrap();
        assert_eq!((&json["object"], &json["msg"]), (&path.into(), &format!("no {path}").into()));
        assert_eq!(json["err"], format!("cannot open {path}"));
    }

    #[test]
    fn a_terminal_gets_no_escape_sequence_from_a_field_or_message() {
        let output = Buffer::default();
        let buffer = output.clone();
        let writer = Output::new(move || buffer.clone(), true, Box::leak(Box::default()));
        let layer = lines::<STDERR, _>(&LogFlags::default(), writer, true, LevelFilter::TRACE);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(text = "\u{1b}[31m", error = %"\u{1b}[32m", "\u{1b}[33m");
        });
        let text = output.text();
        assert!(text.contains("\u{1b}[32m INFO") && text.matches("[32m").count() == 2, "{text:?}");
        assert!(text.ends_with("\\u{1b}[33m text=\"\\u{1b}[31m\" error=\\u{1b}[32m\n"), "{text:?}");
    }

    #[test]
    fn standard_error_has_the_lines_that_are_severe_enough() {
        let flags = LogFlags::default();
        let texts = logged(&flags, threshold(flags.stderr_threshold), || {
            tracing::info_span!("call", id = 7, object = "disk 1").in_scope(|| tracing::error!("failed"));
            tracing::warn!("warned");
        });
        assert_eq!(texts.each_ref().map(|text| text.lines().count()), [2, 1], "{texts:?}");
        assert!(texts[1].contains("failed") && !texts[1].contains("warned"), "{texts:?}");
        assert!(texts.iter().all(|text| text.contains("id=7") && text.contains("disk 1")), "{texts:?}");
    }
}
