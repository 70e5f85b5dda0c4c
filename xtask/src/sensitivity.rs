//! `cargo xtask sensitivity`: whether tests detect a broken rule. Each patch in `verify/sensitivity-patches` breaks one rule
//! in a copy of this tree, in which a test must then fail.
//!
//! A patch begins with a sentence that states which rule it breaks. Its lines `Case:` select the cases of `prove` to run,
//! and its lines `Fails:` name operations that must be among those that fail. Or its line `Test:` has the arguments of the
//! `cargo test` that must fail, and its line `Says:` a part of the output. A patch that does not apply is a failure.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

use crate::summary::Summary;
use crate::{Error, process, workspace};

/// A patch file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Patch {
    name: String,
    /// Which rule it breaks.
    rule: String,
    cases: Vec<String>,
    operations: Vec<String>,
    /// The arguments of the `cargo test` that must fail; empty if `prove` must fail.
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
    if workspace::files().is_none() {
        return Ok(Summary::skipped("sensitivity", "git makes the copy of the tree, and this is not a git checkout"));
    }
    let copy = TreeCopy::create()?;
    let patches = patches()?;
    let all_cases: Vec<&str> = patches.iter().flat_map(|patch| &patch.cases).map(String::as_str).collect();
    let mut summary = match copy.test(&all_cases)? {
        Ok(findings) if findings.failures == 0 => Summary::passed(),
        Ok(findings) => Summary::failed(&format!("the tests fail without a patch: {}", findings.describe())),
        Err(reason) => Summary::failed(&format!("without a patch, {reason}")),
    };
    for patch in &patches {
        copy.reset()?;
        let result = detect(&copy, patch)?;
        let (Ok(text) | Err(text)) = &result;
        println!("\n{}\n    {}\n    {text}", patch.rule, patch.name);
        summary += match &result {
            Ok(_) => Summary::passed(),
            Err(reason) => Summary::failed(&format!("the patch {}: {reason}", patch.name)),
        };
    }
    Ok(summary)
}

/// Returns what the tests detect with a patch, or why they do not detect it.
fn detect(copy: &TreeCopy, patch: &Patch) -> Result<Result<String, String>, Error> {
    if !copy.apply(patch)? {
        return Ok(Err("it does not apply".to_owned()));
    }
    if !patch.test.is_empty() {
        return Ok(copy.run_test(patch)?);
    }
    let cases: Vec<&str> = patch.cases.iter().map(String::as_str).collect();
    let findings = match copy.test(&cases)? {
        Ok(findings) if findings.failures == 0 => return Ok(Err("no test fails".to_owned())),
        Ok(findings) => findings,
        Err(reason) => return Ok(Err(reason)),
    };
    Ok(match patch.operations.iter().find(|name| !findings.operations.contains(*name)) {
        Some(missing) => Err(format!("{missing} does not fail, but {}", findings.describe())),
        None => Ok(findings.describe()),
    })
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

/// A clone of this repository with the files of the working tree, to which the patches are applied one after the other.
struct TreeCopy {
    root: PathBuf,
    /// Where the copy is built.
    target: PathBuf,
    /// A commit with the tracked files of the working tree.
    commit: String,
}

impl TreeCopy {
    /// Creates or updates the copy. Git writes only files that differ, so that only these are compiled again.
    fn create() -> Result<Self, Error> {
        let folder = workspace::target().join("sensitivity");
        let (root, target) = (folder.join("tree"), folder.join("build"));
        // Without changes, this prints nothing.
        let changed = process::output(git(&workspace::root()).args(["stash", "create"])).unwrap_or_default();
        let head =
            process::output(git(&workspace::root()).args(["rev-parse", "HEAD"])).ok_or("git rev-parse failed")?;
        let commit = if changed.is_empty() { head } else { changed };
        if !root.join(".git").exists() {
            let mut clone = git(&workspace::root());
            clone.args(["clone", "--quiet", "--shared", "--no-checkout", "."]).arg(&root);
            if !process::succeeds(&mut clone)? {
                return Err("git clone failed".into());
            }
        }
        let copy = Self { root, target, commit };
        copy.reset()?;
        Ok(copy)
    }

    /// Makes the copy have the files of the commit, and no others.
    fn reset(&self) -> Result<(), Error> {
        let checkout =
            process::succeeds(git(&self.root).args(["checkout", "--quiet", "--force", "--detach", &self.commit]))?;
        let clean = process::succeeds(git(&self.root).args(["clean", "-d", "--force", "--quiet"]))?;
        if checkout && clean { Ok(()) } else { Err("git cannot reset the copy of the tree".into()) }
    }

    /// Applies a patch. Returns whether that succeeded.
    fn apply(&self, patch: &Patch) -> io::Result<bool> {
        process::succeeds(git(&self.root).args(["apply", "--whitespace=nowarn"]).arg(folder().join(&patch.name)))
    }

    /// Runs the `cargo test` that a patch names, which must fail as the patch says.
    fn run_test(&self, patch: &Patch) -> io::Result<Result<String, String>> {
        let mut test = workspace::cargo();
        test.args(["test", "--quiet", "--locked"]).args(patch.test.split_whitespace());
        test.current_dir(&self.root).env("CARGO_TARGET_DIR", self.target.join("tests"));
        process::print(&test);
        let Output { status, stdout, stderr } = test.output()?;
        let printed = [stdout, stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        if status.success() {
            return Ok(Err("no test fails".to_owned()));
        }
        Ok(if printed.contains(&patch.says) {
            Ok(format!("a test fails: {}", patch.says))
        } else {
            Err(format!("no test fails with `{}`:\n{printed}", patch.says))
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
        let Output { status, stderr, .. } = build.output()?;
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

/// Returns a command of git in a folder. In a container, a checkout can belong to another user, which git refuses by
/// default.
fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder).args([
        "-c",
        "safe.directory=*",
        "-c",
        "user.name=xtask",
        "-c",
        "user.email=xtask@localhost",
    ]);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(variable);
    }
    git
}

#[cfg(test)]
mod tests {
    use super::{Findings, Patch, patches};

    #[test]
    fn a_patch_states_its_rule_before_its_diff() {
        let text = "A lock is\nremoved.\n\nCase: Rmdir/\nFails: Rmdir\n\ndiff --git a/x b/x\n--- a/x\nCase: no\n";
        let patch = Patch::parse("a.patch", text);
        assert_eq!(
            (patch.rule.as_str(), patch.cases, patch.operations),
            ("A lock is removed.", vec!["Rmdir/".to_owned()], vec!["Rmdir".to_owned()])
        );
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
