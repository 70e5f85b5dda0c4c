//! The Windows programs: built and tested on Linux, or on Windows itself.
//!
//! On Linux, rustup adds the standard library of [`TARGET`], mingw links, and the programs run under
//! [Wine](crate::wine).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::Metadata;
use clap::Subcommand;
use object::read::pe::PeFile64;
use object::read::{NameOrOrdinal, Object as _};

use crate::summary::Summary;
use crate::test_programs::Program;
use crate::{Error, Missing, bench, facts, process, soak, test, test_programs, wine, workspace};

pub(crate) mod driver;

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Build the release programs into dist/
    Build,
    /// Run the tests of the packages with Windows code; on Windows itself, of all packages
    Test,
    /// Run the same tests under Wine, in German, with a blank and an umlaut in the path of
    /// temporary files
    TestInGerman,
    /// Run clippy on the packages with Windows code, as compiled for Windows
    Clippy,
    /// Run a driver for Windows against a simulated node:
    /// `cargo xtask windows driver [--node FILE] DRIVER.exe ARGUMENTS`
    Driver(driver::Options),
}

pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
pub(crate) const LINKER: &str = "x86_64-w64-mingw32-gcc";
/// The Debian package of the linker.
pub(crate) const LINKER_PACKAGE: &str = "gcc-mingw-w64-x86-64";
/// The packages with code that only Windows runs.
const PACKAGES: [&str; 8] = [
    facts::PACKAGE,
    "csi-proxy-os-win32",
    "csi-proxy-transport",
    DAEMON,
    SIMULATOR,
    SELFTEST,
    soak::PACKAGE,
    bench::PACKAGE,
];
pub(crate) const DAEMON: &str = "csi-proxy";
pub(crate) const SIMULATOR: &str = "csi-proxy-sim";
pub(crate) const ADMIN_TOOL: &str = "csi-proxyctl";
pub(crate) const SELFTEST: &str = "csi-proxy-selftest";
/// The packages whose programs are shipped.
pub(crate) const SHIPPED_PACKAGES: [&str; 2] = [DAEMON, ADMIN_TOOL];
/// The profile of the shipped programs, and the name of its folder.
const SHIPPED: &str = "dist";
/// The largest size of a program in bytes.
const LARGEST: u64 = 6_000_000;

pub(crate) fn run(task: &Task) -> Result<Summary, Error> {
    match task {
        Task::Build => Ok(Summary::of_result(
            "build",
            daemon()?.parent().map_or(Ok(false), ship_selftest),
        )),
        Task::Clippy => Ok(Summary::of_check(
            "clippy for Windows",
            &mut clippy_command()?,
        )),
        Task::Test => test(),
        Task::TestInGerman => test_in_german(),
        Task::Driver(options) => Ok(Summary::of_result("driver", driver::run(options))),
    }
}

/// Builds the programs of [`SHIPPED_PACKAGES`] into dist/, optimised, stripped and statically
/// linked, and checks their size, that they cannot start other programs, and that they have their
/// resources.
fn ship(cargo: Command) -> Result<PathBuf, Error> {
    let built = build_as_shipped(cargo, TARGET, &SHIPPED_PACKAGES)?;
    let dist = workspace::root().join("dist");
    fs::create_dir_all(&dist)?;
    for name in programs(&workspace::metadata()?) {
        let program = dist.join(&name);
        fs::copy(built.join(&name), &program)?;
        check_shipped(&program, &name)?;
    }
    Ok(dist.join(format!("{DAEMON}.exe")))
}

/// Builds the program that tests Windows into `dist`, as a release has it. The commit is part of
/// its reports.
fn ship_selftest(dist: &Path) -> Result<bool, Error> {
    let built = build_as_shipped(cargo("build")?, TARGET, &[SELFTEST])?;
    let program = dist.join(format!("{SELFTEST}.exe"));
    fs::copy(built.join(format!("{SELFTEST}.exe")), &program)?;
    let (file, commit) = (fs::read(&program)?, workspace::commit().unwrap_or_default());
    Ok(commit.is_empty()
        || file
            .windows(commit.len())
            .any(|bytes| bytes == commit.as_bytes()))
}

/// Checks the size, the resources, the texts and the imports of a shipped program, whose own name
/// is `name`.
pub(crate) fn check_shipped(program: &Path, name: &str) -> Result<(), Error> {
    let file = fs::read(program)?;
    let (size, largest) = (u64::try_from(file.len())?, megabytes(LARGEST));
    println!(
        "{}: {}, at most {largest}",
        program.display(),
        megabytes(size)
    );
    if size > LARGEST {
        return Err(format!("{} is larger than {largest}", program.display()).into());
    }
    if let Some(missing) = missing_resource(&file, name, &workspace::version()?) {
        return Err(format!("{} has no {missing}", program.display()).into());
    }
    if let Some(text) = text_of_the_simulator(&file) {
        return Err(format!(
            "{} contains {text:?}, which belongs to csi-proxy-sim",
            program.display()
        )
        .into());
    }
    let starting = imports_that_start_programs(&file)?;
    if !starting.is_empty() {
        return Err(format!("{} imports {}", program.display(), starting.join(", ")).into());
    }
    Ok(())
}

/// Builds packages for a target with the profile of the shipped programs, so that the same sources
/// give the same programs in any folder: the paths of the folders are replaced, and the header has
/// no time. Returns the folder of the programs.
pub(crate) fn build_as_shipped(
    mut cargo: Command,
    target: &str,
    packages: &[&str],
) -> Result<PathBuf, Error> {
    cargo
        .args(["--profile", SHIPPED])
        .args(packages.iter().flat_map(|package| ["-p", package]));
    let sysroot =
        process::output(Command::new("rustc").arg("--print=sysroot")).ok_or("no sysroot")?;
    let home = std::env::home_dir().unwrap_or_default();
    let cargo_home =
        std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    // The last folder that matches applies: cargo's home may be in the tree.
    let folders = [
        (workspace::root(), "csi-proxy"),
        (workspace::target(), "csi-proxy/target"),
        (cargo_home, "cargo"),
    ];
    // Link the C runtime statically: nodes do not have its redistributable package installed.
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("--remap-path-prefix={sysroot}=/rust"),
    ];
    flags.extend(
        folders.map(|(folder, name)| format!("--remap-path-prefix={}=/{name}", folder.display())),
    );
    if target == TARGET && !is_here() {
        flags.push("-Clink-arg=-Wl,--no-insert-timestamp".to_owned());
    }
    // In this variable, unlike in RUSTFLAGS, a folder may contain spaces.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    process::must_succeed(cargo.env("CSI_PROXY_COMMIT", workspace::commit().unwrap_or_default()))?;
    let folder = folder(target, SHIPPED);
    for package in packages {
        let program = folder
            .join(package)
            .with_extension(if target.contains("windows") {
                "exe"
            } else {
                ""
            });
        let file = fs::read(&program)?;
        if has_path_in(&home, &file) || has_path_in(&workspace::root(), &file) {
            return Err(format!("{} contains a path of this machine", program.display()).into());
        }
    }
    Ok(folder)
}

/// Returns whether a program contains a path in this folder. All paths are in `/`, which has no
/// parent.
fn has_path_in(folder: &Path, program: &[u8]) -> bool {
    let path = folder.join("").into_os_string().into_encoded_bytes();
    folder.parent().is_some() && program.windows(path.len()).any(|bytes| bytes == path)
}

/// Returns which of its resources a program does not have.
fn missing_resource(file: &[u8], name: &str, version: &str) -> Option<&'static str> {
    let contains = |part: &[u8]| file.windows(part.len()).any(|bytes| bytes == part);
    // Texts of the version resource: their keys and values in UTF-16.
    for text in [
        format!("OriginalFilename\0{name}\0"),
        format!("ProductVersion\0{version}\0"),
    ] {
        if !contains(
            &text
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>(),
        ) {
            return Some("version resource");
        }
    }
    (!contains(br#"<requestedExecutionLevel level="asInvoker""#)).then_some("manifest")
}

/// Returns a text that only csi-proxy-sim has, from its control API or its layer of faults,
/// imitation and recording.
fn text_of_the_simulator(file: &[u8]) -> Option<&'static str> {
    const TEXTS: [&str; 3] = [
        "csi_proxy_sim.v1",
        "was told to fail with",
        "recorded by csi-proxy-sim",
    ];
    TEXTS.into_iter().find(|text| {
        file.windows(text.len())
            .any(|bytes| bytes == text.as_bytes())
    })
}

/// The beginnings of the names of functions that start a program.
const STARTS_A_PROGRAM: [&str; 11] = [
    "CreateProcess",
    "NtCreateProcess",
    "NtCreateUserProcess",
    "RtlCreateUserProcess",
    "ShellExecute",
    "WinExec",
    "_exec",
    "_popen",
    "_spawn",
    "_wspawn",
    "system",
];

/// Returns the functions that a program imports and that start programs.
fn imports_that_start_programs(file: &[u8]) -> Result<Vec<String>, Error> {
    let program = PeFile64::parse(file)?;
    let imports = program.imports()?.collect::<Result<Vec<_>, _>>()?;
    if imports.is_empty() {
        return Err("the program has no import table".into());
    }
    let names = imports.iter().filter_map(|import| match import.name() {
        NameOrOrdinal::Name(name) => Some(String::from_utf8_lossy(name).into_owned()),
        NameOrOrdinal::Ordinal(_) => None,
    });
    Ok(names
        .filter(|name| STARTS_A_PROGRAM.iter().any(|start| name.starts_with(start)))
        .collect())
}

fn megabytes(bytes: u64) -> String {
    let kilobytes = bytes.div_ceil(1000);
    format!("{}.{:03} MB", kilobytes / 1000, kilobytes % 1000)
}

/// Returns the command that runs clippy on the packages with Windows code, or which compiler is
/// missing.
pub(crate) fn clippy_command() -> Result<Command, Error> {
    let mut cargo = cargo("clippy")?;
    cargo
        .args(packages())
        .args(["--all-targets", "--", "-D", "warnings"]);
    Ok(cargo)
}

/// Runs the Windows tests, under Wine unless this is Windows. They are skipped if a program they
/// need is missing.
pub(crate) fn test() -> Result<Summary, Error> {
    if is_here() {
        let mut cargo = workspace::cargo();
        return Ok(test_programs::run(
            "windows",
            cargo.args(["test", "--workspace"]),
            |program| Some(Command::new(&program.file)),
        ));
    }
    // `cargo xtask facts` checks the facts under Wine.
    Ok(under_wine(
        "windows",
        cargo("test")?.args(packages()),
        |program| !program.folder.ends_with("verify/facts"),
        &[],
        &wine::Prefix::start()?,
    ))
}

/// Runs the Windows tests under Wine as on the machine of a German user: Windows speaks German, and
/// the folder for temporary files, which Wine names after the user, has a blank and an umlaut. The
/// programs are those of [`test()`]: mingw cannot build in a folder with a blank.
pub(crate) fn test_in_german() -> Result<Summary, Error> {
    const LOCALE: &str = "de_DE.UTF-8";
    if is_here() {
        return Err(Missing("this is Windows".into()).into());
    }
    let folder = workspace::target().join("wine-german");
    let locales = folder.join("locales");
    let mut localedef = Command::new("localedef");
    localedef.args(["-i", "de_DE", "-f", "UTF-8"]);
    if fs::create_dir_all(&locales).is_err()
        || process::output(localedef.arg(locales.join(LOCALE))).is_none()
    {
        let reason = "localedef fails: is the package locales installed?";
        return Err(Missing(reason.into()).into());
    }
    let environment = vec![
        ("USER", "Jo Müller".into()),
        ("LC_ALL", LOCALE.into()),
        ("LOCPATH", locales.into()),
    ];
    Ok(under_wine(
        "Windows tests in German",
        cargo("test")?.args(packages()),
        |program| !program.folder.ends_with("verify/facts"),
        &[],
        &wine::Prefix::start_with(folder, environment)?,
    ))
}

/// Runs the soak test of the release build for this many seconds.
pub(crate) fn soak(seconds: &str) -> Result<Summary, Error> {
    const NAME: &str = "soak of the Windows program";
    let mut cargo = cargo("test")?;
    cargo.args(packages()).args([
        "--release",
        "--test",
        soak::TARGET,
        "--test",
        test::SIMULATOR_TEST,
    ]);
    let environment = [(soak::SECONDS, seconds)];
    let is_run = |program: &Program| program.target == soak::TARGET;
    if is_here() {
        return Ok(test_programs::run(NAME, &mut cargo, |program| {
            is_run(program).then(|| with_environment(Command::new(&program.file), &environment))
        }));
    }
    Ok(under_wine(
        NAME,
        &mut cargo,
        is_run,
        &environment,
        &wine::Prefix::start()?,
    ))
}

/// Builds tests for Windows and runs those for which `is_run` returns `true`.
fn under_wine(
    name: &str,
    cargo: &mut Command,
    is_run: impl Fn(&Program) -> bool,
    environment: &[(&str, &str)],
    prefix: &wine::Prefix,
) -> Summary {
    test_programs::run(name, cargo, |program| {
        is_run(program).then(|| with_environment(prefix.command(&program.file), environment))
    })
}

fn with_environment(mut command: Command, environment: &[(&str, &str)]) -> Command {
    command.envs(environment.iter().copied());
    command
}

/// Builds the daemon for Windows in the form that is shipped.
pub(crate) fn daemon() -> Result<PathBuf, Error> {
    ship(cargo("build")?)
}

/// Returns the daemon for tests, after building it.
pub(crate) fn debug_daemon() -> Result<PathBuf, Error> {
    debug_program(DAEMON, DAEMON)
}

/// Returns the Windows program that serves a simulated node, after building it.
pub(crate) fn simulator() -> Result<PathBuf, Error> {
    debug_program(SIMULATOR, SIMULATOR)
}

/// Returns a Windows program for tests, after building it. `package` is one of [`PACKAGES`].
///
/// All of these packages are built as the command `test` builds them, so that no package is built
/// again with other features. Cargo builds the programs of a package with its tests.
pub(crate) fn debug_program(package: &str, program: &str) -> Result<PathBuf, Error> {
    assert!(PACKAGES.contains(&package), "{package} is in the list");
    let mut cargo = cargo("test")?;
    cargo.args(packages()).arg("--no-run");
    process::must_succeed(&mut cargo)?;
    Ok(folder(TARGET, "debug").join(format!("{program}.exe")))
}

/// Returns the program of a package in its release build.
pub(crate) fn release_program(package: &str) -> Result<PathBuf, Error> {
    let mut cargo = cargo("build")?;
    cargo.args(["--release", "-p", package]);
    process::must_succeed(&mut cargo)?;
    Ok(folder(TARGET, "release").join(format!("{package}.exe")))
}

/// Returns `-p <package>` for each package with Windows code, and the feature that only tests use.
fn packages() -> impl Iterator<Item = &'static str> {
    let selected = PACKAGES.into_iter().flat_map(|package| ["-p", package]);
    selected.chain(["--features", "csi-proxy-os-win32/process-usage"])
}

/// Returns the file names of the shipped programs.
fn programs(metadata: &Metadata) -> Vec<String> {
    let targets = metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| SHIPPED_PACKAGES.contains(&package.name.as_str()))
        .flat_map(|package| &package.targets);
    targets
        .filter(|target| target.is_bin())
        .map(|target| format!("{}.exe", target.name))
        .collect()
}

/// Returns whether this machine runs Windows.
pub(crate) fn is_here() -> bool {
    std::env::consts::OS == "windows"
}

/// Returns `cargo <verb>` for the Windows target, in the source tree, or what is missing.
fn cargo(verb: &str) -> Result<Command, Error> {
    if is_here() || (has_target(TARGET) && process::find(LINKER).is_some()) {
        return Ok(cargo_for(TARGET, &[verb]));
    }
    Err(Missing(format!(
        "no compiler for {TARGET}: run `rustup target add {TARGET}`, and install mingw, on Debian \
         the package {LINKER_PACKAGE}"
    ))
    .into())
}

/// Returns whether the compiler has the standard library of a target.
pub(crate) fn has_target(target: &str) -> bool {
    let folder = process::output(Command::new("rustc").args([
        "--print",
        "target-libdir",
        "--target",
        target,
    ]));
    folder.is_some_and(|folder| Path::new(&folder).is_dir())
}

/// Returns `cargo <words>` for a target, in the source tree.
pub(crate) fn cargo_for(target: &str, words: &[&str]) -> Command {
    let mut cargo = workspace::cargo();
    cargo.args(words);
    if !is_here() {
        cargo
            .args(["--target", target])
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", LINKER);
    }
    cargo
}

/// Returns the folder of the programs that a profile builds.
fn folder(target: &str, profile: &str) -> PathBuf {
    if is_here() {
        workspace::target().join(profile)
    } else {
        workspace::target().join(target).join(profile)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{megabytes, missing_resource, text_of_the_simulator};

    #[test]
    fn a_program_with_a_text_of_the_simulator_is_detected() {
        for source in [
            &include_bytes!("../../sim/simtest/proto/sim_control.proto")[..],
            include_bytes!("../../sim/csi-proxy-sim/src/control/fault_request.rs"),
            include_bytes!("../../sim/csi-proxy-sim/src/layer/recorder.rs"),
        ] {
            assert!(text_of_the_simulator(source).is_some());
        }
        assert_eq!(
            text_of_the_simulator(b"csi-proxy-sim serves a simulated node"),
            None
        );
    }

    #[test]
    fn a_program_without_its_version_or_manifest_is_detected() {
        let utf16 = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>()
        };
        let manifest = br#"<requestedExecutionLevel level="asInvoker" uiAccess="false"/>"#;
        let version = utf16("\u{1}OriginalFilename\0a.exe\0ProductVersion\x000.1.0+abc\0");
        let all = [&version, &manifest[..]].concat();
        assert_eq!(missing_resource(&all, "a.exe", "0.1.0+abc"), None);
        assert_eq!(
            missing_resource(&all, "b.exe", "0.1.0+abc"),
            Some("version resource")
        );
        assert_eq!(
            missing_resource(&all, "a.exe", "0.1.0"),
            Some("version resource")
        );
        assert_eq!(
            missing_resource(&version, "a.exe", "0.1.0+abc"),
            Some("manifest")
        );
    }

    #[test]
    fn a_path_of_this_machine_is_detected() {
        let home = Path::new("/home").join("me");
        for (file, is_in_home) in [
            (home.join("a.rs"), true),
            (home.with_extension("rs"), false),
        ] {
            let program = format!("\0{}", file.display());
            assert_eq!(super::has_path_in(&home, program.as_bytes()), is_in_home);
        }
    }

    #[test]
    fn a_size_is_rounded_up_to_kilobytes() {
        assert_eq!(megabytes(6_000_000), "6.000 MB");
        assert_eq!(megabytes(6_000_001), "6.001 MB");
        assert_eq!(megabytes(45_678), "0.046 MB");
    }
}
