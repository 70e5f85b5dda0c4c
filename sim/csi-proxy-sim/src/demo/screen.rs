//! The output of the demonstration: one line for each call, in columns that fit a terminal of 80 characters.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::short_form::milliseconds;

const HEADING: Style = Style::new().bold();
const RPC: Style = AnsiColor::Cyan.on_default();
const DIMMED: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const REFUSED: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// The widths of the columns behind an indentation of 4: RPC, what the call is about, milliseconds.
const METHOD: usize = 35;
const TEXT: usize = 32;
const TIME: usize = 7;

/// A writer of lines.
pub struct Screen(Box<dyn Write + Send>);

impl Screen {
    /// Writes to `out`, which strips colours if they are not wanted.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self(Box::new(out))
    }

    /// Writes a heading, and sentences below it.
    pub(super) fn heading(&mut self, text: &str, about: &[&str]) -> io::Result<()> {
        writeln!(self.0, "\n{HEADING}{text}{HEADING:#}")?;
        about.iter().try_for_each(|about| match *about {
            "" => writeln!(self.0),
            about => writeln!(self.0, "  {DIMMED}{about}{DIMMED:#}"),
        })
    }

    /// Writes the names of the columns.
    pub(super) fn columns(&mut self) -> io::Result<()> {
        let (method, text) = ("RPC", "called on → response");
        writeln!(self.0, "\n    {DIMMED}{method:<METHOD$}  {text:<TEXT$}{:>TIME$}{DIMMED:#}", "ms")
    }

    /// Writes which RPC of the driver kubelet calls next.
    pub(super) fn phase(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.0, "  {HEADING}{text}{HEADING:#}")
    }

    /// Writes a call with its response.
    pub(super) fn answered(
        &mut self,
        method: &dyn Display,
        about: &str,
        response: &str,
        time: Duration,
    ) -> io::Result<()> {
        self.call(method, &join(about, response), Style::new(), time)
    }

    /// Writes a call that failed as the driver expects.
    pub(super) fn refused(
        &mut self,
        method: &dyn Display,
        about: &str,
        reason: &str,
        time: Duration,
    ) -> io::Result<()> {
        self.call(method, &join(about, "refused"), REFUSED, time)?;
        if reason.is_empty() { Ok(()) } else { self.holds(&format!("the error contains \"{reason}\"")) }
    }

    /// Writes a call whose result was not expected.
    pub(super) fn failed(&mut self, method: &dyn Display, about: &str, time: Duration) -> io::Result<()> {
        self.call(method, about, BAD, time)
    }

    fn call(&mut self, method: &dyn Display, text: &str, style: Style, time: Duration) -> io::Result<()> {
        let (method, text, time) = (method.to_string(), cut(text, TEXT), milliseconds(time));
        // The width of a format would count the escape codes.
        let gap = " ".repeat(TEXT - text.chars().count());
        writeln!(
            self.0,
            "    {RPC}{method:<METHOD$}{RPC:#}  {style}{text}{style:#}{gap}{DIMMED}{time:>TIME$}{DIMMED:#}"
        )
    }

    /// Writes an action on the node without csi-proxy.
    pub(super) fn action(&mut self, name: &str, about: &str, result: &str) -> io::Result<()> {
        let text = cut(&join(about, result), TEXT);
        writeln!(self.0, "    {DIMMED}{name:<METHOD$}  {text}{DIMMED:#}")
    }

    /// Writes a condition that holds, as it must.
    pub(super) fn holds(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.0, "    {GOOD}✓{GOOD:#} {what}")
    }

    /// Writes a result that was not expected.
    pub(super) fn unexpected(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.0, "    {BAD}✗ {what}{BAD:#}")
    }

    /// Writes a row of the table: a name and numbers.
    pub(super) fn row(&mut self, kind: Row, [name, numbers @ ..]: [&str; 8]) -> io::Result<()> {
        const WIDTHS: [usize; 7] = [6, 9, 8, 8, 6, 8, 12];
        let style = match kind {
            Row::Head => DIMMED,
            Row::Good => Style::new(),
            Row::Bad => BAD,
        };
        write!(self.0, "  {style}{name:<17}")?;
        for (number, width) in numbers.iter().zip(WIDTHS) {
            write!(self.0, "{number:>width$}")?;
        }
        writeln!(self.0, "{style:#}")
    }

    /// Writes the result of the demonstration.
    pub(super) fn result(&mut self, good: bool, sentence: &str) -> io::Result<()> {
        let (style, mark) = if good { (GOOD, '✓') } else { (BAD, '✗') };
        writeln!(self.0, "\n{style}{mark} {sentence}{style:#}")
    }
}

/// The kinds of rows of the table.
#[derive(Clone, Copy)]
pub(super) enum Row {
    Head,
    Good,
    Bad,
}

fn join(about: &str, result: &str) -> String {
    match (about, result) {
        (about, "") => about.to_owned(),
        ("", result) => format!("→ {result}"),
        // A result too long to stand beside what the call was about stands alone.
        (about, result) if about.chars().count() + result.chars().count() + 3 > TEXT => format!("→ {result}"),
        (about, result) => format!("{about} → {result}"),
    }
}

/// Returns at most `width` characters of a text.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::{cut, join};

    #[test]
    fn a_long_text_is_cut_to_its_column() {
        assert_eq!(cut("åäö", 3), "åäö");
        assert_eq!(cut("åäöü", 3), "åä…");
        assert_eq!(join("volume 012345…", "16 MiB of 15.98 GiB"), "→ 16 MiB of 15.98 GiB");
        assert_eq!(join(r"C:\…\mount", "yes"), r"C:\…\mount → yes");
    }
}
