//! The published Go client against our daemon: what deployed drivers link is what calls it here.
//!
//! The client is built twice, with the grpc-go that it pins and with the newest, for the two send different
//! `:authority`s. The daemon runs on a simulated node, once as a Linux program over sockets and once as the Windows
//! program over named pipes; each client gets a daemon, and so a node, of its own. Then one client calls the daemon that is
//! shipped on the node that it really is on, as far as that can be done without a disk to spare.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::tally::{self, Failure, Skip, Tally};
use crate::{process, windows, wine, workspace};

/// Followed by a file: makes the daemon serve the simulated node that it describes.
const NODE: &str = "-node";
/// Followed by a folder: makes the daemon serve sockets there, where there are no named pipes.
const SOCKETS: &str = "-socket-folder";

/// Followed by a folder: where the client finds the drivers' sequences of calls.
const DRIVERS: &str = "-drivers";

/// The client's module files and what each stands for.
const CLIENTS: [(&str, &str); 2] = [("go.mod", "pinned"), ("newest.mod", "newest")];
/// What the client must have called when it is through.
const CALLED: &str = "139 RPCs called";

/// Runs both clients against the daemon, wherever it can run here.
pub(crate) fn test() -> Result<Tally, Box<dyn std::error::Error>> {
    let source = workspace::root().join("verify/go-client");
    if !source.join("go.mod").is_file() {
        return Ok(Tally::default());
    }
    if process::find("go").is_none() {
        return Ok(Tally::skip("Go client", "go is not installed (https://go.dev/dl; Debian 12's is too old)"));
    }
    let on_windows = std::env::consts::OS == "windows";
    let mut sum = Tally::default();
    if !on_windows {
        sum += over_sockets(&source)?;
    }
    sum += over_pipes(&source, on_windows)?;
    Ok(sum)
}

fn over_sockets(source: &Path) -> Result<Tally, Box<dyn std::error::Error>> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "-p", "csi-proxy-sim"]);
    if !process::succeeds(&mut cargo)? {
        return Ok(Tally::broken(&format!("{} failed", process::typed(&cargo))));
    }
    let daemon = workspace::target().join("debug/csi-proxy-sim");
    let folder = workspace::target().join("go/sockets");
    let mut sum = Tally::default();
    for (module, name) in CLIENTS {
        sum += own_tests(source, module)?;
        let Some(client) = build(source, module, name, "linux")? else {
            sum += Tally::broken(&format!("the Go client does not build for Linux with {module}"));
            continue;
        };
        // Sockets of a daemon that was killed would look like a daemon.
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

fn over_pipes(source: &Path, on_windows: bool) -> Result<Tally, Box<dyn std::error::Error>> {
    let (daemon, simulator) = match windows::daemon().and_then(|daemon| Ok((daemon, windows::simulator()?))) {
        Ok(programs) => programs,
        Err(windows::NoDaemon::NoCompiler(why)) => return Ok(Tally::skip("Go client over named pipes", &why)),
        Err(windows::NoDaemon::Broken(what)) => return Ok(Tally::broken(&what)),
    };
    let prefix = match (!on_windows).then(wine::Prefix::start).transpose() {
        Ok(prefix) => prefix,
        Err(why) => return Ok(Tally::skip("Go client over named pipes", &why)),
    };
    let program = |path: &Path| prefix.as_ref().map_or_else(|| Command::new(path), |prefix| prefix.command(path));
    let mut sum = Tally::default();
    for (module, name) in CLIENTS {
        let Some(client) = build(source, module, name, "windows")? else {
            sum += Tally::broken(&format!("the Go client does not build for Windows with {module}"));
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

/// Lets the daemon log to a file: its lines would mix with the client's.
fn log() -> [String; 3] {
    let file = workspace::target().join("go/daemon.log");
    ["-logtostderr=false".into(), "-v=5".into(), format!("-log_file={}", file.display())]
}

/// The simulated node that the client knows its way about.
fn node(source: &Path) -> PathBuf {
    source.join("node.toml")
}

/// The drivers' sequences of calls, which the demo of csi-proxy-sim reads too.
fn drivers() -> PathBuf {
    workspace::root().join("sim/csi-proxy-sim/drivers")
}

/// Runs the example for authors of drivers, which counts as one test.
fn example(source: &Path, module: &str, sockets: &Path) -> std::io::Result<Tally> {
    let mut go = Command::new("go");
    go.current_dir(source).args(["run", "-modfile", module, "./example"]).arg(sockets);
    let passed = process::succeeds(&mut go)?;
    Ok(if passed { Tally { passed: 1, ..Tally::default() } } else { Tally::broken(&process::typed(&go)) })
}

/// Where the daemon may change things on the node that it is on. Kubelet makes it.
fn working_directory(prefix: Option<&wine::Prefix>) -> PathBuf {
    let path = r"C:\var\lib\kubelet";
    prefix.map_or_else(|| path.into(), |prefix| prefix.drive_c().join("var/lib/kubelet"))
}

/// The client's tests of its own comparisons, which count as one.
fn own_tests(source: &Path, module: &str) -> std::io::Result<Tally> {
    let mut go = Command::new("go");
    let passed = process::succeeds(go.current_dir(source).args(["test", "-modfile", module, "."]))?;
    Ok(if passed { Tally { passed: 1, ..Tally::default() } } else { Tally::broken(&process::typed(&go)) })
}

/// Builds a client; `None` when that fails.
fn build(source: &Path, module: &str, name: &str, system: &str) -> std::io::Result<Option<PathBuf>> {
    let suffix = if system == "windows" { ".exe" } else { "" };
    let client = workspace::target().join("go").join(format!("client-{name}{suffix}"));
    let mut go = Command::new("go");
    go.current_dir(source).args(["build", "-modfile", module, "-o"]).arg(&client).arg(".");
    go.env("CGO_ENABLED", "0").env("GOOS", system).env("GOARCH", if system == "windows" { "amd64" } else { native() });
    Ok(process::succeeds(&mut go)?.then_some(client))
}

/// Go's name of this machine's architecture.
fn native() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The client of deployed drivers, for Windows.
pub(crate) fn pinned_client() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let (module, name) = CLIENTS[0];
    let client = build(&workspace::root().join("verify/go-client"), module, name, "windows")?;
    client.ok_or_else(|| "the Go client does not build".into())
}

/// Lets a client use, and destroy, a real disk.
pub(crate) fn run_on_disk(client: &Path, number: u32, more: &[&str]) -> std::io::Result<Tally> {
    run_a_part(Command::new(client).arg("-disk").arg(number.to_string()).args(more))
}

/// Runs a client through a part of the RPCs.
fn run_a_part(client: &mut Command) -> std::io::Result<Tally> {
    let report = Report { all_called: true, ..Report::default() };
    report.read(client)
}

/// Runs a client through all RPCs and reads its count.
fn run(client: &mut Command) -> std::io::Result<Tally> {
    Report::default().read(client)
}

/// What a client said.
#[derive(Debug, Default)]
struct Report {
    counts: Option<[usize; 3]>,
    skipped: Vec<Skip>,
    failed: Vec<Failure>,
    /// That every RPC was called, where that is the task.
    all_called: bool,
}

impl Report {
    fn read(mut self, client: &mut Command) -> std::io::Result<Tally> {
        let status = process::stream(client, |line| self.line(line))?;
        Ok(self.finish(&process::typed(client), status.success()))
    }

    fn line(&mut self, line: &str) {
        self.all_called |= line == CALLED;
        self.skipped.extend(Skip::from_line(line));
        self.failed.extend(line.strip_prefix("FAILED ").map(Failure::new));
        self.counts = tally::counts(line).or(self.counts);
    }

    fn finish(mut self, client: &str, succeeded: bool) -> Tally {
        let Some([passed, failed, _]) = self.counts else {
            return Tally::broken(&format!("{client} died before it gave its result"));
        };
        self.failed.resize(failed, Failure::new("a call that is not named"));
        let mut tally = Tally { passed, failed: self.failed, skipped: self.skipped };
        if !self.all_called {
            tally += Tally::broken(&format!("{client} did not say `{CALLED}`"));
        }
        if !succeeded && tally.is_green() {
            tally += Tally::broken(&format!("{client} failed without a failing call"));
        }
        tally
    }
}

/// A daemon that ends with us.
pub(crate) struct Daemon(Child);

impl Daemon {
    pub(crate) fn start(command: &mut Command) -> std::io::Result<Self> {
        println!("$ {} &", process::typed(command));
        // A daemon that fails is seen by the client.
        Ok(Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?))
    }

    /// Ends it. One that has ended by itself is a failure, whatever its client thought.
    pub(crate) fn end(mut self) -> Tally {
        match self.0.try_wait() {
            Ok(None) => Tally::default(),
            Ok(Some(status)) => Tally::broken(&format!("the daemon ended by itself with {status}")),
            Err(error) => Tally::broken(&format!("the daemon cannot be watched: {error}")),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        let _killed = self.0.kill();
        let _status = self.0.wait();
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
    fn a_client_reports_its_own_counts() {
        let output = "ok disk/v1 Rescan\nskipped: a: b\n139 RPCs called\n140 passed, 0 failed, 1 skipped\n";
        assert_eq!(report(output, true), "140 passed, 0 failed, 1 skipped");
        assert_eq!(
            report("FAILED disk/v1 Rescan {}: no\n139 RPCs called\n139 passed, 1 failed, 0 skipped\n", false),
            "139 passed, 1 failed, 0 skipped"
        );
    }

    #[test]
    fn a_client_that_calls_too_little_or_dies_has_failed() {
        assert_eq!(
            report("138 RPCs called\n138 passed, 0 failed, 0 skipped\n", true),
            "138 passed, 1 failed, 0 skipped"
        );
        assert_eq!(report("139 RPCs called\n", false), "0 passed, 1 failed, 0 skipped");
        assert_eq!(report("139 RPCs called\n9 passed, 0 failed, 0 skipped\n", false), "9 passed, 1 failed, 0 skipped");
    }
}
