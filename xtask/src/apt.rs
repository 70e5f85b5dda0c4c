//! Installation of Debian packages: as root, or with sudo in CI.
//!
//! Without root, nothing is installed on a developer's machine. The error contains the command to run instead.

use std::process::Command;

use crate::process;

/// Installs `packages`, or returns why that is not possible and which command would do it.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if process::find("apt-get").is_none() {
        return Err(format!("this system has no apt-get to run `{by_hand}`"));
    }
    let Some(apt_get) = apt_get() else {
        return Err(format!("run as root: {by_hand}"));
    };
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(apt_get[0]);
        command.args(&apt_get[1..]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        process::succeeds(&mut command).unwrap_or(false)
    };
    // If the index cannot be fetched, the installation below fails and is reported.
    apt(&["update", "-qq"]);
    let install = ["install", "-qq", "-y", "--no-install-recommends"];
    if apt(&[&install, packages].concat()) { Ok(()) } else { Err(format!("this command failed: {by_hand}")) }
}

/// Returns how to call apt-get with the rights to install: directly as root, through sudo in CI.
fn apt_get() -> Option<&'static [&'static str]> {
    if process::output(Command::new("id").arg("-u")).as_deref() == Some("0") {
        return Some(&["apt-get"]);
    }
    let in_ci = std::env::var_os("CI").is_some();
    (in_ci && process::output(Command::new("sudo").args(["-n", "true"])).is_some())
        .then_some(&["sudo", "-n", "apt-get"])
}
