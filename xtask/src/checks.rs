//! The checks of the source tree other than tests: formatting, lints, documentation, dependencies.

use std::process::Command;

use crate::summary::Summary;
use crate::{Error, docs, durations, lint, process, tools, windows, workspace};

/// Checks that `cargo fmt` would change nothing.
pub(crate) fn format() -> Summary {
    check("format", |name| command(name, workspace::cargo().args(["fmt", "--all", "--check"])))
}

/// Runs clippy on all packages, as compiled for this machine.
pub(crate) fn clippy() -> Summary {
    const ARGUMENTS: [&str; 6] = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    check("clippy", |name| command(name, workspace::cargo().args(ARGUMENTS)))
}

/// Checks the format of the example in Rust and runs clippy on it. The packages that it uses have been checked by
/// [`clippy`].
pub(crate) fn rust_example() -> Summary {
    check("example in Rust", |name| {
        let mut summary = command(name, workspace::cargo_for_example("fmt").arg("--check"));
        summary += if process::find("go").is_some() {
            command(name, workspace::cargo_for_example("clippy").args(["--all-targets", "--", "-D", "warnings"]))
        } else {
            Summary::skipped(&format!("{name} clippy"), "go is not installed, with which its build downloads protos")
        };
        summary
    })
}

/// Runs clippy on the packages with Windows code, as compiled for Windows.
pub(crate) fn clippy_for_windows() -> Summary {
    check("clippy for Windows", |name| match windows::clippy() {
        Ok(Ok(succeeded)) => result(name, Ok(succeeded)),
        Ok(Err(reason)) => Summary::skipped(name, &reason),
        Err(error) => result(name, Err(error)),
    })
}

/// Builds the documentation, in which a broken link is an error.
pub(crate) fn documentation() -> Summary {
    let mut cargo = workspace::cargo();
    cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    check("documentation", |name| command(name, &mut cargo))
}

/// Packages what can be published on crates.io, and compiles each package from its own files alone.
pub(crate) fn packages() -> Summary {
    check("packages", |name| {
        let metadata = match workspace::metadata() {
            Ok(metadata) => metadata,
            Err(error) => return result(name, Err(error.into())),
        };
        let published =
            metadata.workspace_packages().into_iter().filter(|package| lint::publish::is_published(package));
        let mut cargo = workspace::cargo();
        cargo.args(["package", "--quiet", "--locked", "--offline", "--allow-dirty"]);
        cargo.args(published.flat_map(|package| ["--package", package.name.as_str()]));
        command(name, &mut cargo)
    })
}

/// Makes the documentation as a site. Installs mdBook into the target folder if it is missing.
pub(crate) fn site() -> Summary {
    check("site", |name| match docs::mdbook() {
        Ok(mdbook) => result(name, docs::make(&mdbook)),
        Err(error) => Summary::skipped(name, &error.to_string()),
    })
}

/// Runs `cargo xtask lint`.
pub(crate) fn source_rules() -> Summary {
    check("lint", |name| match workspace::files() {
        Some(_) => result(name, lint::run()),
        None => Summary::skipped(name, "the list of files is read from git, and this is not a git checkout"),
    })
}

/// Checks the workflows with actionlint, which needs Go. Their scripts are parsed by xtask/tests/powershell.rs.
pub(crate) fn workflows() -> Summary {
    check("workflows", |name| match tools::actionlint() {
        Ok(program) => {
            let files = workspace::files().unwrap_or_default();
            let workflows = files.iter().filter(|file| file.starts_with(".github/workflows"));
            command(name, Command::new(program).current_dir(workspace::root()).args(workflows))
        }
        Err(reason) => Summary::skipped(name, &reason.to_string()),
    })
}

/// Runs the checks of cargo-deny that need no network. Installs cargo-deny into the target folder if it is missing.
pub(crate) fn dependencies() -> Summary {
    check("cargo-deny", |name| {
        // cargo-deny also reads the packages that other platforms need, which no build has downloaded.
        if !process::succeeds(workspace::cargo().args(["fetch", "--quiet", "--locked"])).unwrap_or(false) {
            return Summary::skipped(name, "the packages for other platforms cannot be downloaded");
        }
        let program = match tools::find_or_install("cargo-deny") {
            Ok(program) => program,
            Err(error) => return Summary::skipped(name, &error.to_string()),
        };
        let mut deny = Command::new(program);
        deny.current_dir(workspace::root()).args(["--offline", "check", "bans", "licenses", "sources"]);
        let mut summary = command(name, &mut deny);
        let reason = "the database is fetched from the network, run `cargo deny check advisories`";
        summary += Summary::skipped(&format!("{name} advisories"), reason);
        summary
    })
}

/// Runs one check and adds its duration.
fn check(name: &str, run: impl FnOnce(&str) -> Summary) -> Summary {
    let (mut summary, step) = durations::measure(name, || run(&format!("check: {name}")));
    summary.steps.push(step);
    summary
}

fn command(name: &str, command: &mut Command) -> Summary {
    result(name, process::succeeds(command).map_err(Error::from))
}

fn result(name: &str, succeeded: Result<bool, Error>) -> Summary {
    match succeeded {
        Ok(true) => Summary::passed(),
        Ok(false) => Summary::failed(&format!("{name}: see its output above")),
        Err(error) => Summary::failed(&format!("{name}: {error}")),
    }
}
