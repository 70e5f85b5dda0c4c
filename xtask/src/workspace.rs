//! The source tree: its folder, files and packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};

use crate::{Error, process};

/// The root folder of the source tree.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// The folder for everything that is built, downloaded or made for tests.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// The variable of cargo for incremental compilation.
pub(crate) const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// Returns a command for the cargo that runs this program, in the source tree.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What is compiled once compiles faster so, and takes half the space.
    cargo.current_dir(root()).env(INCREMENTAL, "0");
    cargo
}

/// Returns a command of cargo for the example in Rust, which is not a member of the workspace.
pub(crate) fn cargo_for_example(command: &str) -> Command {
    let mut cargo = cargo();
    cargo.args([
        command,
        "--manifest-path",
        "examples/node-plugin-rust/Cargo.toml",
    ]);
    // Not in the example's folder: most packages are those of this tree, and compiled already.
    cargo.env("CARGO_TARGET_DIR", target());
    cargo
}

/// Reads the packages of this workspace, without those they depend on.
pub(crate) fn metadata() -> Result<Metadata, cargo_metadata::Error> {
    MetadataCommand::new().current_dir(root()).no_deps().exec()
}

/// Returns the version of the programs: that of the packages, and the commit if the tree is a
/// checkout.
pub(crate) fn version() -> Result<String, Error> {
    let packages = metadata()?.packages;
    let version = &packages
        .iter()
        .find(|package| package.name == "csi-proxy")
        .ok_or("no package csi-proxy")?
        .version;
    Ok(commit().map_or_else(
        || version.to_string(),
        |commit| format!("{version}+{commit}"),
    ))
}

/// Returns the address of the repository.
pub(crate) fn repository() -> Result<String, Error> {
    let packages = metadata()?.packages;
    let repository = packages.into_iter().find_map(|package| package.repository);
    Ok(repository.ok_or("no package has a repository")?)
}

/// Returns the commit that is checked out, with `-dirty` if files have changed.
pub(crate) fn commit() -> Option<String> {
    git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ])
}

/// Returns what git prints in the source tree, or `None` if there is no git or the tree is not a
/// checkout.
pub(crate) fn git(arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    // In a container, the checkout can belong to another user, which git refuses by default.
    git.args(["-c", "safe.directory=*"])
        .args(arguments)
        .current_dir(root())
        .env("TZ", "UTC");
    process::output(&mut git)
}

/// Lists the files of the source tree that git does not ignore, relative to [`root`]. Returns
/// `None` if there is no git or the tree is not a checkout.
pub(crate) fn files() -> Option<Vec<PathBuf>> {
    let listed = git(&[
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ])?;
    let mut files: Vec<PathBuf> = listed
        .split('\0')
        .filter(|file| !file.is_empty())
        .map(PathBuf::from)
        .collect();
    // During a merge, a file in conflict is listed several times.
    files.dedup();
    // An unpacked archive inside another checkout has a git that tracks none of its files.
    files
        .iter()
        .any(|file| file == Path::new("Cargo.toml"))
        .then_some(files)
}

#[cfg(test)]
mod tests {
    #[test]
    fn git_on_windows_does_not_change_the_ends_of_lines() {
        let archive = |autocrlf| {
            let setting = format!("core.autocrlf={autocrlf}");
            super::git(&["-c", &setting, "archive", "--worktree-attributes", "HEAD"])
        };
        let Some(as_committed) = archive(false) else {
            println!(
                "skipped: git_on_windows_does_not_change_the_ends_of_lines: the tree is not a git \
                 checkout"
            );
            return;
        };
        assert!(archive(true) == Some(as_committed), "see .gitattributes");
    }
}
