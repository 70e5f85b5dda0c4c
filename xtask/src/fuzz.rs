//! The fuzz targets, each run with libFuzzer for the same time.
//!
//! The targets are in `verify/fuzz-targets`, their program and seeds in `verify/fuzz`. The stable compiler, which builds
//! them, has no sanitizers. Sanitizers find errors of unsafe code, which the targets do not contain.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use clap::Args;

use crate::{Error, process, tools, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// How many seconds to run all targets together
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// Run only these targets
    targets: Vec<String>,
}

/// What libFuzzer reported about one target.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    executions: u64,
    coverage: u64,
    /// The summary that libFuzzer prints for a crash.
    crash: Option<String>,
    /// The file with the input that causes the crash.
    artifact: Option<String>,
}

/// Runs the targets and prints a line for each. Returns whether no target crashed.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    let all = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !all.contains(name)) {
        return Err(format!("unknown target {unknown}, the targets are {}", all.join(", ")).into());
    }
    let chosen = if options.targets.is_empty() { all } else { options.targets.clone() };
    let fuzzer = tools::find_or_install("cargo-fuzz")?;
    if !process::succeeds(command(&fuzzer, "build").args(TARGET_DIR))? {
        return Ok(false);
    }
    let seconds = (options.seconds / u64::try_from(chosen.len())?).max(1);
    let mut reports = Vec::new();
    for name in chosen {
        let report = fuzz(&fuzzer, &name, seconds)?;
        reports.push((name, report));
    }
    println!("\n{:20}{:>12}{:>10}  crashes", "target", "executions", "coverage");
    for (name, report) in &reports {
        println!("{name:20}{report}");
    }
    let crashes = reports.iter().filter(|(_, report)| report.crash.is_some()).count();
    println!("fuzz: {} targets, {seconds} s each, {crashes} with a crash", reports.len());
    Ok(crashes == 0)
}

/// The program is built in the target folder, so that `cargo clean` removes it.
const TARGET_DIR: [&str; 2] = ["--target-dir", "target/fuzz"];

fn fuzz(fuzzer: &Path, name: &str, seconds: u64) -> Result<Report, Error> {
    // Inputs that libFuzzer discovers are kept for the next run, outside the source tree.
    let corpus = workspace::target().join("fuzz-corpus").join(name);
    let artifacts = workspace::target().join("fuzz-artifacts").join(name).join("");
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let seeds = workspace::root().join("verify/fuzz/seeds").join(name);
    let mut run = command(fuzzer, "run");
    run.args(TARGET_DIR).arg("target").env("FUZZ_TARGET", name).args([&corpus, &seeds]).args([
        "--",
        "-print_final_stats=1",
        "-timeout=60",
    ]);
    run.arg(format!("-max_total_time={seconds}")).arg(format!("-artifact_prefix={}", artifacts.display()));
    let mut report = Report::default();
    let status = process::stream(&mut run, |line| report.line(line))?;
    if !status.success() && report.crash.is_none() {
        report.crash = Some(format!("exited with {status}"));
    }
    Ok(report)
}

fn command(fuzzer: &Path, task: &str) -> Command {
    let mut command = Command::new(fuzzer);
    command.current_dir(workspace::root()).args(["fuzz", task, "--sanitizer", "none"]);
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

impl Report {
    fn line(&mut self, line: &str) {
        if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = count.trim().parse().unwrap_or_default();
        }
        let mut words = line.split_whitespace();
        if line.starts_with('#')
            && words.by_ref().any(|word| word == "cov:")
            && let Some(count) = words.next().and_then(|word| word.parse().ok())
        {
            self.coverage = count;
        }
        if let Some((_, artifact)) = line.split_once("Test unit written to ") {
            self.artifact = Some(artifact.to_owned());
        }
        if let Some((_, summary)) = line.split_once("SUMMARY: libFuzzer: ") {
            self.crash = Some(summary.to_owned());
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>12}{:>10}  ", self.executions, self.coverage)?;
        match &self.crash {
            None => f.write_str("0"),
            Some(crash) => write!(f, "{crash} {}", self.artifact.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    fn report(output: &str) -> Report {
        let mut report = Report::default();
        output.lines().for_each(|line| report.line(line));
        report
    }

    #[test]
    fn executions_and_the_last_coverage_are_parsed() {
        let good = report(
            "#2\tINITED cov: 93 ft: 94 corp: 1/1b exec/s: 0 rss: 36Mb\n\
             #4096\tpulse  cov: 120 ft: 300 corp: 9/50b lim: 43 exec/s: 2048 rss: 40Mb\n\
             stat::number_of_executed_units: 5000\n",
        );
        assert_eq!(good, Report { executions: 5000, coverage: 120, ..Report::default() });
        assert_eq!(good.to_string(), "        5000       120  0");
    }

    #[test]
    fn a_crash_is_reported_with_its_file() {
        let bad = report(
            "==7== ERROR: libFuzzer: deadly signal\nSUMMARY: libFuzzer: deadly signal\n\
             artifact_prefix='x/'; Test unit written to x/crash-1\n",
        );
        assert_eq!(bad.crash.as_deref(), Some("deadly signal"));
        assert!(bad.to_string().ends_with("deadly signal x/crash-1"));
    }
}
