//! The instructions of `PathExists`, as callgrind counts them.
//!
//! Callgrind runs this program for some calls, and again for more. The difference of the two counts
//! is that of the further calls alone.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::call::{self, Call};
use crate::client::Client;
use crate::counts::WARM_UP;
use crate::daemon::Daemon;
use crate::excluded::excluded;

/// How many calls more the second run makes.
const FURTHER: usize = 2048;

/// Makes so many calls.
pub fn make_calls(count: usize) -> Result<(), Box<dyn Error>> {
    let sim = excluded(call::node);
    Daemon::run(&sim, async |daemon: &Daemon| {
        let mut client = Client::connect(daemon, &Call::path_exists()).await?;
        client.call(count).await
    })
}

/// Returns the instructions of a call.
pub fn of_path_exists() -> Result<usize, Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("csi-proxy-call-costs-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let counted =
        count(WARM_UP, &folder).and_then(|few| Ok((few, count(WARM_UP + FURTHER, &folder)?)));
    fs::remove_dir_all(&folder)?;
    let (few, many) = counted?;
    Ok(many.saturating_sub(few) / FURTHER)
}

/// Counts the instructions of a run, without those in [`excluded`].
fn count(calls: usize, folder: &Path) -> Result<usize, Box<dyn Error>> {
    let output = folder.join(format!("{calls}.out"));
    let mut callgrind = Command::new("valgrind");
    callgrind.args([
        "--quiet",
        "--tool=callgrind",
        "--toggle-collect=*excluded::excluded*",
        "--collect-atstart=yes",
    ]);
    callgrind.arg(format!("--callgrind-out-file={}", output.display()));
    callgrind.arg(env::current_exe()?).arg(calls.to_string());
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
