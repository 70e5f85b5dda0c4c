//! Checks facts on this machine, each in a process of its own, so that a check that crashes or
//! hangs stops no other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{self, Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, io, panic, thread};

use crate::fact::Fact;
use crate::node::{System, TestNode};
use crate::outcome::{Outcome, check};
use crate::{DISKS, SimulatedNode, end_children_with_this_process, local_node};

/// The results by the ids of the facts: each an [`Outcome`](crate::Outcome) as text.
pub type Results = BTreeMap<String, String>;

/// How long a check may take.
const LONGEST: Duration = Duration::from_mins(2);
/// How long a program that prepares disks may take.
const LONGEST_PROGRAM: Duration = Duration::from_mins(1);
/// The result of a check that had no time left.
const NO_TIME: &str = "missing: time for this check";
const ERROR_INTERNAL_ERROR: i32 = 1359;

/// Checks facts on this machine, with the disks in the text of the variable [`DISKS`], and calls
/// `found` with each id and result, which is what [`check_one`] printed. The program that runs must
/// call [`check_one`] if its arguments are `one` and an id. After `longest`, no check runs any
/// more. The folder is for a file.
pub fn check_each(
    facts: &[Fact],
    disks: &str,
    folder: &Path,
    longest: Duration,
    mut found: impl FnMut(&str, &str),
) -> io::Result<()> {
    let program = env::current_exe()?;
    let begun = Instant::now();
    // A file, because a process that a check leaves behind could keep a pipe open.
    let output = folder.join(format!("csi-proxy-facts-{}.txt", process::id()));
    for fact in facts {
        let left = longest.saturating_sub(begun.elapsed());
        if left.is_zero() {
            found(fact.id, NO_TIME);
            continue;
        }
        let mut one = Command::new(&program);
        // This also hides the disks of an earlier run, which may be others now.
        one.args(["one", fact.id]).env(DISKS, disks);
        one.stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(Stdio::null());
        let ended = end_of(start(&mut one)?, LONGEST.min(left))?;
        let printed = fs::read_to_string(&output)?;
        match (ended, fact.wine_differs().filter(|_| is_wine())) {
            (None, _) => found(fact.id, printed.trim()),
            (Some(_), Some(differs)) => found(fact.id, &format!("differs: {differs}")),
            (Some(_), None) if begun.elapsed() >= longest => found(fact.id, NO_TIME),
            (Some(end), None) => found(fact.id, &format!("FAILS: the check {end}")),
        }
    }
    fs::remove_file(&output)
}

/// Checks the fact with this id on this machine, or on a simulated node if it runs neither Windows
/// nor Wine. Prints the outcome; if the fact does not hold, with the file and line of the
/// assertion, such as `disk.rs:120`.
pub fn check_one(facts: &[Fact], id: &str) -> io::Result<()> {
    static PLACE: OnceLock<String> = OnceLock::new();
    end_children_with_this_process()?;
    panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(|place| format!("{}:{}", place.file(), place.line()))
            .unwrap_or_default();
        let _ = PLACE.set(
            place
                .rsplit(['/', '\\'])
                .next()
                .unwrap_or_default()
                .to_owned(),
        );
    }));
    let fact = facts
        .iter()
        .find(|fact| fact.id == id)
        .expect("the id of a fact");
    let node =
        local_node().unwrap_or_else(|| Box::new(SimulatedNode::default()) as Box<dyn TestNode>);
    let outcome = match (check(fact, &*node), PLACE.get()) {
        (Outcome::Fails(why), Some(place)) => Outcome::Fails(format!("{place}: {why}")),
        (outcome, _) => outcome,
    };
    println!("{outcome}");
    Ok(())
}

/// Runs a program for at most a minute and returns what it printed, which goes through a new file.
pub fn output_of(command: &mut Command, file: &Path) -> Result<String, String> {
    let mut run = || {
        end_of(
            command
                .stdin(Stdio::null())
                .stdout(File::create(file)?)
                .spawn()?,
            LONGEST_PROGRAM,
        )
    };
    let (ended, printed) = (run(), fs::read(file).unwrap_or_default());
    let printed = String::from_utf8_lossy(&printed).into_owned();
    match ended {
        Ok(None) => Ok(printed),
        Ok(Some(end)) => Err(format!("{end}: {printed}")),
        Err(error) => Err(format!("does not run: {error}")),
    }
}

/// Starts a process. Under Wine, a process cannot be started now and then on a busy machine, with
/// ERROR_INTERNAL_ERROR. This says nothing about the check, so it is started a second time.
fn start(command: &mut Command) -> io::Result<Child> {
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(ERROR_INTERNAL_ERROR) => command.spawn(),
        started => started,
    }
}

/// Returns whether this machine runs Wine.
fn is_wine() -> bool {
    local_node().is_some_and(|node| node.system() == System::Wine)
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
            let shell = Command::new("sh")
                .args(["-c", script])
                .spawn()
                .expect("a shell");
            end_of(shell, Duration::from_millis(500)).expect("it ends")
        };
        assert_eq!(end("exit 0"), None);
        assert_eq!(end("exit 5").as_deref(), Some("ended with exit status: 5"));
        assert_eq!(end("sleep 60").as_deref(), Some("did not end within 0 s"));
    }
}
