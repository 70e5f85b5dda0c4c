//! The length of source files. Clippy limits functions only.

use super::Source;

/// A file that takes longer to read than this describes more than one thing. The limits are for
/// code in the default format of rustfmt; size as such is counted in tokens, not in lines.
const MOST_LINES: usize = 900;
const MOST_LINES_OF_MAIN: usize = 150;

/// Returns a breach if the file is too long.
pub(super) fn breach(source: &Source) -> Option<String> {
    let lines = source.text.lines().count();
    let most = if source.path.ends_with("main.rs") {
        MOST_LINES_OF_MAIN
    } else {
        MOST_LINES
    };
    (source.is_rust() && lines > most)
        .then(|| source.breach(lines, &format!("more than {most} lines")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::*;

    #[test]
    fn main_is_shorter_than_other_files() {
        let breach = |path, lines| breach(&source(path, &"fn a() {}\n".repeat(lines)));
        assert_eq!(breach("crates/os/src/lib.rs", 900), None);
        assert_eq!(
            breach("crates/os/src/lib.rs", 901).as_deref(),
            Some("crates/os/src/lib.rs:901: more than 900 lines")
        );
        assert_eq!(breach("crates/csi-proxy/src/main.rs", 150), None);
        assert!(breach("crates/csi-proxy/src/main.rs", 151).is_some());
        assert_eq!(breach("docs/design.md", 901), None);
    }
}
