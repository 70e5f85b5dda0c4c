//! What the program prints.

use serde::Serialize;

/// A line of the output.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Line<'a> {
    /// A key of a source, and what it stands for.
    Source { key: &'a str, name: &'a str },
    /// A fact. `origin` has its sources, or the reason for the assumption.
    Fact { subject: &'a str, id: &'a str, sentence: &'a str, origin: String, assumed: bool, unchecked: Option<&'a str> },
    /// A check begins. If it ends the process, no line follows. `differs` is what Wine is known to do instead.
    Begin { id: &'a str, differs: Option<&'a str> },
    /// A check has ended.
    End { id: &'a str, result: &'a str, why: String },
}

impl Line<'_> {
    pub(crate) fn print(&self) {
        println!("{}", serde_json::to_string(self).expect("the line is serializable"));
    }
}
