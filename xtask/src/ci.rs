//! Everything that must hold before a change is merged: the cheap checks first, then every test.

use std::process::Command;

use crate::summary::Tally;
use crate::{Outcome, lint, process, test, workspace};

/// Runs all checks and all tests, even after a failure, and counts each check as one.
pub(crate) fn run() -> Outcome {
    let mut sum = Tally::default();
    sum += check("fmt", workspace::cargo().args(["fmt", "--all", "--check"]));
    sum += check("clippy", workspace::cargo().args(CLIPPY));
    sum +=
        check("doc", workspace::cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"));
    sum += count("lint", lint::run()?);
    sum += deny();
    sum += test::all()?;
    sum.print();
    Ok(sum.is_green())
}

const CLIPPY: [&str; 6] = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];

/// Licences, advisories and duplicates of what we depend on.
fn deny() -> Tally {
    if process::find("cargo-deny").is_none() {
        return Tally::skip("deny", "cargo-deny is not installed (cargo install cargo-deny)");
    }
    check("deny", workspace::cargo().args(["deny", "check"]))
}

fn check(name: &str, command: &mut Command) -> Tally {
    count(name, process::succeeds(command).unwrap_or(false))
}

fn count(name: &str, good: bool) -> Tally {
    if good { Tally { passed: 1, ..Tally::default() } } else { Tally::broken(&format!("the check {name}")) }
}
