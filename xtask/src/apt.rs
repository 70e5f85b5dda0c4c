//! Installation of Debian packages: as root, or with sudo in CI.
//!
//! Without root, nothing is installed on a developer's machine. The error contains the command to run instead.
//! A package can also be unpacked into a folder, which needs no root.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use crate::{Error, process};

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

/// Downloads a package and unpacks it into `folder`, without its dependencies.
///
/// A machine on which nobody has run `apt-get update` has no index of packages. A copy of it is then fetched into the folder.
pub(crate) fn unpack(package: &str, folder: &Path) -> Result<(), Error> {
    if process::find("apt-get").is_none() || process::find("dpkg-deb").is_none() {
        return Err(format!("this system has no apt-get and dpkg-deb to unpack the package {package}").into());
    }
    // Renamed when it is complete.
    let part = folder.with_extension("part");
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    let own = part.join("apt");
    fs::create_dir_all(own.join("lists/partial"))?;
    let option = |name: &str, folder: &str| {
        let mut option = OsString::from(format!("{name}="));
        option.push(own.join(folder));
        option
    };
    let options = [option("Dir::State::Lists", "lists"), option("Dir::Cache", "cache")];
    let apt_get = |arguments: &[&str], options: &[OsString]| {
        let mut command = Command::new("apt-get");
        // The user _apt, as which root downloads otherwise, may not write to the folder.
        command.current_dir(&own).args(["-qq", "-o", "APT::Sandbox::User=root"]);
        command.args(options.iter().flat_map(|option| ["-o".into(), option.clone()])).args(arguments);
        process::succeeds(&mut command)
    };
    if !apt_get(&["download", package], &[])? {
        // If the index cannot be fetched, the download fails.
        apt_get(&["update"], &options)?;
        if !apt_get(&["download", package], &options)? {
            return Err(format!("`apt-get download {package}` failed").into());
        }
    }
    let files = fs::read_dir(&own)?.collect::<io::Result<Vec<_>>>()?;
    let Some(file) = files.iter().map(fs::DirEntry::path).find(|path| path.extension().is_some_and(|end| end == "deb"))
    else {
        return Err(format!("`apt-get download {package}` left no file").into());
    };
    if !process::succeeds(Command::new("dpkg-deb").arg("--extract").arg(&file).arg(&part))? {
        return Err(format!("dpkg-deb cannot extract {}", file.display()).into());
    }
    fs::remove_dir_all(&own)?;
    fs::rename(part, folder)?;
    Ok(())
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
