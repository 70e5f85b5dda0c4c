//! Tables, and lists of fields where a table is wider than the terminal.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use anstyle::Style;
use serde_json::Value;
use terminal_text::escaped;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

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
    is_name: bool,
    /// Returns the text of a cell.
    cell: fn(&Value) -> String,
}

impl Column {
    /// Returns a column of text.
    pub const fn text(title: &'static str, cell: fn(&Value) -> String) -> Self {
        Self {
            title,
            is_wide: false,
            is_number: false,
            is_name: false,
            cell,
        }
    }

    /// Returns a column of numbers, which are aligned at the right.
    pub const fn number(title: &'static str, cell: fn(&Value) -> String) -> Self {
        Self {
            is_number: true,
            ..Self::text(title, cell)
        }
    }

    /// Returns a column that only `-o wide` shows.
    #[must_use]
    pub const fn wide(self) -> Self {
        Self {
            is_wide: true,
            ..self
        }
    }

    /// Returns a column with the name of the object, which `-o name` shows; of several, the last
    /// one.
    #[must_use]
    pub const fn name(self) -> Self {
        Self {
            is_name: true,
            ..self
        }
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
    let size = stdout
        .is_terminal()
        .then(|| terminal_size::terminal_size_of(&stdout))?;
    size.map(|(width, _)| usize::from(width.0))
}

/// Returns the rows in this form.
pub fn formatted(
    format: Format,
    columns: &[Column],
    rows: &[Value],
    width: Option<usize>,
) -> String {
    match format {
        Format::Table {
            is_wide,
            has_headings,
        } => text(columns, is_wide, has_headings, rows, width),
        Format::Names => {
            let name = columns.iter().rfind(|column| column.is_name);
            // A portal without a target has no name of a target.
            let names = rows
                .iter()
                .filter_map(|row| name.map(|name| cell(name, row)))
                .filter(|name| name != "-");
            names.map(|name| name + "\n").collect()
        }
        Format::Value(form) => form.text(&rows.into()),
    }
}

/// Returns each row as a list of all its fields.
pub fn lists(columns: &[Column], rows: &[Value]) -> String {
    text(columns, true, true, rows, Some(0))
}

fn cell(column: &Column, row: &Value) -> String {
    match escaped((column.cell)(row).trim_end()) {
        empty if empty.is_empty() => "-".to_owned(),
        text => text.into_owned(),
    }
}

/// Returns a table of the rows. If it is wider than `width`, the cells that are longer than most in
/// their column are cut, or else each row becomes a list of its fields.
fn text(
    columns: &[Column],
    is_wide: bool,
    has_headings: bool,
    rows: &[Value],
    width: Option<usize>,
) -> String {
    let columns: Vec<&Column> = columns
        .iter()
        .filter(|column| is_wide || !column.is_wide)
        .collect();
    let mut cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| columns.iter().map(|column| cell(column, row)).collect())
        .collect();
    let longest = |at: usize| {
        let title = if has_headings {
            columns[at].title.len()
        } else {
            0
        };
        cells
            .iter()
            .map(|row| row[at].width())
            .max()
            .unwrap_or_default()
            .max(title)
    };
    let mut widths: Vec<usize> = (0..columns.len()).map(longest).collect();
    let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    let excess = width.map_or(0, |width| total.saturating_sub(width));
    if excess > 0 && has_headings {
        let (at, widest) = widths
            .iter_mut()
            .enumerate()
            .max_by_key(|(_, width)| **width)
            .expect("a column");
        let room = widest.saturating_sub(excess);
        let is_cut = |row: &&mut Vec<String>| row[at].width() > room;
        if room < columns[at].title.len()
            || cells.iter_mut().filter(is_cut).count() * 2 >= rows.len()
        {
            return fields(&columns, &cells);
        }
        *widest = room;
        cells
            .iter_mut()
            .filter(is_cut)
            .for_each(|row| row[at] = cut(&row[at], room));
    }
    grid(&columns, &widths, has_headings, &cells)
}

/// Returns the beginning of a text with an ellipsis, `width` columns wide.
fn cut(text: &str, width: usize) -> String {
    let mut room = width.saturating_sub(1);
    let fits = |letter: &char| {
        let columns = letter.width().unwrap_or_default();
        let fits = columns <= room;
        room = room.saturating_sub(columns);
        fits
    };
    text.chars().take_while(fits).chain(['\u{2026}']).collect()
}

fn grid(
    columns: &[&Column],
    widths: &[usize],
    has_headings: bool,
    cells: &[Vec<String>],
) -> String {
    let mut text = String::new();
    let mut line = |style: Style, cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for ((cell, column), width) in cells.zip(columns).zip(widths) {
            if !line.is_empty() {
                line.extend(std::iter::repeat_n(' ', GAP));
            }
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            line += &if column.is_number {
                padding + cell
            } else {
                cell.to_owned() + &padding
            };
        }
        // Writing to a String does not fail.
        let _ = writeln!(text, "{style}{}{style:#}", line.trim_end());
    };
    if has_headings {
        line(HEADING, &mut columns.iter().map(|column| column.title));
    }
    for row in cells {
        line(Style::new(), &mut row.iter().map(String::as_str));
    }
    text
}

fn fields(columns: &[&Column], cells: &[Vec<String>]) -> String {
    let width = columns
        .iter()
        .map(|column| column.title.len())
        .max()
        .unwrap_or_default()
        + GAP;
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
        anstream::adapter::strip_str(&text(&COLUMNS, is_wide, true, &rows, width)).to_string()
    }

    #[test]
    fn a_table_is_aligned_and_escapes_what_misleads() {
        assert_eq!(
            plain(false, None),
            "DISK  SERIAL NUMBER\n   1  vol0abc\n  12  \\u{1b}[31m\n   -  -\n"
        );
        assert_eq!(
            plain(true, Some(32)),
            "DISK  SERIAL NUMBER  PAGE83\n   1  vol0abc        Google  pvc\n  12  \\u{1b}[31m     \
             -\n   -  -              -\n"
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

    #[test]
    fn characters_that_are_two_columns_wide_do_not_shift_the_columns() {
        let rows = [
            json!({ "disk": 1, "serial": "\u{4e2d}\u{6587}" }),
            json!({ "disk": 2, "serial": "x" }),
        ];
        let columns = [COLUMNS[1], COLUMNS[0]];
        let table =
            anstream::adapter::strip_str(&text(&columns, false, false, &rows, None)).to_string();
        assert_eq!(table, "\u{4e2d}\u{6587}  1\nx     2\n");
    }

    #[test]
    fn a_cell_that_is_longer_than_most_in_its_column_is_cut_and_the_others_stay_a_table() {
        let rows = ["a", "b", &"0123456789".repeat(9), "c"]
            .map(|serial| json!({ "disk": 1, "serial": serial }));
        let table =
            anstream::adapter::strip_str(&text(&COLUMNS, false, true, &rows, Some(20))).to_string();
        let expected = [
            "DISK  SERIAL NUMBER",
            "   1  a",
            "   1  b",
            "   1  0123456789012\u{2026}",
            "   1  c",
        ];
        assert_eq!(table.lines().collect::<Vec<_>>(), expected);
        assert!(lists(&COLUMNS, &rows).contains(&"0123456789".repeat(9)));
    }

    #[test]
    fn names_are_alone_on_their_lines() {
        let columns = [COLUMNS[0].name(), COLUMNS[1].name()];
        let rows = [
            json!({ "disk": 1, "serial": "a" }),
            json!({ "disk": 2, "serial": null }),
            json!({ "serial": "b" }),
        ];
        assert_eq!(formatted(Format::Names, &columns, &rows, Some(5)), "a\nb\n");
    }
}
