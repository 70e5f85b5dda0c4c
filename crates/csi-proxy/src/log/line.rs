//! One line of the log: what it may contain, and how long it is.
//!
//! Parts of a line come from clients, devices and servers. A line break or an escape sequence in
//! them would forge other lines, and characters that change the direction of text would make a line
//! read as another.

use std::borrow::Cow;
use std::fmt::Write as _;

use terminal_text::is_misleading;

/// Maximum bytes of a line. A longer line is cut off.
pub(super) const MAX_BYTES: usize = 4096;

/// Returns the line as it is written: with a line break, and [`shortened`] if that is necessary.
pub(super) fn safe(line: &[u8]) -> Cow<'_, [u8]> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    if is_plain(text, MAX_BYTES) {
        Cow::Borrowed(line)
    } else {
        Cow::Owned((shortened(&String::from_utf8_lossy(text), MAX_BYTES) + "\n").into_bytes())
    }
}

/// Whether a text has at most `room` bytes, which are all printable ASCII characters.
pub(super) fn is_plain(text: &[u8], room: usize) -> bool {
    text.len() <= room && text.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns the text with misleading characters escaped, cut off after about `room` bytes.
pub(super) fn shortened(text: &str, room: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(room));
    for (at, letter) in text.char_indices() {
        if shown.len() >= room {
            // Writing to a String does not fail.
            let _ = write!(shown, "... ({} more bytes)", text.len() - at);
            break;
        }
        if is_misleading(letter) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &str) -> String {
        String::from_utf8(safe(line.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn characters_that_could_forge_text_are_escaped() {
        assert_eq!(written("a b\\ ~\n"), "a b\\ ~\n");
        assert_eq!(
            written("h\u{e9} \u{4e2d}\u{1f600}\n"),
            "h\u{e9} \u{4e2d}\u{1f600}\n"
        );
        assert_eq!(
            written("C:\\new\nb\r\tc\n"),
            "C:\\new\\u{a}b\\u{d}\\u{9}c\n"
        );
        assert_eq!(written("a\u{202e}b\u{e0041}\n"), "a\\u{202e}b\\u{e0041}\n");
    }

    #[test]
    fn a_long_line_is_cut_off() {
        for text in [
            "x".repeat(20_000),
            "\u{4e2d}".repeat(20_000),
            "\u{202e}".repeat(20_000),
        ] {
            let line = written(&format!("{text}\n"));
            assert!(
                line.len() < MAX_BYTES + 50 && line.ends_with(" more bytes)\n"),
                "{}",
                line.len()
            );
        }
        let longest = format!("{}\n", "x".repeat(MAX_BYTES));
        assert_eq!(written(&longest), longest);
    }
}
