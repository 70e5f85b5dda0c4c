//! A Python of our own with the packages of the Python test client, for tests that let a foreign gRPC
//! implementation call the daemon. Tests find it by `CSI_PROXY_PYTHON`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{apt, process, workspace};

/// The interpreter in `target/python-venv`; `None` when there is no Python client in this tree.
pub(crate) fn interpreter() -> Option<Result<PathBuf, String>> {
    let requirements = workspace::root().join("verify/python-client/requirements.txt");
    let wanted = fs::read_to_string(&requirements).ok()?;
    let folder = workspace::target().join("python-venv");
    let inside = if std::env::consts::OS == "windows" { "Scripts/python.exe" } else { "bin/python" };
    let python = folder.join(inside);
    let stamp = folder.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Some(Ok(python));
    }

    let make =
        || process::succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)).unwrap_or(false);
    // Debian keeps venv apart from Python.
    if !make() {
        match apt::install(&["python3-venv"]) {
            Ok(()) if make() => {}
            Ok(()) => return Some(Err("python3 -m venv fails even with python3-venv".into())),
            Err(why) => return Some(Err(format!("python3 -m venv does not work: {why}"))),
        }
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements);
    if !process::succeeds(&mut pip).unwrap_or(false) {
        return Some(Err("pip could not install verify/python-client/requirements.txt".into()));
    }
    Some(
        fs::write(&stamp, wanted)
            .map(|()| python)
            .map_err(|error| format!("cannot write {}: {error}", stamp.display())),
    )
}
