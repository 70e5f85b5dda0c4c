//! The words of a service's command line.

/// Splits a command line at blanks outside of quotation marks, as the C runtime does. A quotation mark itself, which no flag
/// of csi-proxy contains, is not recognized.
pub(super) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None, false);
    for letter in line.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_with(String::new);
            }
            ' ' | '\t' if !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_with(String::new).push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_end_at_blanks_outside_of_quotation_marks() {
        assert_eq!(words(r#""C:\a b\c.exe"  -x="1 2" "" y"#), [r"C:\a b\c.exe", "-x=1 2", "", "y"]);
        assert!(words("  ").is_empty());
    }
}
