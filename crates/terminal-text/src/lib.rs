//! Text that a person reads on a terminal or in a log.
//!
//! Names of disks, shares, services and files come from devices, servers and other accounts of the
//! node. Some characters make a text read as another text. The log, `doctor`, csi-proxyctl and
//! errors that quote a request escape these characters.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

/// Returns the text with each misleading character as its code point, such as `\u{202e}`. A line
/// break is `\u{a}`, because backslashes are kept, and `\n` may stand in a path such as `C:\new`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    // Most errors have only these characters.
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain || !text.contains(is_misleading) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_misleading(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Escapes the misleading characters in a JSON text. Those are only in its strings, except for line
/// breaks between its values; inside strings, line breaks are already escaped.
pub fn escaped_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if character == '\n' || !is_misleading(character) {
            text.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a String does not fail.
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

/// Breaks `text` between words, so that lines end before `width`. The first line begins at
/// `column`, and further lines are indented to it. A word that is longer than a line is not broken,
/// so that a path can be copied.
pub fn wrapped(text: &str, column: usize, width: Option<usize>) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    let mut wrapped = String::new();
    let mut at = column;
    for word in text.split(' ') {
        let length = word.width();
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

/// Characters that are drawn as nothing although Unicode counts them as letters, marks or symbols.
const BLANK: [char; 5] = [
    '\u{2800}',
    '\u{13441}',
    '\u{13442}',
    '\u{16fe4}',
    '\u{1d159}',
];

/// Whether a character is not displayed as itself: what Unicode calls a control or format
/// character, a separator other than the blank, or ignorable where it is not supported
/// (`Default_Ignorable_Code_Point`), and a few that are blank without being any of these. They
/// break lines, change the direction of text or are invisible.
pub fn is_misleading(character: char) -> bool {
    BLANK.contains(&character)
        || matches!(character,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}'
            | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{1680}'
            | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{Class, HirKind};

    use super::{BLANK, escaped, escaped_json, is_misleading, wrapped};

    #[test]
    fn lines_break_between_words_and_are_indented() {
        let text = r"cannot mount C:\a\very\long\path there now";
        assert_eq!(
            wrapped(text, 2, Some(16)),
            "cannot mount\n  C:\\a\\very\\long\\path\n  there now"
        );
        assert_eq!(wrapped(text, 2, None), text);
        assert_eq!(wrapped("", 2, Some(10)), "");
        assert_eq!(
            wrapped("\u{4e2d}\u{6587} \u{4e2d}\u{6587}", 0, Some(8)),
            "\u{4e2d}\u{6587}\n\u{4e2d}\u{6587}"
        );
    }

    #[test]
    fn misleading_characters_are_escaped_and_others_are_kept() {
        assert_eq!(
            escaped("C:\\\u{e9}\n\u{9b}\u{202e}"),
            "C:\\\u{e9}\\u{a}\\u{9b}\\u{202e}"
        );
    }

    #[test]
    fn json_is_escaped_as_json_and_keeps_its_line_breaks() {
        let json = "{\n  \"a\": \"C:\u{e9}\u{202e}\u{e0041}\"\n}";
        assert_eq!(
            escaped_json(json),
            "{\n  \"a\": \"C:\u{e9}\\u202e\\udb40\\udc41\"\n}"
        );
    }

    #[test]
    fn all_characters_that_unicode_calls_ignorable_control_or_separator_are_misleading_and_no_others_are()
     {
        let properties = r"[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Zs}]";
        let hir = regex_syntax::parse(properties).unwrap();
        let HirKind::Class(Class::Unicode(class)) = hir.kind() else {
            panic!("a class of characters")
        };
        let mut expected: Vec<char> = class
            .iter()
            .flat_map(|range| range.start()..=range.end())
            .collect();
        expected.retain(|character| *character != ' ');
        expected.extend(BLANK);
        expected.sort_unstable();
        let found: Vec<char> = (char::MIN..=char::MAX)
            .filter(|character| is_misleading(*character))
            .collect();
        let differs = |these: &[char], others: &[char]| -> Vec<char> {
            these
                .iter()
                .copied()
                .filter(|character| others.binary_search(character).is_err())
                .collect()
        };
        assert_eq!(
            (differs(&expected, &found), differs(&found, &expected)),
            (vec![], vec![]),
            "(missing, too many)"
        );
    }
}
