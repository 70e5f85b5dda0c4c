//! The published Go client, which deployed drivers link, against this server.
//!
//! The client is built twice, with the grpc-go that it pins and with the newest, since the two send a different
//! `:authority`. The server runs on a simulated node, once as a Linux program with sockets and once as a Windows program
//! with named pipes. Each client has a server process, and so a simulated node, to itself. Finally, one client calls the
//! Windows program on the real node, as far as that is possible without a spare disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::KillOnDrop;
use crate::summary::{self, Failure, Skip, Summary};
use crate::{Error, process, windows, wine, workspace};

mod node_plugins;
pub(crate) mod test_report;

/// The flag that names the description file of the simulated node to serve.
const NODE: &str = "-node";
/// The flag that names the folder for sockets, on systems without named pipes.
const SOCKETS: &str = "-socket-folder";

/// The flag that names the folder with the drivers' call sequences.
const DRIVERS: &str = "-drivers";

/// The client's module files, and which version of grpc-go each one selects.
const CLIENTS: [(&str, &str); 2] = [("go.mod", "pinned"), ("newest.mod", "newest")];
/// The line that the client prints after it has called all RPCs.
const CALLED: &str = "139 RPCs called";

/// Runs both clients against the daemon, wherever it can run here.
pub(crate) fn test() -> Result<Summary, Error> {
    let source = workspace::root().join("verify/go-client");
    if !source.join("go.mod").is_file() {
        return Ok(Summary::default());
    }
    if process::find("go").is_none() {
        return Ok(Summary::skipped(
            "Go client",
            "go is not installed (https://go.dev/dl, the version in Debian 12 is too old)",
        ));
    }
    let on_windows = std::env::consts::OS == "windows";
    let mut sum = Summary::default();
    if !on_windows {
        sum += over_sockets(&source)?;
        sum += node_plugins::test()?;
    }
    sum += over_pipes(&source, on_windows)?;
    sum += node_plugins::test_windows_program()?;
    Ok(sum)
}

fn over_sockets(source: &Path) -> Result<Summary, Error> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "-p", "csi-proxy-sim"]);
    if !process::succeeds(&mut cargo)? {
        return Ok(Summary::failed(&format!("{} failed", process::typed(&cargo))));
    }
    let daemon = workspace::target().join("debug/csi-proxy-sim");
    let folder = workspace::target().join("go/sockets");
    let mut sum = Summary::default();
    for (module, name) in CLIENTS {
        sum += own_tests(source, module)?;
        let Some(client) = build(source, module, name, "linux")? else {
            sum += Summary::failed(&format!("the Go client does not build for Linux with {module}"));
            continue;
        };
        // The client would try to connect to sockets that a killed daemon left behind.
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let mut daemon = Command::new(&daemon);
        daemon.args(log()).arg(NODE).arg(node(source)).arg(SOCKETS).arg(&folder);
        let daemon = Daemon::start(&mut daemon)?;
        sum += run(Command::new(client).arg("-dir").arg(&folder).arg(DRIVERS).arg(drivers()))?;
        sum += example(source, module, &folder)?;
        sum += daemon.end();
    }
    Ok(sum)
}

fn over_pipes(source: &Path, on_windows: bool) -> Result<Summary, Error> {
    let (daemon, simulator) = match windows::daemon().and_then(|daemon| Ok((daemon, windows::simulator()?))) {
        Ok(programs) => programs,
        Err(windows::NoDaemon::NoCompiler(reason)) => {
            return Ok(Summary::skipped("Go client over named pipes", &reason));
        }
        Err(windows::NoDaemon::Broken(error)) => return Ok(Summary::failed(&error)),
    };
    let prefix = match (!on_windows).then(wine::Prefix::start).transpose() {
        Ok(prefix) => prefix,
        Err(reason) => return Ok(Summary::skipped("Go client over named pipes", &reason)),
    };
    let program = |path: &Path| prefix.as_ref().map_or_else(|| Command::new(path), |prefix| prefix.command(path));
    let mut sum = Summary::default();
    for (module, name) in CLIENTS {
        let Some(client) = build(source, module, name, "windows")? else {
            sum += Summary::failed(&format!("the Go client does not build for Windows with {module}"));
            continue;
        };
        let served = Daemon::start(program(&simulator).args(log()).arg(NODE).arg(node(source)))?;
        sum += run(program(&client).arg(DRIVERS).arg(drivers()))?;
        sum += served.end();
        if module == CLIENTS[0].0 {
            fs::create_dir_all(working_directory(prefix.as_ref()))?;
            let served = Daemon::start(program(&daemon).args(log()))?;
            sum += run_a_part(program(&client).arg("-windows-node"))?;
            sum += served.end();
        }
    }
    Ok(sum)
}

/// Returns the flags that let the daemon log to a file, apart from the client's output.
fn log() -> [String; 3] {
    let file = workspace::target().join("go/daemon.log");
    ["-logtostderr=false".into(), "-v=5".into(), format!("-log_file={}", file.display())]
}

/// Returns the description of the simulated node for which the client is written.
fn node(source: &Path) -> PathBuf {
    source.join("node.toml")
}

/// Returns the folder with the drivers' call sequences, which the demo of csi-proxy-sim reads too.
fn drivers() -> PathBuf {
    workspace::root().join("sim/csi-proxy-sim/drivers")
}

/// Runs the example for driver authors, which counts as one test.
fn example(source: &Path, module: &str, sockets: &Path) -> std::io::Result<Summary> {
    let mut go = Command::new("go");
    go.current_dir(source).args(["run", "-modfile", module, "./example"]).arg(sockets);
    let passed = process::succeeds(&mut go)?;
    Ok(if passed { Summary::passed() } else { Summary::failed(&process::typed(&go)) })
}

/// Returns the daemon's default working directory, which kubelet creates on a node.
fn working_directory(prefix: Option<&wine::Prefix>) -> PathBuf {
    let path = r"C:\var\lib\kubelet";
    prefix.map_or_else(|| path.into(), |prefix| prefix.drive_c().join("var/lib/kubelet"))
}

/// Runs the client's own unit tests, which count as one test.
fn own_tests(source: &Path, module: &str) -> std::io::Result<Summary> {
    let mut go = Command::new("go");
    let passed = process::succeeds(go.current_dir(source).args(["test", "-modfile", module, "."]))?;
    Ok(if passed { Summary::passed() } else { Summary::failed(&process::typed(&go)) })
}

/// Builds a client. Returns `None` if that fails.
fn build(source: &Path, module: &str, name: &str, system: &str) -> std::io::Result<Option<PathBuf>> {
    let suffix = if system == "windows" { ".exe" } else { "" };
    let client = workspace::target().join("go").join(format!("client-{name}{suffix}"));
    let mut go = Command::new("go");
    go.current_dir(source).args(["build", "-modfile", module, "-o"]).arg(&client).arg(".");
    go.env("CGO_ENABLED", "0").env("GOOS", system).env("GOARCH", if system == "windows" { "amd64" } else { native() });
    Ok(process::succeeds(&mut go)?.then_some(client))
}

/// Returns Go's name for the architecture of this machine.
fn native() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Builds the client of deployed drivers for Windows.
pub(crate) fn pinned_client() -> Result<PathBuf, Error> {
    let (module, name) = CLIENTS[0];
    let client = build(&workspace::root().join("verify/go-client"), module, name, "windows")?;
    client.ok_or_else(|| "cannot build the Go client".into())
}

/// Runs a client on a real disk, whose data it destroys.
pub(crate) fn run_on_disk(client: &Path, number: u32, more: &[&str]) -> std::io::Result<Summary> {
    run_a_part(Command::new(client).arg("-disk").arg(number.to_string()).args(more))
}

/// Runs a client that calls some of the RPCs, and reads its counts.
fn run_a_part(client: &mut Command) -> std::io::Result<Summary> {
    let report = Report { all_called: true, ..Report::default() };
    report.read(client)
}

/// Runs a client that calls all RPCs, and reads its counts.
fn run(client: &mut Command) -> std::io::Result<Summary> {
    Report::default().read(client)
}

/// What a client printed.
#[derive(Debug, Default)]
struct Report {
    counts: Option<[usize; 3]>,
    skipped: Vec<Skip>,
    failed: Vec<Failure>,
    /// Whether the client has called all RPCs, or does not have to.
    all_called: bool,
}

impl Report {
    fn read(mut self, client: &mut Command) -> std::io::Result<Summary> {
        let status = process::stream(client, |line| self.line(line))?;
        Ok(self.finish(&process::typed(client), status.success()))
    }

    fn line(&mut self, line: &str) {
        self.all_called |= line == CALLED;
        self.skipped.extend(Skip::from_line(line));
        self.failed.extend(line.strip_prefix("FAILED ").map(Failure::new));
        self.counts = summary::counts(line).or(self.counts);
    }

    fn finish(mut self, client: &str, succeeded: bool) -> Summary {
        let Some([passed, failed, _]) = self.counts else {
            return Summary::failed(&format!("{client} ended before it printed its counts"));
        };
        self.failed.resize(failed, Failure::new("a call without a name"));
        let mut summary = Summary { passed, failed: self.failed, skipped: self.skipped, steps: Vec::new() };
        if !self.all_called {
            summary += Summary::failed(&format!("{client} did not print `{CALLED}`"));
        }
        if !succeeded && summary.is_success() {
            summary += Summary::failed(&format!("{client} failed although no call did"));
        }
        summary
    }
}

/// A running daemon.
pub(crate) struct Daemon(KillOnDrop);

impl Daemon {
    pub(crate) fn start(command: &mut Command) -> std::io::Result<Self> {
        println!("$ {} &", process::typed(command));
        // The client reports a daemon that fails.
        Ok(Self(KillOnDrop(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)))
    }

    /// Kills the daemon. A daemon that has exited before is a failure, even if the client has not noticed it.
    pub(crate) fn end(mut self) -> Summary {
        match self.0.0.try_wait() {
            Ok(None) => Summary::default(),
            Ok(Some(status)) => Summary::failed(&format!("the daemon exited with {status} before it was killed")),
            Err(error) => Summary::failed(&format!("cannot wait for the daemon: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(output: &str, succeeded: bool) -> String {
        let mut report = Report::default();
        output.lines().for_each(|line| report.line(line));
        report.finish("client", succeeded).to_string()
    }

    #[test]
    fn the_counts_of_a_client_are_parsed() {
        let output = "ok disk/v1 Rescan\nskipped: a: b\n139 RPCs called\n140 passed, 0 failed, 1 skipped\n";
        assert_eq!(report(output, true), "140 passed, 0 failed, 1 skipped");
        assert_eq!(
            report("FAILED disk/v1 Rescan {}: no\n139 RPCs called\n139 passed, 1 failed, 0 skipped\n", false),
            "139 passed, 1 failed, 0 skipped"
        );
    }

    #[test]
    fn a_client_that_skips_rpcs_or_prints_no_counts_has_failed() {
        assert_eq!(
            report("138 RPCs called\n138 passed, 0 failed, 0 skipped\n", true),
            "138 passed, 1 failed, 0 skipped"
        );
        assert_eq!(report("139 RPCs called\n", false), "0 passed, 1 failed, 0 skipped");
        assert_eq!(report("139 RPCs called\n9 passed, 0 failed, 0 skipped\n", false), "9 passed, 1 failed, 0 skipped");
    }
}
