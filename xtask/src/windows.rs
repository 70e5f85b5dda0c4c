//! The Windows program: built and tested from Linux, or on Windows itself.
//!
//! Three compilers come into question. On Windows: the one that runs us. Elsewhere: rustup's, when the standard library
//! of [`TARGET`] is installed; else Debian's, which is packaged with the library's sources and builds it on the spot.
//! What is built runs under [Wine](crate::wine).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::Metadata;
use clap::Subcommand;

use crate::tally::Tally;
use crate::{Outcome, apt, process, soak, test, vhd, wine, workspace};

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Build the release programs into dist/
    Build,
    /// Run the tests of the crates that have Windows code; on Windows itself, of all
    Test,
    /// Test disks and volumes on a VHD: on Windows, as administrator
    Disks,
    /// Lint the crates that have Windows code, as compiled for Windows
    Clippy,
}

const TARGET: &str = "x86_64-pc-windows-gnu";
const LINKER: &str = "x86_64-w64-mingw32-gcc";
/// The crates with code that only Windows runs.
const CRATES: [&str; 4] = ["csi-proxy-os-win32", "csi-proxy-transport", "csi-proxy", "csi-proxy-sim"];
const DAEMON: &str = "csi-proxy";
const SIMULATOR: &str = "csi-proxy-sim";
/// The profile, and the name of its folder, of what is shipped.
const SHIPPED: &str = "dist";
/// How many bytes a program may have.
const LARGEST: u64 = 6_000_000;

pub(crate) fn run(task: &Task) -> Outcome {
    match task {
        Task::Build => build(),
        Task::Clippy => clippy(),
        Task::Disks => Ok(build()? && vhd::test()?),
        Task::Test => {
            let tally = test()?;
            tally.print();
            Ok(tally.is_green())
        }
    }
}

/// Builds the daemon into dist/.
fn build() -> Outcome {
    match daemon() {
        Ok(_) => Ok(true),
        Err(NoDaemon::NoCompiler(why) | NoDaemon::Broken(why)) => Err(why.into()),
    }
}

/// Builds the programs of the daemon's crate into dist/, optimised, stripped and with nothing to install beside them,
/// and checks their size.
fn ship(toolchain: Toolchain) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let mut cargo = toolchain.cargo("build");
    cargo.args(["--profile", SHIPPED, "-p", DAEMON]);
    // The C runtime goes into the program: a node has no redistributable packages installed.
    toolchain.set_rustflags(&mut cargo, "-C target-feature=+crt-static");
    if !process::succeeds(&mut cargo)? {
        return Err(format!("{} failed", process::typed(&cargo)).into());
    }
    let dist = workspace::root().join("dist");
    fs::create_dir_all(&dist)?;
    for name in programs(&workspace::metadata()?) {
        let program = dist.join(&name);
        fs::copy(toolchain.folder(SHIPPED).join(&name), &program)?;
        let size = program.metadata()?.len();
        println!("{}: {}", program.display(), megabytes(size));
        if size > LARGEST {
            let (size, largest) = (megabytes(size), megabytes(LARGEST));
            return Err(format!("{} has {size}, and may have {largest}", program.display()).into());
        }
    }
    Ok(dist.join(format!("{DAEMON}.exe")))
}

/// Builds the program that serves a simulated node, for tests.
fn build_simulator(toolchain: Toolchain) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let mut cargo = toolchain.cargo("build");
    cargo.args(["-p", SIMULATOR]);
    if !process::succeeds(&mut cargo)? {
        return Err(format!("{} failed", process::typed(&cargo)).into());
    }
    Ok(toolchain.folder("debug").join(format!("{SIMULATOR}.exe")))
}

fn megabytes(bytes: u64) -> String {
    let kilobytes = bytes.div_ceil(1000);
    format!("{}.{:03} MB", kilobytes / 1000, kilobytes % 1000)
}

fn clippy() -> Outcome {
    let toolchain = Toolchain::find_or_install()?;
    let mut cargo = toolchain.cargo("clippy");
    cargo.args(crates(&workspace::metadata()?)).args(["--all-targets", "--", "-D", "warnings"]);
    Ok(process::succeeds(&mut cargo)?)
}

/// Runs the Windows tests, under Wine unless this is Windows; what is missing for that is a skip.
pub(crate) fn test() -> Result<Tally, Box<dyn std::error::Error>> {
    tests("Windows tests", |toolchain, cargo| {
        if toolchain == Toolchain::Windows {
            cargo.arg("--workspace");
        } else {
            cargo.args(crates(&workspace::metadata()?));
        }
        Ok(())
    })
}

/// Runs the soak test of the release build for so many seconds, where tests run.
pub(crate) fn soak(seconds: &str) -> Result<Tally, Box<dyn std::error::Error>> {
    tests("the soak test of the Windows program", |_, cargo| {
        cargo.args(["--release", "-p", SIMULATOR, "--test", "soak"]).env(soak::SECONDS, seconds);
        Ok(())
    })
}

/// Runs the tests that `select` has asked cargo for; what is missing for that is a skip, by the name `what`.
fn tests(
    what: &str,
    select: impl FnOnce(Toolchain, &mut Command) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<Tally, Box<dyn std::error::Error>> {
    let toolchain = match Toolchain::find_or_install() {
        Ok(toolchain) => toolchain,
        Err(why) => return Ok(Tally::skip(what, &why)),
    };
    let mut cargo = toolchain.cargo("test");
    select(toolchain, &mut cargo)?;
    if toolchain == Toolchain::Windows {
        return Ok(test::suites(&mut cargo)?);
    }
    let prefix = match wine::Prefix::start() {
        Ok(prefix) => prefix,
        Err(why) => return Ok(Tally::skip(what, &why)),
    };
    prefix.enter(&mut cargo).env(variable("RUNNER"), prefix.loader());
    Ok(test::suites(&mut cargo)?)
}

/// Why there is no daemon to run.
pub(crate) enum NoDaemon {
    /// It cannot be built here.
    NoCompiler(String),
    /// It should have been built.
    Broken(String),
}

/// The daemon for Windows, as it is shipped.
pub(crate) fn daemon() -> Result<PathBuf, NoDaemon> {
    let toolchain = Toolchain::find_or_install().map_err(NoDaemon::NoCompiler)?;
    ship(toolchain).map_err(|error| NoDaemon::Broken(error.to_string()))
}

/// The program for Windows that serves a simulated node.
pub(crate) fn simulator() -> Result<PathBuf, NoDaemon> {
    let toolchain = Toolchain::find_or_install().map_err(NoDaemon::NoCompiler)?;
    build_simulator(toolchain).map_err(|error| NoDaemon::Broken(error.to_string()))
}

/// `-p <crate>` for each crate with Windows code in this tree.
fn crates(metadata: &Metadata) -> Vec<&'static str> {
    let packages = metadata.workspace_packages();
    let has = |name: &str| packages.iter().any(|package| package.name == name);
    CRATES.into_iter().filter(|name| has(name)).flat_map(|name| ["-p", name]).collect()
}

/// The file names of the daemon crate's programs.
fn programs(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.workspace_packages();
    let targets = packages.into_iter().filter(|package| package.name == DAEMON).flat_map(|package| &package.targets);
    targets.filter(|target| target.is_bin()).map(|target| format!("{}.exe", target.name)).collect()
}

/// The name of cargo's variable for a setting of our target.
fn variable(setting: &str) -> String {
    format!("CARGO_TARGET_{}_{setting}", TARGET.to_uppercase().replace('-', "_"))
}

/// A compiler that makes Windows programs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Toolchain {
    /// We are on Windows.
    Windows,
    /// The cargo that runs us has the target's library.
    Rustup,
    /// Debian's `rustc-web` with `-Zbuild-std`.
    Debian,
}

impl Toolchain {
    /// The compiler to use, after installing what may be installed; or what is missing, in a sentence.
    fn find_or_install() -> Result<Self, String> {
        if std::env::consts::OS == "windows" {
            return Ok(Self::Windows);
        }
        let missing = Self::missing();
        if !missing.is_empty() {
            apt::install(&missing).map_err(|why| {
                format!(
                    "no compiler for {TARGET}: it takes `rustup target add {TARGET}` and mingw, \
                     or on Debian 12 the packages of mingw and of rustc-web ({why})"
                )
            })?;
        }
        Self::find()
            .filter(|_| Self::missing().is_empty())
            .ok_or_else(|| format!("no compiler for {TARGET} even with the packages {}", missing.join(", ")))
    }

    /// The Debian packages without which nothing can be built.
    fn missing() -> Vec<&'static str> {
        let compiler: &[&str] = match Self::find() {
            Some(_) => &[],
            None => &["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy"],
        };
        let linker: &[&str] = if process::find(LINKER).is_some() { &[] } else { &["gcc-mingw-w64-x86-64"] };
        [compiler, linker].concat()
    }

    fn find() -> Option<Self> {
        let library = process::output(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
        if library.is_some_and(|folder| has_standard_library(Path::new(&folder))) {
            return Some(Self::Rustup);
        }
        let sysroot = process::output(Command::new("/usr/bin/rustc").args(["--print", "sysroot"]))?;
        let sources = Path::new(&sysroot).join("lib/rustlib/src/rust/library/std/Cargo.toml");
        (sources.is_file() && Path::new("/usr/bin/cargo").is_file()).then_some(Self::Debian)
    }

    /// `cargo <verb>` for the Windows target, in the source tree.
    fn cargo(self, verb: &str) -> Command {
        let mut cargo = match self {
            Self::Windows | Self::Rustup => workspace::cargo(),
            Self::Debian => debian_cargo(verb),
        };
        cargo.arg(verb);
        if self != Self::Windows {
            // A folder of its own: two compilers in one would build everything anew at each change.
            cargo.args(["--target", TARGET]).env("CARGO_TARGET_DIR", Self::target()).env(variable("LINKER"), LINKER);
        }
        if self == Self::Debian {
            cargo.arg("-Zbuild-std");
        }
        cargo
    }

    /// Where a profile's programs are.
    fn folder(self, profile: &str) -> PathBuf {
        match self {
            Self::Windows => workspace::target().join(profile),
            Self::Rustup | Self::Debian => Self::target().join(TARGET).join(profile),
        }
    }

    fn target() -> PathBuf {
        workspace::target().join("windows")
    }

    fn set_rustflags(self, cargo: &mut Command, flags: &str) {
        let name = if self == Self::Windows { "RUSTFLAGS".into() } else { variable("RUSTFLAGS") };
        cargo.env(name, flags);
    }
}

fn has_standard_library(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

/// Debian's cargo, free of what the cargo that runs us put into the environment.
///
/// `cargo clippy` would take another toolchain's cargo-clippy from the PATH; Debian's is called by its name.
fn debian_cargo(verb: &str) -> Command {
    let program = if verb == "clippy" { "/usr/bin/cargo-clippy" } else { "/usr/bin/cargo" };
    let mut cargo = Command::new(program);
    let kept = |name: &str| {
        ["CARGO_HOME", "CARGO_BUILD_JOBS"].contains(&name)
            || name.starts_with("CARGO_TERM_")
            || name.starts_with("CARGO_NET_")
    };
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if (name.starts_with("CARGO") || name.starts_with("RUST")) && name != "RUST_BACKTRACE" && !kept(&name) {
            cargo.env_remove(name.as_ref());
        }
    }
    cargo
        .current_dir(workspace::root())
        .env_remove("LD_LIBRARY_PATH")
        .env("CARGO", "/usr/bin/cargo")
        .env("RUSTC", "/usr/bin/rustc")
        .env("RUSTDOC", "/usr/bin/rustdoc")
        // -Zbuild-std is for nightly compilers; this one is the release whose library sources lie beside it.
        .env("RUSTC_BOOTSTRAP", "1");
    cargo
}

#[cfg(test)]
mod tests {
    use super::megabytes;

    #[test]
    fn a_size_is_told_in_megabytes_and_never_too_small() {
        assert_eq!(megabytes(6_000_000), "6.000 MB");
        assert_eq!(megabytes(6_000_001), "6.001 MB");
        assert_eq!(megabytes(45_678), "0.046 MB");
    }
}
