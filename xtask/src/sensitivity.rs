//! Whether tests detect a broken rule: each patch in `verify/sensitivity-patches` breaks one rule in a copy of this tree,
//! in which a test must then fail.
//!
//! A patch begins with a sentence that states which rule it breaks. Its lines `Case:` select the cases of `prove` to run,
//! and its lines `Fails:` name operations that must be among those that fail. Or its line `Test:` has the arguments of the
//! `cargo test` that must fail, and its line `Says:` a part of the output. A patch that does not apply is a failure.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

use crate::summary::Summary;
use crate::{Error, durations, process, workspace};

/// A patch file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Patch {
    name: String,
    /// Which rule it breaks.
    rule: String,
    cases: Vec<String>,
    operations: Vec<String>,
    /// The arguments of the `cargo test` that must fail; empty if `prove` must.
    test: String,
    /// A part of its output.
    says: String,
}

/// What one run of the simulation tests found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Findings {
    /// The operations with failures.
    operations: BTreeSet<String>,
    failures: usize,
}

/// Runs the simulation tests without a patch, where they must pass, and with each patch, where they must fail.
pub(crate) fn run() -> Result<Summary, Error> {
    let Some(files) = workspace::files() else {
        return Ok(Summary::skipped(
            "sensitivity",
            "the list of files to copy is read from git, and this is not a git checkout",
        ));
    };
    let folder = workspace::target().join("sensitivity");
    let copy = TreeCopy { root: folder.join("tree"), target: folder.join("build") };
    let patches = patches()?;
    let mut summary = Summary::default();
    let mut results = Vec::new();
    copy.mirror(&workspace::root(), &files)?;
    let cases: Vec<&str> = patches.iter().flat_map(|patch| &patch.cases).map(String::as_str).collect();
    summary += match copy.test(&cases)? {
        Ok(findings) if findings.failures == 0 => Summary::passed(),
        Ok(findings) => Summary::failed(&format!("the tests fail without a patch: {}", findings.describe())),
        Err(reason) => Summary::failed(&format!("without a patch, {reason}")),
    };
    for patch in &patches {
        copy.mirror(&workspace::root(), &files)?;
        let result = copy.detects(patch)?;
        summary += match &result {
            Ok(_) => Summary::passed(),
            Err(reason) => Summary::failed(&format!("the patch {}: {reason}", patch.name)),
        };
        results.push((patch, result));
    }
    for (patch, result) in results {
        let (Ok(result) | Err(result)) = result;
        println!("\n{}\n    {}\n    {result}", patch.rule, patch.name);
    }
    Ok(summary)
}

/// Reads the patches, ordered by name.
fn patches() -> io::Result<Vec<Patch>> {
    let mut patches = Vec::new();
    for entry in fs::read_dir(folder())? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        patches.push(Patch::parse(&name, &fs::read_to_string(&path)?));
    }
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(patches)
}

fn folder() -> PathBuf {
    workspace::root().join("verify/sensitivity-patches")
}

impl Patch {
    fn parse(name: &str, text: &str) -> Self {
        let mut patch = Self { name: name.to_owned(), ..Self::default() };
        let mut rule: Vec<&str> = Vec::new();
        for line in text.lines().take_while(|line| !line.starts_with("diff ")).filter(|line| !line.is_empty()) {
            if let Some(case) = line.strip_prefix("Case: ") {
                patch.cases.push(case.to_owned());
            } else if let Some(operation) = line.strip_prefix("Fails: ") {
                patch.operations.push(operation.to_owned());
            } else if let Some(test) = line.strip_prefix("Test: ") {
                test.clone_into(&mut patch.test);
            } else if let Some(message) = line.strip_prefix("Says: ") {
                message.clone_into(&mut patch.says);
            } else {
                rule.push(line);
            }
        }
        patch.rule = rule.join(" ");
        patch
    }
}

impl Findings {
    /// Parses the table that `prove` prints: an operation in the first column, the number of its failures in the last.
    fn parse(output: &str) -> Self {
        let mut findings = Self::default();
        let table = output.lines().skip_while(|line| !line.starts_with("operation "));
        for line in table.skip(1).take_while(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            let (operation, failures) = (words.next(), words.next_back().and_then(|count| count.parse().ok()));
            match (operation, failures) {
                (Some("all"), Some(sum)) => findings.failures = sum,
                (Some(operation), Some(1usize..)) => drop(findings.operations.insert(operation.to_owned())),
                _ => {}
            }
        }
        findings
    }

    fn describe(&self) -> String {
        let operations: Vec<&str> = self.operations.iter().map(String::as_str).collect();
        format!("{} cases fail: {}", self.failures, operations.join(", "))
    }
}

/// A copy of the source tree, to which the patches are applied one after the other.
struct TreeCopy {
    root: PathBuf,
    /// Where the copy is built.
    target: PathBuf,
}

impl TreeCopy {
    /// Makes the copy have these files of `source`, and no others. Writes only files that differ, so that only these are
    /// compiled again.
    fn mirror(&self, source: &Path, files: &[PathBuf]) -> io::Result<()> {
        // Without those that were removed without `git rm`.
        let files: BTreeSet<&Path> =
            files.iter().map(PathBuf::as_path).filter(|file| source.join(file).is_file()).collect();
        fs::create_dir_all(&self.root)?;
        // First, since what was a folder may be a file now.
        self.remove_others(&self.root, &files)?;
        for file in files {
            let (original, copy) = (source.join(file), self.root.join(file));
            let text = fs::read(&original)?;
            if !fs::read(&copy).is_ok_and(|old| old == text) {
                fs::create_dir_all(copy.parent().unwrap_or(&self.root))?;
                fs::write(copy, text)?;
            }
        }
        Ok(())
    }

    /// Removes what is not in the source tree. Returns whether the folder is then empty: cargo takes an empty folder
    /// `crates/x` for a package.
    fn remove_others(&self, folder: &Path, files: &BTreeSet<&Path>) -> io::Result<bool> {
        let mut is_empty = true;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let is_wanted = if entry.file_type()?.is_dir() {
                let is_empty = self.remove_others(&path, files)?;
                if is_empty {
                    fs::remove_dir(&path)?;
                }
                !is_empty
            } else {
                let is_wanted = path.strip_prefix(&self.root).is_ok_and(|file| files.contains(file));
                if !is_wanted {
                    fs::remove_file(&path)?;
                }
                is_wanted
            };
            is_empty &= !is_wanted;
        }
        Ok(is_empty)
    }

    /// Applies a patch. Returns whether that succeeded.
    fn apply(&self, patch: &Patch) -> io::Result<bool> {
        let mut git = Command::new("git");
        git.args(["apply", "--whitespace=nowarn"]).arg(folder().join(&patch.name)).current_dir(&self.root);
        // The copy is in the target folder of a checkout. Without this, git would skip files that it does not track.
        git.env("GIT_CEILING_DIRECTORIES", self.root.parent().unwrap_or(&self.root));
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
            git.env_remove(variable);
        }
        process::succeeds(&mut git)
    }

    /// Applies a patch and returns what the tests then report, or, as the inner error, why they do not detect the patch.
    fn detects(&self, patch: &Patch) -> io::Result<Result<String, String>> {
        if !self.apply(patch)? {
            return Ok(Err("it does not apply".to_owned()));
        }
        if !patch.test.is_empty() {
            return self.test_detects(patch);
        }
        let cases: Vec<&str> = patch.cases.iter().map(String::as_str).collect();
        let findings = match self.test(&cases)? {
            Ok(findings) => findings,
            Err(reason) => return Ok(Err(reason)),
        };
        if findings.failures == 0 {
            return Ok(Err("no test fails".to_owned()));
        }
        let missing = patch.operations.iter().find(|name| !findings.operations.contains(*name));
        Ok(match missing {
            Some(missing) => Err(format!("{missing} does not fail, but {}", findings.describe())),
            None => Ok(findings.describe()),
        })
    }

    /// Runs the `cargo test` that a patch names, which must fail as the patch says.
    fn test_detects(&self, patch: &Patch) -> io::Result<Result<String, String>> {
        let mut test = workspace::cargo();
        test.args(["test", "--quiet", "--locked"]).args(patch.test.split_whitespace());
        test.current_dir(&self.root).env("CARGO_TARGET_DIR", self.target.join("tests"));
        process::print(&test);
        let Output { status, stdout, stderr } = test.output()?;
        let printed = [stdout, stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        Ok(match (status.success(), printed.contains(&patch.says)) {
            (true, _) => Err("no test fails".to_owned()),
            (false, true) => Ok(format!("a test fails: {}", patch.says)),
            (false, false) => Err(format!("no test fails with `{}`:\n{printed}", patch.says)),
        })
    }

    /// Builds the simulation tests and runs these cases. The inner error states why there is no result.
    fn test(&self, cases: &[&str]) -> io::Result<Result<Findings, String>> {
        let mut build = workspace::cargo();
        build.args(["build", "--quiet", "--locked", "--release", "--package", "csi-proxy-simtest", "--bin", "prove"]);
        // Building takes longer than running, so optimise a little and not fully.
        build.args(["--config", "profile.release.lto='off'", "--config", "profile.release.opt-level=1"]);
        build.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        process::print(&build);
        // A patch can leave an item unused. Those warnings are printed only if the build fails.
        let Output { status, stderr, .. } = durations::record(&mut build, Command::output)?;
        if !status.success() {
            println!("{}", String::from_utf8_lossy(&stderr));
            return Ok(Err("the tests do not build".to_owned()));
        }
        let program = format!("prove{}", std::env::consts::EXE_SUFFIX);
        let mut prove = Command::new(self.target.join("release").join(program));
        prove.args(["--seeds", "0", "--show", "1"]).args(cases.iter().flat_map(|case| ["--case", case]));
        let Output { status, stdout, .. } = prove.output()?;
        let findings = Findings::parse(&String::from_utf8_lossy(&stdout));
        Ok(match (status.code(), findings.failures) {
            (Some(0), 0) | (Some(1), 1..) => Ok(findings),
            _ => Err(format!("`prove` exited with {status} and {} failures", findings.failures)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{Findings, Patch, TreeCopy, patches};
    use crate::workspace;

    /// Returns the files and folders below `folder`, each file with its text.
    fn entries(folder: &Path) -> Vec<(PathBuf, Option<String>)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            found.push((entry.clone(), fs::read_to_string(&entry).ok()));
            if entry.is_dir() {
                found.extend(entries(&entry));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_copy_has_the_files_of_the_tree_and_neither_other_files_nor_other_folders() {
        let folder = workspace::target().join(format!("mirror-test-{}", std::process::id()));
        let (source, copy) = (folder.join("source"), folder.join("copy"));
        let tree = TreeCopy { root: copy.clone(), target: folder.join("build") };
        let write = |file: &str, text: &str| {
            let path = source.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("it is new");
            fs::write(path, text).expect("the folder is writable");
        };
        let mirror = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            tree.mirror(&source, &files).expect("it can be written");
            let copied: Vec<_> = entries(&copy)
                .into_iter()
                .map(|(path, text)| (path.strip_prefix(&copy).unwrap().to_owned(), text))
                .collect();
            let original: Vec<_> = entries(&source)
                .into_iter()
                .map(|(path, text)| (path.strip_prefix(&source).unwrap().to_owned(), text))
                .collect();
            assert_eq!(copied, original);
        };
        write("crates/old/src/lib.rs", "1");
        write("crates/old/Cargo.toml", "2");
        write("tests", "3");
        mirror(&["crates/old/src/lib.rs", "crates/old/Cargo.toml", "tests"]);
        // The crate moves, a file becomes a folder, and one changes.
        fs::rename(source.join("crates/old"), source.join("crates/new")).expect("it exists");
        fs::remove_file(source.join("tests")).expect("it exists");
        write("tests/a/one.rs", "4");
        write("crates/new/Cargo.toml", "5");
        // One that was removed without `git rm` is still listed.
        let files = ["crates/new/src/lib.rs", "crates/new/Cargo.toml", "tests/a/one.rs", "gone"];
        mirror(&files);
        // What a patch adds is removed.
        fs::write(copy.join("crates/new/src/other.rs"), "6").expect("the folder exists");
        fs::create_dir_all(copy.join("crates/added/src")).expect("it is new");
        mirror(&files);
        fs::remove_dir_all(folder).expect("it exists");
    }

    #[test]
    fn a_patch_states_its_rule_before_its_diff() {
        let text = "A lock is\nremoved.\n\nCase: Rmdir/\nFails: Rmdir\n\ndiff --git a/x b/x\n--- a/x\nCase: no\n";
        let patch = Patch::parse("a.patch", text);
        assert_eq!(
            (patch.rule.as_str(), patch.cases, patch.operations),
            ("A lock is removed.", vec!["Rmdir/".to_owned()], vec!["Rmdir".to_owned()])
        );
        let patch = Patch::parse("b.patch", "It is.\nTest: -p x a_test\nSays: two changes\n");
        assert_eq!((patch.test.as_str(), patch.says.as_str()), ("-p x a_test", "two changes"));
    }

    #[test]
    fn every_patch_has_a_rule_and_a_test_that_detects_it() {
        for patch in patches().expect("the patches") {
            let by_prove = !patch.cases.is_empty() && !patch.operations.is_empty();
            let by_test = !patch.test.is_empty() && !patch.says.is_empty();
            assert!(patch.rule.ends_with('.') && by_prove != by_test, "{patch:?}");
        }
    }

    #[test]
    fn the_failing_operations_are_parsed_from_the_table() {
        let output = "FAILED --case 'Rmdir/a tree #1 slow'\n    the end state differs\n\
                      operation   states   calls    faults     cases  failures\n\
                      Mkdir            2       3        10        10         0\n\
                      Rmdir            2       3        10        10         7\n\
                      all              4       6        20        20         7\n\n0.1 s\n7 failures\n";
        let findings = Findings::parse(output);
        assert_eq!((findings.failures, findings.operations), (7, ["Rmdir".to_owned()].into()));
    }
}
