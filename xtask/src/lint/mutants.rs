//! The list of changes that cargo-mutants skips: each function, type and trait that the list names
//! exists. An exception for a function that is gone would hide changes to a new one of that name.

use std::path::Path;

use super::Source;

const LIST: &str = ".cargo/mutants.toml";
/// The words that introduce a name in Rust.
const KEYWORDS: [&str; 5] = ["fn", "struct", "enum", "trait", "type"];

/// Returns a breach for each name in the list that no source of `crates` defines.
pub(super) fn breaches(sources: &[Source]) -> Vec<String> {
    let Some(list) = sources.iter().find(|source| source.path == Path::new(LIST)) else {
        return Vec::new();
    };
    let defines = |name: &str| {
        sources
            .iter()
            .filter(|source| source.is_rust() && source.path.starts_with("crates"))
            .any(|source| {
                words(&source.text)
                    .zip(words(&source.text).skip(1))
                    .any(|(keyword, word)| word == name && KEYWORDS.contains(&keyword))
            })
    };
    let mut breaches = Vec::new();
    for (index, line) in list.text.lines().enumerate() {
        let Some(regex) = line.trim_start().strip_prefix('\'') else {
            continue;
        };
        // `replace \| with \^ in (a|b)`, or `with (A|B)::`.
        let names = regex
            .rsplit_once(" in ")
            .map_or(regex.trim_start_matches("with"), |(_, names)| names);
        for name in words(names).filter(|name| !["impl", "for"].contains(name)) {
            if !defines(name) {
                breaches.push(list.breach(index + 1, &format!("nothing is called {name}")));
            }
        }
    }
    breaches
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter != '_' && !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::{LIST, breaches};

    #[test]
    fn a_name_that_is_gone_is_reported() {
        let list = "exclude_re = [\n    # Why not.\n    'with (OsResult)::',\n    \
                    'replace x in (delete|gone|<impl Operation for Rescan>::run)',\n]\n";
        let code = "type OsResult<T> = T;\nfn delete() {}\npub struct Rescan;\ntrait Operation {\n\
                    fn run();\n}\n";
        let sources = [source(LIST, list), source("crates/a/src/lib.rs", code)];
        assert_eq!(
            breaches(&sources),
            [".cargo/mutants.toml:4: nothing is called gone"]
        );
    }
}
