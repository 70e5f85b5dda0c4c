//! Words that name nothing in the field of this project. CONTRIBUTING.md explains which words to use.

use super::Source;

/// Each word also in its plural. Words with a usual meaning, such as "line", "place" and "walk", are not listed.
const WORDS: [&str; 14] = [
    "blow",
    "desk",
    "doomed",
    "farewell",
    "hurry",
    "lane",
    "liar",
    "mend",
    "mended",
    "side door",
    "there is none",
    "voyage",
    "weather",
    "whoever",
];

/// The file with the list cannot be checked against it.
const EXCEPTION: &str = "xtask/src/lint/words.rs";

/// Returns a breach for each line that contains a listed word, also as a part of an identifier.
pub(super) fn breaches(source: &Source) -> Vec<String> {
    if source.path.ends_with(EXCEPTION) {
        return Vec::new();
    }
    let lines = source.text.lines().enumerate();
    let found = lines.filter_map(|(index, line)| listed_word(line).map(|word| (index + 1, word)));
    found
        .map(|(line, word)| source.breach(line, &format!("the word \"{word}\" is on the list of {EXCEPTION}")))
        .collect()
}

fn listed_word(line: &str) -> Option<&'static str> {
    let text = separated(line);
    WORDS.into_iter().find(|word| text.contains(&format!(" {word} ")) || text.contains(&format!(" {word}s ")))
}

/// Returns the words of a line in lower case, each between two spaces. `InLane` and `in_lane` are two words each.
fn separated(line: &str) -> String {
    let mut text = String::from(" ");
    let mut after_lower_case = false;
    for letter in line.chars() {
        if !letter.is_alphanumeric() || (after_lower_case && letter.is_uppercase()) {
            text.push(' ');
        }
        text.extend(letter.to_lowercase().filter(|letter| letter.is_alphanumeric()));
        after_lower_case = letter.is_lowercase();
    }
    text + " "
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::*;

    #[test]
    fn a_listed_word_is_found_in_sentences_and_identifiers() {
        for line in ["// Whoever waits", "let in_lane = 1;", "Again::InLane(a)", "const LANES: u8 = 1;", "a side-door"]
        {
            assert!(listed_word(line).is_some(), "{line}");
        }
    }

    #[test]
    fn a_word_that_contains_a_listed_one_is_not_found() {
        for line in ["the control plane", "desktop", "below", "amended", "inside door"] {
            assert_eq!(listed_word(line), None, "{line}");
        }
    }

    #[test]
    fn a_breach_names_file_line_and_word() {
        let breaches = breaches(&source("docs/a.md", "One.\nA lane.\n"));
        assert_eq!(breaches, [format!("docs/a.md:2: the word \"lane\" is on the list of {EXCEPTION}")]);
    }
}
