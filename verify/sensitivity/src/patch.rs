//! The patches, and which operations fail with one of them.

use std::path::PathBuf;
use std::{fs, io};

/// A patch file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) name: String,
    /// Which rule it breaks.
    pub(crate) rule: String,
    pub(crate) cases: Vec<String>,
    pub(crate) operations: Vec<String>,
    /// The arguments of the `cargo test` that must fail; empty if `fault-injection` must fail.
    pub(crate) test: String,
    /// A part of its output.
    pub(crate) says: String,
}

/// Reads the patches, ordered by name.
pub(crate) fn all() -> io::Result<Vec<Patch>> {
    let mut patches = Vec::new();
    for entry in fs::read_dir(folder())? {
        let path = entry?.path();
        if path
            .extension()
            .is_none_or(|extension| extension != "patch")
        {
            continue;
        }
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        patches.push(Patch::parse(&name, &fs::read_to_string(&path)?));
    }
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(patches)
}

/// The folder of this package, with the patches.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

impl Patch {
    pub(crate) fn parse(name: &str, text: &str) -> Self {
        let mut patch = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        let mut rule: Vec<&str> = Vec::new();
        for line in text
            .lines()
            .take_while(|line| !line.starts_with("diff "))
            .filter(|line| !line.is_empty())
        {
            match line.split_once(": ") {
                Some(("Case", case)) => patch.cases.push(case.to_owned()),
                Some(("Fails", operation)) => patch.operations.push(operation.to_owned()),
                Some(("Test", arguments)) => arguments.clone_into(&mut patch.test),
                Some(("Says", message)) => message.clone_into(&mut patch.says),
                _ => rule.push(line),
            }
        }
        patch.rule = rule.join(" ");
        patch
    }
}

/// Returns the operations that fail, from the table that `fault-injection` prints: an operation in
/// the first column, the number of its failures in the last.
pub(crate) fn failing(output: &str) -> Vec<String> {
    let table = output
        .lines()
        .skip_while(|line| !line.starts_with("operation "))
        .skip(1);
    let rows = table
        .take_while(|line| !line.starts_with("all "))
        .filter(|row| !row.ends_with(" 0"));
    rows.filter_map(|row| row.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Patch, all, failing};

    #[test]
    fn a_patch_states_its_rule_before_its_diff() {
        let text = "A lock is\nremoved.\n\nCase: Rmdir/\nFails: Rmdir\n\ndiff --git a/x b/x\n--- \
                    a/x\nCase: no\n";
        let patch = Patch::parse("a.patch", text);
        assert_eq!(
            (patch.rule.as_str(), patch.cases, patch.operations),
            (
                "A lock is removed.",
                vec!["Rmdir/".to_owned()],
                vec!["Rmdir".to_owned()]
            )
        );
    }

    #[test]
    fn every_patch_has_a_rule_and_a_test_that_detects_it() {
        for patch in all().expect("the patches") {
            let by_cases = !patch.cases.is_empty() && !patch.operations.is_empty();
            let by_test = !patch.test.is_empty() && !patch.says.is_empty();
            assert!(
                patch.rule.ends_with('.') && by_cases != by_test,
                "{patch:?}"
            );
        }
    }

    #[test]
    fn the_failing_operations_are_parsed_from_the_table() {
        let output = "FAILED --case 'Rmdir/a tree #1 slow'\n    the end state differs\n\
                      operation   states   calls     cases  failures\n\
                      Mkdir            2       3        10         0\n\
                      Rmdir            2       3        10         7\n\
                      all              4       6        20         7\n\n0.1 s\n7 failures\n";
        assert_eq!(failing(output), ["Rmdir"]);
    }
}
