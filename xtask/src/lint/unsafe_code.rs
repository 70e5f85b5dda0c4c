//! Unsafe code, which only `crates/os-win32` contains.
//!
//! The workspace's lint table lets rustc deny it. This rule only ensures that each package uses
//! that table and that no other package makes an exception.

use super::{OUTSIDE_WORKSPACE, Source};

const EXCEPTION: &str = "crates/os-win32";

/// Returns a breach if a manifest does not use the workspace's lints, or a source file sets this
/// one.
pub(super) fn breach(source: &Source) -> Option<String> {
    let name = concat!("unsafe", "_code");
    if source.path.ends_with("Cargo.toml") {
        let inherits = source.text.contains("[lints]\nworkspace = true\n");
        let needs = source.text.contains("[package]\n")
            && !OUTSIDE_WORKSPACE
                .iter()
                .any(|path| source.path.ends_with(path));
        return (needs && !inherits)
            .then(|| source.breach(1, "`[lints] workspace = true` is missing"));
    }
    if !source.is_rust() || source.path.starts_with(EXCEPTION) {
        return None;
    }
    let line = source
        .text
        .lines()
        .position(|line| line.contains('[') && line.contains(name))?;
    Some(source.breach(
        line + 1,
        &format!("the lint {name} is set outside {EXCEPTION}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::*;

    #[test]
    fn every_package_uses_the_lints_of_the_workspace() {
        let package = "[package]\nname = \"a\"\n\n";
        assert_eq!(
            breach(&source("crates/a/Cargo.toml", package)).as_deref(),
            Some("crates/a/Cargo.toml:1: `[lints] workspace = true` is missing")
        );
        assert_eq!(
            breach(&source(
                "crates/a/Cargo.toml",
                &format!("{package}[lints]\nworkspace = true\n")
            )),
            None
        );
        assert_eq!(breach(&source("Cargo.toml", "[workspace]\n")), None);
    }

    #[test]
    fn only_os_win32_sets_the_lint() {
        let text = concat!("//! A.\n#![allow(unsafe", "_code)]\n");
        assert!(breach(&source("crates/transport/src/lib.rs", text)).is_some());
        assert!(breach(&source("crates/os-win32-evil/src/lib.rs", text)).is_some());
        assert_eq!(breach(&source("crates/os-win32/src/lib.rs", text)), None);
    }
}
