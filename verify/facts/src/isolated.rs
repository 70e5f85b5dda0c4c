//! Checks facts on this machine, each in a process of its own, so that a check that crashes or hangs stops no other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::{self, Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io, thread};

/// The results by the ids of the facts, as [`result`](crate::page::result) writes them.
pub(crate) type Results = BTreeMap<String, String>;

/// How long a check may take.
const LONGEST: Duration = Duration::from_mins(2);
const ERROR_INTERNAL_ERROR: i32 = 1359;

/// Checks all facts on this machine and calls `found` with each id and result.
pub(crate) fn check_all(mut found: impl FnMut(&str, String)) -> io::Result<()> {
    let program = env::current_exe()?;
    // A file, because a process that a check leaves behind could keep a pipe open.
    let output = env::temp_dir().join(format!("csi-proxy-facts-{}.txt", process::id()));
    for fact in facts::all() {
        let mut one = Command::new(&program);
        one.args(["one", fact.id]).stdin(Stdio::null()).stdout(File::create(&output)?).stderr(Stdio::null());
        let ended = end_of(start(&mut one)?, LONGEST)?;
        let printed = fs::read_to_string(&output)?;
        match (ended, fact.wine_differs().filter(|_| is_wine())) {
            (None, _) => found(fact.id, printed.trim().to_owned()),
            (Some(_), Some(differs)) => found(fact.id, format!("differs: {differs}")),
            (Some(end), None) => found(fact.id, format!("FAILS: the check {end}")),
        }
    }
    fs::remove_file(&output)
}

/// Starts a process. Under Wine, a process cannot be started now and then on a busy machine, with ERROR_INTERNAL_ERROR.
/// This says nothing about the check, so it is started a second time.
fn start(command: &mut Command) -> io::Result<Child> {
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(ERROR_INTERNAL_ERROR) => command.spawn(),
        started => started,
    }
}

/// Returns whether this machine runs Wine.
fn is_wine() -> bool {
    facts::local_node().is_some_and(|node| node.system() == facts::System::Wine)
}

/// Waits until a process ends. Returns `None` if it succeeded, and otherwise how it ended.
fn end_of(mut child: Child, longest: Duration) -> io::Result<Option<String>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((!status.success()).then(|| format!("ended with {status}")));
        }
        if begun.elapsed() > longest {
            child.kill()?;
            child.wait()?;
            return Ok(Some(format!("did not end within {} s", longest.as_secs())));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Parses the lines of `facts local`: id, tab, result.
pub(crate) fn parse(lines: &str) -> Results {
    let pairs = lines.lines().filter_map(|line| line.trim_end().split_once('\t'));
    pairs.map(|(id, result)| (id.to_owned(), result.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_crashes_or_hangs_is_reported() {
        if std::env::consts::OS == "windows" {
            println!("skipped: a_check_that_crashes_or_hangs_is_reported: Windows has no sh");
            return;
        }
        let end = |script: &str| {
            let shell = Command::new("sh").args(["-c", script]).spawn().expect("a shell");
            end_of(shell, Duration::from_millis(500)).expect("it ends")
        };
        assert_eq!(end("exit 0"), None);
        assert_eq!(end("exit 5").as_deref(), Some("ended with exit status: 5"));
        assert_eq!(end("sleep 60").as_deref(), Some("did not end within 0 s"));
    }
}
