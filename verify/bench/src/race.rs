//! The race: starts each server with the client, round by round, and compares the measurements
//! within a round.

use std::error::Error;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use clap::Args;

use crate::counters::{self, Counters};
use crate::load::Sample;
use crate::table::{GO_PROGRAM, OF_CALLS, OF_SERVERS, Table};
use crate::{circumstances, cycles};

#[derive(Args)]
pub(crate) struct Options {
    /// How many times each server is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many seconds a measurement takes
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// How many callers call at once, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 128])]
    callers: Vec<usize>,
    /// How many seconds without calls pass before the threads are counted again
    #[arg(long, default_value_t = 65)]
    pause: u64,
    /// Root of the repository, whose pages get the table. They need a clean tree and an idle
    /// machine
    #[arg(long)]
    pages: Option<PathBuf>,
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

/// The paths that are asked for: missing and existing, one and five directories deep.
const PATHS: [&str; 4] = [
    r"C:\var\lib\kubelet\missing",
    r"C:\var\lib\kubelet\pods",
    r"C:\var\lib\kubelet\pods\pod\volumes\csi\missing",
    r"C:\var\lib\kubelet\pods\pod\volumes\csi\pvc",
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

/// Measures all servers, prints the table, and writes it to the pages.
pub(crate) async fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let pages = match &options.pages {
        None => Err("this is not the whole race".to_owned()),
        Some(root) => circumstances::check(root).map(|()| root),
    };
    match &pages {
        Ok(_) => println!("The pages get the table. Leave the machine idle until the end."),
        Err(reason) => println!("The pages stay as they are: {reason}."),
    }
    let mut table = Table::new(&options.callers);
    let scratch = env::temp_dir().join(format!("csi-proxy-bench-{}", std::process::id()));
    fs::create_dir_all(scratch.join("pods/pod/volumes/csi/pvc"))?;
    let raced = race(options, &on_linux(options, &scratch)?, &mut table);
    fs::remove_dir_all(scratch)?;
    raced?;
    if let Some(racers) = under_wine(options) {
        for prefix in racers.iter().filter_map(|racer| racer.prefix.as_ref()) {
            fs::create_dir_all(prefix.join("drive_c/var/lib/kubelet/pods/pod/volumes/csi/pvc"))?;
        }
        race(options, &racers, &mut table)?;
    }
    for (driver, ratio) in cycles::ratios().await? {
        table.add(&format!("cycle of {driver}"), GO_PROGRAM, &[ratio]);
    }
    println!("\n{}", table.render(|_| true));
    if let Ok(root) = pages {
        let method = format!(
            "{} rounds of {} s for each number of callers and path",
            options.rounds, options.seconds
        );
        table.write(
            root,
            &circumstances::sentence(root, options.wine.as_deref(), &method)?,
        )?;
    }
    Ok(())
}

fn on_linux(options: &Options, scratch: &Path) -> Result<[Racer; 3], Box<dyn Error>> {
    let this = env::current_exe()?;
    let racer = |name, server: Vec<&Path>| {
        let sockets = scratch.join(name);
        let mut server: Vec<PathBuf> = server.into_iter().map(Path::to_path_buf).collect();
        server.extend(["--socket-folder".into(), sockets.clone()]);
        let client = vec![
            this.clone(),
            "load".into(),
            "--socket-folder".into(),
            sockets.clone(),
        ];
        Racer {
            name,
            server,
            client,
            sockets: Some(sockets),
            prefix: None,
        }
    };
    let root = Path::new("--root");
    Ok([
        racer(
            "csi-proxy",
            vec![
                &options.simulator,
                Path::new("--direct"),
                Path::new("--node"),
                &options.node,
            ],
        ),
        racer("grpc-go", vec![&options.grpc_go, root, scratch]),
        racer("tonic", vec![&this, Path::new("serve"), root, scratch]),
    ])
}

fn under_wine(options: &Options) -> Option<[Racer; 2]> {
    let (wine, client) = (options.wine.clone()?, options.client.clone()?);
    let racer = |name, prefix: &Option<PathBuf>, program: &Option<PathBuf>| {
        let server = vec![wine.clone(), program.clone()?];
        let client = vec![wine.clone(), client.clone(), "load".into()];
        Some(Racer {
            name,
            server,
            client,
            sockets: None,
            prefix: Some(prefix.clone()?),
        })
    };
    Some([
        racer("csi-proxy", &options.own_prefix, &options.own_program)?,
        racer(GO_PROGRAM, &options.go_prefix, &options.go_program)?,
    ])
}

/// Measures all servers, prints what was measured, and adds the ratios of csi-proxy to each other
/// server to the table.
fn race(options: &Options, racers: &[Racer], table: &mut Table) -> Result<(), Box<dyn Error>> {
    for path in PATHS {
        for &callers in &options.callers {
            println!("\n{path}");
            let measured = |round| {
                one_round(racers, round, |racer| {
                    measure(options, racer, path, callers)
                })
            };
            let rounds = (0..options.rounds)
                .map(measured)
                .collect::<Result<Vec<_>, _>>()?;
            compare(
                racers,
                &rounds,
                &OF_CALLS.map(|figure| Table::row_of_calls(figure, callers)),
                table,
            );
        }
    }
    println!("\nmemory in MB");
    for round in 0..options.rounds {
        // Each round is an entry of its own: what a server holds is the same for all paths.
        compare(
            racers,
            &[settle(options, racers, round)?],
            &OF_SERVERS.map(str::to_owned),
            table,
        );
    }
    Ok(())
}

/// Prints the median of each figure, and adds the median of the rounds' ratios to the row of the
/// figure.
fn compare<const N: usize>(
    racers: &[Racer],
    rounds: &[Vec<[f64; N]>],
    rows: &[String; N],
    table: &mut Table,
) {
    for (at, racer) in racers.iter().enumerate() {
        print!("{}:", racer.name);
        for (figure, row) in rows.iter().enumerate() {
            print!(
                " {row} {:.3};",
                median(rounds.iter().map(|round| round[at][figure]))
            );
            if at > 0 {
                let ratios: Vec<f64> = rounds
                    .iter()
                    .map(|round| round[0][figure] / round[at][figure])
                    .collect();
                table.add(row, racer.name, &ratios);
            }
        }
        println!();
    }
}

/// Measures each server once, beginning with another one in each round. Returns the measurements in
/// the servers' order.
fn one_round<T>(
    racers: &[Racer],
    round: usize,
    measure: impl Fn(&Racer) -> Result<T, Box<dyn Error>>,
) -> Result<Vec<T>, Box<dyn Error>> {
    let first = round % racers.len();
    let mut measured = Vec::new();
    for racer in racers[first..].iter().chain(&racers[..first]) {
        measured.push(measure(racer).map_err(|error| format!("{}: {error}", racer.name))?);
    }
    measured.rotate_right(first);
    Ok(measured)
}

/// Measures the figures of calls.
fn measure(
    options: &Options,
    racer: &Racer,
    path: &str,
    callers: usize,
) -> Result<[f64; 4], Box<dyn Error>> {
    let server = racer.start_server()?;
    let client = racer.start_client(path, 1, callers, options.seconds)?;
    let mut processes = vec![server.0.id()];
    processes.extend(racer.prefix.as_deref().and_then(counters::wineserver));
    let cpu = || -> Result<f64, String> {
        processes
            .iter()
            .map(|id| Ok(Counters::of(*id)?.cpu_us))
            .sum()
    };
    let before = cpu()?;
    let Sample {
        calls,
        calls_per_second,
        p50_us,
        p99_us,
    } = client.measure()?;
    Ok([calls_per_second, p50_us, p99_us, (cpu()? - before) / calls])
}

/// Measures the figures of servers. All servers pause at the same time.
fn settle(
    options: &Options,
    racers: &[Racer],
    round: usize,
) -> Result<Vec<[f64; 5]>, Box<dyn Error>> {
    let loaded = one_round(racers, round, |racer| {
        let connection = connection_mb(racer)?;
        let (server, idle) = racer.start_idle_server()?;
        let callers = options.callers.iter().copied().max().unwrap_or(1);
        racer
            .start_client(PATHS[0], 1, callers, options.seconds)?
            .measure()?;
        let loaded = Counters::of(server.0.id())?;
        Ok((server, idle, loaded, connection))
    })?;
    thread::sleep(Duration::from_secs(options.pause));
    let figures = |(server, idle, loaded, connection): (KilledOnDrop, Counters, Counters, f64)| {
        let later = Counters::of(server.0.id())?;
        Ok([
            idle.resident_mb,
            loaded.resident_mb,
            connection,
            idle.threads,
            later.threads,
        ])
    };
    loaded.into_iter().map(figures).collect()
}

/// Returns the memory of an idle connection on which one call has been made.
fn connection_mb(racer: &Racer) -> Result<f64, Box<dyn Error>> {
    const CONNECTIONS: u32 = 256;
    let (server, idle) = racer.start_idle_server()?;
    let _client = racer.start_client(PATHS[0], CONNECTIONS, 0, 0.0)?;
    thread::sleep(SETTLING);
    Ok((Counters::of(server.0.id())?.resident_mb - idle.resident_mb) / f64::from(CONNECTIONS))
}

/// How long a server may take to do what it does after its start or after a call.
const SETTLING: Duration = Duration::from_secs(2);

/// A client that has its connections, and waits.
struct WaitingClient {
    _process: KilledOnDrop,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl WaitingClient {
    /// Lets the client measure.
    fn measure(mut self) -> Result<Sample, Box<dyn Error>> {
        writeln!(self.input)?;
        Ok(serde_json::from_str(
            &self.lines.next().ok_or("the client has ended")??,
        )?)
    }
}

impl Racer {
    fn start_server(&self) -> Result<KilledOnDrop, Box<dyn Error>> {
        // The server makes the folder itself, since the daemon accepts only a folder that is closed
        // to others.
        if let Some(sockets) = self.sockets.as_ref().filter(|sockets| sockets.exists()) {
            fs::remove_dir_all(sockets)?;
        }
        Ok(KilledOnDrop(
            self.command(&self.server)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()?,
        ))
    }

    /// Starts the server, and reads its counters when it has answered a client that has gone.
    fn start_idle_server(&self) -> Result<(KilledOnDrop, Counters), Box<dyn Error>> {
        let server = self.start_server()?;
        drop(self.start_client(PATHS[0], 1, 0, 0.0)?);
        thread::sleep(SETTLING);
        let idle = Counters::of(server.0.id())?;
        Ok((server, idle))
    }

    fn start_client(
        &self,
        path: &str,
        connections: u32,
        callers: usize,
        seconds: f64,
    ) -> Result<WaitingClient, Box<dyn Error>> {
        let mut client = self.command(&self.client);
        client.args(["--path", path, "--connections", &connections.to_string()]);
        client.args([
            "--callers",
            &callers.to_string(),
            "--seconds",
            &seconds.to_string(),
        ]);
        let mut process = KilledOnDrop(
            client
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?,
        );
        let (Some(input), Some(output)) = (process.0.stdin.take(), process.0.stdout.take()) else {
            return Err("the client has no standard streams".into());
        };
        let mut lines = BufReader::new(output).lines();
        let ready = lines.next().ok_or("the client has ended")??;
        if ready.trim() != "ready" {
            return Err(format!("the client printed {ready}").into());
        }
        Ok(WaitingClient {
            _process: process,
            input,
            lines,
        })
    }

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
