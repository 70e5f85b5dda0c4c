//! The example node plugins, with the conformance tests of CSI on simulated nodes:
//! verify/node-plugins.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::process::{self, KillOnDrop};
use crate::summary::Summary;
use crate::windows::driver::Node;
use crate::{Error, workspace};

/// Runs the unit tests of the plugin in Go.
pub(super) fn unit_tests() -> Summary {
    Summary::of_tests(
        Command::new("go")
            .current_dir(go_source())
            .args(["test", "-count=1", "-v", "."]),
    )
}

/// Builds the plugins and tests them with Unix sockets. csi-proxy-sim has been built.
pub(super) fn test(flags: &[&str]) -> Result<Summary, Error> {
    let go = build_go("")?;
    process::must_succeed(&mut workspace::cargo_for_example("build"))?;
    let rust = workspace::target().join("debug/node-plugin-rust");
    Ok(run_tests(
        flags,
        &format!("Go={},Rust={}", go.display(), rust.display()),
    ))
}

/// Tests the plugin in Go as a Windows program with named pipes.
pub(super) fn test_windows_program() -> Result<Summary, Error> {
    let go = build_go("windows")?;
    let node = match Node::start(Some(&source().join("node.toml")), "-v=0", &[])? {
        Ok(node) => node,
        Err(missing) => return Ok(Summary::skipped("example node plugin under Wine", &missing)),
    };
    // A port that is free now. Wine 8 has no Unix sockets.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut plugin = node.command(go);
    plugin
        .arg(format!("--endpoint=tcp://{address}"))
        .arg("--node-id=node-1");
    process::print(&plugin);
    let _plugin = KillOnDrop(plugin.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    // Without the test of the registration, which needs Unix sockets.
    Ok(run_tests(
        &["-run=TestSanity"],
        &format!("Windows=dns:///{address}"),
    ))
}

/// Runs the tests with these plugins, each given as its name and its program or address.
fn run_tests(flags: &[&str], plugins: &str) -> Summary {
    let mut tests = Command::new("go");
    tests
        .current_dir(source())
        .args(["test", "-count=1", "-v", "."])
        .args(flags);
    tests
        .env(
            "CSI_PROXY_SIM",
            workspace::target().join("debug/csi-proxy-sim"),
        )
        .env("CSI_NODE_PLUGINS", plugins);
    Summary::of_tests(&mut tests)
}

fn source() -> PathBuf {
    workspace::root().join("verify/node-plugins")
}

fn go_source() -> PathBuf {
    workspace::root().join("examples/node-plugin-go")
}

/// Builds the plugin in Go for a system, or for this one if no system is given.
fn build_go(system: &str) -> Result<PathBuf, Error> {
    let name = if system == "windows" {
        "node-plugin.exe"
    } else {
        "node-plugin"
    };
    let program = workspace::target().join("go").join(name);
    let mut go = Command::new("go");
    go.current_dir(go_source())
        .args(["build", "-o"])
        .arg(&program)
        .arg(".");
    if !system.is_empty() {
        go.env("CGO_ENABLED", "0")
            .env("GOOS", system)
            .env("GOARCH", "amd64");
    }
    process::must_succeed(&mut go).map(|()| program)
}
