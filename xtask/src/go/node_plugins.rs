//! The example node plugins, with the conformance tests of CSI on a simulated node: verify/node-plugins.

use std::path::PathBuf;
use std::process::Command;

use super::test_report::Report;
use crate::summary::Summary;
use crate::{Error, process, workspace};

/// Builds the plugins and tests them. csi-proxy-sim has been built.
pub(super) fn test() -> Result<Summary, Error> {
    let go = folder().join("node-plugin");
    let mut build = Command::new("go");
    build.current_dir(workspace::root().join("examples/node-plugin-go")).args(["build", "-o"]).arg(&go).arg(".");
    if !process::succeeds(&mut build)? {
        return Ok(Summary::failed(&process::typed(&build)));
    }
    let mut tests = Command::new("go");
    tests.current_dir(workspace::root().join("verify/node-plugins")).args(["test", "-count=1", "-v", "."]);
    tests.env("CSI_PROXY_SIM", workspace::target().join("debug/csi-proxy-sim"));
    tests.env("CSI_NODE_PLUGINS", format!("Go={}", go.display()));
    let mut report = Report::default();
    let status = process::stream(&mut tests, |line| report.line(line))?;
    Ok(report.finish(&process::typed(&tests), status.success()))
}

/// Returns the folder for the programs.
fn folder() -> PathBuf {
    workspace::target().join("go")
}
