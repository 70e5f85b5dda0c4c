//! The words of findings: counts, names and lists.

use std::fmt::Display;

/// Returns `count` and the noun, in the plural unless it is one.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// Returns a name for a text: in quotation marks if it could pass for words of the text. Quotation
/// marks in the name are doubled, so that the marks in a text are always in pairs. Names come from
/// devices, servers and other accounts.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain =
        |character: char| character.is_alphanumeric() || r"\/:.-_~$@{}?#&+=%".contains(character);
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns an error for a text: in quotation marks if the error contains quotation marks.
pub(crate) fn enclosed(text: impl Display) -> String {
    let text = text.to_string();
    if text.contains('"') {
        quoted(&text)
    } else {
        text
    }
}

/// Returns the first items, and the number of the remaining items.
pub(crate) fn listed<T: AsRef<str>>(items: &[T]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<_> = items.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match items.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, listed, quoted};

    #[test]
    fn what_could_pass_for_other_text_is_in_quotation_marks() {
        for name in [
            r"C:\var\lib\kubelet\pods\3f-1\volumes\kubernetes.io~csi",
            r"\\server\share$",
            "S-1-5-32-545",
            "h\u{e9}",
        ] {
            assert_eq!(quoted(name), name);
        }
        for (name, expected) in [
            (r"C:\a b", r#""C:\a b""#),
            ("a,b", r#""a,b""#),
            ("a;", r#""a;""#),
            ("a (x)", r#""a (x)""#),
            (r#"a", "b"#, r#""a"", ""b""#),
            ("\u{202e}a", "\"\u{202e}a\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(name), expected);
        }
    }

    #[test]
    fn lists_are_short_and_counts_have_a_plural() {
        assert_eq!(listed(&["a", "b"]), "a, b");
        assert_eq!(
            listed(&["a", "b", "c", "d", "e", "f", "g"]),
            "a, b, c, d, e and 2 more"
        );
        assert_eq!(
            [counted(1, "disk"), counted(0, "disk")],
            ["1 disk", "0 disks"]
        );
    }
}
