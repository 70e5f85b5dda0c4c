//! The example node plugins, with the conformance tests of CSI on simulated nodes:
//! verify/node-plugins.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;

use super::programs;
use crate::process::{self, KillOnDrop};
use crate::summary::Summary;
use crate::windows::driver::Node;
use crate::{Error, setup, test, windows, workspace};

/// The program with which the page for driver authors calls a socket; a shell function takes the
/// place of its `go run`.
pub(super) const GRPCURL: &str = "grpcurl";

/// Tests the plugins with Unix sockets. csi-proxy-sim has been built.
pub(super) fn test(flags: &[&str]) -> Result<Summary, Error> {
    let go = programs::built("node-plugin")?;
    let rust = workspace::target().join("debug/node-plugin-rust");
    // The page for driver authors builds and runs these.
    test::debug_program(windows::ADMIN_TOOL, "simulated_node")?;
    let mut example = workspace::cargo();
    example.args(["build", "--workspace", "--example", "stage_volume"]);
    process::must_succeed(&mut example)?;
    run_tests(
        flags,
        &format!("Go={},Rust={}", go.display(), rust.display()),
    )
}

/// Tests the plugin in Go as a Windows program with named pipes.
pub(super) fn test_windows_program() -> Result<Summary, Error> {
    let go = programs::built("node-plugin.exe")?;
    let node = Node::start(Some(&source().join("node.toml")), "-v=0", &[])?;
    // A port that is free now. Wine 8 has no Unix sockets.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut plugin = node.command(go);
    plugin
        .arg(format!("--endpoint=tcp://{address}"))
        .arg("--node-id=node-1");
    process::print(&plugin);
    let _plugin = KillOnDrop(plugin.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    // Without the test of the registration, which needs Unix sockets.
    run_tests(
        &["-test.run=TestSanity"],
        &format!("Windows=dns:///{address}"),
    )
}

/// Runs the tests with these plugins, each given as its name and its program or address.
fn run_tests(flags: &[&str], plugins: &str) -> Result<Summary, Error> {
    let mut tests = programs::tests("node-plugins.test")?;
    let debug = workspace::target().join("debug");
    tests
        .args(flags)
        .env("CSI_PROXY_SIM", debug.join("csi-proxy-sim"))
        .env("CSI_STAGE_VOLUME", debug.join("examples/stage_volume"))
        .env("CSI_NODE_PLUGINS", plugins);
    if let (Ok(grpcurl), Ok(first_call)) = (setup::go_tool(GRPCURL), programs::built("firstcall")) {
        tests
            .env("CSI_GRPCURL", grpcurl)
            .env("CSI_GRPCURL_MODULE", setup::go_module(GRPCURL)?)
            .env("CSI_FIRST_CALL", first_call);
    }
    Ok(Summary::of_tests(&mut tests))
}

fn source() -> PathBuf {
    workspace::root().join("verify/node-plugins")
}
