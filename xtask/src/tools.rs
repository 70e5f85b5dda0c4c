//! Cargo subcommands that a task needs and that rustup does not install.

use std::path::PathBuf;

use crate::{Error, process, workspace};

/// Returns the program of that name, such as `cargo-fuzz`. A missing program is installed into `target/tools`.
pub(crate) fn find_or_install(name: &str) -> Result<PathBuf, Error> {
    let tools = workspace::target().join("tools");
    let installed = tools.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if let Some(found) = process::find(name).or_else(|| installed.is_file().then(|| installed.clone())) {
        return Ok(found);
    }
    let mut install = workspace::cargo();
    install.args(["install", "--locked", "--quiet", name, "--root"]).arg(&tools);
    if process::succeeds(&mut install)? {
        Ok(installed)
    } else {
        Err(format!("cannot install {name}: `{}` failed", process::typed(&install)).into())
    }
}
