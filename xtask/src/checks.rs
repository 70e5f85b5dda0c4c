//! The checks of the source tree other than tests: formatting, lints, documentation, dependencies, packages.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, io};

use cargo_metadata::Package;

use crate::summary::Summary;
use crate::{docs, lint, process, setup, windows, workspace};

/// A check by its name.
pub(crate) type Check = (&'static str, fn(&str) -> Summary);

/// All checks, the quick ones first.
pub(crate) const ALL: [Check; 11] = [
    ("format", format),
    ("lint", source_rules),
    ("workflows", workflows),
    ("clippy", clippy),
    ("example in Rust", rust_example),
    ("documentation", documentation),
    ("site", site),
    ("clippy for Windows", clippy_for_windows),
    ("shipped programs", shipped_programs),
    ("cargo-deny", dependencies),
    ("packages", packages),
];

/// Runs checks. Each counts as one test.
pub(crate) fn run(checks: &[Check]) -> Summary {
    let mut sum = Summary::default();
    for (name, check) in checks {
        sum += Summary::of_step(&format!("check: {name}"), || Ok(check(name)));
    }
    sum
}

/// Checks that `cargo fmt` would change nothing.
pub(crate) fn format(name: &str) -> Summary {
    Summary::of_check(name, workspace::cargo().args(["fmt", "--all", "--check"]))
}

/// Runs clippy on all packages, as compiled for this machine.
pub(crate) fn clippy(name: &str) -> Summary {
    const ARGUMENTS: [&str; 6] = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    Summary::of_check(name, workspace::cargo().args(ARGUMENTS))
}

/// Checks the format of the example in Rust and runs clippy on it. [`clippy`] checks the packages that it uses.
fn rust_example(name: &str) -> Summary {
    let mut summary = Summary::of_check(name, workspace::cargo_for_example("fmt").arg("--check"));
    let clippy_name = format!("{name} clippy");
    summary += if process::find("go").is_some() {
        let mut clippy = workspace::cargo_for_example("clippy");
        Summary::of_check(&clippy_name, clippy.args(["--all-targets", "--", "-D", "warnings"]))
    } else {
        Summary::skipped(&clippy_name, "go is not installed, with which its build downloads protos")
    };
    summary
}

/// Runs clippy on the packages with Windows code, as compiled for Windows.
fn clippy_for_windows(name: &str) -> Summary {
    match windows::clippy_command() {
        Ok(mut command) => Summary::of_check(name, &mut command),
        Err(reason) => Summary::skipped(name, &reason),
    }
}

/// Builds the shipped programs and checks their size, resources and imports.
fn shipped_programs(name: &str) -> Summary {
    match windows::daemon() {
        Ok(_) => Summary::passed(),
        Err(windows::NoDaemon::NoCompiler(reason)) => Summary::skipped(name, &reason),
        Err(windows::NoDaemon::Broken(error)) => Summary::failed(&format!("{name}: {error}")),
    }
}

/// Builds the documentation, in which a broken link is an error.
fn documentation(name: &str) -> Summary {
    let mut cargo = workspace::cargo();
    cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    Summary::of_check(name, &mut cargo)
}

/// Packages what can be published on crates.io, and compiles each package from its own files alone.
fn packages(name: &str) -> Summary {
    let metadata = match workspace::metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Summary::failed(&format!("{name}: {error}")),
    };
    let published: Vec<_> =
        metadata.workspace_packages().into_iter().filter(|package| lint::publish::is_published(package)).collect();
    if let Err(error) = remove_unpacked(&published) {
        return Summary::failed(&format!("{name}: cannot remove the packages of an earlier run: {error}"));
    }
    let mut cargo = workspace::cargo();
    cargo.args(["package", "--quiet", "--locked", "--offline", "--allow-dirty"]);
    cargo.args(published.iter().flat_map(|package| ["--package", package.name.as_str()]));
    Summary::of_check(name, &mut cargo)
}

/// Removes the sources that an earlier `cargo package` unpacked. Cargo unpacks each version of a package once, so it would
/// compile the sources of an earlier commit.
fn remove_unpacked(published: &[&Package]) -> io::Result<()> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let Some(registries) = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok()) else {
        return Ok(());
    };
    for registry in registries {
        let registry = registry?;
        // The registry of `cargo package` is a local folder. Its name has no host, only a hash.
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for package in published {
            match fs::remove_dir_all(registry.path().join(format!("{}-{}", package.name, package.version))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Makes the documentation as a site.
fn site(name: &str) -> Summary {
    match setup::cargo_tool("mdbook") {
        Ok(mdbook) => Summary::of_result(name, docs::make(&mdbook)),
        Err(error) => Summary::skipped(name, &error.to_string()),
    }
}

/// Runs `cargo xtask lint`.
fn source_rules(name: &str) -> Summary {
    match workspace::files() {
        Some(_) => Summary::of_result(name, lint::run()),
        None => Summary::skipped(name, "the list of files is read from git, and this is not a git checkout"),
    }
}

/// Checks the workflows with actionlint, which needs Go. xtask/tests/powershell.rs parses their scripts.
fn workflows(name: &str) -> Summary {
    let program = match setup::actionlint() {
        Ok(program) => program,
        Err(reason) => return Summary::skipped(name, &reason.to_string()),
    };
    let files = workspace::files().unwrap_or_default();
    let workflows = files.iter().filter(|file| file.starts_with(".github/workflows"));
    Summary::of_check(name, Command::new(program).current_dir(workspace::root()).args(workflows))
}

/// Runs the checks of cargo-deny that need no network.
fn dependencies(name: &str) -> Summary {
    // cargo-deny also reads the packages that other platforms need, which no build has downloaded.
    let fetched = process::succeeds(workspace::cargo().args(["fetch", "--quiet", "--locked"]));
    if !fetched.unwrap_or(false) {
        return Summary::skipped(name, "the packages for other platforms cannot be downloaded");
    }
    let program = match setup::cargo_tool("cargo-deny") {
        Ok(program) => program,
        Err(error) => return Summary::skipped(name, &error.to_string()),
    };
    let mut deny = Command::new(program);
    deny.current_dir(workspace::root()).args(["--offline", "check", "bans", "licenses", "sources"]);
    let mut summary = Summary::of_check(name, &mut deny);
    let reason = "the database is fetched from the network; run `cargo deny check advisories`";
    summary += Summary::skipped(&format!("{name} advisories"), reason);
    summary
}
