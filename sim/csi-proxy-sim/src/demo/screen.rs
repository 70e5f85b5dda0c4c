//! What the demonstration shows: a line a call, in columns that fit a terminal of 100.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::call::Line;

const HEADING: Style = Style::new().bold();
const RPC: Style = AnsiColor::Cyan.on_default();
const QUIET: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const WANTED: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Columns of a line that shows a call: group-version, RPC, what about, answer, time.
const API: usize = 18;
const NAME: usize = 25;
const TEXT: usize = 40;

/// Where lines go.
pub struct Screen(Box<dyn Write + Send>);

impl Screen {
    /// Writes to `out`, which is to strip colours where they are not wanted.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self(Box::new(out))
    }

    /// A screen that nobody looks at.
    pub fn off() -> Self {
        Self::new(io::sink())
    }

    /// A heading, and beside it what it is about.
    pub fn heading(&mut self, text: &str, about: &str) -> io::Result<()> {
        writeln!(self.0, "\n{HEADING}{text}{HEADING:#}  {QUIET}{about}{QUIET:#}")
    }

    /// What stands in which column.
    pub(super) fn columns(&mut self) -> io::Result<()> {
        let (api, rpc, text) = ("group-version", "RPC", "what on → what came back");
        writeln!(self.0, "\n    {QUIET}{api:<API$}{rpc:<NAME$} {text:<TEXT$}{:>10}{QUIET:#}", "time")
    }

    /// Whether all was well.
    pub(super) fn verdict(&mut self, good: bool, what: &str) -> io::Result<()> {
        let (style, mark) = if good { (GOOD, '✓') } else { (BAD, '✗') };
        writeln!(self.0, "\n  {style}{mark}{style:#} {what}")
    }

    /// A sentence.
    pub fn say(&mut self, text: &dyn Display) -> io::Result<()> {
        writeln!(self.0, "{text}")
    }

    /// What kubelet asks the driver for next.
    pub(super) fn phase(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.0, "  {HEADING}{text}{HEADING:#}")
    }

    /// A call and its answer.
    pub(super) fn answered(&mut self, line: &Line, answer: &str) -> io::Result<()> {
        let text = if answer.is_empty() { line.about.clone() } else { join(&line.about, answer) };
        self.call(line, &text, Style::new())
    }

    /// A call that was refused, which is what the driver waits for.
    pub(super) fn refused(&mut self, line: &Line, words: &str) -> io::Result<()> {
        let words = if words.is_empty() { "refused".to_owned() } else { format!("refused, {words}") };
        let with_object = join(&line.about, &words);
        let fits = with_object.chars().count() <= TEXT;
        self.call(line, if fits { &with_object } else { &words }, WANTED)
    }

    /// A call that went otherwise than it must.
    pub(super) fn failed(&mut self, line: &Line, what: &str) -> io::Result<()> {
        self.call(line, &line.about, BAD)?;
        self.differs(what)
    }

    fn call(&mut self, line: &Line, text: &str, style: Style) -> io::Result<()> {
        let api = format!("{} {}", line.api.group.name(), line.api.version);
        let time = milliseconds(line.time);
        let text = cut(text, TEXT);
        // Coloured text is padded by hand: the width of a format counts what is not seen.
        let gap = " ".repeat(TEXT - text.chars().count());
        let rpc = line.rpc;
        writeln!(
            self.0,
            "    {QUIET}{api:<API$}{QUIET:#}{RPC}{rpc:<NAME$}{RPC:#} {style}{text}{style:#}{gap}{QUIET}{time:>10}{QUIET:#}"
        )
    }

    /// What somebody else does on the node.
    pub(super) fn beside(&mut self, who: &str, what: &str, about: &str) -> io::Result<()> {
        let about = cut(about, TEXT);
        writeln!(self.0, "    {QUIET}{who:<API$}{what:<NAME$} {about}{QUIET:#}")
    }

    /// The heads of the table at the end.
    pub(super) fn head(&mut self, cells: &[&str; 8]) -> io::Result<()> {
        self.cells(&cells.map(str::to_owned), QUIET)
    }

    /// A row of the table at the end: a name and seven numbers.
    pub(super) fn row(&mut self, cells: &[String; 8], good: bool) -> io::Result<()> {
        self.cells(cells, if good { Style::new() } else { BAD })
    }

    fn cells(&mut self, [name, numbers @ ..]: &[String; 8], style: Style) -> io::Result<()> {
        write!(self.0, "  {style}{name:<15}")?;
        for number in numbers {
            write!(self.0, "{number:>10}")?;
        }
        writeln!(self.0, "{style:#}")
    }

    /// Something that holds on the node, as it must.
    pub(super) fn holds(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.0, "    {GOOD}✓{GOOD:#} {what}")
    }

    /// Something that does not.
    pub(super) fn differs(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.0, "    {BAD}✗ {what}{BAD:#}")
    }
}

fn join(about: &str, answer: &str) -> String {
    if about.is_empty() { format!("→ {answer}") } else { format!("{about} → {answer}") }
}

/// At most `width` characters of a text.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// A path, volume name or IQN as it is told apart at a glance: `C:\…\globalmount`, `Volume{1f0c2a9e…}`.
pub(super) fn short(text: &str) -> String {
    if let Some(guid) = text.strip_prefix(r"\\?\Volume{") {
        return format!("Volume{{{}…}}", guid.chars().take(8).collect::<String>());
    }
    let is_path = text.starts_with(['\\', '/']) && !text.starts_with(r"\\") || text.as_bytes().get(1) == Some(&b':');
    let Some(first) = text.find(['\\', '/']).filter(|_| is_path) else { return text.to_owned() };
    let Some(last) = text.rfind(['\\', '/']).filter(|last| *last > first) else { return text.to_owned() };
    format!("{}…{}", &text[..=first], &text[last..])
}

/// A number of bytes in the largest unit that leaves something before the point.
pub(super) fn bytes(count: u64) -> String {
    let (unit, shift) = match count {
        0..0x10_0000 => ("KiB", 10),
        0x10_0000..0x4000_0000 => ("MiB", 20),
        _ => ("GiB", 30),
    };
    let hundredths = (u128::from(count) * 100) >> shift;
    match (hundredths / 100, hundredths % 100) {
        (whole, 0) => format!("{whole} {unit}"),
        (whole, part) => format!("{whole}.{part:02} {unit}"),
    }
}

/// A span as it stands in the last column.
pub(super) fn milliseconds(span: Duration) -> String {
    format!("{:.2} ms", span.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::{bytes, cut, short};

    #[test]
    fn what_is_short_still_shows_drive_slashes_and_last_name() {
        for (long, shown) in [
            (r"C:\var\lib\kubelet\globalmount", r"C:\…\globalmount"),
            (r"\var\lib\kubelet\globalmount", r"\…\globalmount"),
            ("c:/var/lib/kubelet/mount", "c:/…/mount"),
            (r"C:\var", r"C:\var"),
            (r"\\?\Volume{0123456789}\", "Volume{01234567…}"),
            (r"\\host\share\", r"\\host\share\"),
            ("5", "5"),
        ] {
            assert_eq!(short(long), shown);
        }
    }

    #[test]
    fn sizes_are_exact_to_two_places_and_never_rounded_up() {
        for (count, shown) in [(0, "0 KiB"), (1 << 30, "1 GiB"), ((1 << 34) - 1, "15.99 GiB"), (33 << 19, "16.50 MiB")]
        {
            assert_eq!(bytes(count), shown);
        }
    }

    #[test]
    fn a_long_text_is_cut_to_its_column() {
        assert_eq!(cut("åäö", 3), "åäö");
        assert_eq!(cut("åäöü", 3), "åä…");
    }
}
