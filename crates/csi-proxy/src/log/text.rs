//! The fields of a line as text: the message as it is, and other fields as `name=value`.
//!
//! Backslashes are not escaped, so that a path reads the same in a field and in a message, and a search for it finds both.
//! Text stands in quotation marks; those in it are doubled, so that its end is known although it may end with a backslash.

use std::fmt::{self, Write as _};

use os::is_misleading;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// The name of the field that has the text of an event.
const MESSAGE: &str = "message";

/// The format of fields, separated by blanks.
#[derive(Debug)]
pub(super) struct TextFields;

impl<'a> FormatFields<'a> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'a>, fields: R) -> fmt::Result {
        let mut line = Line { text: Escaping { writer, is_quoted: false }, is_empty: true, result: Ok(()) };
        fields.record(&mut line);
        line.result
    }
}

/// Writes fields.
struct Line<'a> {
    text: Escaping<'a>,
    is_empty: bool,
    result: fmt::Result,
}

/// Escapes misleading characters: on a terminal, the writer of lines lets escape sequences pass.
struct Escaping<'a> {
    writer: Writer<'a>,
    /// Whether quotation marks are doubled.
    is_quoted: bool,
}

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_quoted = self.is_quoted;
        // None of these is misleading. Nearly all text consists of them.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !(is_quoted && byte == b'"')) {
            return self.writer.write_str(text);
        }
        text.chars().try_for_each(|character| match character {
            '"' if is_quoted => self.writer.write_str("\"\""),
            character if is_misleading(character) => write!(self.writer, "{}", character.escape_unicode()),
            character => self.writer.write_char(character),
        })
    }
}

impl Line<'_> {
    /// Writes the name of a field, unless it is the message, and what `write` writes.
    fn add(&mut self, field: &Field, write: impl FnOnce(&mut Escaping<'_>) -> fmt::Result) {
        let text = &mut self.text;
        let separator = if self.is_empty { "" } else { " " };
        self.is_empty = false;
        let named = match field.name() {
            MESSAGE => text.write_str(separator),
            name => write!(text, "{separator}{}=", name.trim_start_matches("r#")),
        };
        self.result = self.result.and(named).and_then(|()| write(text));
    }
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            return self.add(field, |text| text.write_str(value));
        }
        self.add(field, |text| {
            text.write_char('"')?;
            text.is_quoted = true;
            let written = text.write_str(value);
            text.is_quoted = false;
            written.and_then(|()| text.write_char('"'))
        });
    }

    /// Writes the number without an exponent, which the debug form of a small one has.
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, |text| write!(text, "{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, |text| write!(text, "{value:?}"));
    }
}
