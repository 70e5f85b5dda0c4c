//! The copy of the tree to which the patches are applied.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::patch::{Findings, Patch, folder};

/// The root of the tree that is copied.
fn source_tree() -> PathBuf {
    folder().join("../..")
}

/// The folder of everything that cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| source_tree().join("target"), |folder| source_tree().join(folder))
}

/// Returns a command for cargo in a folder.
fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(folder);
    cargo
}

/// A clone of this repository with the files of the working tree, to which the patches are applied one after the other.
pub(crate) struct TreeCopy {
    root: PathBuf,
    /// Where the copy is built.
    target: PathBuf,
    /// A commit with the tracked files of the working tree.
    commit: String,
}

impl TreeCopy {
    /// Creates or updates the copy. Git writes only files that differ, so that only these are compiled again.
    pub(crate) fn create() -> Result<Self, Box<dyn Error>> {
        let folder = target().join("sensitivity");
        let (root, target) = (folder.join("tree"), folder.join("build"));
        // Without changes, this prints nothing.
        let changed = output(git(&source_tree()).args(["stash", "create"]))?;
        let head = output(git(&source_tree()).args(["rev-parse", "HEAD"]))?;
        let commit = if changed.is_empty() { head } else { changed };
        if !root.join(".git").exists() {
            let mut clone = git(&source_tree());
            clone.args(["clone", "--quiet", "--shared", "--no-checkout", "."]).arg(&root);
            if !succeeds(&mut clone)? {
                return Err("git clone failed".into());
            }
        }
        let copy = Self { root, target, commit };
        copy.reset()?;
        Ok(copy)
    }

    /// Makes the copy have the files of the commit, and no others.
    pub(crate) fn reset(&self) -> Result<(), Box<dyn Error>> {
        let checkout = succeeds(git(&self.root).args(["checkout", "--quiet", "--force", "--detach", &self.commit]))?;
        let clean = succeeds(git(&self.root).args(["clean", "-d", "--force", "--quiet"]))?;
        if checkout && clean { Ok(()) } else { Err("git cannot reset the copy of the tree".into()) }
    }

    /// Applies a patch. Returns whether that succeeded.
    pub(crate) fn apply(&self, patch: &Patch) -> io::Result<bool> {
        succeeds(git(&self.root).args(["apply", "--whitespace=nowarn"]).arg(folder().join(&patch.name)))
    }

    /// Runs the `cargo test` that a patch names, which must fail as the patch says.
    pub(crate) fn run_test(&self, patch: &Patch) -> io::Result<Result<String, String>> {
        let mut test = cargo(&self.root);
        test.args(["test", "--quiet", "--locked"]).args(patch.test.split_whitespace());
        test.env("CARGO_TARGET_DIR", self.target.join("tests"));
        println!("$ cargo test {}", patch.test);
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
    pub(crate) fn test(&self, cases: &[&str]) -> io::Result<Result<Findings, String>> {
        let mut build = cargo(&self.root);
        build.args(["build", "--quiet", "--locked", "--release", "--package", "csi-proxy-simtest", "--bin", "prove"]);
        // Building takes longer than running, so optimise a little and not fully.
        build.args(["--config", "profile.release.lto='off'", "--config", "profile.release.opt-level=1"]);
        build.env("CARGO_TARGET_DIR", &self.target);
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

/// Runs a command and returns whether it succeeded.
fn succeeds(command: &mut Command) -> io::Result<bool> {
    Ok(command.status()?.success())
}

/// Runs a command, which must succeed, and returns its output without the final newline.
fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let Output { status, stdout, .. } = command.output()?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned())
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
