//! The checks of the source tree other than tests: formatting, lints, documentation, dependencies,
//! packages.
#![expect(clippy::unnecessary_wraps, reason = "all checks have one type")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cargo_metadata::Package;
use clap::Args;

use crate::summary::Summary;
use crate::{Error, lint, process, setup, windows, workspace};

/// A check by its name.
pub(crate) type Check = (&'static str, fn(&str) -> Result<Summary, Error>);

/// The name of the check of the programs that are shipped.
pub(crate) const SHIPPED: &str = "shipped programs";

#[derive(Args)]
pub(crate) struct Options {
    /// The names of the checks
    #[arg(required = true, value_parser = ALL.map(|(name, _)| name).into_iter().chain([SHIPPED]).collect::<Vec<_>>())]
    names: Vec<String>,
}

/// Runs the checks that the options name.
pub(crate) fn task(options: &Options) -> Summary {
    let mut checks = ALL.to_vec();
    checks.push((SHIPPED, shipped_programs));
    checks.retain(|(name, _)| options.names.iter().any(|wanted| wanted == name));
    run(&checks)
}

/// All checks but that of the [`SHIPPED`] programs, the quick ones first.
pub(crate) const ALL: [Check; 10] = [
    ("format", format),
    ("lint", source_rules),
    ("workflows", workflows),
    ("clippy", clippy),
    ("example in Rust", rust_example),
    ("documentation", documentation),
    ("clippy for Windows", clippy_for_windows),
    ("cargo-deny", dependencies),
    ("packages", packages),
    ("oldest Rust", oldest_rust),
];

/// Runs checks. Each counts as one test.
pub(crate) fn run(checks: &[Check]) -> Summary {
    let mut sum = Summary::default();
    for (name, check) in checks {
        sum += Summary::of_step(&format!("check: {name}"), || check(name));
    }
    sum
}

/// Checks that `cargo fmt` would change nothing.
pub(crate) fn format(name: &str) -> Result<Summary, Error> {
    Ok(Summary::of_check(
        name,
        workspace::cargo().args(["fmt", "--all", "--check"]),
    ))
}

/// Runs clippy on all packages, as compiled for this machine.
pub(crate) fn clippy(name: &str) -> Result<Summary, Error> {
    const ARGUMENTS: [&str; 6] = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    Ok(Summary::of_check(name, workspace::cargo().args(ARGUMENTS)))
}

/// Checks the format of the example in Rust and runs clippy on it. [`clippy`] checks the packages
/// that it uses.
fn rust_example(name: &str) -> Result<Summary, Error> {
    let mut summary = Summary::of_check(name, workspace::cargo_for_example("fmt").arg("--check"));
    let clippy_name = format!("{name} clippy");
    summary += if process::find("go").is_some() {
        let mut clippy = workspace::cargo_for_example("clippy");
        Summary::of_check(
            &clippy_name,
            clippy.args(["--all-targets", "--", "-D", "warnings"]),
        )
    } else {
        Summary::skipped(
            &clippy_name,
            "go is not installed, with which its build downloads protos",
        )
    };
    Ok(summary)
}

/// Runs clippy on the packages with Windows code, as compiled for Windows.
fn clippy_for_windows(name: &str) -> Result<Summary, Error> {
    Ok(Summary::of_check(name, &mut windows::clippy_command()?))
}

/// Builds the shipped programs and checks their size, resources and imports.
fn shipped_programs(_: &str) -> Result<Summary, Error> {
    windows::daemon().map(|_| Summary::passed())
}

/// Builds the documentation, in which a broken link is an error.
fn documentation(name: &str) -> Result<Summary, Error> {
    let mut cargo = workspace::cargo();
    cargo
        .args(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    Ok(Summary::of_check(name, &mut cargo))
}

/// Packages what can be published on crates.io, and compiles each package from its own files alone.
fn packages(name: &str) -> Result<Summary, Error> {
    let mut cargo = workspace::cargo();
    cargo
        .current_dir(unpacked_packages()?)
        .args(["check", "--quiet", "--workspace", "--offline"]);
    Ok(Summary::of_check(
        name,
        cargo.arg("--target-dir").arg(workspace::target()),
    ))
}

/// Compiles each package with the oldest Rust that its manifest allows, if drivers may have an
/// older one than this tree needs.
fn oldest_rust(name: &str) -> Result<Summary, Error> {
    let metadata = workspace::metadata()?;
    let mut sum = Summary::default();
    for package in metadata.workspace_packages() {
        let own = env!("CARGO_PKG_RUST_VERSION");
        let older = package
            .rust_version
            .as_ref()
            .map(ToString::to_string)
            .filter(|version| !version.starts_with(own));
        let Some(version) = older else { continue };
        let mut install = Command::new("rustup");
        install.args([
            "toolchain",
            "install",
            "--profile",
            "minimal",
            "--no-self-update",
            &version,
        ]);
        if !process::succeeds(&mut install).unwrap_or(false) {
            sum += Summary::skipped(name, &format!("rustup cannot install Rust {version}"));
            continue;
        }
        let mut check = Command::new("rustup");
        check.args([
            "run",
            &version,
            "cargo",
            "check",
            "--locked",
            "--all-features",
            "--package",
            &package.name,
        ]);
        check
            .current_dir(workspace::root())
            .arg("--target-dir")
            .arg(workspace::target().join("oldest-rust"));
        sum += Summary::of_check(name, &mut check);
    }
    Ok(sum)
}

/// Packages what can be published on crates.io, and returns the archives.
pub(crate) fn package() -> Result<Vec<PathBuf>, Error> {
    let metadata = workspace::metadata()?;
    let published: Vec<_> = metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| lint::publish::is_published(package))
        .collect();
    let mut cargo = workspace::cargo();
    cargo.args([
        "package",
        "--quiet",
        "--locked",
        "--offline",
        "--allow-dirty",
        "--no-verify",
    ]);
    process::must_succeed(
        cargo.args(
            published
                .iter()
                .flat_map(|package| ["--package", package.name.as_str()]),
        ),
    )?;
    Ok(published
        .into_iter()
        .map(|Package { name, version, .. }| {
            workspace::target().join(format!("package/{name}-{version}.crate"))
        })
        .collect())
}

/// Makes a workspace of the unpacked packages, in which they depend on each other, and returns its
/// folder. The check of `cargo package` itself unpacks each version only once, so it may compile
/// the sources of an earlier commit. For the same reason the files get the time of now: in the
/// archives all have one time, and cargo compiles only what is newer.
fn unpacked_packages() -> Result<PathBuf, Error> {
    let folder = workspace::target().join("packages");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let mut patches = Vec::new();
    for archive in package()? {
        process::must_succeed(
            Command::new("tar")
                .arg("-xmzf")
                .arg(&archive)
                .arg("-C")
                .arg(&folder),
        )?;
        let unpacked = archive.file_stem().unwrap_or_default().to_string_lossy();
        let name = unpacked.rsplit_once('-').map_or("", |(name, _)| name);
        patches.push(format!("{name} = {{ path = \"{unpacked}\" }}\n"));
    }
    let patches = patches.concat();
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"csi-proxy-*\"]\n[patch.crates-io]\n{patches}"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(
        workspace::root().join("Cargo.lock"),
        folder.join("Cargo.lock"),
    )?;
    Ok(folder)
}

/// Runs `cargo xtask lint`.
fn source_rules(name: &str) -> Result<Summary, Error> {
    Ok(match workspace::files() {
        Some(_) => Summary::of_result(name, lint::run()),
        None => Summary::skipped(
            name,
            "the list of files is read from git, and this is not a git checkout",
        ),
    })
}

/// Checks the workflows with actionlint, which needs Go, and with zizmor, which needs Python.
/// xtask/tests/powershell.rs parses their scripts.
fn workflows(name: &str) -> Result<Summary, Error> {
    let mut summary = actionlint(name);
    summary += match setup::python_programs("lint") {
        Ok(programs) => {
            // What is less severe includes a syntax that this actionlint does not know.
            let mut zizmor = Command::new(programs.join("zizmor"));
            zizmor.current_dir(workspace::root()).args([
                "--offline",
                "--quiet",
                "--min-severity=medium",
                ".github",
            ]);
            Summary::of_check("zizmor", &mut zizmor)
        }
        Err(reason) => Summary::skipped("zizmor", &reason.to_string()),
    };
    Ok(summary)
}

fn actionlint(name: &str) -> Summary {
    let program = match setup::go_tool("actionlint") {
        Ok(program) => program,
        Err(reason) => return Summary::skipped(name, &reason.to_string()),
    };
    let files = workspace::files().unwrap_or_default();
    let workflows = files
        .iter()
        .filter(|file| file.starts_with(".github/workflows"));
    Summary::of_check(
        name,
        Command::new(program)
            .current_dir(workspace::root())
            .args(workflows),
    )
}

/// Runs the checks of cargo-deny that need no network.
fn dependencies(name: &str) -> Result<Summary, Error> {
    // cargo-deny also reads the packages that other platforms need, which no build has downloaded.
    let fetched = process::succeeds(workspace::cargo().args(["fetch", "--quiet", "--locked"]));
    if !fetched.unwrap_or(false) {
        return Ok(Summary::skipped(
            name,
            "the packages for other platforms cannot be downloaded",
        ));
    }
    let mut deny = match cargo_deny() {
        Ok(command) => command,
        Err(error) => return Ok(Summary::skipped(name, &error.to_string())),
    };
    deny.args(["--offline", "check", "bans", "licenses", "sources"]);
    let mut summary = Summary::of_check(name, &mut deny);
    let reason = "`cargo xtask verify` fetches the database; an advisory of last night must not \
                  stop another change";
    summary += Summary::skipped(&format!("{name} advisories"), reason);
    Ok(summary)
}

/// Checks the dependencies against the database of known vulnerabilities, if it can be fetched.
pub(crate) fn advisories() -> Result<Summary, Error> {
    if !process::succeeds(cargo_deny()?.args(["fetch", "db"]))? {
        return Ok(Summary::skipped(
            "advisories",
            "the database of RustSec cannot be fetched",
        ));
    }
    Ok(Summary::of_check(
        "advisories",
        cargo_deny()?.args(["check", "advisories"]),
    ))
}

/// Returns the command of cargo-deny, which Astral publishes as a Python package.
fn cargo_deny() -> Result<Command, Error> {
    let mut deny = Command::new(setup::python_programs("lint")?.join("cargo-deny"));
    deny.current_dir(workspace::root());
    Ok(deny)
}
