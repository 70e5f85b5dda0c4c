//! Lines of text that fit the terminal.

use std::io::{self, IsTerminal as _};

/// Returns the width of the terminal that standard error is; None if it is not one.
pub(crate) fn stderr_width() -> Option<usize> {
    let stderr = io::stderr();
    let size = stderr.is_terminal().then(|| terminal_size::terminal_size_of(&stderr))?;
    size.map(|(width, _)| usize::from(width.0))
}

/// Breaks `text` between words, so that lines end before `width`. The first line begins at `column`, the others are
/// indented to it. A word that is longer than a line is not broken: a path must remain one to be copied.
pub(crate) fn wrapped(text: &str, column: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let (mut wrapped, mut at) = (String::new(), column);
    for word in text.split(' ') {
        let length = word.chars().count();
        if !wrapped.is_empty() && at + 1 + length > width {
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', column));
            at = column;
        } else if !wrapped.is_empty() {
            wrapped.push(' ');
            at += 1;
        }
        wrapped += word;
        at += length;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_break_between_words_and_are_indented() {
        let text = r"cannot mount C:\a\very\long\path there now";
        assert_eq!(wrapped(text, 2, Some(16)), "cannot mount\n  C:\\a\\very\\long\\path\n  there now");
        assert_eq!(wrapped(text, 2, None), text);
        assert_eq!(wrapped("", 2, Some(10)), "");
    }
}
