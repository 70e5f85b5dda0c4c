//! The race: starts each server with the client, round by round, and compares the measurements within a round.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use clap::Args;

use crate::counters::{self, Counters};
use crate::load::Sample;

#[derive(Args)]
pub(crate) struct Options {
    /// How many times each server is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many seconds a measurement takes
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// How many callers call at once, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 128])]
    callers: Vec<usize>,
    /// csi-proxy-sim
    #[arg(long)]
    simulator: PathBuf,
    /// The minimal grpc-go server
    #[arg(long)]
    grpc_go: PathBuf,
    /// The description of csi-proxy-sim's node
    #[arg(long)]
    node: PathBuf,
    /// Wine's loader; without it, nothing is measured under Wine
    #[arg(long, requires_all = ["client", "own_prefix", "own_program", "go_prefix", "go_program"])]
    wine: Option<PathBuf>,
    /// This program, built for Windows
    #[arg(long)]
    client: Option<PathBuf>,
    /// The Wine prefix of csi-proxy.exe
    #[arg(long)]
    own_prefix: Option<PathBuf>,
    /// csi-proxy.exe
    #[arg(long)]
    own_program: Option<PathBuf>,
    /// The Wine prefix of the Go program
    #[arg(long)]
    go_prefix: Option<PathBuf>,
    /// The Go program
    #[arg(long)]
    go_program: Option<PathBuf>,
}

/// The paths that are asked for: the name in the table, and the path.
const PATHS: [(&str, &str); 3] = [
    ("missing", r"C:\var\lib\kubelet\missing"),
    ("existing, 5 deep", r"C:\var\lib\kubelet\pods\pod\volumes\csi\pvc"),
    ("refused", r"C:\Windows\System32"),
];

/// A server in the race. The first of a race is csi-proxy.
struct Racer {
    name: &'static str,
    server: Vec<PathBuf>,
    client: Vec<PathBuf>,
    /// The folder of its sockets, made anew for each measurement.
    sockets: Option<PathBuf>,
    /// The Wine prefix in which it runs.
    prefix: Option<PathBuf>,
}

/// A measurement: what the client and Linux counted.
#[derive(Clone, Copy)]
struct Measured {
    sample: Sample,
    cpu_us_per_call: f64,
    resident_mb: f64,
    threads: f64,
}

pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let scratch = env::temp_dir().join(format!("csi-proxy-bench-{}", std::process::id()));
    fs::create_dir_all(scratch.join("pods/pod/volumes/csi/pvc"))?;
    let raced = race("On Linux", options, &on_linux(options, &scratch)?);
    fs::remove_dir_all(scratch)?;
    raced?;
    match under_wine(options) {
        Some(racers) => {
            for prefix in racers.iter().filter_map(|racer| racer.prefix.as_ref()) {
                fs::create_dir_all(prefix.join("drive_c/var/lib/kubelet/pods/pod/volumes/csi/pvc"))?;
            }
            race("Under Wine", options, &racers)
        }
        None => Ok(()),
    }
}

fn on_linux(options: &Options, scratch: &Path) -> Result<[Racer; 3], Box<dyn Error>> {
    let this = env::current_exe()?;
    let racer = |name, server: Vec<&Path>| {
        let sockets = scratch.join(name);
        let mut server: Vec<PathBuf> = server.into_iter().map(Path::to_path_buf).collect();
        server.extend(["--socket-folder".into(), sockets.clone()]);
        let client = vec![this.clone(), "load".into(), "--socket-folder".into(), sockets.clone()];
        Racer { name, server, client, sockets: Some(sockets), prefix: None }
    };
    let root = Path::new("--root");
    Ok([
        racer("csi-proxy", vec![&options.simulator, Path::new("--direct"), Path::new("--node"), &options.node]),
        racer("grpc-go", vec![&options.grpc_go, root, scratch]),
        racer("tonic", vec![&this, Path::new("serve"), root, scratch]),
    ])
}

fn under_wine(options: &Options) -> Option<[Racer; 2]> {
    let (wine, client) = (options.wine.clone()?, options.client.clone()?);
    let racer = |name, prefix: &Option<PathBuf>, program: &Option<PathBuf>| {
        let server = vec![wine.clone(), program.clone()?];
        let client = vec![wine.clone(), client.clone(), "load".into()];
        Some(Racer { name, server, client, sockets: None, prefix: Some(prefix.clone()?) })
    };
    Some([
        racer("csi-proxy", &options.own_prefix, &options.own_program)?,
        racer("Go program", &options.go_prefix, &options.go_program)?,
    ])
}

/// Measures all servers and prints a table with medians, and the ratios of csi-proxy to each other server.
fn race(title: &str, options: &Options, racers: &[Racer]) -> Result<(), Box<dyn Error>> {
    println!(
        "\n{title}\n\n| path | callers | server | calls/s | p50 us | p99 us | CPU us/call | MB | threads | calls/s of csi-proxy to it |"
    );
    println!("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|");
    for (path_name, path) in PATHS {
        for &callers in &options.callers {
            let mut rounds = Vec::new();
            for round in 0..options.rounds {
                rounds.push(measure_round(options, racers, round, path, callers)?);
            }
            for (at, racer) in racers.iter().enumerate() {
                let column = |figure: fn(&Measured) -> f64| median(rounds.iter().map(|round| figure(&round[at])));
                let ratios: Vec<f64> = rounds.iter().map(|round| ratio(&round[0], &round[at])).collect();
                println!(
                    "| {path_name} | {callers} | {} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} | {:.0} | {:.2} ({:.2} to {:.2}) |",
                    racer.name,
                    column(|measured| measured.sample.calls_per_second),
                    column(|measured| measured.sample.p50_us),
                    column(|measured| measured.sample.p99_us),
                    column(|measured| measured.cpu_us_per_call),
                    column(|measured| measured.resident_mb),
                    column(|measured| measured.threads),
                    median(ratios.iter().copied()),
                    ratios.iter().copied().fold(f64::MAX, f64::min),
                    ratios.iter().copied().fold(0.0, f64::max),
                );
            }
        }
    }
    Ok(())
}

fn ratio(own: &Measured, other: &Measured) -> f64 {
    own.sample.calls_per_second / other.sample.calls_per_second
}

/// Measures each server once, beginning with another one in each round. Returns the measurements in the servers' order.
fn measure_round(
    options: &Options,
    racers: &[Racer],
    round: usize,
    path: &str,
    callers: usize,
) -> Result<Vec<Measured>, Box<dyn Error>> {
    let mut order: Vec<usize> = (0..racers.len()).collect();
    order.rotate_left(round % racers.len());
    let mut measured = vec![None; racers.len()];
    for at in order {
        let racer = &racers[at];
        let one = measure(options, racer, path, callers).map_err(|error| format!("{}: {error}", racer.name))?;
        measured[at] = Some(one);
    }
    Ok(measured.into_iter().flatten().collect())
}

/// Starts a server and a client, and measures once.
fn measure(options: &Options, racer: &Racer, path: &str, callers: usize) -> Result<Measured, Box<dyn Error>> {
    // The server makes the folder itself, since the daemon accepts only a folder that is closed to others.
    if let Some(sockets) = racer.sockets.as_ref().filter(|sockets| sockets.exists()) {
        fs::remove_dir_all(sockets)?;
    }
    let server = KilledOnDrop(racer.command(&racer.server).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    let mut client = racer.command(&racer.client);
    client.args(["--path", path, "--callers", &callers.to_string(), "--seconds", &options.seconds.to_string()]);
    let mut client = KilledOnDrop(client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let (Some(mut input), Some(output)) = (client.0.stdin.take(), client.0.stdout.take()) else {
        return Err("the client has no standard streams".into());
    };
    let mut lines = BufReader::new(output).lines();
    let ready = lines.next().ok_or("the client has ended")??;
    if ready.trim() != "ready" {
        return Err(format!("the client printed {ready}").into());
    }
    let mut processes = vec![server.0.id()];
    processes.extend(racer.prefix.as_deref().and_then(counters::wineserver));
    let cpu = || -> Result<f64, String> { processes.iter().map(|id| Ok(Counters::of(*id)?.cpu_us)).sum() };
    let before = cpu()?;
    writeln!(input)?;
    let sample: Sample = serde_json::from_str(&lines.next().ok_or("the client has ended")??)?;
    let used = cpu()? - before;
    let Counters { resident_mb, threads, .. } = Counters::of(server.0.id())?;
    Ok(Measured { sample, cpu_us_per_call: used / sample.calls, resident_mb, threads })
}

impl Racer {
    fn command(&self, words: &[PathBuf]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stderr(Stdio::null());
        if let Some(prefix) = &self.prefix {
            command.env("WINEPREFIX", prefix);
        }
        command
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A process that is killed when this is dropped.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Both calls fail if the process has exited already.
        let _killed = self.0.kill();
        let _status = self.0.wait();
    }
}
