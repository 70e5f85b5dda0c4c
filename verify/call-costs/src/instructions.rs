//! The instructions of a call, as callgrind counts them.
//!
//! Callgrind runs this program for some calls, and again for more. The difference of the two counts
//! is that of the further calls alone. A call runs entirely on one thread. With two, how often one
//! waits for the other depends on what else the machine does, which changed the count of a call by
//! 3 %.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::call::{self, Call};
use crate::client::Client;
use crate::counts::{WARM_UP, average};
use crate::daemon::{Daemon, Threads};
use crate::excluded::excluded;
use crate::table::Row;

/// How many calls more the second run makes.
const FURTHER: usize = 2048;

/// Makes `calls` calls on one thread.
pub fn run(call: &Call, calls: usize) -> Result<(), Box<dyn Error>> {
    let sim = excluded(call::node);
    Daemon::run(&sim, Threads::One, async |daemon: &Daemon| {
        let mut client = Client::connect(daemon, call).await?;
        client.call(calls).await
    })
}

/// Returns the row of a call in [`crate::table::INSTRUCTIONS`].
pub fn of(call: &Call) -> Result<Row, Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("csi-proxy-call-costs-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let counted = count(call, WARM_UP, &folder)
        .and_then(|few| Ok((few, count(call, WARM_UP + FURTHER, &folder)?)));
    fs::remove_dir_all(&folder)?;
    let (few, many) = counted?;
    Ok((
        call.name.to_owned(),
        vec![average(many.saturating_sub(few), FURTHER)],
    ))
}

/// Counts the instructions of a run, without those in [`excluded`].
fn count(call: &Call, calls: usize, folder: &Path) -> Result<usize, Box<dyn Error>> {
    let output = folder.join(format!("{calls}.out"));
    let mut callgrind = Command::new("valgrind");
    callgrind.args([
        "--quiet",
        "--tool=callgrind",
        "--toggle-collect=*excluded::excluded*",
        "--collect-atstart=yes",
    ]);
    callgrind.arg(format!("--callgrind-out-file={}", output.display()));
    callgrind
        .arg(env::current_exe()?)
        .args(["run", call.name])
        .arg(calls.to_string());
    let status = callgrind
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run valgrind: {error}"))?;
    if !status.success() {
        return Err(format!("valgrind: {status}").into());
    }
    let text = fs::read_to_string(output)?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .ok_or("callgrind wrote no total")?;
    Ok(total.trim().parse()?)
}
