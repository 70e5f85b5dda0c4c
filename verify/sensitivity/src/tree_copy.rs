//! The copy of the tree to which the patches are applied.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::patch::{Patch, failing, folder};

/// The root of the tree that is copied.
fn source_tree() -> PathBuf {
    folder().join("../..")
}

/// The folder of everything that cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || source_tree().join("target"),
        |folder| source_tree().join(folder),
    )
}

/// Returns a command for cargo in a folder.
fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(folder);
    cargo
}

/// A clone of this repository with the files of the working tree, to which the patches are applied
/// one after the other.
pub(crate) struct TreeCopy {
    root: PathBuf,
    /// Where the copy is built.
    target: PathBuf,
    /// A commit with the tracked files of the working tree.
    commit: String,
}

impl TreeCopy {
    /// Creates or updates the copy. Git writes only files that differ, so that only these are
    /// compiled again.
    pub(crate) fn create() -> Result<Self, Box<dyn Error>> {
        let folder = target().join("sensitivity");
        let (root, target) = (folder.join("tree"), folder.join("build"));
        // Without changes, this prints nothing.
        let changed = output(git(&source_tree()).args(["stash", "create"]))?;
        let head = output(git(&source_tree()).args(["rev-parse", "HEAD"]))?;
        let commit = if changed.is_empty() { head } else { changed };
        if !root.join(".git").exists() {
            let clone = ["clone", "--quiet", "--shared", "--no-checkout", "."];
            output(git(&source_tree()).args(clone).arg(&root))?;
        }
        let copy = Self {
            root,
            target,
            commit,
        };
        copy.reset()?;
        Ok(copy)
    }

    /// Makes the copy have the files of the commit, and no others.
    pub(crate) fn reset(&self) -> Result<(), Box<dyn Error>> {
        output(git(&self.root).args(["checkout", "--quiet", "--force", "--detach", &self.commit]))?;
        output(git(&self.root).args(["clean", "-d", "--force", "--quiet"])).map(drop)
    }

    /// Applies a patch.
    pub(crate) fn apply(&self, patch: &Patch) -> Result<(), Box<dyn Error>> {
        output(
            git(&self.root)
                .args(["apply", "--whitespace=nowarn"])
                .arg(folder().join(&patch.name)),
        )
        .map(drop)
    }

    /// Runs the `cargo test` that a patch names, which must fail as the patch says.
    pub(crate) fn test(&self, patch: &Patch) -> Result<(), Box<dyn Error>> {
        let mut test = cargo(&self.root);
        test.args(["test", "--quiet", "--locked"])
            .args(patch.test.split_whitespace());
        test.env("CARGO_TARGET_DIR", self.target.join("tests"));
        println!("$ cargo test {}", patch.test);
        let Output {
            status,
            stdout,
            stderr,
        } = test.output()?;
        let printed = [stdout, stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        if !status.success() && printed.contains(&patch.says) {
            return Ok(());
        }
        Err(format!("no test fails with `{}`:\n{printed}", patch.says).into())
    }

    /// Builds the simulation tests, runs these cases, and returns the operations that fail.
    pub(crate) fn inject_faults(&self, cases: &[String]) -> Result<Vec<String>, Box<dyn Error>> {
        let mut build = cargo(&self.root);
        build.args([
            "build",
            "--quiet",
            "--locked",
            "--release",
            "--package",
            "csi-proxy-fault-injection",
            "--bin",
            "fault-injection",
        ]);
        // Building takes longer than running, so optimise a little and not fully.
        build.args([
            "--config",
            "profile.release.lto='off'",
            "--config",
            "profile.release.opt-level=1",
        ]);
        // A patch can leave an item unused. Those warnings are printed only if the build fails.
        output(build.env("CARGO_TARGET_DIR", &self.target))?;
        let name = format!("fault-injection{}", std::env::consts::EXE_SUFFIX);
        let mut program = Command::new(self.target.join("release").join(name));
        program
            .args(["--seeds", "0", "--show", "1"])
            .args(cases.iter().flat_map(|case| ["--case", case]));
        let Output { status, stdout, .. } = program.output()?;
        let failing = failing(&String::from_utf8_lossy(&stdout));
        match (status.code(), failing.is_empty()) {
            (Some(0), true) | (Some(1), false) => Ok(failing),
            _ => Err(format!(
                "`fault-injection` ended with {status}, and these operations fail: {failing:?}"
            )
            .into()),
        }
    }
}

/// Runs a command, which must succeed, and returns its output without the final newline.
fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output()?;
    if !status.success() {
        return Err(format!(
            "{command:?} ended with {status}:\n{}",
            String::from_utf8_lossy(&stderr)
        )
        .into());
    }
    Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned())
}

/// Returns a command of git in a folder. In a container, a checkout can belong to another user,
/// which git refuses by default.
fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["-c", "safe.directory=*"]);
    git.args(["-c", "user.name=xtask", "-c", "user.email=xtask@localhost"]);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(variable);
    }
    git
}
