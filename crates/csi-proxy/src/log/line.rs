//! One line of the log: what it may contain, and how long it is.
//!
//! Parts of a line come from clients, devices and servers. A line break or an escape sequence in them would forge other
//! lines, and characters that change the direction of text would make a line read as another.

use std::fmt::Write as _;
use std::io::{self, Write};

use os::is_misleading;

/// Maximum bytes of a line. What is longer is cut off.
pub(super) const MAX_BYTES: usize = 4096;

/// A writer of which each call of `write` passes one line.
#[derive(Debug)]
pub(super) struct LineWriter<W> {
    inner: W,
    /// Whether lines contain escape sequences for colours. Those in fields are escaped before.
    has_colours: bool,
}

impl<W> LineWriter<W> {
    pub(super) fn new(inner: W, has_colours: bool) -> Self {
        Self { inner, has_colours }
    }
}

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if text.len() <= MAX_BYTES && text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
            self.inner.write_all(line)?;
        } else {
            self.inner.write_all(escaped(&String::from_utf8_lossy(text), self.has_colours).as_bytes())?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns the line with a line break, after at most [`MAX_BYTES`] of it, in which misleading characters are escaped.
fn escaped(text: &str, has_colours: bool) -> String {
    let mut line = String::with_capacity(text.len().min(MAX_BYTES) + 1);
    for (at, character) in text.char_indices() {
        if line.len() > MAX_BYTES {
            // Writing to a String does not fail.
            let _ = write!(line, "... ({} more bytes)", text.len() - at);
            break;
        }
        match character {
            '\x1b' if has_colours => line.push(character),
            _ if is_misleading(character) => line.extend(character.escape_unicode()),
            _ => line.push(character),
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &str) -> String {
        let mut writer = LineWriter::new(Vec::new(), false);
        assert_eq!(writer.write(line.as_bytes()).unwrap(), line.len());
        String::from_utf8(writer.inner).unwrap()
    }

    #[test]
    fn characters_that_could_forge_text_are_escaped() {
        assert_eq!(written("a b\\ ~\n"), "a b\\ ~\n");
        assert_eq!(written("h\u{e9} \u{4e2d}\u{1f600}\n"), "h\u{e9} \u{4e2d}\u{1f600}\n");
        assert_eq!(written("C:\\new\nb\r\tc\n"), "C:\\new\\u{a}b\\u{d}\\u{9}c\n");
        for misleading in
            "\0\x1b\u{7f}\u{85}\u{9b}\u{200b}\u{200e}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{e0041}"
                .chars()
        {
            let line = written(&format!("a{misleading}b\n"));
            assert_eq!(line, format!("a\\u{{{:x}}}b\n", u32::from(misleading)));
        }
    }

    #[test]
    fn colours_are_kept_on_a_terminal_only() {
        let line = "\x1b[32mINFO\x1b[0m \u{202e}\n";
        let mut writer = LineWriter::new(Vec::new(), true);
        writer.write_all(line.as_bytes()).unwrap();
        assert_eq!(writer.inner, b"\x1b[32mINFO\x1b[0m \\u{202e}\n");
        assert!(!written(line).contains('\x1b'));
    }

    #[test]
    fn a_long_line_is_cut_off() {
        for text in ["x".repeat(20_000), "\u{4e2d}".repeat(20_000), "\u{202e}".repeat(20_000)] {
            let line = written(&format!("{text}\n"));
            assert!(line.len() < MAX_BYTES + 50 && line.ends_with(" more bytes)\n"), "{}", line.len());
        }
        let longest = format!("{}\n", "x".repeat(MAX_BYTES));
        assert_eq!(written(&longest), longest);
    }
}
