//! Prometheus' text format.

use std::fmt::{self, Write as _};

/// Writes the lines that introduce a metric.
pub(super) fn write_head(text: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// Writes a gauge or counter without labels.
pub(super) fn write_single<V>(
    text: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    value: V,
) -> fmt::Result
where
    V: fmt::Display,
{
    write_head(text, name, kind, help)?;
    writeln!(text, "{name} {value}")
}

/// Writes a gauge or counter with one label, one line for each value of the label.
pub(super) fn write_labelled(
    text: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    label: &str,
    values: &[(&str, u64)],
) -> fmt::Result {
    write_head(text, name, kind, help)?;
    values.iter().try_for_each(|(label_value, value)| {
        writeln!(text, "{name}{{{label}=\"{label_value}\"}} {value}")
    })
}
