//! The tests of the folder `deploy`. Most are written in Go: Kubernetes, Helm and kustomize are Go libraries.

use std::process::Command;

use crate::go::test_report::Report;
use crate::summary::Summary;
use crate::test::alerts;
use crate::{Error, process, workspace};

/// The environment variable in which the tests find csi-proxy-sim.
const SIMULATOR: &str = "CSI_PROXY_SIM";

/// The module with the tests in Go.
const MODULE: &str = "verify/deploy";

/// Runs all of these tests.
pub(super) fn test() -> Result<Summary, Error> {
    let mut sum = alerts::test()?;
    sum += go()?;
    Ok(sum)
}

/// Runs the tests in Go.
fn go() -> Result<Summary, Error> {
    if process::find("go").is_none() {
        return Ok(Summary::skipped("tests of deploy", "go is not installed (https://go.dev/dl)"));
    }
    let mut cargo = workspace::cargo();
    if !process::succeeds(cargo.args(["build", "-p", "csi-proxy-sim"]))? {
        return Ok(Summary::failed(&format!("{} failed", process::typed(&cargo))));
    }
    let simulator = format!("csi-proxy-sim{}", std::env::consts::EXE_SUFFIX);
    let simulator = workspace::target().join("debug").join(simulator);
    let mut go = Command::new("go");
    go.current_dir(workspace::root().join(MODULE)).args(["test", "-count=1", "-v", "."]).env(SIMULATOR, &simulator);
    let mut report = Report::default();
    let status = process::stream(&mut go, |line| report.line(line))?;
    Ok(report.finish(&process::typed(&go), status.success()))
}
