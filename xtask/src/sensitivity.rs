//! Whether the proof would notice: each patch in `verify/sensitivity-patches` breaks one rule, in a copy of this tree, and
//! there the sweep must fail.
//!
//! A patch begins with a sentence that says which rule it breaks. Lines `Case:` say which part of the sweep is run, and
//! lines `Fails:` which operations must be among those that fail. A patch that does not apply any more is a failure.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

use crate::summary::Tally;
use crate::{Outcome, process, workspace};

/// One patch.
#[derive(Debug, Default, PartialEq, Eq)]
struct Patch {
    name: String,
    /// What it breaks.
    rule: String,
    cases: Vec<String>,
    operations: Vec<String>,
}

/// What a sweep found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sweep {
    operations: BTreeSet<String>,
    failures: usize,
}

/// Runs all and prints the count.
pub(crate) fn run() -> Outcome {
    let tally = test()?;
    tally.print();
    Ok(tally.is_green())
}

/// Runs the sweep without a patch, where it must succeed, and with each patch.
pub(crate) fn test() -> Result<Tally, Box<dyn std::error::Error>> {
    let Some(files) = tracked() else {
        return Ok(Tally::skip("broken", "only a checkout knows its files, and here is none, or no git"));
    };
    let bench =
        Bench { tree: workspace::target().join("broken/tree"), built: workspace::target().join("broken/build") };
    let patches = patches()?;
    let mut tally = Tally::default();
    let mut rows = Vec::new();
    bench.restore(&files)?;
    let cases: Vec<&str> = patches.iter().flat_map(|patch| &patch.cases).map(String::as_str).collect();
    match bench.sweep(&cases)? {
        Ok(sweep) if sweep.failures == 0 => tally.passed += 1,
        Ok(sweep) => tally += Tally::broken(&format!("the sweep fails without a patch: {}", sweep.row())),
        Err(why) => tally += Tally::broken(&format!("without a patch, {why}")),
    }
    for patch in &patches {
        bench.restore(&files)?;
        let cases: Vec<&str> = patch.cases.iter().map(String::as_str).collect();
        let swept = if bench.apply(patch)? { bench.sweep(&cases)? } else { Err("it does not apply".to_owned()) };
        let verdict = match swept {
            Ok(sweep) if sweep.failures == 0 => Err("nobody notices".to_owned()),
            Ok(sweep) => match patch.operations.iter().find(|operation| !sweep.operations.contains(*operation)) {
                Some(missing) => Err(format!("{missing} does not fail, but {}", sweep.row())),
                None => Ok(sweep.row()),
            },
            Err(why) => Err(why),
        };
        rows.push((patch, verdict.clone()));
        match verdict {
            Ok(_) => tally.passed += 1,
            Err(why) => tally += Tally::broken(&format!("the patch {}: {why}", patch.name)),
        }
    }
    for (patch, verdict) in rows {
        let (Ok(verdict) | Err(verdict)) = verdict;
        println!("\n{}\n    {}\n    {verdict}", patch.rule, patch.name);
    }
    Ok(tally)
}

/// The tracked files of this tree; none where there is no git or no checkout.
fn tracked() -> Option<Vec<PathBuf>> {
    let listed = process::output(Command::new("git").args(["ls-files", "-z"]).current_dir(workspace::root()))?;
    let files: Vec<PathBuf> = listed.split('\0').filter(|file| !file.is_empty()).map(PathBuf::from).collect();
    // In a tarball within another checkout there is a git, which knows none of these.
    (!files.is_empty()).then_some(files)
}

fn patches() -> io::Result<Vec<Patch>> {
    let mut patches = Vec::new();
    for entry in fs::read_dir(folder())? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        patches.push(Patch::read(&name, &fs::read_to_string(&path)?));
    }
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(patches)
}

fn folder() -> PathBuf {
    workspace::root().join("verify/sensitivity-patches")
}

impl Patch {
    fn read(name: &str, text: &str) -> Self {
        let mut patch = Self { name: name.to_owned(), ..Self::default() };
        let mut rule: Vec<&str> = Vec::new();
        for line in text.lines().take_while(|line| !line.starts_with("diff ")).filter(|line| !line.is_empty()) {
            if let Some(case) = line.strip_prefix("Case: ") {
                patch.cases.push(case.to_owned());
            } else if let Some(operation) = line.strip_prefix("Fails: ") {
                patch.operations.push(operation.to_owned());
            } else {
                rule.push(line);
            }
        }
        patch.rule = rule.join(" ");
        patch
    }
}

impl Sweep {
    /// Reads the table that `prove` prints: an operation in the first column, its failures in the last.
    fn read(output: &str) -> Self {
        let mut sweep = Self::default();
        let table = output.lines().skip_while(|line| !line.starts_with("operation "));
        for line in table.skip(1).take_while(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            let (operation, failures) = (words.next(), words.next_back().and_then(|count| count.parse().ok()));
            match (operation, failures) {
                (Some("all"), Some(sum)) => sweep.failures = sum,
                (Some(operation), Some(1usize..)) => drop(sweep.operations.insert(operation.to_owned())),
                _ => {}
            }
        }
        sweep
    }

    fn row(&self) -> String {
        let operations: Vec<&str> = self.operations.iter().map(String::as_str).collect();
        format!("{} cases fail: {}", self.failures, operations.join(", "))
    }
}

/// A copy of the tree in which one patch after the other is tried, and one folder in which it is built.
struct Bench {
    tree: PathBuf,
    built: PathBuf,
}

impl Bench {
    /// Makes the copy what the tree is. Only what differs is written, so that only that is built again.
    fn restore(&self, files: &[PathBuf]) -> io::Result<()> {
        for file in files {
            let copy = self.tree.join(file);
            match fs::read(workspace::root().join(file)) {
                Ok(text) if fs::read(&copy).is_ok_and(|old| old == text) => {}
                Ok(text) => {
                    fs::create_dir_all(copy.parent().unwrap_or(&self.tree))?;
                    fs::write(copy, text)?;
                }
                // It is tracked still, but gone.
                Err(_) if copy.exists() => fs::remove_file(copy)?,
                Err(_) => {}
            }
        }
        self.forget_others(&self.tree, &files.iter().collect())
    }

    /// Removes what is no file of the tree any more.
    fn forget_others(&self, folder: &Path, files: &BTreeSet<&PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let file = path.strip_prefix(&self.tree).unwrap_or(&path).to_path_buf();
            if path.is_dir() {
                self.forget_others(&path, files)?;
            } else if !files.contains(&file) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Whether the patch applies.
    fn apply(&self, patch: &Patch) -> io::Result<bool> {
        let mut git = Command::new("git");
        git.args(["apply", "--whitespace=nowarn"]).arg(folder().join(&patch.name)).current_dir(&self.tree);
        // The copy lies in a checkout, but is none: git would pass over files that it does not track.
        git.env("GIT_CEILING_DIRECTORIES", self.tree.parent().unwrap_or(&self.tree));
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
            git.env_remove(variable);
        }
        process::succeeds(&mut git)
    }

    /// Builds the sweep and runs it; or says why there was none.
    fn sweep(&self, cases: &[&str]) -> io::Result<Result<Sweep, String>> {
        let mut build = workspace::cargo();
        build.args(["build", "--quiet", "--locked", "--release", "--package", "csi-proxy-simtest", "--bin", "prove"]);
        // Building takes longer than running: some optimising pays, all of it does not.
        build.args(["--config", "profile.release.lto='off'", "--config", "profile.release.opt-level=1"]);
        build.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.built);
        println!("$ {}", process::typed(&build));
        // What a patch leaves unused is warned of, and of no interest.
        let Output { status, stderr, .. } = build.output()?;
        if !status.success() {
            println!("{}", String::from_utf8_lossy(&stderr));
            return Ok(Err("it does not build".to_owned()));
        }
        let mut prove = Command::new(self.built.join("release").join(format!("prove{}", std::env::consts::EXE_SUFFIX)));
        prove.args(["--seeds", "0", "--show", "1"]).args(cases.iter().flat_map(|case| ["--case", case]));
        let Output { status, stdout, .. } = prove.output()?;
        let sweep = Sweep::read(&String::from_utf8_lossy(&stdout));
        Ok(match (status.code(), sweep.failures) {
            (Some(0), 0) | (Some(1), 1..) => Ok(sweep),
            _ => Err(format!("the sweep ended with {status} and {} failures", sweep.failures)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Patch, Sweep, patches};

    #[test]
    fn a_patch_says_what_it_breaks_before_it_begins() {
        let text = "A lock is\nremoved.\n\nCase: Rmdir/\nFails: Rmdir\n\ndiff --git a/x b/x\n--- a/x\nCase: no\n";
        let patch = Patch::read("a.patch", text);
        assert_eq!(
            (patch.rule.as_str(), patch.cases, patch.operations),
            ("A lock is removed.", vec!["Rmdir/".to_owned()], vec!["Rmdir".to_owned()])
        );
    }

    #[test]
    fn every_patch_names_a_rule_and_who_must_fail() {
        for patch in patches().expect("the patches") {
            let is_complete = patch.rule.ends_with('.') && !patch.cases.is_empty() && !patch.operations.is_empty();
            assert!(is_complete, "{patch:?}");
        }
    }

    #[test]
    fn the_operations_that_fail_are_read_from_the_table() {
        let output = "FAILED --case 'Rmdir/a tree #1 slow'\n    all is lost\n\
                      operation   states   calls    faults     cases  failures\n\
                      Mkdir            2       3        10        10         0\n\
                      Rmdir            2       3        10        10         7\n\
                      all              4       6        20        20         7\n\n0.1 s\n7 failures\n";
        let sweep = Sweep::read(output);
        assert_eq!((sweep.failures, sweep.operations), (7, ["Rmdir".to_owned()].into()));
    }
}
