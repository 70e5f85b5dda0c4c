//! The fields of a line as text: the message as it is, and other fields as `name=value`.
//!
//! Backslashes are not escaped, so that a path reads the same in a field and in a message, and a search for it finds both.
//! Text stands in quotation marks; those in it are doubled, so that its end is known although it may end with a backslash.

use std::fmt::{self, Write as _};

use os::escaped;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// The format of fields, separated by blanks.
#[derive(Debug)]
pub(super) struct TextFields;

impl<'a> FormatFields<'a> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'a>, fields: R) -> fmt::Result {
        let mut line = Line::default();
        fields.record(&mut line);
        // On a terminal, the writer of lines lets escape sequences pass.
        writer.write_str(&escaped(&line.0))
    }
}

#[derive(Default)]
struct Line(String);

impl Line {
    fn add(&mut self, field: &Field, value: impl fmt::Display) {
        let separator = if self.0.is_empty() { "" } else { " " };
        // Writing to a String does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{separator}{value}"),
            name => write!(self.0, "{separator}{}={value}", name.trim_start_matches("r#")),
        };
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.add(field, value);
        } else {
            self.add(field, format_args!("\"{}\"", value.replace('"', "\"\"")));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format_args!("{value:?}"));
    }
}
