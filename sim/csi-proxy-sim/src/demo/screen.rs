//! The output of the demonstration: one line for each call, in columns that fit a terminal of 80
//! characters.

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};

const HEADING: Style = Style::new().bold();
const RPC: Style = AnsiColor::Cyan.on_default();
const DIMMED: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();

/// The style of a call that failed as the driver expects.
pub(super) const REFUSED: Style = AnsiColor::Yellow.on_default();
/// The style of a result that was not expected.
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();

/// The widths of the columns: RPC, object and response, milliseconds. A longer RPC takes its place
/// from the object and response.
const METHOD: usize = 35;
const TEXT: usize = 32;
const TIME: usize = 7;

/// A writer of lines. A closed output, such as a pipe into `head`, does not change the result of
/// the demonstration.
pub struct Screen(Box<dyn Write + Send>);

impl Screen {
    /// Writes to `out`, which strips colours if they are not wanted.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self(Box::new(out))
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.0, "{line}");
    }

    /// Writes a heading, and lines below it.
    pub(super) fn heading(&mut self, text: &str, about: &str) {
        self.line(&format!("\n{HEADING}{text}{HEADING:#}"));
        for about in about.lines() {
            let indent = if about.is_empty() { "" } else { "  " };
            self.line(&format!("{indent}{DIMMED}{about}{DIMMED:#}"));
        }
    }

    /// Writes the names of the columns.
    pub(super) fn columns(&mut self) {
        let (method, text) = ("RPC", "called on → response");
        self.line(&format!(
            "\n    {DIMMED}{method:<METHOD$}  {text:<TEXT$}{:>TIME$}{DIMMED:#}",
            "ms"
        ));
    }

    /// Writes the RPC of the driver that kubelet calls next.
    pub(super) fn phase(&mut self, text: &str) {
        self.line(&format!("  {HEADING}{text}{HEADING:#}"));
    }

    /// Writes a call with its object and result.
    pub(super) fn call(
        &mut self,
        method: &dyn Display,
        (about, result): (&str, &str),
        style: Style,
        time: Duration,
    ) {
        let (method, time) = (method.to_string(), time.as_secs_f64() * 1000.0);
        let width = TEXT - method.chars().count().saturating_sub(METHOD);
        let text = join(about, result, width);
        // The width of a format would count the escape codes.
        let gap = " ".repeat(width - text.chars().count());
        self.line(&format!(
            "    {RPC}{method:<METHOD$}{RPC:#}  \
             {style}{text}{style:#}{gap}{DIMMED}{time:>TIME$.2}{DIMMED:#}"
        ));
    }

    /// Writes an action on the node without csi-proxy.
    pub(super) fn action(&mut self, name: &str, about: &str, result: &str) {
        self.line(&format!(
            "    {DIMMED}{name:<METHOD$}  {}{DIMMED:#}",
            join(about, result, TEXT)
        ));
    }

    /// Writes a condition, and whether it holds.
    pub(super) fn check(&mut self, what: &str, holds: bool) {
        if holds {
            self.line(&format!("    {GOOD}✓{GOOD:#} {what}"));
        } else {
            self.line(&format!("    {BAD}✗ {what}{BAD:#}"));
        }
    }

    /// Writes a row of the summary.
    pub(super) fn row(
        &mut self,
        is_good: bool,
        [driver, calls, refused, win32, wmi, checks, unexpected]: [&dyn Display; 7],
    ) {
        let style = if is_good { Style::new() } else { BAD };
        self.line(&format!(
            "  {style}{driver:<25}{calls:>6}{refused:>9}{win32:>8}\
             {wmi:>6}{checks:>8}{unexpected:>12}{style:#}"
        ));
    }

    /// Writes the result of the demonstration.
    pub(super) fn result(&mut self, is_good: bool, sentence: &str) {
        let (style, mark) = if is_good { (GOOD, '✓') } else { (BAD, '✗') };
        self.line(&format!("\n{style}{mark} {sentence}{style:#}"));
    }
}

/// Returns the object of a call and its result, in the width of their column. A result that does
/// not fit beside the object is shown alone.
fn join(about: &str, result: &str, width: usize) -> String {
    let text = match (about, result) {
        (_, "") => about.to_owned(),
        ("", _) => format!("→ {result}"),
        _ if about.chars().count() + result.chars().count() + 3 > width => format!("→ {result}"),
        _ => format!("{about} → {result}"),
    };
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::{TEXT, join};

    #[test]
    fn a_text_fits_its_column() {
        assert_eq!(join(r"C:\…\mount", "yes", TEXT), r"C:\…\mount → yes");
        assert_eq!(
            join("volume 012345…", "16.0Mi of 15.9Gi, and more", TEXT),
            "→ 16.0Mi of 15.9Gi, and more"
        );
        assert_eq!(join(&"ä".repeat(TEXT + 1), "", TEXT).chars().count(), TEXT);
    }
}
