//! `cargo xtask facts`: checks the facts about Windows on the simulated node, under Wine and on Windows, and writes
//! docs/facts.md.
//!
//! The crate `verify/facts` has the facts and a program that checks them, which runs once for each system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::summary::{Failure, Skip, Summary};
use crate::windows::NoDaemon;
use crate::{Error, process, windows, wine, workspace};

mod page;
mod program;

use page::{Column, Page};
use program::{Catalogue, Results, Verdict};

/// The package with the facts.
pub(crate) const PACKAGE: &str = "csi-proxy-facts";
/// The program that checks them.
const PROGRAM: &str = "facts";

#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing, and fail if docs/facts.md does not show the facts as they are
    #[arg(long)]
    check: bool,
}

/// Checks the facts, and the outcomes that they cover, and writes the page.
pub(crate) fn task(options: &Options) -> Result<Summary, Error> {
    let mut summary = run(options.check)?;
    let mut coverage = workspace::cargo();
    coverage.args(["test", "--quiet", "--package", PACKAGE, "--test", "coverage"]).env("RUST_BACKTRACE", "0");
    summary += if process::succeeds(&mut coverage)? {
        Summary::passed()
    } else {
        Summary::failed("no fact covers some outcomes of operations: they are listed above")
    };
    Ok(summary)
}

/// Checks the facts and that the page is up to date.
pub(crate) fn test() -> Result<Summary, Error> {
    run(true)
}

fn run(check: bool) -> Result<Summary, Error> {
    let native = build()?;
    let catalogue = Catalogue::read(&mut Command::new(&native))?;
    let mut summary = Summary::default();
    let simulator = program::check(|| Command::new(&native), "simulator")?;
    summary += summarize("simulator", &simulator);

    let file = workspace::root().join("docs/facts.md");
    let old = fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    let mut page = Page::new(&catalogue, &simulator, &old);
    if std::env::consts::OS == "windows" {
        let results = program::check(|| Command::new(&native), "local")?;
        summary += summarize("Windows", &results);
        page.windows = Column::of(&results);
    } else {
        match under_wine()? {
            Ok(results) => {
                summary += summarize("Wine", &results);
                page.wine = Column::of(&results);
            }
            Err(reason) => {
                summary += Summary::skipped("the facts under Wine", &reason);
                page.wine = Column::missing();
            }
        }
    }
    if check {
        // Another version of Wine may do other things, and Windows is not here.
        let page = Page::new(&catalogue, &simulator, &old);
        summary += if page.to_string() == old {
            Summary::passed()
        } else {
            Summary::failed("docs/facts.md does not show the facts as they are: run `cargo xtask facts`")
        };
    } else {
        fs::write(&file, page.to_string())?;
        println!("{} is written", file.display());
    }
    Ok(summary)
}

/// Builds the program for this machine.
fn build() -> Result<PathBuf, Error> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--package", PACKAGE, "--bin", PROGRAM]);
    if !process::succeeds(&mut cargo)? {
        return Err(format!("{} failed", process::typed(&cargo)).into());
    }
    let name = Path::new(PROGRAM).with_extension(std::env::consts::EXE_EXTENSION);
    Ok(workspace::target().join("debug").join(name))
}

/// Checks the facts under Wine. The inner error states what is missing.
fn under_wine() -> Result<Result<Results, String>, Error> {
    let program = match windows::debug_program(PACKAGE, PROGRAM) {
        Ok(program) => program,
        Err(NoDaemon::NoCompiler(reason)) => return Ok(Err(reason)),
        Err(NoDaemon::Broken(reason)) => return Err(reason.into()),
    };
    let prefix = match wine::Prefix::start() {
        Ok(prefix) => prefix,
        Err(reason) => return Ok(Err(reason)),
    };
    program::check(|| prefix.command(&program), "local").map(Ok)
}

/// Counts each check as a test, and prints those that fail.
fn summarize(system: &str, results: &Results) -> Summary {
    let mut summary = Summary::default();
    for (id, verdict) in results {
        let name = format!("{id} ({system})");
        match verdict {
            Verdict::Holds => summary += Summary::passed(),
            Verdict::Differs(reason) | Verdict::Skipped(reason) => summary.skipped.push(Skip::new(&name, reason)),
            Verdict::Fails(why) => {
                let output = why.lines().map(str::to_owned).collect();
                summary.failed.push(Failure { name, output });
            }
        }
    }
    println!("facts on {system}: {summary}");
    summary
}
