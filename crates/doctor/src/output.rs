//! The output: text for a terminal of 80 columns, and JSON.
//!
//! Names come from devices, servers and other accounts. In both forms, characters of them that could make the output read
//! as another are escaped, as in the log, and a name that could pass for words of a finding is in quotation marks.

use std::fmt;

use anstyle::{AnsiColor, Style};
use os::escaped;
use serde_json::{Value, json};

use crate::checks::counted;
use crate::finding::{Report, State};
use crate::parity::{Agreement, Parity, Row};

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

/// Writes `text` in lines that end before [`WIDTH`], each after the first indented by `indent`. `column` is the column at
/// which the first one begins. A word that is longer than a line is broken, and what is in quotation marks is one word: its
/// blanks are kept, and none of its lines begins where those of `text` do.
fn wrapped(f: &mut fmt::Formatter<'_>, column: usize, indent: usize, text: &str) -> fmt::Result {
    let text = escaped(text);
    let mut at = column;
    let mut is_first = true;
    for word in words(&text) {
        let indent_of_rest = indent + usize::from(word.contains(QUOTATION_MARK));
        let length = word.chars().count();
        if !is_first && at + 1 + length > WIDTH {
            write!(f, "\n{:indent$}", "")?;
            at = indent;
        } else if !is_first {
            f.write_str(" ")?;
            at += 1;
        }
        is_first = false;
        for letter in word.chars() {
            if at == WIDTH {
                write!(f, "\n{:indent_of_rest$}", "")?;
                at = indent_of_rest;
            }
            write!(f, "{letter}")?;
            at += 1;
        }
    }
    writeln!(f)
}

/// Returns the words of a text without control characters. What is in quotation marks is not split; of its adjacent blanks
/// all but the first are escaped, because a line of them looks empty.
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
        let mut heading = "";
        let mut subjects: Vec<&str> = Vec::new();
        for finding in &self.findings {
            if !subjects.contains(&finding.check) {
                subjects.push(finding.check);
            }
        }
        let in_order =
            subjects.iter().flat_map(|subject| self.findings.iter().filter(move |own| own.check == *subject));
        for finding in in_order {
            if finding.check != heading {
                heading = finding.check;
                writeln!(f, "{HEADING}{heading}{HEADING:#}")?;
            }
            let (style, word) = (style_of(finding.state), finding.state.word());
            write!(f, "  {style}{word:<width$}{style:#}", width = COLUMN - 2)?;
            wrapped(f, COLUMN, COLUMN, &finding.seen)?;
            if !finding.advice.is_empty() {
                write!(f, "{:COLUMN$}{DIMMED}->{DIMMED:#} ", "")?;
                wrapped(f, COLUMN + 3, COLUMN + 3, &finding.advice)?;
            }
        }
        let count = |state| self.count(state);
        let (problems, warnings) =
            (counted(count(State::Problem), "problem"), counted(count(State::Warning), "warning"));
        let (unchecked, ok) = (count(State::Unchecked), count(State::Ok));
        writeln!(f, "\n{HEADING}{problems}, {warnings}, {unchecked} unchecked, {ok} ok{HEADING:#}")?;
        if self.has_hidden_names {
            writeln!(f, "\nNames are replaced, so that the output can be shared: -show-names shows the real ones.")?;
        }
        Ok(())
    }
}

impl Report {
    /// Returns the findings as JSON. docs/windows.md describes it.
    pub fn to_json(&self, node: &str, version: &str) -> Value {
        let finding = |finding: &crate::Finding| {
            json!({
                "check": finding.check,
                "state": finding.state.word(),
                "seen": finding.seen,
                "advice": finding.advice,
            })
        };
        json!({
            "version": version,
            "node": node,
            "problems": self.count(State::Problem),
            "warnings": self.count(State::Warning),
            "unchecked": self.count(State::Unchecked),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }
}

impl Agreement {
    fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Unknown => "unknown",
            Self::OneWay => "one way",
        }
    }
}

impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECTIONS: [(Agreement, &str); 4] = [
            (Agreement::Different, "Different"),
            (Agreement::Unknown, "Not compared, because a reading failed"),
            (Agreement::Same, "The same"),
            (Agreement::OneWay, "Read through the provider only"),
        ];
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
        writeln!(f, "\n{HEADING}{different}, {unknown} not compared, {same} the same{HEADING:#}")
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
    let note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
    writeln!(f, "    {property}{note}")?;
    for (way, reading) in [("native", &row.native), ("provider", &row.provider)] {
        write!(f, "      {DIMMED}{way:<10}{DIMMED:#}")?;
        wrapped(f, 16, 16, &text(reading))?;
    }
    Ok(())
}

impl Parity {
    /// Returns the rows as JSON, differences first. docs/windows.md describes it.
    pub fn to_json(&self, node: &str, version: &str) -> Value {
        let reading = |reading: &Result<String, String>| match reading {
            Ok(value) => json!({ "value": value }),
            Err(error) => json!({ "error": error }),
        };
        let row = |row: &Row| {
            json!({
                "object": row.object,
                "property": row.property,
                "agreement": row.agreement.word(),
                "note": row.note,
                "native": reading(&row.native),
                "provider": reading(&row.provider),
            })
        };
        let order = [Agreement::Different, Agreement::Unknown, Agreement::Same, Agreement::OneWay];
        let rows = order.into_iter().flat_map(|agreement| self.rows_of(agreement)).map(row).collect::<Vec<_>>();
        json!({
            "version": version,
            "node": node,
            "differences": self.rows_of(Agreement::Different).count(),
            "unknown": self.rows_of(Agreement::Unknown).count(),
            "rows": rows,
        })
    }
}
