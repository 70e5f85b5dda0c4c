//! The log: lines of text or JSON on standard error, in a file, or both, as klog's flags choose.
//!
//! Clients cause most lines and parts of their text. Therefore the size of all files and the lines of a minute are limited, and
//! characters that could make a text read as another are escaped.

mod json;
mod line;
mod rate;
mod rotation;
mod text;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::writer::MakeWriterExt as _;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::flags::LogFlags;
use json::{JsonFields, JsonLines};
use rate::{Output, RateLimit};
use rotation::RotatingFile;
use text::TextFields;

/// The crates of this workspace, by the prefixes of their events' targets.
const OURS: [&str; 4] = ["csi_proxy", "server", "storage_ops", "transport"];

static RATE: LazyLock<RateLimit> = LazyLock::new(RateLimit::default);

/// Starts logging. Fails if logging has already been started in this process.
pub fn start(flags: &LogFlags) -> io::Result<()> {
    // klog ignores -log_file unless -logtostderr=false is given too. A user who names a file expects it to be written.
    let layer = if let Some(path) = flags.file.as_deref() {
        let file = open(path, flags.megabytes)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot log to {}: {error}", path.display())))?;
        let to_stderr = flags.to_stderr || flags.also_to_stderr;
        let least = if to_stderr { LevelFilter::TRACE } else { LevelFilter::from(flags.stderr_threshold) };
        lines(flags, Output::new(both(Mutex::new(file), io::stderr, least), false, &RATE), false)
    } else {
        let has_colours = io::stderr().is_terminal() && !flags.is_json;
        lines(flags, Output::new(io::stderr, has_colours, &RATE), has_colours)
    };
    tracing_subscriber::registry().with(layer).try_init().map_err(io::Error::other)
}

/// Returns a writer of all lines to `file`, and of lines of at least the level `least` to `stderr`.
fn both<F, E>(file: F, stderr: E, least: LevelFilter) -> impl for<'a> MakeWriter<'a> + Send + Sync
where
    F: for<'a> MakeWriter<'a> + Send + Sync,
    E: for<'a> MakeWriter<'a> + Send + Sync,
{
    file.and(stderr.with_filter(move |metadata: &Metadata<'_>| *metadata.level() <= least))
}

/// Returns the layer that writes the lines that `flags` select to `output`, without limits.
pub fn layer<W>(flags: &LogFlags, output: W) -> BoxedLayer
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    lines(flags, output, false)
}

/// A layer that writes lines.
pub type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

fn lines<W>(flags: &LogFlags, output: W, has_colours: bool) -> BoxedLayer
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_target(false).with_ansi(has_colours).with_writer(output);
    if flags.is_json {
        lines.fmt_fields(JsonFields).event_format(JsonLines).with_filter(wanted(flags)).boxed()
    } else {
        lines.fmt_fields(TextFields).with_filter(wanted(flags)).boxed()
    }
}

/// Logs each minute how many lines were dropped, if any. Never returns.
pub(crate) async fn report_dropped() {
    RATE.report().await;
}

/// Logs how many lines have been dropped since the last report. Called at the end, when no more lines are expected.
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
        let [file, stderr] = [Buffer::default(), Buffer::default()];
        let writer = |buffer: &Buffer| {
            let buffer = buffer.clone();
            move || buffer.clone()
        };
        let output = Output::new(both(writer(&file), writer(&stderr), least), false, Box::leak(Box::default()));
        let subscriber = tracing_subscriber::registry().with(lines(flags, output, false));
        tracing::subscriber::with_default(subscriber, act);
        [file.text(), stderr.text()]
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
        let layer = lines(&LogFlags::default(), writer, true);
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
        let texts = logged(&flags, LevelFilter::ERROR, || {
            tracing::info_span!("call", id = 7, object = "disk 1").in_scope(|| tracing::error!("failed"));
            tracing::warn!("warned");
        });
        assert_eq!(texts.each_ref().map(|text| text.lines().count()), [2, 1], "{texts:?}");
        assert!(texts[1].contains("failed") && !texts[1].contains("warned"), "{texts:?}");
        assert!(texts.iter().all(|text| text.contains("id=7") && text.contains("disk 1")), "{texts:?}");
    }
}
