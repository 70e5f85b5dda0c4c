//! `cargo xtask bench`: compares the daemon's speed with that of minimal grpc-go and tonic servers, and writes
//! docs/performance.md.
//!
//! For each workload and number of callers the servers are measured right after each other, round by round, each time
//! in another order, so that other load on the machine affects all of them equally. Each measurement starts a new
//! server process, so that its memory and threads do not depend on earlier measurements. Linux only, because the
//! figures are read from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::summary::Summary;
use crate::{Error, process, workspace};

mod about;
mod client;
mod counters;
mod figure;
mod page;
mod results;
mod server;
mod workload;

use about::About;
use client::{Client, Sample};
use results::{Cell, Results};
use server::Program;
use workload::{WORKLOADS, Workload};

#[derive(Args)]
pub(crate) struct Options {
    /// How many times each server is measured with each workload and number of callers
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many seconds one measurement takes
    #[arg(long, default_value = "1", value_parser = seconds)]
    seconds: Duration,
    /// Only these workloads, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = Workload::named)]
    workload: Vec<&'static Workload>,
    /// How many callers call at once, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 128], value_parser = clap::value_parser!(u32).range(1..))]
    callers: Vec<u32>,
    /// A build of the daemon instead of this tree's; given several times, the builds are compared with each other too
    #[arg(long, value_name = "NAME=PATH", value_parser = Program::daemon)]
    ours: Vec<Program>,
    /// A note on the measured daemon for the page, such as "before the change"
    #[arg(long)]
    note: Option<String>,
    /// The file to which the page is written
    #[arg(long, default_value = "docs/performance.md")]
    page: PathBuf,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("the duration must not be zero".into()) } else { Ok(duration) }
}

/// Builds everything, measures, and writes the page.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    if std::env::consts::OS != "linux" {
        return Err("the benchmark reads /proc and runs on Linux only".into());
    }
    if process::find("go").is_none() {
        return Err("the benchmark's client is a Go program, and go is not installed (https://go.dev/dl)".into());
    }
    let programs = programs(options)?;
    let client = Client::new(built_by_go("client"));
    let scratch = Scratch::make()?;
    let results = measure(options, &programs, &client, &scratch)?;
    let about = About::of_this_machine(&results)?;
    let page = page::render(&results, &about, options);
    let path = workspace::root().join(&options.page);
    let old = fs::read_to_string(&path).unwrap_or_default();
    fs::write(path, page + page::counted(&old))?;
    println!("wrote {}", options.page.display());
    Ok(true)
}

/// The servers to compare, built.
fn programs(options: &Options) -> Result<Vec<Program>, Error> {
    build_go()?;
    // In a build of its own, because another package in the same build may enable features of shared dependencies.
    build_rust(server::MINIMAL_TONIC_PACKAGE)?;
    let mut programs = options.ours.clone();
    if programs.is_empty() {
        build_rust(server::DAEMON)?;
        programs.push(Program::of_this_tree(release(server::DAEMON)));
    }
    programs.push(Program::minimal("grpc-go", built_by_go("server")));
    programs.push(Program::minimal("tonic", release(server::MINIMAL_TONIC)));
    Ok(programs)
}

fn build_rust(package: &str) -> Result<(), Error> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "-p", package]);
    if process::succeeds(&mut cargo)? { Ok(()) } else { Err(format!("{package} does not build").into()) }
}

fn build_go() -> Result<(), Error> {
    let mut go = Command::new("go");
    go.current_dir(go_module()).env("CGO_ENABLED", "0").args(["build", "-o"]);
    // go accepts only a folder as the output of two programs, and recognises it by the separator at its end.
    go.arg(folder().join("")).args(["./client", "./server"]);
    if process::succeeds(&mut go)? { Ok(()) } else { Err("the Go client and server do not build".into()) }
}

/// The tests of the Go client's own arithmetic, which count as one.
pub(crate) fn test_client() -> std::io::Result<Summary> {
    let mut go = Command::new("go");
    let passed = process::succeeds(go.current_dir(go_module()).args(["test", "./..."]))?;
    Ok(if passed { Summary::passed() } else { Summary::failed(&process::typed(&go)) })
}

fn go_module() -> PathBuf {
    workspace::root().join("verify/bench/go")
}

/// Returns the folder of the Go programs and of the servers' logs.
fn folder() -> PathBuf {
    workspace::target().join("bench")
}

fn built_by_go(program: &str) -> PathBuf {
    folder().join(program)
}

fn release(program: &str) -> PathBuf {
    workspace::target().join("release").join(program)
}

/// Measures every server with every workload and number of callers, in every round.
fn measure(options: &Options, programs: &[Program], client: &Client, scratch: &Scratch) -> Result<Results, Error> {
    let all: Vec<&Workload> = WORKLOADS.iter().collect();
    let workloads = if options.workload.is_empty() { &all } else { &options.workload };
    let mut results = Results::new(programs, workloads, &options.callers);
    for round in 0..options.rounds {
        println!("round {} of {}", round + 1, options.rounds);
        for cell in 0..results.cells().len() {
            let mut order: Vec<usize> = (0..programs.len()).collect();
            order.rotate_left((usize::try_from(round)? + cell) % programs.len());
            for program in order {
                let sample = sample(&programs[program], &results.cells()[cell], options, client, scratch)?;
                results.add(cell, program, sample)?;
            }
        }
    }
    Ok(results)
}

/// Starts one server, measures it once and ends it.
fn sample(
    program: &Program,
    cell: &Cell,
    options: &Options,
    client: &Client,
    scratch: &Scratch,
) -> Result<Sample, Error> {
    let (server, name, workload) = (program.start(&scratch.0, &folder())?, &program.name, cell.workload);
    let sample = client.measure(&server, workload, cell.callers, options.seconds).map_err(|error| {
        let log = server.log.display();
        format!("{name} with {}, {} callers: {error}; the server's log is {log}", workload.name, cell.callers)
    })?;
    println!("  {:<14} {:>3} {name:<10} {sample}", workload.name, cell.callers);
    Ok(sample)
}

/// A folder for sockets and files, removed when dropped. Not in `target`, where the path of a socket may become too
/// long.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("csi-proxy-bench-{}", std::process::id()));
        fs::create_dir_all(folder.join(workload::DEEPEST.replace('\\', "/")))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that remains in the temporary directory does no harm.
        let _removed = fs::remove_dir_all::<&Path>(&self.0);
    }
}
