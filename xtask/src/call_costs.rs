//! The instructions of a call: `verify/call-costs`, under callgrind.

use crate::summary::{Skip, Summary};
use crate::{Error, apt, process, workspace};

/// Counts the instructions of calls and compares them with docs/call-costs.md.
pub(crate) fn test() -> Result<Summary, Error> {
    const NAME: &str = "the instructions of calls";
    if std::env::consts::OS != "linux" {
        return Ok(Summary::skipped(NAME, "callgrind runs on Linux only"));
    }
    if process::find("valgrind").is_none()
        && let Err(reason) = apt::install(&["valgrind"])
    {
        return Ok(Summary::skipped(NAME, &reason));
    }
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--profile", "counted", "--package", "csi-proxy-call-costs", "--", "instructions"]);
    let mut skipped = None;
    let status = process::stream(&mut cargo, |line| skipped = skipped.take().or_else(|| Skip::from_line(line)))?;
    Ok(match skipped {
        Some(skip) => Summary { skipped: vec![skip], ..Summary::default() },
        None if status.success() => Summary::passed(),
        None => Summary::failed(NAME),
    })
}
