//! `cargo xtask fuzz`: the fuzz targets, each run with libFuzzer for the same time.
//!
//! The targets are in `verify/fuzz-targets`, their program and seeds in `verify/fuzz`. The stable
//! compiler, which builds them, has no sanitizers. Sanitizers find errors of unsafe code, which the
//! targets do not contain.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use clap::Args;

use crate::summary::Summary;
use crate::{Error, process, setup, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// How many seconds to run all targets together
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// Run only these targets
    targets: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seconds: 300,
            targets: Vec::new(),
        }
    }
}

/// The program is built in the target folder, so that `cargo clean` removes it.
const TARGET_DIR: [&str; 2] = ["--target-dir", "target/fuzz"];

/// Runs the targets. Each target counts as one test.
pub(crate) fn run(options: &Options) -> Result<Summary, Error> {
    let all = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !all.contains(name)) {
        return Err(format!(
            "unknown target {unknown}, the targets are {}",
            all.join(", ")
        )
        .into());
    }
    let chosen = if options.targets.is_empty() {
        all
    } else {
        options.targets.clone()
    };
    let fuzzer = setup::cargo_tool("cargo-fuzz")?;
    process::must_succeed(command(&fuzzer, "build").args(TARGET_DIR))?;
    let seconds = (options.seconds / u64::try_from(chosen.len())?).max(1);
    let mut summary = Summary::default();
    for name in chosen {
        summary += fuzz(&fuzzer, &name, seconds)?;
    }
    Ok(summary)
}

/// Runs a target. libFuzzer prints its coverage and, after a crash, the file with the input.
fn fuzz(fuzzer: &Path, name: &str, seconds: u64) -> Result<Summary, Error> {
    // Inputs that libFuzzer discovers are kept for the next run, outside the source tree.
    let corpus = workspace::target().join("fuzz-corpus").join(name);
    let artifacts = workspace::target()
        .join("fuzz-artifacts")
        .join(name)
        .join("");
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let seeds = workspace::root().join("verify/fuzz/seeds").join(name);
    let mut run = command(fuzzer, "run");
    run.args(TARGET_DIR)
        .arg("target")
        .env("FUZZ_TARGET", name)
        .args([&corpus, &seeds])
        .args(["--", "-print_final_stats=1", "-timeout=60"]);
    run.arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}", artifacts.display()));
    Ok(Summary::of_check(&format!("fuzz target {name}"), &mut run))
}

fn command(fuzzer: &Path, task: &str) -> Command {
    let mut command = Command::new(fuzzer);
    command
        .current_dir(workspace::root())
        .args(["fuzz", task, "--sanitizer", "none"]);
    command
}

/// Returns the names of the targets, which are those of the folders with their seeds.
fn targets() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace::root().join("verify/fuzz/seeds"))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
