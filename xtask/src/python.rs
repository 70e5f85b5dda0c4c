//! A Python environment with the packages of the Python test client, `verify/python-client`.
//!
//! Tests that let this client call the server find the interpreter in `CSI_PROXY_PYTHON`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{apt, process, workspace};

/// Returns the interpreter in `target/python-venv`, or `None` if this tree has no Python client.
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
    // On Debian, the module venv is in a separate package.
    if !make() {
        match apt::install(&["python3-venv"]) {
            Ok(()) if make() => {}
            Ok(()) => return Some(Err("`python3 -m venv` fails although python3-venv is installed".into())),
            Err(reason) => return Some(Err(format!("`python3 -m venv` fails: {reason}"))),
        }
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements);
    if !process::succeeds(&mut pip).unwrap_or(false) {
        return Some(Err("pip cannot install verify/python-client/requirements.txt".into()));
    }
    Some(
        fs::write(&stamp, wanted)
            .map(|()| python)
            .map_err(|error| format!("cannot write {}: {error}", stamp.display())),
    )
}
