//! The Windows programs: built and tested on Linux, or on Windows itself.
//!
//! On Windows, the toolchain that runs this program is used. On Linux, it is rustup's if the standard library of
//! [`TARGET`] is installed, and otherwise Debian's, which has a package with the library's sources and builds it first.
//! The programs run under [Wine](crate::wine).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, Package};
use clap::Subcommand;

use crate::summary::Summary;
use crate::{Error, apt, bench, facts, imports, libtest, process, soak, vhd, wine, workspace};

pub(crate) mod driver;

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Build the release programs into dist/
    Build,
    /// Run the tests of the packages with Windows code; on Windows itself, of all packages
    Test,
    /// Test disks and volumes on VHDs: on Windows only, as administrator
    Disks,
    /// Check the facts with VHDs for the checks that need a disk or a volume: on Windows only, as administrator
    Facts,
    /// Run clippy on the packages with Windows code, as compiled for Windows
    Clippy,
    /// Run a driver for Windows against a simulated node: `cargo xtask windows driver [--node FILE] DRIVER.exe ARGUMENTS`
    Driver(driver::Options),
}

const TARGET: &str = "x86_64-pc-windows-gnu";
const LINKER: &str = "x86_64-w64-mingw32-gcc";
/// The packages with code that only Windows runs.
const PACKAGES: [&str; 7] = [
    facts::PACKAGE,
    "csi-proxy-os-win32",
    "csi-proxy-transport",
    "csi-proxy",
    SIMULATOR,
    soak::PACKAGE,
    bench::PACKAGE,
];
const DAEMON: &str = "csi-proxy";
const SIMULATOR: &str = "csi-proxy-sim";
const ADMIN_TOOL: &str = "csi-proxyctl";
/// The packages whose programs are shipped.
const SHIPPED_PACKAGES: [&str; 2] = [DAEMON, ADMIN_TOOL];
/// The profile of the shipped programs, and the name of its folder.
const SHIPPED: &str = "dist";
/// The largest size of a program in bytes.
const LARGEST: u64 = 6_000_000;

pub(crate) fn run(task: &Task) -> Result<bool, Error> {
    match task {
        Task::Build => build(),
        Task::Clippy => Ok(clippy()??),
        Task::Disks => Ok(build()? && vhd::test()?),
        Task::Facts => vhd::check_facts(),
        Task::Test => Ok(test()?.print()),
        Task::Driver(options) => driver::run(options),
    }
}

/// Builds the daemon into dist/.
fn build() -> Result<bool, Error> {
    match daemon() {
        Ok(_) => Ok(true),
        Err(NoDaemon::NoCompiler(reason) | NoDaemon::Broken(reason)) => Err(reason.into()),
    }
}

/// Builds the programs of [`SHIPPED_PACKAGES`] into dist/, optimised, stripped and statically linked, and checks their
/// size, that they cannot start other programs, and that they have their resources.
fn ship(toolchain: Toolchain) -> Result<PathBuf, Error> {
    build_as_shipped(toolchain, &SHIPPED_PACKAGES)?;
    let dist = workspace::root().join("dist");
    fs::create_dir_all(&dist)?;
    for name in programs(&workspace::metadata()?) {
        let program = dist.join(&name);
        fs::copy(toolchain.folder(SHIPPED).join(&name), &program)?;
        let size = program.metadata()?.len();
        println!("{}: {}", program.display(), megabytes(size));
        if size > LARGEST {
            let (size, largest) = (megabytes(size), megabytes(LARGEST));
            return Err(format!("{} has {size}, the limit is {largest}", program.display()).into());
        }
        let file = fs::read(&program)?;
        if let Some(missing) = missing_resource(&file, &name) {
            return Err(format!("{} has no {missing}", program.display()).into());
        }
        let starting =
            imports::that_start_programs(&file).ok_or_else(|| format!("{} has no import table", program.display()))?;
        if !starting.is_empty() {
            return Err(format!("{} imports {}", program.display(), starting.join(", ")).into());
        }
    }
    Ok(dist.join(format!("{DAEMON}.exe")))
}

/// Builds packages with the profile of the shipped programs.
fn build_as_shipped(toolchain: Toolchain, packages: &[&str]) -> Result<(), Error> {
    let mut cargo = toolchain.cargo("build");
    cargo.args(["--profile", SHIPPED]).args(packages.iter().flat_map(|package| ["-p", package]));
    // Link the C runtime statically: nodes do not have its redistributable package installed.
    toolchain.set_rustflags(&mut cargo, "-C target-feature=+crt-static");
    if process::succeeds(&mut cargo)? { Ok(()) } else { Err(format!("{} failed", process::typed(&cargo)).into()) }
}

/// Returns which of its resources a program does not have.
fn missing_resource(file: &[u8], name: &str) -> Option<&'static str> {
    let contains = |part: &[u8]| file.windows(part.len()).any(|bytes| bytes == part);
    // A text of the version resource: its key and its value in UTF-16.
    let text: Vec<u8> = format!("OriginalFilename\0{name}\0").encode_utf16().flat_map(u16::to_le_bytes).collect();
    if !contains(&text) {
        return Some("version resource");
    }
    (!contains(br#"<requestedExecutionLevel level="asInvoker""#)).then_some("manifest")
}

/// Builds a program of a package for tests.
fn build_debug(toolchain: Toolchain, package: &str, program: &str) -> Result<PathBuf, Error> {
    let mut cargo = toolchain.cargo("build");
    cargo.args(["-p", package, "--bin", program]);
    if !process::succeeds(&mut cargo)? {
        return Err(format!("{} failed", process::typed(&cargo)).into());
    }
    Ok(toolchain.folder("debug").join(format!("{program}.exe")))
}

fn megabytes(bytes: u64) -> String {
    let kilobytes = bytes.div_ceil(1000);
    format!("{}.{:03} MB", kilobytes / 1000, kilobytes % 1000)
}

/// Runs clippy and returns whether it found nothing. The inner error states which compiler is missing.
pub(crate) fn clippy() -> Result<Result<bool, String>, Error> {
    let toolchain = match Toolchain::find_or_install() {
        Ok(toolchain) => toolchain,
        Err(reason) => return Ok(Err(reason)),
    };
    let mut cargo = toolchain.cargo("clippy");
    cargo.args(packages(&workspace::metadata()?, |_| true)).args(["--all-targets", "--", "-D", "warnings"]);
    Ok(Ok(process::succeeds(&mut cargo)?))
}

/// Runs the Windows tests, under Wine unless this is Windows. They are skipped if a program they need is missing.
pub(crate) fn test() -> Result<Summary, Error> {
    tests("Windows tests", |toolchain, cargo| {
        if toolchain == Toolchain::Windows {
            cargo.arg("--workspace");
        } else {
            // `cargo xtask facts` checks the facts under Wine.
            cargo.args(packages(&workspace::metadata()?, |name| name != facts::PACKAGE));
        }
        Ok(())
    })
}

/// Runs the soak test of the release build for this many seconds.
pub(crate) fn soak(seconds: &str) -> Result<Summary, Error> {
    tests("the soak test of the Windows program", |toolchain, cargo| {
        let mut build = toolchain.cargo("build");
        if !process::succeeds(build.args(["--release", "-p", soak::PROGRAM]))? {
            return Err(format!("{} failed", process::typed(&build)).into());
        }
        cargo.args(["--release", "-p", soak::PACKAGE]).env(soak::SECONDS, seconds);
        Ok(())
    })
}

/// Runs the tests that `select` adds to the command. They are skipped as `name` if a program they need is missing.
fn tests(name: &str, select: impl FnOnce(Toolchain, &mut Command) -> Result<(), Error>) -> Result<Summary, Error> {
    let toolchain = match Toolchain::find_or_install() {
        Ok(toolchain) => toolchain,
        Err(reason) => return Ok(Summary::skipped(name, &reason)),
    };
    let mut cargo = toolchain.cargo("test");
    select(toolchain, &mut cargo)?;
    if toolchain == Toolchain::Windows {
        return Ok(libtest::run(&mut cargo)?);
    }
    let prefix = match wine::Prefix::start() {
        Ok(prefix) => prefix,
        Err(reason) => return Ok(Summary::skipped(name, &reason)),
    };
    prefix.enter(&mut cargo).env(variable("RUNNER"), prefix.loader());
    Ok(libtest::run(&mut cargo)?)
}

/// Why a program for Windows could not be built.
pub(crate) enum NoDaemon {
    /// No compiler for Windows is installed.
    NoCompiler(String),
    /// The build failed.
    Broken(String),
}

/// Builds the daemon for Windows in the form that is shipped.
pub(crate) fn daemon() -> Result<PathBuf, NoDaemon> {
    let toolchain = Toolchain::find_or_install().map_err(NoDaemon::NoCompiler)?;
    ship(toolchain).map_err(|error| NoDaemon::Broken(error.to_string()))
}

/// Returns the Windows program that serves a simulated node, after building it.
pub(crate) fn simulator() -> Result<PathBuf, NoDaemon> {
    debug_program(SIMULATOR, SIMULATOR)
}

/// Returns a Windows program for tests, after building it.
pub(crate) fn debug_program(package: &str, program: &str) -> Result<PathBuf, NoDaemon> {
    let toolchain = Toolchain::find_or_install().map_err(NoDaemon::NoCompiler)?;
    build_debug(toolchain, package, program).map_err(|error| NoDaemon::Broken(error.to_string()))
}

/// Returns a Windows program for measurements, after building it as the shipped programs are built.
pub(crate) fn optimised_program(package: &str, program: &str) -> Result<PathBuf, NoDaemon> {
    let toolchain = Toolchain::find_or_install().map_err(NoDaemon::NoCompiler)?;
    build_as_shipped(toolchain, &[package]).map_err(|error| NoDaemon::Broken(error.to_string()))?;
    Ok(toolchain.folder(SHIPPED).join(format!("{program}.exe")))
}

/// Returns `-p <package>` for each selected package with Windows code in this tree, and the feature that only tests use.
fn packages(metadata: &Metadata, select: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let packages = metadata.workspace_packages();
    let has = |name: &str| packages.iter().any(|package| package.name == name);
    let selected = PACKAGES.into_iter().filter(|name| has(name) && select(name)).flat_map(|name| ["-p", name]);
    selected.chain(["--features", "csi-proxy-os-win32/process-usage"]).collect()
}

/// Returns the file names of the shipped programs.
fn programs(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.workspace_packages();
    let is_shipped = |package: &&Package| SHIPPED_PACKAGES.contains(&package.name.as_str());
    let targets = packages.into_iter().filter(is_shipped).flat_map(|package| &package.targets);
    targets.filter(|target| target.is_bin()).map(|target| format!("{}.exe", target.name)).collect()
}

/// Returns the name of cargo's environment variable for a setting of the Windows target.
fn variable(setting: &str) -> String {
    format!("CARGO_TARGET_{}_{setting}", TARGET.to_uppercase().replace('-', "_"))
}

/// A toolchain that builds Windows programs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Toolchain {
    /// The cargo that runs this program, on Windows.
    Windows,
    /// The cargo that runs this program, which has the target's standard library.
    Rustup,
    /// Debian's `rustc-web` with `-Zbuild-std`.
    Debian,
}

impl Toolchain {
    /// Returns the toolchain to use and installs it if that is allowed. The error states what is missing.
    fn find_or_install() -> Result<Self, String> {
        if std::env::consts::OS == "windows" {
            return Ok(Self::Windows);
        }
        let missing = Self::missing();
        if !missing.is_empty() {
            apt::install(&missing).map_err(|reason| {
                format!(
                    "no compiler for {TARGET}: install it with `rustup target add {TARGET}` and install mingw, \
                     or on Debian 12 install the packages of mingw and rustc-web ({reason})"
                )
            })?;
        }
        Self::find().filter(|_| Self::missing().is_empty()).ok_or_else(|| {
            format!("no compiler for {TARGET} found although these packages are installed: {}", missing.join(", "))
        })
    }

    /// Returns the missing Debian packages that the build needs.
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

    /// Returns `cargo <verb>` for the Windows target, in the source tree.
    fn cargo(self, verb: &str) -> Command {
        let mut cargo = match self {
            Self::Windows | Self::Rustup => workspace::cargo(),
            Self::Debian => debian_cargo(verb),
        };
        cargo.arg(verb);
        if self != Self::Windows {
            // A separate folder: two compilers that share one rebuild everything each time they take turns.
            cargo.args(["--target", TARGET]).env("CARGO_TARGET_DIR", Self::target()).env(variable("LINKER"), LINKER);
        }
        if self == Self::Debian {
            cargo.arg("-Zbuild-std");
        }
        cargo
    }

    /// Returns the folder of the programs that a profile builds.
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

/// Returns Debian's cargo, without the environment variables that the cargo that runs this program has set.
///
/// `cargo clippy` would run the cargo-clippy of another toolchain on the PATH, so Debian's is called by its path.
fn debian_cargo(verb: &str) -> Command {
    let program = if verb == "clippy" { "/usr/bin/cargo-clippy" } else { "/usr/bin/cargo" };
    let mut cargo = Command::new(program);
    let is_kept = |name: &str| {
        ["CARGO_HOME", "CARGO_BUILD_JOBS"].contains(&name)
            || name.starts_with("CARGO_TERM_")
            || name.starts_with("CARGO_NET_")
    };
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if (name.starts_with("CARGO") || name.starts_with("RUST")) && name != "RUST_BACKTRACE" && !is_kept(&name) {
            cargo.env_remove(name.as_ref());
        }
    }
    cargo
        .current_dir(workspace::root())
        .env_remove("LD_LIBRARY_PATH")
        .env("CARGO", "/usr/bin/cargo")
        .env("RUSTC", "/usr/bin/rustc")
        .env("RUSTDOC", "/usr/bin/rustdoc")
        // Stable compilers refuse -Zbuild-std. It is safe here because the library sources are of the same version.
        .env("RUSTC_BOOTSTRAP", "1");
    cargo
}

#[cfg(test)]
mod tests {
    use super::{megabytes, missing_resource};

    #[test]
    fn a_program_without_its_version_or_manifest_is_detected() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let manifest = br#"<requestedExecutionLevel level="asInvoker" uiAccess="false"/>"#;
        let version = utf16("\u{1}OriginalFilename\0a.exe\0");
        assert_eq!(missing_resource(&[&version, &manifest[..]].concat(), "a.exe"), None);
        assert_eq!(missing_resource(&[&version, &manifest[..]].concat(), "b.exe"), Some("version resource"));
        assert_eq!(missing_resource(&version, "a.exe"), Some("manifest"));
    }

    #[test]
    fn a_size_is_rounded_up_to_kilobytes() {
        assert_eq!(megabytes(6_000_000), "6.000 MB");
        assert_eq!(megabytes(6_000_001), "6.001 MB");
        assert_eq!(megabytes(45_678), "0.046 MB");
    }
}
