//! The output: text for a terminal of 80 columns, and JSON.
//!
//! Names come from devices, servers and other accounts. In both forms, misleading characters in
//! names are escaped, as in the log, and a name that could pass for words of a finding is in
//! quotation marks.

use std::fmt;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use terminal_text::escaped;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::finding::{Finding, Report, State};
use crate::provider_comparison::{Agreement, ProviderComparison, Row};
use crate::words::counted;

/// The width of a small terminal.
const WIDTH: usize = 80;
/// What encloses a name that could pass for other text.
const QUOTATION_MARK: char = '"';
/// The column at which the text of a finding begins.
const COLUMN: usize = 13;

const HEADING: Style = Style::new().bold();
const DIMMED: Style = Style::new().dimmed();

fn style_of(state: State) -> Style {
    match state {
        State::Ok => AnsiColor::Green.on_default(),
        State::Warning | State::Unchecked => AnsiColor::Yellow.on_default(),
        State::Problem => AnsiColor::Red.on_default().bold(),
    }
}

/// Writes `text` in lines that end before [`WIDTH`]. The first line begins at `column`, and further
/// lines are indented by `indent`. A word that is longer than a line is broken. Text in quotation
/// marks is one word: its blanks are kept, and its further lines are indented by one more column,
/// so that they cannot pass for lines of `text`.
fn wrapped(f: &mut fmt::Formatter<'_>, column: usize, indent: usize, text: &str) -> fmt::Result {
    let text = escaped(text);
    let mut at = column;
    let mut is_first = true;
    for word in words(&text) {
        let indent_of_rest = indent + usize::from(word.contains(QUOTATION_MARK));
        let length = word.width();
        if !is_first && at + 1 + length > WIDTH {
            write!(f, "\n{:indent$}", "")?;
            at = indent;
        } else if !is_first {
            f.write_str(" ")?;
            at += 1;
        }
        is_first = false;
        for letter in word.chars() {
            let columns = letter.width().unwrap_or_default();
            if at + columns > WIDTH {
                write!(f, "\n{:indent_of_rest$}", "")?;
                at = indent_of_rest;
            }
            write!(f, "{letter}")?;
            at += columns;
        }
    }
    writeln!(f)
}

/// Returns the words of a text without control characters. Text in quotation marks is not split. Of
/// several blanks in it, those after the first are escaped, because a line of blanks looks empty.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut is_quoted, mut before) = (false, ' ');
    for character in text.chars() {
        is_quoted ^= character == QUOTATION_MARK;
        let word = words.last_mut().expect("never empty");
        match (character, is_quoted) {
            (' ', true) if before == ' ' => word.push_str(r"\u{20}"),
            (' ', false) => words.push(String::new()),
            _ => word.push(character),
        }
        before = character;
    }
    words.retain(|word| !word.is_empty());
    words
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut subjects: Vec<&str> = Vec::new();
        for finding in &self.findings {
            if !subjects.contains(&finding.check) {
                subjects.push(finding.check);
            }
        }
        for subject in subjects {
            writeln!(f, "{HEADING}{subject}{HEADING:#}")?;
            for finding in self
                .findings
                .iter()
                .filter(|finding| finding.check == subject)
            {
                write_finding(f, finding)?;
            }
        }
        let problems = counted(self.count(State::Problem), "problem");
        let warnings = counted(self.count(State::Warning), "warning");
        let unchecked = self.count(State::Unchecked);
        write!(
            f,
            "\n{HEADING}{problems}, {warnings}, {unchecked} unchecked"
        )?;
        let ok = self.count(State::Ok);
        if ok > 0 {
            write!(f, ", {ok} ok")?;
        }
        writeln!(f, "{HEADING:#}")?;
        if self.has_hidden_names {
            writeln!(
                f,
                "\nNames are replaced, so that you can share the output. -show-names shows the \
                 real names."
            )?;
        }
        Ok(())
    }
}

fn write_finding(f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
    let style = style_of(finding.state);
    write!(
        f,
        "  {style}{:<width$}{style:#}",
        finding.state.word(),
        width = COLUMN - 2
    )?;
    wrapped(f, COLUMN, COLUMN, &finding.seen)?;
    if !finding.advice.is_empty() {
        write!(f, "{:COLUMN$}{DIMMED}->{DIMMED:#} ", "")?;
        wrapped(f, COLUMN + 3, COLUMN + 3, &finding.advice)?;
    }
    Ok(())
}

impl Report {
    /// Returns the findings as JSON. docs/windows.md describes it.
    pub fn to_json(&self, node: &str, version: &str) -> Value {
        json!({
            "version": version,
            "node": node,
            "problems": self.count(State::Problem),
            "warnings": self.count(State::Warning),
            "unchecked": self.count(State::Unchecked),
            "findings": self.findings,
        })
    }
}

/// The sections of a comparison, in the order of the output.
const SECTIONS: [(Agreement, &str); 4] = [
    (Agreement::Different, "Different"),
    (Agreement::Unknown, "Not compared, because a reading failed"),
    (Agreement::Same, "The same"),
    (Agreement::OneWay, "Read through the provider only"),
];

impl fmt::Display for ProviderComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (agreement, heading) in SECTIONS {
            let mut object = "";
            for (at, row) in self.rows_of(agreement).enumerate() {
                if at == 0 {
                    writeln!(f, "{HEADING}{heading}{HEADING:#}")?;
                }
                if row.object != object {
                    object = &row.object;
                    writeln!(f, "  {}", escaped(object))?;
                }
                write_row(f, row)?;
            }
        }
        let count = |agreement| self.rows_of(agreement).count();
        let different = counted(count(Agreement::Different), "difference");
        let (unknown, same) = (count(Agreement::Unknown), count(Agreement::Same));
        writeln!(
            f,
            "\n{HEADING}{different}, {unknown} not compared, {same} the same{HEADING:#}"
        )
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
    let text = |reading: &Result<String, String>| match reading {
        Ok(text) => text.clone(),
        Err(error) => format!("? {error}"),
    };
    let property = row.property;
    if matches!(row.agreement, Agreement::Same | Agreement::OneWay) {
        write!(f, "    {DIMMED}{property:<14}{DIMMED:#}  ")?;
        return wrapped(f, 6 + property.len().max(14), 20, &text(&row.provider));
    }
    let note = if row.note.is_empty() {
        String::new()
    } else {
        format!(" ({})", row.note)
    };
    writeln!(f, "    {property}{note}")?;
    for (way, reading) in [("native", &row.native), ("provider", &row.provider)] {
        write!(f, "      {DIMMED}{way:<10}{DIMMED:#}")?;
        wrapped(f, 16, 16, &text(reading))?;
    }
    Ok(())
}

impl ProviderComparison {
    /// Returns the rows as JSON, differences first. docs/windows.md describes it.
    pub fn to_json(&self, node: &str, version: &str) -> Value {
        let rows: Vec<&Row> = SECTIONS
            .iter()
            .flat_map(|(agreement, _)| self.rows_of(*agreement))
            .collect();
        json!({
            "version": version,
            "node": node,
            "differences": self.rows_of(Agreement::Different).count(),
            "unknown": self.rows_of(Agreement::Unknown).count(),
            "rows": rows,
        })
    }
}
