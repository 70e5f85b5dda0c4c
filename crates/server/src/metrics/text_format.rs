//! Prometheus' text format.

use std::fmt::{self, Write as _};

/// Writes the lines that introduce a metric.
pub(super) fn write_head(text: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// Writes a gauge without labels.
pub(super) fn gauge(
    text: &mut String,
    name: &str,
    help: &str,
    value: impl fmt::Display,
) -> fmt::Result {
    write_head(text, name, "gauge", help)?;
    writeln!(text, "{name} {value}")
}

/// Writes a counter without labels.
pub(super) fn counter(
    text: &mut String,
    name: &str,
    help: &str,
    value: impl fmt::Display,
) -> fmt::Result {
    write_head(text, name, "counter", help)?;
    writeln!(text, "{name} {value}")
}

/// Writes a metric of this name and kind with one label, one line for each value of the label.
pub(super) fn write_labelled(
    text: &mut String,
    (name, kind): (&str, &str),
    help: &str,
    label: &str,
    values: &[(&str, u64)],
) -> fmt::Result {
    write_head(text, name, kind, help)?;
    values.iter().try_for_each(|(label_value, value)| {
        writeln!(text, "{name}{{{label}=\"{label_value}\"}} {value}")
    })
}
