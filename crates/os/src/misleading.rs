//! Characters that make a text read as another.
//!
//! Names of disks, shares, services and files come from devices, servers and other accounts of the node. Every output
//! that a person reads escapes these characters: the log, and the findings of `doctor`.

/// Returns the text with each misleading character in the form that Rust has for it, such as `\u{202e}`.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_misleading(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether a character is not displayed as itself: control characters, line and paragraph separators, and characters
/// that change the direction of text or are invisible.
pub fn is_misleading(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{escaped, is_misleading};

    #[test]
    fn misleading_characters_are_escaped_and_others_are_kept() {
        assert_eq!(escaped("C:\\\u{e9}\n\u{9b}\u{202e}"), "C:\\\u{e9}\\n\\u{9b}\\u{202e}");
    }

    #[test]
    fn letters_and_symbols_are_not_misleading() {
        assert!(!"C:\\~ h\u{e9} \u{4e2d}\u{1f600}".contains(is_misleading));
    }

    #[test]
    fn control_characters_separators_and_invisible_characters_are_misleading() {
        for character in "\0\x1b\n\u{7f}\u{9b}\u{200b}\u{2028}\u{2029}\u{202e}\u{2069}\u{feff}\u{e0041}".chars() {
            assert!(is_misleading(character), "{character:?}");
        }
    }
}
