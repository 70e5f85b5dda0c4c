//! `cargo xtask bench`: compares the speed of csi-proxy with that of other servers, and writes docs/performance.md.
//!
//! On Linux, csi-proxy serves the simulated node beside minimal grpc-go and tonic servers; under Wine, csi-proxy.exe runs
//! beside the csi-proxy written in Go. A server that answers bytes with bytes shows what is left without gRPC.
//!
//! For each workload and number of callers the servers are measured right after each other, round by round, each time
//! in another order, so that other load on the machine affects all of them equally. Each measurement starts a new
//! server process, so that its memory and threads do not depend on earlier measurements. Linux only, because the
//! figures are read from `/proc`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::summary::Summary;
use crate::{Error, process, workspace};

mod about;
mod client;
mod counters;
mod figure;
mod lifetime;
mod long_calls;
mod page;
mod programs;
mod results;
mod server;
mod workload;

use about::About;
use client::Load;
use lifetime::Lifetime;
use long_calls::Latencies;
use programs::{Build, Programs};
use results::Results;
use server::{Kind, Program, Site};
use workload::{WORKLOADS, Workload};

/// The package of the minimal servers.
pub(crate) const PACKAGE: &str = "csi-proxy-bench";

/// How many windows the measurements during long calls last, and the loads of the servers' lifetimes.
const LONG_WINDOWS: u32 = 4;

#[derive(Args)]
pub(crate) struct Options {
    /// How many times each server is measured with each workload and number of callers
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many seconds one measurement takes
    #[arg(long, default_value = "0.4", value_parser = seconds)]
    seconds: Duration,
    /// Only these parts, separated by commas; the page has no sections for the others
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
    /// Only these workloads, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = Workload::named)]
    workload: Vec<&'static Workload>,
    /// How many callers call at once, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 128], value_parser = clap::value_parser!(u32).range(1..))]
    callers: Vec<u32>,
    /// How many callers call during long calls, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32], value_parser = clap::value_parser!(u32).range(1..))]
    long_call_callers: Vec<u32>,
    /// How many seconds the servers are left alone before their threads and memory are read the last time
    #[arg(long, default_value = "60", value_parser = seconds)]
    quiet: Duration,
    /// A build of csi-proxy-sim instead of this tree's; given several times, the builds are compared with each other too
    #[arg(long, value_name = "NAME=PATH", value_parser = Program::daemon)]
    ours: Vec<Program>,
    /// A note on the measured daemon for the page, such as "before the change"
    #[arg(long)]
    note: Option<String>,
    /// The file to which the page is written
    #[arg(long, default_value = "docs/performance.md")]
    page: PathBuf,
    /// Only build the programs, so that a later run measures at once
    #[arg(long)]
    build: bool,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// On the simulated node, beside minimal servers
    Linux,
    /// Under Wine, beside the Go program
    Wine,
    /// PathExists while another call takes 30 s
    LongCalls,
    /// Start, size, and memory and threads before, under and after a load
    Lifetimes,
}

/// What was measured. A part is empty if it was left out.
#[derive(Default)]
struct Measured {
    linux: Option<Results>,
    wine: Option<Results>,
    long_calls: Vec<Latencies>,
    lifetimes_on_linux: Vec<Lifetime>,
    lifetimes_on_wine: Vec<Lifetime>,
    /// Why nothing was measured under Wine.
    no_wine: Option<String>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("the duration must not be zero".into()) } else { Ok(duration) }
}

/// Builds everything, measures, and writes the page.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    measure_as_built(options, Build::Release)?;
    Ok(true)
}

/// Measures everything once and briefly, with the programs that the tests build. The page is written, but not published.
pub(crate) fn test() -> Result<Summary, Error> {
    const NAME: &str = "the benchmark";
    if process::find("go").is_none() {
        return Ok(Summary::skipped(NAME, "go is not installed (https://go.dev/dl)"));
    }
    let mut sum = test_client()?;
    if std::env::consts::OS != "linux" {
        sum += Summary::skipped(NAME, "it reads /proc and runs on Linux only");
        return Ok(sum);
    }
    let brief = Options {
        rounds: 1,
        seconds: Duration::from_millis(50),
        only: Vec::new(),
        workload: Vec::new(),
        callers: vec![2],
        long_call_callers: vec![2],
        quiet: Duration::from_millis(1),
        ours: Vec::new(),
        note: None,
        page: programs::folder().join("performance.md"),
        build: false,
    };
    match measure_as_built(&brief, Build::Debug) {
        Ok(no_wine) => {
            sum += Summary::passed();
            sum +=
                no_wine.map_or_else(Summary::default, |reason| Summary::skipped("the benchmark under Wine", &reason));
        }
        Err(error) => sum += Summary::failed(&format!("{NAME}: {error}")),
    }
    Ok(sum)
}

/// Returns why nothing was measured under Wine, if that was to be measured.
fn measure_as_built(options: &Options, build: Build) -> Result<Option<String>, Error> {
    if std::env::consts::OS != "linux" {
        return Err("the benchmark reads /proc and runs on Linux only".into());
    }
    if process::find("go").is_none() {
        return Err("the benchmark's client is a Go program, and go is not installed (https://go.dev/dl)".into());
    }
    let logs = programs::folder();
    let linux = Programs::for_linux(options, build)?;
    let wine = options.has(Part::Wine).then(|| Programs::for_wine(build)).transpose()?;
    if options.build {
        return Ok(wine.and_then(Result::err));
    }
    let mut measured = measure_on_linux(options, &Site::linux(logs.clone())?, &linux)?;
    match wine {
        Some(Ok((programs, prefixes))) => {
            let site = Site::wine(logs, prefixes)?;
            measured.wine = Some(measure(options, &site, &programs)?);
            if options.has(Part::Lifetimes) {
                measured.lifetimes_on_wine = lifetimes(options, &site, &programs)?;
            }
        }
        Some(Err(reason)) => measured.no_wine = Some(reason),
        None => {}
    }
    let about = About::of_this_machine(&measured)?;
    let page = page::render(&measured, &about, options);
    let path = workspace::root().join(&options.page);
    let published = fs::read_to_string(workspace::root().join("docs/performance.md"))?;
    fs::write(path, page + page::written(&published))?;
    println!("wrote {}", options.page.display());
    Ok(measured.no_wine)
}

fn measure_on_linux(options: &Options, site: &Site, programs: &Programs) -> Result<Measured, Error> {
    let mut measured = Measured::default();
    if options.has(Part::Linux) {
        measured.linux = Some(measure(options, site, programs)?);
    }
    if options.has(Part::LongCalls)
        && let Some(ours) = programs.servers.iter().rfind(|program| program.kind == Kind::Ours)
    {
        println!("during long calls");
        let window = options.seconds * LONG_WINDOWS;
        let callers = &options.long_call_callers;
        measured.long_calls = long_calls::measure(site, ours, &programs.client, callers, options.rounds, window)?;
    }
    if options.has(Part::Lifetimes) {
        measured.lifetimes_on_linux = lifetimes(options, site, programs)?;
    }
    Ok(measured)
}

fn lifetimes(options: &Options, site: &Site, programs: &Programs) -> Result<Vec<Lifetime>, Error> {
    println!("lifetimes");
    let servers: Vec<_> = programs.servers.iter().filter(|program| program.kind != Kind::PingPong).collect();
    lifetime::measure(site, &servers, &programs.client, options.seconds * LONG_WINDOWS, options.quiet)
}

/// Measures every server with every workload and number of callers, in every round.
fn measure(options: &Options, site: &Site, programs: &Programs) -> Result<Results, Error> {
    let all: Vec<&Workload> = WORKLOADS.iter().collect();
    let workloads = if options.workload.is_empty() { &all } else { &options.workload };
    let mut results = Results::new(site.system(), &programs.servers, workloads, &options.callers);
    for round in 0..options.rounds {
        println!("{:?}, round {} of {}", site.system(), round + 1, options.rounds);
        for cell in 0..results.cells().len() {
            let count = programs.servers.len();
            let mut order: Vec<usize> = (0..count).collect();
            order.rotate_left((usize::try_from(round)? + cell) % count);
            for index in order {
                let (program, cell_now) = (&programs.servers[index], &results.cells()[cell]);
                if !cell_now.workload.is_served_by(program.kind) {
                    continue;
                }
                let load = Load {
                    workload: cell_now.workload,
                    connections: cell_now.connections,
                    callers: cell_now.callers,
                    window: options.seconds,
                    during: None,
                };
                let sample = programs.client.measure(site, program, &load)?;
                let (workload, connections) = (load.workload.name, load.connections.name());
                println!("  {workload:<17} {connections:<8} {:>3} {:<10} {sample}", load.callers, program.name);
                results.add(cell, index, sample)?;
            }
        }
    }
    Ok(results)
}

impl Options {
    fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// The tests of the Go client's own arithmetic, which count as one.
fn test_client() -> std::io::Result<Summary> {
    let mut go = Command::new("go");
    let passed = process::succeeds(go.current_dir(programs::go_module()).args(["test", "./..."]))?;
    Ok(if passed { Summary::passed() } else { Summary::failed(&process::typed(&go)) })
}
