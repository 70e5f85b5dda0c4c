//! The instructions of a call, as callgrind counts them.
//!
//! Callgrind runs this program for some calls, and again for more. The difference of the two counts is that of the
//! further calls alone. All threads run on one processor, and one that wakes another goes on until it waits itself
//! (`SCHED_BATCH`). Without these two, how often one waits for another depends on what else the machine does, which changed
//! the count of a call by 3 %. Some chance remains, so the median of several counts is taken.

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
/// How many times each run is counted.
const RUNS: usize = 5;

/// Makes `calls` calls on one thread, as far as possible.
pub fn run(call: &Call, calls: usize) -> Result<(), Box<dyn Error>> {
    let sim = excluded(call::node);
    let daemon = Daemon::start(sim.process(), Threads::One)?;
    daemon.run(async |daemon: &Daemon| {
        let mut client = Client::connect(daemon, call).await?;
        client.call(calls).await
    })
}

/// Returns the row of a call in [`crate::table::INSTRUCTIONS`].
pub fn of(call: &Call) -> Result<Row, Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("csi-proxy-call-costs-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let median = |calls| {
        let mut counts = (0..RUNS).map(|_| count(call, calls, &folder)).collect::<Result<Vec<_>, _>>()?;
        counts.sort_unstable();
        Ok::<_, Box<dyn Error>>(counts[RUNS / 2])
    };
    let counted = median(WARM_UP).and_then(|few| Ok((few, median(WARM_UP + FURTHER)?)));
    fs::remove_dir_all(&folder)?;
    let (few, many) = counted?;
    Ok((call.name.to_owned(), vec![average(many.saturating_sub(few), FURTHER)]))
}

/// Counts the instructions of a run, without those in [`excluded`].
fn count(call: &Call, calls: usize, folder: &Path) -> Result<usize, Box<dyn Error>> {
    let output = folder.join(format!("{calls}.out"));
    let mut callgrind = Command::new("taskset");
    callgrind.args(["--cpu-list", &processor()?, "chrt", "--batch", "0"]);
    callgrind.args([
        "valgrind",
        "--quiet",
        "--tool=callgrind",
        "--fair-sched=yes",
        "--toggle-collect=*excluded::excluded*",
        "--collect-atstart=yes",
    ]);
    callgrind.arg(format!("--callgrind-out-file={}", output.display()));
    callgrind.arg(env::current_exe()?).args(["run", call.name]).arg(calls.to_string());
    let status = callgrind.stdin(Stdio::null()).status().map_err(|error| format!("cannot run taskset: {error}"))?;
    if !status.success() {
        return Err(format!("valgrind: {status}").into());
    }
    let text = fs::read_to_string(output)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("callgrind wrote no total")?;
    Ok(total.trim().parse()?)
}

/// Returns the number of the first processor that this process may use.
fn processor() -> Result<String, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = allowed.and_then(|list| list.trim().split([',', '-']).next());
    Ok(first.ok_or("/proc/self/status has no list of processors")?.to_owned())
}
