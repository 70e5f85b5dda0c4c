//! Checks facts on this machine, each in a process of its own, so that a check that crashes or
//! hangs stops no other.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{env, io, panic, thread};

use crate::fact::Fact;
use crate::node::{System, TestNode};
use crate::outcome::{Outcome, check};
use crate::{DISKS, SimulatedNode, end_children_with_this_process, local_node};

/// The results by the ids of the facts: each an [`Outcome`](crate::Outcome) as text.
pub type Results = BTreeMap<String, String>;

/// The result of a check that had no time left.
pub const NO_TIME: &str = "missing: time for this check";

/// How long a check may take: longer than diskpart and a change by WMI.
const LONGEST: Duration = Duration::from_mins(6);
/// What precedes the failure of a program whose check has ended.
pub const AFTER: &str = "after the check, it ";
/// How long the output of a program may still arrive after its end.
const LONGEST_OUTPUT: Duration = Duration::from_secs(2);
const ERROR_INTERNAL_ERROR: i32 = 1359;

/// How a program ended, and what it printed.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// `None` if it succeeded; otherwise, for example, `did not end within 60 s`.
    pub failure: Option<String>,
    /// Its output. What is not UTF-8 is replaced.
    pub printed: String,
    /// Its error output.
    pub errors: String,
}

/// Checks facts on this machine, with the disks in the text of the variable [`DISKS`], and calls
/// `found` with each id and result, which is what [`check_one`] printed. `run` runs this program
/// again, like [`run`], which must call [`check_one`] if its arguments are `one` and an id. After
/// `longest`, no check runs any more. A check that cannot be run fails, and stops no other.
pub fn check_each(
    facts: &[Fact],
    disks: &str,
    longest: Duration,
    run: impl Fn(&mut Command, Duration) -> io::Result<Ended>,
    mut found: impl FnMut(&str, &str),
) {
    let begun = Instant::now();
    for fact in facts {
        let left = longest.saturating_sub(begun.elapsed());
        if left.is_zero() {
            found(fact.id, NO_TIME);
            continue;
        }
        let ended = env::current_exe().and_then(|program| {
            let mut one = Command::new(program);
            // This also hides the disks of an earlier run, which may be others now.
            one.args(["one", fact.id]).env(DISKS, disks);
            run(&mut one, LONGEST.min(left))
        });
        let failure = match ended {
            Ok(Ended {
                failure: None,
                printed,
                ..
            }) => {
                found(fact.id, printed.trim());
                continue;
            }
            Ok(ended) => {
                let failure = ended.failure.unwrap_or_default();
                // The check may have ended before the program hangs or crashes.
                if Outcome::is_in(&ended.printed) {
                    found(
                        fact.id,
                        &format!("{AFTER}{failure}\n{}", ended.printed.trim()),
                    );
                    continue;
                }
                failure
            }
            Err(error) => format!("cannot be run: {}", code_of(&error)),
        };
        match fact.wine_differs().filter(|_| is_wine()) {
            Some(differs) => found(fact.id, &format!("differs: {differs}")),
            None if begun.elapsed() >= longest => found(fact.id, NO_TIME),
            None => found(fact.id, &format!("FAILS: the check {failure}")),
        }
    }
}

/// Checks the fact with this id on this machine, or on a simulated node if it runs neither Windows
/// nor Wine. Prints the outcome; if the fact does not hold, with the file and line of the
/// assertion, such as `disk.rs:120`.
pub fn check_one(facts: &[Fact], id: &str) {
    static PLACE: OnceLock<String> = OnceLock::new();
    // The program that runs the checks has reported that this fails.
    let _ = end_children_with_this_process();
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
}

/// Runs a program until it ends, or for at most `longest`. An error is that of its start.
pub fn run(command: &mut Command, longest: Duration) -> io::Result<Ended> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = start(command)?;
    let printed = child.stdout.take().map(Output::of);
    let errors = child.stderr.take().map(Output::of);
    let failure = match end_of(&mut child, longest)? {
        Some(status) => (!status.success()).then(|| format!("ended with {status}")),
        None => Some(format!("did not end within {} s", longest.as_secs())),
    };
    let until = Instant::now() + LONGEST_OUTPUT;
    let text =
        |output: Option<Output>| output.map_or_else(String::new, |output| output.text(until));
    Ok(Ended {
        failure,
        printed: text(printed),
        errors: text(errors),
    })
}

/// Returns the code of Windows or the kind of an error, which names nothing of the machine.
pub fn code_of(error: &io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.kind().to_string(), |code| format!("error {code}"))
}

/// The output of a program, which a thread reads. A process that the program has left behind can
/// keep the pipe open, so that nothing waits for the end of the pipe for long.
struct Output {
    read: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let read = Arc::<Mutex<Vec<u8>>>::default();
        let (ended, end) = mpsc::channel::<()>();
        let shared = Arc::clone(&read);
        thread::spawn(move || {
            let _ended = ended;
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                shared
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(&buffer[..length]);
            }
        });
        Self { read, end }
    }

    fn text(self, until: Instant) -> String {
        let left = until.saturating_duration_since(Instant::now());
        let _ = self.end.recv_timeout(left);
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&read).into_owned()
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

/// Waits until a process ends, and ends it after `longest`: the result is then `None`.
fn end_of(child: &mut Child, longest: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > longest {
            // A process that cannot be ended holds up nothing.
            let _ = child.kill();
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_crashes_hangs_or_prints_anything_has_a_result() {
        if std::env::consts::OS == "windows" {
            println!(
                "skipped: a_program_that_crashes_hangs_or_prints_anything_has_a_result: Windows \
                 has no sh"
            );
            return;
        }
        let end = |script: &str| {
            let mut shell = Command::new("sh");
            run(shell.args(["-c", script]), Duration::from_millis(500)).expect("it starts")
        };
        assert_eq!(end("exit 0").failure, None);
        assert_eq!(
            end("exit 5").failure.as_deref(),
            Some("ended with exit status: 5")
        );
        assert_eq!(
            end("sleep 60").failure.as_deref(),
            Some("did not end within 0 s")
        );
        let ended = end(r"printf 'a\377b'; printf e >&2");
        assert_eq!(
            (ended.printed.as_str(), ended.errors.as_str()),
            ("a\u{fffd}b", "e")
        );
        // The process that is left behind keeps the pipe open.
        let begun = Instant::now();
        assert_eq!(end("sleep 60 & echo left").printed, "left\n");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn the_outcome_of_a_check_is_kept_if_its_program_hangs_afterwards() {
        let facts = &crate::all()[..1];
        for (printed, kept) in [
            ("fallback mount 32\nholds\n", true),
            ("FAILS: disk.rs:7\n", true),
            ("hol", false),
            ("", false),
        ] {
            let ended = Ended {
                failure: Some("did not end within 360 s".to_owned()),
                printed: printed.to_owned(),
                errors: String::new(),
            };
            let mut found = String::new();
            check_each(
                facts,
                "",
                Duration::MAX,
                |_, _| Ok(ended.clone()),
                |_, result| result.clone_into(&mut found),
            );
            let expected = if kept {
                format!("{AFTER}did not end within 360 s\n{}", printed.trim())
            } else {
                "FAILS: the check did not end within 360 s".to_owned()
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_check_that_cannot_be_run_fails_and_stops_no_other() {
        let facts = &crate::all()[..2];
        let mut found = Vec::new();
        check_each(
            facts,
            "",
            Duration::MAX,
            |_, _| Err(io::ErrorKind::StorageFull.into()),
            |id, result| found.push(format!("{id} {result}")),
        );
        let expected: Vec<String> = facts
            .iter()
            .map(|fact| {
                format!(
                    "{} FAILS: the check cannot be run: no storage space",
                    fact.id
                )
            })
            .collect();
        assert_eq!(found, expected);
    }
}
