//! Lines of the log as klog writes them, because log shippers parse klog's lines of the Go program:
//! severity, time, process and statement, such as `W1124 02:12:23.812345    4711 call.rs:180] `,
//! then the message and other fields as `name=value`.
//! <https://github.com/kubernetes/klog/blob/main/internal/buffer/buffer.go>
//!
//! Fields can be read by parsers of logfmt: a text is in quotation marks, in which quotation marks
//! and backslashes are escaped by a backslash. A path without blanks has no quotation marks, and so
//! reads the same in a field and in a message, and a search for it finds both.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Level};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;

use super::line::{MAX_BYTES, is_plain, shortened};
use crate::platform;

/// The name of the field that has the text of an event.
const MESSAGE: &str = "message";

/// The bytes of a line that its fields leave to its beginning, and to the words for what is cut
/// off.
const RESERVE: usize = 128;

/// Writes a line, with the fields of its spans at the end. Long fields are cut off before them,
/// because the number of the call, by which a reader finds its lines, is one of them.
pub(super) fn write_line(mut writer: Writer<'_>, event: &Event<'_>, of_spans: &str) -> fmt::Result {
    let metadata = event.metadata();
    let severity = match *metadata.level() {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let file = metadata
        .file()
        .and_then(|path| path.rsplit(['/', '\\']).next())
        .unwrap_or("???");
    let (time, process, line) = (
        platform::log_time(),
        std::process::id(),
        metadata.line().unwrap_or(1),
    );
    let mut fields = String::with_capacity(256);
    write_fields(Writer::new(&mut fields), event)?;
    let room = MAX_BYTES.saturating_sub(of_spans.len() + RESERVE);
    if !is_plain(fields.as_bytes(), room) {
        fields = shortened(&fields, room);
    }
    writeln!(
        writer,
        "{severity}{time} {process:>7} {file}:{line}] {fields}{of_spans}"
    )
}

/// Writes the fields, each after a blank except the message.
pub(super) fn write_fields(writer: Writer<'_>, fields: impl RecordFields) -> fmt::Result {
    let mut line = Line {
        writer,
        result: Ok(()),
    };
    fields.record(&mut line);
    line.result
}

/// Writes fields.
struct Line<'a> {
    writer: Writer<'a>,
    result: fmt::Result,
}

impl Line<'_> {
    fn add(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        self.result = self.result.and_then(|()| match field.name() {
            MESSAGE => self.writer.write_fmt(value),
            name => write!(self.writer, " {}={value}", name.trim_start_matches("r#")),
        });
    }
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_path = value.contains('\\') && !value.contains([' ', '"', '=']);
        if field.name() == MESSAGE || is_path {
            return self.add(field, format_args!("{value}"));
        }
        let escaped = value.replace('\\', r"\\").replace('"', r#"\""#);
        self.add(field, format_args!("\"{escaped}\""));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, format_args!("{value}"));
    }

    /// Writes the number without an exponent, which the debug form of a small one has.
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, format_args!("{}", server::rounded_seconds(value)));
    }

    /// Writes text with blanks, such as an error, like a text. The debug form of a text is one.
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if text.contains([' ', '=']) && !text.starts_with('"') {
            return self.record_str(field, &text);
        }
        self.add(field, format_args!("{text}"));
    }
}
