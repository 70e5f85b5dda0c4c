//! The programs of a release, for each platform.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::{folder, parts};
use crate::summary::Summary;
use crate::windows::{self, Toolchain};
use crate::{Error, process, setup, workspace};

pub(super) struct Platform {
    /// `<system>-<architecture>` in the terms of OCI images, such as `windows-amd64`.
    pub(super) name: &'static str,
    target: &'static str,
    /// The packages, whose programs have the same names. The first one is what an image runs.
    pub(super) packages: &'static [&'static str],
}

const ON_WINDOWS: &[&str] = &[windows::DAEMON, windows::ADMIN_TOOL, windows::SELFTEST];
const ON_LINUX: &[&str] = &[windows::SIMULATOR, windows::ADMIN_TOOL];

pub(super) const PLATFORMS: [Platform; 4] = [
    Platform { name: "windows-amd64", target: windows::TARGET, packages: ON_WINDOWS },
    Platform { name: "windows-arm64", target: "aarch64-pc-windows-gnullvm", packages: ON_WINDOWS },
    Platform { name: "linux-amd64", target: "x86_64-unknown-linux-musl", packages: ON_LINUX },
    Platform { name: "linux-arm64", target: "aarch64-unknown-linux-musl", packages: ON_LINUX },
];

impl Platform {
    pub(super) fn system(&self) -> &'static str {
        self.name.split('-').next().unwrap_or_default()
    }

    pub(super) fn architecture(&self) -> &'static str {
        self.name.split('-').nth(1).unwrap_or_default()
    }

    /// Returns the name of a program's file on a node, and its path in the release.
    pub(super) fn files(&self, package: &str) -> [String; 2] {
        let suffix = if self.system() == "windows" { ".exe" } else { "" };
        let released = folder().join(format!("{package}-{}{suffix}", self.name));
        [format!("{package}{suffix}"), released.to_string_lossy().into_owned()]
    }

    pub(super) fn is_made(&self) -> bool {
        self.packages.iter().all(|package| Path::new(&self.files(package)[1]).is_file())
    }
}

/// Builds the programs of a platform.
pub(super) fn make(platform: &Platform) -> Result<Summary, Error> {
    let Some(toolchain) = Toolchain::installed(platform.target) else {
        return Ok(Summary::skipped(platform.name, &format!("run `rustup target add {}`", platform.target)));
    };
    let built = build(platform, toolchain)?;
    for package in platform.packages.iter().copied() {
        let [name, released] = platform.files(package);
        fs::copy(built.join(&name), &released)?;
        if windows::SHIPPED_PACKAGES.contains(&package) && platform.system() == "windows" {
            windows::check_shipped(Path::new(&released), &name)?;
        } else if platform.name == "linux-amd64" && env::consts::ARCH == "x86_64" {
            let printed = process::output(Command::new(&released).arg("--version"));
            if printed != Some(format!("{package} {}", workspace::version()?)) {
                return Err(format!("{released} --version printed {printed:?}").into());
            }
        }
    }
    Ok(Summary::passed())
}

/// Builds with the data of `cargo auditable`. Except for mingw's target, zig is the linker, and has the C library.
fn build(platform: &Platform, toolchain: Toolchain) -> Result<PathBuf, Error> {
    let folders = [setup::python_programs("release")?, setup::cargo_tool("cargo-auditable")?.with_file_name("")];
    let verb = if platform.target == windows::TARGET { "build" } else { "zigbuild" };
    let mut cargo = toolchain.cargo_for(platform.target, &["auditable", verb]);
    let path = env::var_os("PATH").unwrap_or_default();
    cargo.env("PATH", env::join_paths(folders.into_iter().chain(env::split_paths(&path)))?);
    if platform.name == "windows-arm64"
        && let Some(llvm) = process::output(Command::new("llvm-config").arg("--bindir"))
    {
        // llvm-windres compiles for the target in the name by which it is called.
        let windres = parts().join("aarch64-w64-mingw32-windres");
        process::must_succeed(Command::new("ln").arg("-s").arg(Path::new(&llvm).join("llvm-windres")).arg(&windres))?;
        cargo.env("WINDRES", windres);
    }
    windows::build_as_shipped(cargo, toolchain, platform.target, platform.packages)
}

/// Returns the versions of the compiler and the linker of the Windows programs.
pub(super) fn compilers() -> Vec<String> {
    let rustc = Toolchain::installed(windows::TARGET).map_or("rustc", Toolchain::rustc);
    let version = |program| process::output(Command::new(program).arg("--version"))?.lines().next().map(str::to_owned);
    [rustc, windows::LINKER].into_iter().filter_map(version).collect()
}
