//! The version that the programs show: that of the package with the commit, such as
//! `0.1.0+1a2b3c4d5e6f`. Without the commit, two builds on the nodes of a fleet could not be told
//! apart.
//!
//! The build scripts of `csi-proxy` and `csi-proxyctl` compile this file.

use std::env;
use std::process::Command;

/// Sets `CSI_PROXY_VERSION` for the compiler, and returns it. The environment variable
/// `CSI_PROXY_COMMIT` names the commit, which `cargo xtask` sets; without it, git does; without
/// either, the version is that of the package alone.
pub(crate) fn set() -> String {
    println!("cargo:rerun-if-env-changed=CSI_PROXY_COMMIT");
    // Each commit and each checkout of another one changes this file.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    let given = env::var("CSI_PROXY_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty());
    let commit = given
        .or_else(|| git(&["rev-parse", "--short=12", "HEAD"]))
        .unwrap_or_default();
    let separator = if commit.is_empty() { "" } else { "+" };
    let version = format!("{}{separator}{commit}", env!("CARGO_PKG_VERSION"));
    println!("cargo:rustc-env=CSI_PROXY_VERSION={version}");
    version
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
