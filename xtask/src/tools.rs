//! Programs for cargo that a task needs and rustup does not bring.

use std::path::PathBuf;

use crate::{process, workspace};

/// The program of that name, such as `cargo-fuzz`; installed beside what is built if there is none.
pub(crate) fn find_or_install(name: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let tools = workspace::target().join("tools");
    let ours = tools.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if let Some(found) = process::find(name).or_else(|| ours.is_file().then(|| ours.clone())) {
        return Ok(found);
    }
    let mut install = workspace::cargo();
    install.args(["install", "--locked", "--quiet", name, "--root"]).arg(&tools);
    if process::succeeds(&mut install)? { Ok(ours) } else { Err(format!("{name} could not be installed").into()) }
}
