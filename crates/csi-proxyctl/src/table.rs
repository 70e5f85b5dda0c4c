//! Tables, and lists of fields where a table is wider than the terminal.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use anstyle::Style;
use serde_json::Value;
use terminal_text::escaped;

use crate::args::Format;

const HEADING: Style = Style::new().bold();
/// The blanks between two columns.
const GAP: usize = 2;

/// A column of a table whose rows are JSON objects.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    title: &'static str,
    is_wide: bool,
    is_number: bool,
    /// Returns the text of a cell.
    cell: fn(&Value) -> String,
}

impl Column {
    /// Returns a column of text.
    pub const fn text(title: &'static str, cell: fn(&Value) -> String) -> Self {
        Self { title, is_wide: false, is_number: false, cell }
    }

    /// Returns a column of numbers, which are aligned at the right.
    pub const fn number(title: &'static str, cell: fn(&Value) -> String) -> Self {
        Self { is_number: true, ..Self::text(title, cell) }
    }

    /// Returns a column that only `-o wide` shows.
    #[must_use]
    pub const fn wide(self) -> Self {
        Self { is_wide: true, ..self }
    }
}

/// Returns the text of a value in a cell: a string as it is, and `-` for null.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the width of the terminal; None if standard output is not one.
pub fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| terminal_size::terminal_size_of(&stdout))?;
    size.map(|(width, _)| usize::from(width.0))
}

/// Returns the rows in this form.
pub fn formatted(format: Format, columns: &[Column], rows: &[Value], width: Option<usize>) -> String {
    match format {
        Format::Table { is_wide } => text(columns, is_wide, rows, width),
        Format::Value(form) => form.text(&rows.into()),
    }
}

/// Returns a table of the rows. If it is wider than `width`, each row becomes a list of its fields instead.
fn text(columns: &[Column], is_wide: bool, rows: &[Value], width: Option<usize>) -> String {
    let columns: Vec<&Column> = columns.iter().filter(|column| is_wide || !column.is_wide).collect();
    let cell = |column: &Column, row: &Value| match escaped((column.cell)(row).trim_end()) {
        empty if empty.is_empty() => "-".to_owned(),
        text => text,
    };
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|column| cell(column, row)).collect()).collect();
    let longest = |at: usize| {
        cells.iter().map(|row| row[at].chars().count()).chain([columns[at].title.len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(longest).collect();
    let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    if width.is_some_and(|width| total > width) { fields(&columns, &cells) } else { grid(&columns, &widths, &cells) }
}

fn grid(columns: &[&Column], widths: &[usize], cells: &[Vec<String>]) -> String {
    let mut text = String::new();
    let mut line = |style: Style, cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for ((cell, column), width) in cells.zip(columns).zip(widths) {
            if !line.is_empty() {
                line.extend(std::iter::repeat_n(' ', GAP));
            }
            // Writing to a String does not fail.
            let _ = if column.is_number { write!(line, "{cell:>width$}") } else { write!(line, "{cell:<width$}") };
        }
        let _ = writeln!(text, "{style}{}{style:#}", line.trim_end());
    };
    line(HEADING, &mut columns.iter().map(|column| column.title));
    for row in cells {
        line(Style::new(), &mut row.iter().map(String::as_str));
    }
    text
}

fn fields(columns: &[&Column], cells: &[Vec<String>]) -> String {
    let width = columns.iter().map(|column| column.title.len()).max().unwrap_or_default() + GAP;
    let mut text = String::new();
    for (at, row) in cells.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        for (column, cell) in columns.iter().zip(row) {
            let _ = writeln!(text, "{HEADING}{:<width$}{HEADING:#}{cell}", column.title);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COLUMNS: [Column; 3] = [
        Column::number("DISK", |row| shown(&row["disk"])),
        Column::text("SERIAL NUMBER", |row| shown(&row["serial"])),
        Column::text("PAGE83", |row| shown(&row["page83"])).wide(),
    ];

    fn plain(is_wide: bool, width: Option<usize>) -> String {
        let rows = [
            json!({ "disk": 1, "serial": "vol0abc", "page83": "Google  pvc" }),
            json!({ "disk": 12, "serial": "\u{1b}[31m", "page83": null }),
            json!({ "disk": null, "serial": "  " }),
        ];
        anstream::adapter::strip_str(&text(&COLUMNS, is_wide, &rows, width)).to_string()
    }

    #[test]
    fn a_table_is_aligned_and_escapes_what_misleads() {
        assert_eq!(plain(false, None), "DISK  SERIAL NUMBER\n   1  vol0abc\n  12  \\u{1b}[31m\n   -  -\n");
        assert_eq!(
            plain(true, Some(32)),
            "DISK  SERIAL NUMBER  PAGE83\n   1  vol0abc        Google  pvc\n  12  \\u{1b}[31m     -\n   -  -              -\n"
        );
    }

    #[test]
    fn a_table_that_is_wider_than_the_terminal_becomes_lists_of_fields() {
        assert_eq!(
            plain(true, Some(31)),
            "DISK           1\nSERIAL NUMBER  vol0abc\nPAGE83         Google  pvc\n\n\
             DISK           12\nSERIAL NUMBER  \\u{1b}[31m\nPAGE83         -\n\n\
             DISK           -\nSERIAL NUMBER  -\nPAGE83         -\n"
        );
    }
}
