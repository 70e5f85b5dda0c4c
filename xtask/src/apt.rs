//! Installing Debian packages, where we may: as root, or with sudo in CI.
//!
//! A developer's machine is theirs: without root nothing is installed, and the reason says what to type.

use std::process::Command;

use crate::process;

/// Installs `packages`, or says why not and what to do instead.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if process::find("apt-get").is_none() {
        return Err(format!("there is no apt-get here to do `{by_hand}`"));
    }
    let Some(apt_get) = apt_get() else {
        return Err(format!("run as root: {by_hand}"));
    };
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(apt_get[0]);
        command.args(&apt_get[1..]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        process::succeeds(&mut command).unwrap_or(false)
    };
    // An index that cannot be fetched is told by the install that follows.
    apt(&["update", "-qq"]);
    let install = ["install", "-qq", "-y", "--no-install-recommends"];
    if apt(&[&install, packages].concat()) { Ok(()) } else { Err(format!("this failed: {by_hand}")) }
}

/// The apt-get we may use: as root its own, in CI through sudo.
fn apt_get() -> Option<&'static [&'static str]> {
    if process::output(Command::new("id").arg("-u")).as_deref() == Some("0") {
        return Some(&["apt-get"]);
    }
    let in_ci = std::env::var_os("CI").is_some();
    (in_ci && process::output(Command::new("sudo").args(["-n", "true"])).is_some())
        .then_some(&["sudo", "-n", "apt-get"])
}
