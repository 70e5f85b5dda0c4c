//! What the documentation names must exist: files that it links, and paths in code spans; and files
//! and folders that comments in Rust name. `verify/site` checks the headings that links
//! lead to.

use std::path::Path;

use super::Source;

/// The first components that mark a code span as a path in this tree.
const TOP: [&str; 9] = [
    "crates/",
    "sim/",
    "verify/",
    "deploy/",
    "docs/",
    "xtask/",
    "examples/",
    ".github/",
    ".cargo/",
];

/// Returns a breach for each file and path that a page names and that does not exist.
///
/// `exists` returns whether a path, relative to the root of the tree, exists.
pub(super) fn breaches(sources: &[Source], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let pages = sources.iter().filter(|source| {
        source
            .path
            .extension()
            .is_some_and(|extension| extension == "md")
    });
    let mut breaches = Vec::new();
    for page in pages {
        for (index, line) in page.text.lines().enumerate() {
            let mut breach = |sentence: String| breaches.push(page.breach(index + 1, &sentence));
            for target in links(line).filter(|target| !target.contains("://")) {
                let file = target.split('#').next().unwrap_or_default();
                if !file.is_empty() && !exists(&page.path.with_file_name(file)) {
                    breach(format!("the link target {target} does not exist"));
                }
            }
            for span in code_spans(line) {
                if is_path(span) && !exists(Path::new(span)) {
                    breach(format!("{span} does not exist"));
                }
            }
        }
    }
    breaches.extend(missing_in_comments(sources, &exists));
    breaches
}

/// Returns a breach for each source file and each path of this tree that a comment in Rust names
/// and that does not exist. A comment may leave out the beginning of a path: `rpc/router.rs`.
fn missing_in_comments(sources: &[Source], exists: &impl Fn(&Path) -> bool) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for (index, line) in source.text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                continue;
            };
            for word in comment.split(|letter: char| letter.is_whitespace() || letter == '`') {
                let word = word.trim_matches(['(', ')', '[', ']', ',', ';', ':', '.', '\'', '"']);
                let path = Path::new(word);
                let is_source = word != "docs.rs"
                    && path.extension().is_some_and(|extension| extension == "rs");
                let is_missing = if is_path(word) {
                    !exists(path)
                } else {
                    is_source && !sources.iter().any(|source| source.path.ends_with(path))
                };
                if is_missing {
                    breaches.push(source.breach(index + 1, &format!("{word} does not exist")));
                }
            }
        }
    }
    breaches
}

/// Returns the targets of `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
}

/// Returns the text between single backticks.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns whether a code span is a path in this tree, without placeholders such as `<group>` and
/// without arguments.
fn is_path(span: &str) -> bool {
    TOP.iter().any(|top| span.starts_with(top)) && !span.contains(['<', '*', ' '])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::breaches;
    use crate::lint::tests::source;

    /// Returns the breaches of a page with this text, in a tree with one other page.
    fn of(text: &str) -> Vec<String> {
        let sources = [
            source("docs/page.md", text),
            source("README.md", "# A heading, with `code`\n"),
        ];
        let exists = |path: &Path| {
            path == Path::new("crates/os") || sources.iter().any(|file| file.path == path)
        };
        breaches(&sources, exists)
    }

    #[test]
    fn existing_paths_are_accepted() {
        let page = "`crates/os` `crates/<name>/src` `cargo xtask test`";
        assert_eq!(of(page), [] as [&str; 0]);
    }

    #[test]
    fn a_file_that_only_a_comment_names_is_reported() {
        let of = |comment: &str| {
            let sources = [
                source("crates/os/src/rpc/router.rs", comment),
                source("crates/os/src/lib.rs", ""),
            ];
            breaches(&sources, |path| path == Path::new("crates/os"))
        };
        assert_eq!(
            of("/// See `rpc/router.rs`, lib.rs and crates/os."),
            [] as [&str; 0]
        );
        assert_eq!(
            of("// The message (rpc/status.rs) and `crates/gone`."),
            [
                "crates/os/src/rpc/router.rs:1: rpc/status.rs does not exist",
                "crates/os/src/rpc/router.rs:1: crates/gone does not exist"
            ]
        );
    }

    #[test]
    fn missing_paths_are_reported() {
        assert_eq!(
            of("[a](missing.md#b)"),
            ["docs/page.md:1: the link target missing.md#b does not exist"]
        );
        assert_eq!(
            of("\n`crates/missing/src`"),
            ["docs/page.md:2: crates/missing/src does not exist"]
        );
    }
}
