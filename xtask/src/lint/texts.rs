//! The sentences that users meet. Each stands in a test, or is collected by tests into
//! `tests/texts.txt` or `tests/golden` of a crate, so that a review shows each change of words.
//! [`LIST`] has the other sentences. The list may only shrink.

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Source;

/// First the number of lines that follow, then `<crate>: <text>` in each line.
const LIST: &str = "xtask/src/lint/uncollected.txt";

/// A generated page. Its test compares the page with the help texts of the metrics.
const METRICS: &str = "docs/metrics.md";

/// Macros and functions whose texts only developers see.
const FOR_DEVELOPERS: [&str; 12] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug",
    "debug_assert",
    "debug_assert_eq",
    "expect",
    "expect_err",
    "matches",
    "panic",
    "trace",
    "unreachable",
];

/// Maximum bytes that a placeholder of a format string stands for.
const MAX_PLACEHOLDER: usize = 300;

/// Returns a breach for each sentence that is neither collected nor listed, and for each listed
/// sentence that is collected or gone.
pub(super) fn breaches(sources: &[Source]) -> Vec<String> {
    let (mut collected, mut of_code) = (Vec::new(), Vec::new());
    for source in sources {
        if is_collected(&source.path) {
            collected.extend(collected_texts(source));
        } else if let Some(name) = crate_of_rust(&source.path) {
            let sentences = sentences(source);
            collected.extend(sentences.of_tests);
            let of_file = sentences.of_code.into_iter();
            of_code.extend(of_file.map(|sentence| (name, sentence)));
        }
    }
    let collected = collected.join("\n");
    of_code.retain(|(_, sentence)| !contains(&collected, sentence));
    let uncollected: BTreeSet<String> = of_code
        .into_iter()
        .map(|(name, sentence)| format!("{name}: {sentence}"))
        .collect();
    let list = sources
        .iter()
        .find(|source| source.path == Path::new(LIST))
        .map_or("", |source| &source.text);
    let listed: Vec<&str> = list.lines().skip(1).collect();
    let number = list.lines().next().unwrap_or("0");
    let mut breaches = Vec::new();
    for sentence in &uncollected {
        if !listed.contains(&&**sentence) {
            breaches.push(format!(
                "no test passes this text to texts::seen!: {sentence}"
            ));
        }
    }
    for line in &listed {
        if !uncollected.contains(*line) {
            breaches.push(format!("{LIST}: remove what is collected or gone: {line}"));
        }
    }
    if number != listed.len().to_string() || !listed.is_sorted() {
        breaches.push(format!(
            "{LIST}: the lines are not sorted, or are not {number}, which the first line says"
        ));
    }
    breaches
}

fn is_collected(path: &Path) -> bool {
    // Tests of the simulator see texts of the crates, too.
    let of_crate = ["crates", "sim"]
        .iter()
        .find_map(|folder| path.strip_prefix(folder).ok());
    let file = of_crate.map(|path| path.iter().skip(1).collect::<std::path::PathBuf>());
    path == Path::new(METRICS)
        || file.is_some_and(|file| {
            file == Path::new("tests/texts.txt") || file.starts_with("tests/golden")
        })
}

/// Returns the texts of a file: each line of `texts.txt`, or else the whole file, in which lines
/// may be wrapped.
fn collected_texts(source: &Source) -> Vec<String> {
    if source.path.ends_with("texts.txt") {
        let lines = source.text.lines();
        lines
            .map(|line| in_one_line(&line.replace("\\n", " ")))
            .collect()
    } else {
        vec![in_one_line(&source.text)]
    }
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the name of the crate if the file is Rust code of a crate.
fn crate_of_rust(path: &Path) -> Option<&str> {
    let name = path.strip_prefix("crates").ok()?.iter().next()?;
    name.to_str()
        .filter(|_| path.extension().is_some_and(|extension| extension == "rs"))
}

/// The string literals of a file that are sentences, or parts of one.
#[derive(Default)]
struct Sentences {
    of_code: Vec<String>,
    of_tests: Vec<String>,
}

fn sentences(source: &Source) -> Sentences {
    let mut found = Sentences::default();
    let is_test = source.path.iter().any(|part| {
        ["tests", "tests.rs", "examples", "build.rs"]
            .iter()
            .any(|name| part == *name)
    });
    let tokens: TokenStream = source.text.parse().expect("rustc compiles the file");
    found.add(tokens, is_test);
    found
}

impl Sentences {
    fn add(&mut self, tokens: TokenStream, is_test: bool) {
        let is_group = |token: &TokenTree| matches!(token, TokenTree::Group(_));
        let is_bang =
            |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '!');
        let mut is_next_test = false;
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => {
                    let is_item = group.delimiter() == Delimiter::Brace;
                    self.add(group.stream(), is_test || is_next_test);
                    is_next_test &= !is_item;
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => is_next_test = false,
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    tokens.next_if(is_bang);
                    let attribute = tokens.next_if(is_group);
                    is_next_test |= attribute.is_some_and(|it| it.to_string() == "[cfg (test)]");
                }
                TokenTree::Ident(name)
                    if !is_test && FOR_DEVELOPERS.iter().any(|known| name == known) =>
                {
                    tokens.next_if(is_bang);
                    tokens.next_if(is_group);
                }
                TokenTree::Literal(literal) => {
                    let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) else {
                        continue;
                    };
                    let text = in_one_line(&text.value());
                    if is_test || is_next_test {
                        self.of_tests.push(text);
                    } else if is_sentence(&text) {
                        self.of_code.push(text);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns whether the text has two words of small letters side by side.
fn is_sentence(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let is_word = |word: &str| {
        let word = word.trim_end_matches([',', ':', ';', '.']);
        word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    words
        .windows(2)
        .any(|pair| is_word(pair[0]) && is_word(pair[1]))
}

/// Returns whether a line of `texts` contains a sentence, whose `{...}` stand for anything.
fn contains(texts: &str, sentence: &str) -> bool {
    let plain = sentence.replace("{{", "\0").replace("}}", "\u{1}");
    let parts = plain.split('{').enumerate().map(|(index, part)| {
        let part = match part.split_once('}') {
            Some((_, after)) if index > 0 => after,
            _ => part,
        };
        part.replace('\0', "{").replace('\u{1}', "}")
    });
    // A first part without text would be found everywhere.
    let mut parts = parts.skip_while(String::is_empty);
    let first = parts.next().unwrap_or_default();
    let others: Vec<String> = parts.collect();
    texts.match_indices(&first).any(|(start, _)| {
        let rest = &texts[start + first.len()..];
        let mut rest = rest.lines().next().unwrap_or_default();
        others.iter().all(|part| {
            let near = &rest[..rest.floor_char_boundary(MAX_PLACEHOLDER + part.len())];
            let found = near.find(part.as_str());
            rest = &rest[found.map_or(0, |at| at + part.len())..];
            found.is_some()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::{LIST, breaches, contains};

    /// Returns the breaches of a crate with this code, these collected texts and this list.
    fn of(code: &str, texts: &str, list: &str) -> Vec<String> {
        breaches(&[
            source("crates/os/src/lib.rs", code),
            source("crates/os/tests/texts.txt", texts),
            source(LIST, list),
        ])
    }

    #[test]
    fn a_sentence_is_collected_or_listed() {
        let code = r#"fn f() { Error::new(format!("no disk \
                      {number} here")) }"#;
        assert_eq!(of(code, "cannot x: no disk 7 here\n", "0"), [""; 0]);
        assert_eq!(of(code, "", "1\nos: no disk {number} here\n"), [""; 0]);
        assert_eq!(
            of(code, "no disk 7\n", "0"),
            ["no test passes this text to texts::seen!: os: no disk {number} here"]
        );
    }

    #[test]
    fn a_listed_sentence_that_is_collected_or_gone_is_reported() {
        let code = r#"const A: &str = "no disk found";"#;
        let gone = "xtask/src/lint/uncollected.txt: remove what is collected or gone: os: ";
        assert_eq!(
            of(code, "no disk found\n", "1\nos: no disk found\n"),
            [format!("{gone}no disk found")]
        );
        assert_eq!(
            of("", "", "1\nos: no disk found\n"),
            [format!("{gone}no disk found")]
        );
        assert!(of(code, "", "2\nos: no disk found\n")[0].contains("not 2,"));
    }

    #[test]
    fn texts_for_developers_are_no_sentences() {
        let code = r#"
            //! A comment of words.
            #[expect(dead_code, reason = "a reason in words")]
            fn f() { g().expect("words of a panic"); debug!("words of a trace") }
            const A: [&str; 2] = ["SELECT * FROM Win32_Service", "word"];
            #[cfg(test)]
            mod tests { const B: &str = "words of a test"; }
        "#;
        assert_eq!(of(code, "", "0"), [""; 0]);
    }

    #[test]
    fn a_sentence_in_a_test_is_collected() {
        let code = r#"
            const A: &str = "no disk {number} found";
            #[cfg(test)]
            mod tests { fn f() { assert_eq!(text(), "cannot x: no disk 7 found") } }
        "#;
        assert_eq!(of(code, "", "0"), [""; 0]);
        let code = code.replace("#[cfg(test)]", "");
        assert_eq!(of(&code, "", "0").len(), 1);
    }

    #[test]
    fn a_placeholder_stands_for_anything() {
        assert!(contains(
            "volume {1} of disk 2",
            "volume {{{}}} of disk {n}"
        ));
        assert!(contains("a b c b d", "b {x}d"));
        assert!(!contains("disk of volume 1", "volume {x} of disk"));
    }
}
