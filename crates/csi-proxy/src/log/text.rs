//! The fields of a line as text: the message as it is, and other fields as `name=value`.
//!
//! Backslashes are not escaped, so that a path reads the same in a field and in a message, and a search for it finds both.
//! Text is in quotation marks. Quotation marks in it are doubled, not escaped with a backslash, because a path may end with a
//! backslash.

use std::fmt::{self, Write as _};

use terminal_text::is_misleading;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// The name of the field that has the text of an event.
const MESSAGE: &str = "message";
/// Enough for the fields of most lines, so that their text is allocated once.
const USUAL_LENGTH: usize = 128;

/// The format of fields, separated by blanks.
#[derive(Debug)]
pub(super) struct TextFields;

impl<'a> FormatFields<'a> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'a>, fields: R) -> fmt::Result {
        let text = Escaping { escaped: String::with_capacity(USUAL_LENGTH), is_quoted: false };
        let mut line = Line { text, result: Ok(()) };
        fields.record(&mut line);
        writer.write_str(&line.text.escaped)?;
        line.result
    }
}

/// Writes fields.
struct Line {
    text: Escaping,
    result: fmt::Result,
}

/// Escapes misleading characters here, because the writer of lines keeps escape sequences if it writes to a terminal.
struct Escaping {
    escaped: String,
    /// Whether quotation marks are doubled.
    is_quoted: bool,
}

impl fmt::Write for Escaping {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_quoted = self.is_quoted;
        // Nearly all text consists of these characters, which are not misleading.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !(is_quoted && byte == b'"')) {
            self.escaped.push_str(text);
            return Ok(());
        }
        for character in text.chars() {
            match character {
                '"' if is_quoted => self.escaped.push_str("\"\""),
                character if is_misleading(character) => self.escaped.extend(character.escape_unicode()),
                character => self.escaped.push(character),
            }
        }
        Ok(())
    }
}

impl Line {
    /// Writes the name of a field, unless it is the message, and what `write` writes.
    fn add(&mut self, field: &Field, write: impl FnOnce(&mut Escaping) -> fmt::Result) {
        let text = &mut self.text.escaped;
        if !text.is_empty() {
            text.push(' ');
        }
        if field.name() != MESSAGE {
            text.push_str(field.name().trim_start_matches("r#"));
            text.push('=');
        }
        self.result = self.result.and_then(|()| write(&mut self.text));
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            return self.add(field, |text| text.write_str(value));
        }
        self.add(field, |text| {
            text.escaped.push('"');
            text.is_quoted = true;
            let written = text.write_str(value);
            text.is_quoted = false;
            text.escaped.push('"');
            written
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, |text| write!(text, "{value}"));
    }

    /// Writes the number without an exponent, which the debug form of a small one has.
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, |text| write!(text, "{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, |text| write!(text, "{value:?}"));
    }
}
