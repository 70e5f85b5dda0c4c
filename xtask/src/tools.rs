//! Programs that a task needs and that are installed from a package registry: cargo subcommands, Go programs, and promtool.

use std::path::PathBuf;
use std::process::Command;

use crate::{Error, apt, process, workspace};

/// The programs of which a debug build without optional features is installed, in less than half the time.
const SMALL: [&str; 2] = ["cargo-deny", "mdbook"];

/// Returns the program of that name, such as `cargo-fuzz`. A missing program is installed into `target/tools`.
pub(crate) fn find_or_install(name: &str) -> Result<PathBuf, Error> {
    let installed = folder().join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if let Some(found) = process::find(name).or_else(|| installed.is_file().then(|| installed.clone())) {
        return Ok(found);
    }
    let mut install = workspace::cargo();
    install.args(["install", "--locked", "--quiet", name, "--root"]).arg(folder());
    if SMALL.contains(&name) {
        install.args(["--no-default-features", "--debug"]);
    }
    if process::succeeds(&mut install)? {
        Ok(installed)
    } else {
        Err(format!("cannot install {name}: `{}` failed", process::typed(&install)).into())
    }
}

/// The folder of the programs that are installed here.
fn folder() -> PathBuf {
    workspace::target().join("tools")
}

/// The linter of GitHub workflows. A version of its own is used, as newer ones report more.
const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

/// Returns the program actionlint, after installing it into `target/tools` if it is missing there. It needs Go.
pub(crate) fn actionlint() -> Result<PathBuf, Error> {
    let folder = folder().join("bin");
    let program = folder.join(format!("actionlint{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    if process::find("go").is_none() {
        return Err("go is not installed".into());
    }
    let mut install = Command::new("go");
    install.args(["install", ACTIONLINT]).env("GOBIN", &folder);
    if process::succeeds(&mut install)? {
        Ok(program)
    } else {
        Err(format!("`{}` failed", process::typed(&install)).into())
    }
}

/// Returns promtool, which Debian's package prometheus contains. If it is not on the PATH, the package is unpacked into
/// `target/tools`: an installation would also start a Prometheus server.
pub(crate) fn promtool() -> Result<PathBuf, Error> {
    if let Some(found) = process::find("promtool") {
        return Ok(found);
    }
    let package = folder().join("prometheus");
    let program = package.join("usr/bin/promtool");
    if !program.is_file() {
        apt::unpack("prometheus", &package)?;
    }
    Ok(program)
}
