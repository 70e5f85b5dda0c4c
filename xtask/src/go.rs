//! The published Go client, which deployed drivers link, against this server.
//!
//! The client is built twice, with the grpc-go that it pins and with the newest, since the two send
//! a different `:authority`. The server runs on a simulated node, once as a Linux program with
//! sockets and once as a Windows program with named pipes. Each client has a server process, and so
//! a simulated node, to itself. Finally, one client calls the Windows program on the real node, as
//! far as that is possible without a spare disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::KillOnDrop;
use crate::summary::Summary;
use crate::{Error, process, setup, test, windows, wine, workspace};

mod fetch;
mod node_plugins;
pub(crate) mod programs;

/// The flag that names the description file of the simulated node to serve.
const NODE: &str = "-node";
/// The flag with which the operations of the simulated node take no time.
const FAST: &str = "-fast";
/// The flag that names the folder for sockets, on systems without named pipes.
const SOCKETS: &str = "-socket-folder";

/// The flag that names the folder with the drivers' call sequences.
const DRIVERS: &str = "-drivers";

/// The clients, by the version of grpc-go with which each one is built, and the tests of the
/// library over the pipes that use the same simulated node.
const CLIENTS: [(&str, &str); 2] = [
    ("pinned", "v2pipe-alpha1.test.exe"),
    ("newest", "v2pipe-alpha2.test.exe"),
];

/// Downloads and compiles what the tests run, if Go is installed.
pub(crate) fn set_up() {
    if process::find("go").is_none() {
        return;
    }
    println!("set-up: Go programs for the tests; the first time, the downloads take minutes");
    if !windows::is_here() {
        setup::report(generate_stubs());
        setup::report(setup::go_tool(node_plugins::GRPCURL).map(drop));
        setup::report(process::must_succeed(&mut workspace::cargo_for_example(
            "build",
        )));
    }
    programs::build_all(false);
}

/// Runs both clients against the daemon, wherever it can run here.
pub(crate) fn test() -> Result<Summary, Error> {
    let source = workspace::root().join("verify/go-client");
    if process::find("go").is_none() {
        return Ok(Summary::skipped(
            "Go client",
            "go is not installed (https://go.dev/dl, the version in Debian 12 is too old)",
        ));
    }
    let on_windows = windows::is_here();
    let mut sum = Summary::default();
    if !on_windows {
        sum += over_sockets(&source)?;
        sum += Summary::of_tests(&mut programs::tests("node-plugin.test")?);
        sum += node_plugins::test(&[])?;
        sum += simtest()?;
    }
    // Compiled also where Wine is missing.
    sum += Summary::of_result(
        "the integration tests of the Go program",
        programs::built(programs::INTEGRATION_TESTS).map(|_| true),
    );
    let name = "Go client over named pipes";
    sum += Summary::of_attempt(name, over_pipes(&source, on_windows));
    let name = "example node plugin under Wine";
    sum += Summary::of_attempt(name, node_plugins::test_windows_program());
    Ok(sum)
}

/// Makes each call of Windows fail that a call of the example node plugins leads to, and csi-proxy
/// crash after it.
pub(crate) fn disturbed_plugins() -> Result<Summary, Error> {
    if process::find("go").is_none() || windows::is_here() {
        return Ok(Summary::skipped(
            "disturbed node plugins",
            "go is not installed, or this is Windows",
        ));
    }
    test::simulator()?;
    node_plugins::test(&[
        "-test.run=TestARepeatedCall",
        "-test.timeout=60m",
        "-every-call",
    ])
}

fn over_sockets(source: &Path) -> Result<Summary, Error> {
    let daemon = test::simulator()?;
    let folder = workspace::target().join("go/sockets");
    let mut sum = Summary::default();
    for (name, _) in CLIENTS {
        sum += Summary::of_tests(&mut programs::tests(&format!("client-{name}.test"))?);
        let client = programs::built(&format!("client-{name}"))?;
        // The client would try to connect to sockets that a killed daemon left behind.
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let mut daemon = Command::new(&daemon);
        daemon
            .args(log())
            .arg(FAST)
            .arg(NODE)
            .arg(node(source))
            .arg(SOCKETS)
            .arg(&folder);
        let daemon = Daemon::start(&mut daemon)?;
        sum += calls_of(
            Command::new(client)
                .arg("-dir")
                .arg(&folder)
                .arg(DRIVERS)
                .arg(drivers()),
        );
        // The example for driver authors counts as one test.
        sum += Summary::of_check(
            "the example in Go",
            Command::new(programs::built(&format!("example-{name}"))?).arg(&folder),
        );
        sum += daemon.end();
    }
    Ok(sum)
}

/// Returns the folder for the Go stubs of the control API of csi-proxy-sim, as they are generated
/// now.
fn stubs() -> PathBuf {
    workspace::target().join("go/simcontrol")
}

/// Generates the Go stubs, to compare those in git with them.
fn generate_stubs() -> Result<(), Error> {
    let mut generate = workspace::cargo();
    generate.args(["run", "--package", "csi-proxy-simtest"]);
    process::must_succeed(generate.args(["--example", "go_stubs", "--"]).arg(stubs()))
}

/// Tests the Go module for driver authors and its example. csi-proxy-sim has been built.
fn simtest() -> Result<Summary, Error> {
    let mut diff = Command::new("diff");
    diff.arg("-r").arg(stubs());
    let mut sum = Summary::of_check(
        "the Go stubs in git are current: cargo run -p csi-proxy-simtest --example go_stubs",
        diff.arg(workspace::root().join("sim/simtest/simcontrol")),
    );
    sum += fetch::test()?;
    for name in [
        "simtest.test",
        "simtest-example.test",
        "simtest-sanity.test",
    ] {
        sum += Summary::of_tests(programs::tests(name)?.env(
            "CSI_PROXY_SIM",
            workspace::target().join("debug").join(windows::SIMULATOR),
        ));
    }
    Ok(sum)
}

fn over_pipes(source: &Path, on_windows: bool) -> Result<Summary, Error> {
    let (daemon, simulator) = (windows::debug_daemon()?, windows::simulator()?);
    let prefix = if on_windows {
        None
    } else {
        Some(wine::Prefix::start()?)
    };
    let program = |path: &Path| {
        prefix
            .as_ref()
            .map_or_else(|| Command::new(path), |prefix| prefix.command(path))
    };
    let integration_tests = programs::built(programs::INTEGRATION_TESTS)?;
    let mut sum = Summary::default();
    for (name, library) in CLIENTS {
        let client = programs::built(&format!("client-{name}.exe"))?;
        let library = programs::built(library)?;
        let served = Daemon::start(
            program(&simulator)
                .args(log())
                .arg(FAST)
                .arg(NODE)
                .arg(node(source)),
        )?;
        sum += calls_of(program(&client).arg(DRIVERS).arg(drivers()));
        sum += Summary::of_tests(program(&library).arg("-test.v"));
        sum += served.end();
        if name == CLIENTS[0].0 {
            fs::create_dir_all(working_directory(prefix.as_ref()))?;
            let served = Daemon::start(program(&daemon).args(log()))?;
            sum += calls_of(program(&client).arg("-windows-node"));
            // Most of the others need PowerShell, disks or links: docs/appendix-windows.md.
            sum += calls_of(
                program(&integration_tests).args(["-test.v", "-test.run=TestVolumeAPIs/Negative"]),
            );
            sum += served.end();
        }
    }
    Ok(sum)
}

/// Runs a client and counts its calls. Under Wine, a client does not always end after it has
/// printed its result.
fn calls_of(client: &mut Command) -> Summary {
    Summary::of_test_program(client)
}

/// Returns the flags that let the daemon log to a file, apart from the client's output.
fn log() -> [String; 3] {
    let file = workspace::target().join("go/daemon.log");
    [
        "-logtostderr=false".into(),
        "-v=5".into(),
        format!("-log_file={}", file.display()),
    ]
}

/// Returns the description of the simulated node for which the client is written.
fn node(source: &Path) -> PathBuf {
    source.join("node.toml")
}

/// Returns the folder with the drivers' call sequences, which the demo of csi-proxy-sim reads too.
fn drivers() -> PathBuf {
    workspace::root().join("sim/csi-proxy-sim/drivers")
}

/// Returns the daemon's default working directory, which kubelet creates on a node.
fn working_directory(prefix: Option<&wine::Prefix>) -> PathBuf {
    let path = r"C:\var\lib\kubelet";
    prefix.map_or_else(
        || path.into(),
        |prefix| prefix.drive_c().join("var/lib/kubelet"),
    )
}

/// A running daemon.
pub(crate) struct Daemon(KillOnDrop);

impl Daemon {
    pub(crate) fn start(command: &mut Command) -> std::io::Result<Self> {
        println!("$ {} &", process::typed(command));
        // The client reports a daemon that fails.
        Ok(Self(KillOnDrop(
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?,
        )))
    }

    /// Kills the daemon. A daemon that has exited before is a failure, even if the client has not
    /// noticed it.
    pub(crate) fn end(mut self) -> Summary {
        match self.0.0.try_wait() {
            Ok(None) => Summary::default(),
            Ok(Some(status)) => Summary::failed(&format!(
                "the daemon exited with {status} before it was killed"
            )),
            Err(error) => Summary::failed(&format!("cannot wait for the daemon: {error}")),
        }
    }
}
