//! Lines of the log as JSON, with the names of fields that components of Kubernetes use with
//! `-logging-format=json`: `ts` (milliseconds since 1970), `caller`, `msg`, `v` (the least `-v`
//! that shows the line) and `err`. `level` is added, since a warning is not an error.
//! <https://github.com/kubernetes/kubernetes/tree/master/staging/src/k8s.io/component-base/logs/json>
//!
//! A line is always complete, valid JSON: a text that would make it too long is cut off.

use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use terminal_text::is_misleading;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;

use super::line::MAX_BYTES;

/// The bytes of a line that texts leave to the names of fields and to numbers.
const RESERVE: usize = 512;

/// Writes a line, with the fields of its spans before its own.
pub(super) fn write_line(mut writer: Writer<'_>, event: &Event<'_>, of_spans: &str) -> fmt::Result {
    let metadata = event.metadata();
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let (level, verbosity) = match *metadata.level() {
        Level::ERROR => ("error", None),
        Level::WARN => ("warning", Some(0)),
        Level::INFO => ("info", Some(0)),
        Level::DEBUG => ("debug", Some(2)),
        Level::TRACE => ("trace", Some(5)),
    };
    let mut object = Object {
        text: String::with_capacity(256),
    };
    write!(
        object.text,
        "{{\"ts\":{:.3},\"level\":\"{level}\"",
        since_1970.as_secs_f64() * 1e3
    )?;
    if let (Some(file), Some(line)) = (metadata.file(), metadata.line()) {
        object.add_text("caller", format_args!("{file}:{line}"));
    }
    if let Some(verbosity) = verbosity {
        object.add_number("v", verbosity);
    }
    object.text += of_spans;
    event.record(&mut object);
    writeln!(writer, "{}}}", object.text)
}

/// Writes `,"name":value` for each field.
pub(super) fn write_fields(mut writer: Writer<'_>, fields: impl RecordFields) -> fmt::Result {
    let mut object = Object::default();
    fields.record(&mut object);
    writer.write_str(&object.text)
}

/// The inside of a JSON object.
#[derive(Default)]
struct Object {
    text: String,
}

impl Object {
    fn add_name(&mut self, name: &str) {
        let name = match name {
            "message" => "msg",
            "error" => "err",
            name => name.trim_start_matches("r#"),
        };
        // Names are those of the statements that log.
        self.text.extend([",\"", name, "\":"]);
    }

    fn add_number(&mut self, name: &str, number: impl fmt::Display) {
        self.add_name(name);
        self.text += &number.to_string();
    }

    fn add_text(&mut self, name: &str, text: impl fmt::Display) {
        self.add_name(name);
        self.text.push('"');
        let text = text.to_string();
        for (at, letter) in text.char_indices() {
            if self.text.len() > MAX_BYTES - RESERVE {
                let _ = write!(self.text, "... ({} more bytes)", text.len() - at);
                break;
            }
            self.add_letter(letter);
        }
        self.text.push('"');
    }

    fn add_letter(&mut self, letter: char) {
        match letter {
            '"' => self.text += "\\\"",
            '\\' => self.text += "\\\\",
            _ if is_misleading(letter) => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    // Writing to a String does not fail.
                    let _ = write!(self.text, "\\u{unit:04x}");
                }
            }
            letter => self.text.push(letter),
        }
    }
}

impl Visit for Object {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.add_number(field.name(), server::rounded_seconds(value));
        } else {
            self.add_text(field.name(), value);
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add_number(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add_number(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add_number(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_text(field.name(), format_args!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::super::layer;
    use super::super::rate::Output;
    use super::super::tests::Buffer;
    use super::*;
    use crate::flags::LogFlags;

    /// Returns the lines that `act` logs, as the daemon writes them.
    fn lines(act: impl FnOnce()) -> Vec<serde_json::Value> {
        let log = Buffer::default();
        let writer = log.clone();
        let flags = LogFlags {
            is_json: true,
            verbosity: 2,
            ..LogFlags::default()
        };
        let layer = layer(
            &flags,
            Output::new(move || writer.clone(), Box::leak(Box::default())),
        );
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), act);
        let text = log.text();
        assert!(text.lines().all(|line| line.len() <= MAX_BYTES), "{text}");
        text.lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    #[test]
    fn a_line_has_the_fields_that_components_of_kubernetes_write() {
        let lines = lines(|| {
            let span = tracing::info_span!("call", id = 7_u64, rpc = "/v1.Disk/Rescan");
            let seconds = 6.948_852_245_999_999_5;
            span.in_scope(|| tracing::debug!(seconds, disk = ?Some("1"), "the call succeeded"));
            let error = std::io::Error::other("full");
            tracing::error!(%error, ok = false, "a \"name\" and \\");
            tracing::warn!(count = -3, "warned");
        });
        let [debug, error, warning] = lines.as_slice() else {
            panic!("{lines:?}")
        };
        assert!(
            debug["ts"].as_f64().unwrap() > 1.6e12,
            "milliseconds: {debug}"
        );
        assert!(
            debug["caller"].as_str().unwrap().contains("json.rs:"),
            "{debug}"
        );
        assert_eq!(
            (&debug["id"], &debug["rpc"]),
            (&7.into(), &"/v1.Disk/Rescan".into())
        );
        assert_eq!(
            (&debug["v"], &debug["seconds"]),
            (&2.into(), &6.948_852.into())
        );
        assert_eq!(
            (&debug["msg"], &debug["disk"]),
            (&"the call succeeded".into(), &"Some(\"1\")".into())
        );
        assert_eq!(
            (&error["err"], &error["ok"], error.get("v")),
            (&"full".into(), &false.into(), None)
        );
        assert_eq!(
            (&error["msg"], &error["level"]),
            (&"a \"name\" and \\".into(), &"error".into())
        );
        assert_eq!(
            (&warning["v"], &warning["level"], &warning["count"]),
            (&0.into(), &"warning".into(), &(-3).into())
        );
    }

    #[test]
    fn a_text_cannot_forge_or_break_a_line() {
        let text = "a\n\u{202e}\u{1f600}\u{e0041}\u{e9}\x1b\",\"v\":9";
        let long = "\u{202e}".repeat(20_000);
        let lines = lines(|| {
            tracing::info!(text, "{text}");
            tracing::info!(text, long, other = long, number = 5, "after {long}");
        });
        assert_eq!(
            (&lines[0]["msg"], &lines[0]["text"], &lines[0]["v"]),
            (&text.into(), &text.into(), &0.into())
        );
        assert!(
            lines[1]["msg"].as_str().unwrap().ends_with(" more bytes)"),
            "{}",
            lines[1]
        );
        assert_eq!(lines[1]["number"], 5);
    }
}
