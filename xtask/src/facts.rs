//! `cargo xtask facts`: runs the program of `verify/facts`, which checks the facts about Windows
//! and writes the results to docs/facts.md.

use std::fs;
use std::process::Command;

use clap::Args;

use crate::process::End;
use crate::summary::Summary;
use crate::{Error, process, test, windows, wine, workspace};

/// The package with the facts.
pub(crate) const PACKAGE: &str = "csi-proxy-facts";
/// The program that checks them.
const PROGRAM: &str = "facts";

#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing, and fail if docs/facts.md has other results
    #[arg(long)]
    check: bool,
}

/// Checks the facts and writes the page.
pub(crate) fn task(options: &Options) -> Result<Summary, Error> {
    let mut facts = Command::new(test::debug_program(PROGRAM, "coverage")?);
    facts.arg("page");
    if options.check {
        facts.arg("--check");
    }
    let mut summary = Summary::default();
    if !windows::is_here() {
        match under_wine() {
            Ok(results) => {
                let file = workspace::target().join("facts-wine.txt");
                fs::write(&file, results)?;
                facts.arg("--wine").arg(file);
            }
            Err(error) => summary += Summary::of_attempt("the facts under Wine", Err(error)),
        }
    }
    summary += Summary::of_tests(&mut facts);
    Ok(summary)
}

/// Checks the facts, and that the page is up to date.
pub(crate) fn test() -> Result<Summary, Error> {
    task(&Options { check: true })
}

/// Checks the facts under Wine and returns the lines that the program prints.
fn under_wine() -> Result<String, Error> {
    let program = windows::debug_program(PACKAGE, PROGRAM)?;
    let prefix = wine::Prefix::start()?;
    let mut results = String::new();
    let end = process::stream(
        prefix.command(&program).arg("local"),
        process::SILENCE_OF_TESTS,
        |line| {
            results.push_str(line);
            results.push('\n');
            false
        },
    )?;
    match end {
        End::Exited(status) if status.success() => Ok(results),
        _ => {
            let last = results.lines().last().unwrap_or_default();
            Err(format!(
                "the program that checks the facts: {end:?}; the last line that it printed: {last}"
            )
            .into())
        }
    }
}
