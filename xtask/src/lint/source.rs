//! Rules for the text of a source file: its length, `unsafe`, and where it may ask for the platform.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const LINES: usize = 600;
const LINES_OF_MAIN: usize = 100;
const PLATFORM: [&str; 5] = ["windows", "unix", "target_os", "target_family", "target_env"];

/// All Rust sources below `root`, relative to it and in order, without what was built.
pub(super) fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = ["crates", "sim", "verify", "xtask"].map(PathBuf::from).into();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.extend((entry.file_name() != "target").then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What breaks a rule in one file, as `file:line: sentence`.
pub(super) fn breaches(file: &Path, text: &str) -> Vec<String> {
    let code = without_comments_and_strings(text);
    let place = |line: usize, sentence: &str| format!("{}:{line}: {sentence}", file.display());
    let mut breaches = Vec::new();

    let lines = text.lines().count();
    let most = if file.ends_with("main.rs") { LINES_OF_MAIN } else { LINES };
    if lines > most {
        breaches.push(place(lines, &format!("more than {most} lines")));
    }
    if !file.starts_with("crates/os-win32") {
        breaches.extend(words(&code, "unsafe").map(|at| place(line_of(&code, at), "unsafe outside os-win32")));
    }
    breaches.extend(misplaced_cfgs(file, &code).into_iter().map(|at| {
        place(
            line_of(&code, at),
            "asks for the platform elsewhere than on line one of a crate or on a pair of `mod imp`",
        )
    }));
    breaches
}

/// Where a cfg asks for the platform and may not.
fn misplaced_cfgs(file: &Path, code: &str) -> Vec<usize> {
    let asks: Vec<usize> =
        words(code, "cfg").chain(words(code, "cfg_attr")).filter(|at| asks_platform(code, *at)).collect();
    let (on_imp, mut others): (Vec<usize>, Vec<usize>) = asks.into_iter().partition(|at| stands_on_mod_imp(code, *at));
    others.retain(|at| !(is_crate_root(file) && opens_the_file(code, *at)));
    if on_imp.len() != 2 {
        others.extend(on_imp);
    }
    others
}

/// Whether the cfg at `at` mentions a platform between its parentheses.
fn asks_platform(code: &str, at: usize) -> bool {
    let Some(open) = code[at..].find('(').map(|open| at + open) else { return false };
    if !code[at..open]
        .trim_start_matches(|letter: char| letter == '_' || letter.is_alphabetic())
        .trim_matches(['!', ' '])
        .is_empty()
    {
        return false;
    }
    let inside = &code[open..closing(code, open)];
    PLATFORM.iter().any(|word| words(inside, word).next().is_some())
}

/// Whether the attribute around `at` is followed, perhaps behind other attributes, by `mod imp`.
fn stands_on_mod_imp(code: &str, at: usize) -> bool {
    if !code[..at].trim_end().ends_with("#[") {
        return false;
    }
    let mut rest = code[at..].split_once(']').map_or("", |(_, rest)| rest).trim_start();
    while let Some(attribute) = rest.strip_prefix("#[") {
        rest = attribute.split_once(']').map_or("", |(_, rest)| rest).trim_start();
    }
    words(rest, "imp").next() == Some("mod ".len()) && rest.starts_with("mod ")
}

/// Whether the attribute around `at` is `#![...]` and the first code of its file.
fn opens_the_file(code: &str, at: usize) -> bool {
    code[..at].trim() == "#!["
}

fn is_crate_root(file: &Path) -> bool {
    let holds_roots = |folder: Option<&Path>| {
        let name = folder.and_then(Path::file_name);
        name.is_some_and(|name| ["bin", "tests", "benches", "examples"].iter().any(|known| name == *known))
    };
    let parent = file.parent();
    // A program of several files has a folder, in which `main.rs` is the root.
    let of_a_folder = file.ends_with("main.rs") && holds_roots(parent.and_then(Path::parent));
    file.ends_with("src/lib.rs") || file.ends_with("src/main.rs") || holds_roots(parent) || of_a_folder
}

/// The place behind the parenthesis that closes the one at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, letter) in code[open..].char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return open + at + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Where `word` stands as a whole identifier.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let joins = |letter: char| letter == '_' || letter.is_alphanumeric();
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !code[..*at].ends_with(joins) && !code[at + word.len()..].starts_with(joins))
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// The text with every comment and every string or character literal blanked, line for line.
fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let behind_word = code.ends_with(|letter: char| letter == '_' || letter.is_alphanumeric());
        let length = literal_or_comment(rest, behind_word);
        if length == 0 {
            code.push(letter);
            rest = &rest[letter.len_utf8()..];
        } else {
            code.extend(rest[..length].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    code
}

/// How long the comment or literal at the start of `rest` is; 0 when there is none.
fn literal_or_comment(rest: &str, behind_word: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('"') {
        return quoted(rest, 1, '"');
    }
    if !behind_word {
        let raw = rest.trim_start_matches(['b', 'c']).strip_prefix('r').unwrap_or("");
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') && rest.len() - raw.len() <= 2 {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = rest.len() - raw.len() + hashes + 1;
            return rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len());
        }
    }
    if rest.starts_with("'\\") {
        return quoted(rest, 1, '\'');
    }
    // 'x' is a character, 'x a lifetime.
    let mut letters = rest.char_indices();
    match (letters.next(), letters.next(), letters.next()) {
        (Some((_, '\'')), Some((_, inner)), Some((end, '\''))) if inner != '\'' => end + 1,
        _ => 0,
    }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length up to and with the `end` that no backslash escapes.
fn quoted(rest: &str, start: usize, end: char) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().filter(|(at, _)| *at >= start) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == end => return at + letter.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_file(file: &str, text: &str) -> Vec<String> {
        breaches(Path::new(file), text)
    }

    fn cfg_breaches(file: &str, text: &str) -> usize {
        in_file(file, text).len()
    }

    #[test]
    fn files_stay_short_and_main_shorter() {
        let lines = |number| "fn a() {}\n".repeat(number);
        assert!(in_file("crates/node/src/lib.rs", &lines(600)).is_empty());
        assert_eq!(in_file("crates/node/src/lib.rs", &lines(601)), ["crates/node/src/lib.rs:601: more than 600 lines"]);
        assert!(in_file("crates/csi-proxy/src/main.rs", &lines(100)).is_empty());
        assert_eq!(in_file("crates/csi-proxy/src/main.rs", &lines(101)).len(), 1);
    }

    #[test]
    fn unsafe_is_for_os_win32_alone() {
        let text = "fn a() {\n    unsafe { b() }\n}\n";
        assert_eq!(in_file("crates/pipe/src/lib.rs", text), ["crates/pipe/src/lib.rs:2: unsafe outside os-win32"]);
        assert!(in_file("crates/os-win32/src/lib.rs", text).is_empty());
        assert_eq!(in_file("crates/os-win32-evil/src/lib.rs", text).len(), 1);
    }

    #[test]
    fn words_in_comments_and_literals_are_no_code() {
        let text = "// unsafe\n/* unsafe /* unsafe */ unsafe */\nconst A: &str = \"unsafe \\\" unsafe\";\n\
                    const B: &str = r#\"unsafe \" unsafe\"#;\nconst C: char = '\"'; const D: char = '\\'';\n\
                    fn e<'a>(f: &'a str) {}\nfn unsafe_code() {}\n";
        assert_eq!(in_file("crates/node/src/lib.rs", text), [] as [&str; 0]);
        assert_eq!(in_file("crates/node/src/lib.rs", &format!("{text}unsafe fn g() {{}}\n")).len(), 1);
    }

    #[test]
    fn a_crate_may_be_for_one_platform_by_its_first_line() {
        assert_eq!(cfg_breaches("crates/os-win32/src/lib.rs", "#![cfg(windows)]\n//! Windows.\n"), 0);
        assert_eq!(cfg_breaches("crates/csi-proxy/tests/unix.rs", "//! Unix.\n#![cfg(unix)]\n"), 0);
        assert_eq!(cfg_breaches("crates/node/src/disk.rs", "#![cfg(windows)]\n"), 1);
        assert_eq!(cfg_breaches("crates/os-win32/src/lib.rs", "use a;\n#![cfg(windows)]\n"), 1);
    }

    #[test]
    fn a_pair_of_imp_modules_may_differ_by_platform() {
        let pair = "#[cfg(unix)]\n#[path = \"unix.rs\"]\nmod imp;\n#[cfg(windows)]\nmod imp {\n}\n";
        assert_eq!(cfg_breaches("crates/pipe/src/address.rs", pair), 0);
        assert_eq!(cfg_breaches("crates/pipe/src/address.rs", "#[cfg(windows)]\nmod imp;\n"), 1);
        assert_eq!(cfg_breaches("crates/pipe/src/address.rs", "#[cfg(windows)]\nmod import;\n"), 1);
    }

    #[test]
    fn no_other_cfg_asks_for_the_platform() {
        for text in [
            "#[cfg(windows)]\nfn a() {}\n",
            "#[cfg(all(test, not(windows)))]\nmod tests {}\n",
            "fn a() -> bool { cfg!(target_os = \"linux\") }\n",
            "#[cfg_attr(unix, path = \"unix.rs\")]\nmod a;\n",
        ] {
            assert_eq!(cfg_breaches("crates/node/src/disk.rs", text), 1, "{text}");
        }
        for text in ["#[cfg(test)]\nmod tests {}\n", "#[cfg(feature = \"windows\")]\nfn a() {}\n", "fn windows() {}\n"]
        {
            assert_eq!(cfg_breaches("crates/node/src/disk.rs", text), 0, "{text}");
        }
    }
}
