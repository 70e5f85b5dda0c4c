//! The program that checks the facts: running it and reading the lines that it prints.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::Error;
use crate::process::{self, KillOnDrop};

/// A line of the program's output.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Source(Source),
    Fact(Fact),
    Begin(Begun),
    End { id: String, result: String, why: String },
}

/// A check that has begun.
#[derive(Deserialize)]
struct Begun {
    id: String,
    /// What Wine is known to do instead of what the fact says.
    differs: Option<String>,
}

/// A key of a source.
#[derive(Deserialize)]
pub(super) struct Source {
    pub(super) key: String,
    pub(super) name: String,
}

/// A fact.
#[derive(Deserialize)]
pub(super) struct Fact {
    pub(super) subject: String,
    pub(super) id: String,
    pub(super) sentence: String,
    /// The sources, or the reason for the assumption.
    pub(super) origin: String,
    pub(super) assumed: bool,
    /// Why it is not checked, if it is not.
    pub(super) unchecked: Option<String>,
}

/// The sources and the facts.
#[derive(Default)]
pub(super) struct Catalogue {
    pub(super) sources: Vec<Source>,
    pub(super) facts: Vec<Fact>,
}

/// What a check found on one system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    /// Wine is known to do this instead.
    Differs(String),
    /// The system lacks this.
    Skipped(String),
    Fails(String),
}

/// The verdicts by the ids of the facts.
pub(super) type Results = BTreeMap<String, Verdict>;

impl Catalogue {
    /// Reads the list that the program prints.
    pub(super) fn read(program: &mut Command) -> Result<Self, Error> {
        let output = process::output(program.arg("list")).ok_or("the program does not list the facts")?;
        let mut catalogue = Self::default();
        for line in output.lines() {
            match serde_json::from_str(line)? {
                Line::Source(source) => catalogue.sources.push(source),
                Line::Fact(fact) => catalogue.facts.push(fact),
                Line::Begin(_) | Line::End { .. } => return Err(format!("a list has no line {line}").into()),
            }
        }
        Ok(catalogue)
    }
}

/// How long a check may take.
const LONGEST: Duration = Duration::from_mins(2);

/// Checks all facts on `system`. A check that ends or hangs the program fails, and a new process checks the facts
/// after it.
pub(super) fn check(program: impl Fn() -> Command, system: &str) -> Result<Results, Error> {
    let mut results = Results::new();
    let mut after: Option<String> = None;
    loop {
        let mut command = program();
        command.arg(system);
        if let Some(id) = &after {
            command.args(["--after", id]);
        }
        process::print(&command);
        let end = run(&mut command, &mut results)?;
        let Some(begun) = end.during else {
            return end.failure.map_or(Ok(results), |failure| Err(format!("the program {failure}").into()));
        };
        let failure = end.failure.unwrap_or_else(|| "ended".to_owned());
        let failure = Verdict::Fails(format!("the program {failure} during this check"));
        results.insert(begun.id.clone(), failure.unless(begun.differs));
        after = Some(begun.id);
    }
}

/// How a process ended.
struct End {
    /// What happened, unless it exited with success.
    failure: Option<String>,
    /// The check that had begun and not ended.
    during: Option<Begun>,
}

/// Runs one process and adds what it finds to `results`.
fn run(command: &mut Command, results: &mut Results) -> Result<End, Error> {
    const QUIET: Duration = Duration::from_millis(500);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut child = KillOnDrop(spawned);
    let output = child.0.stdout.take().ok_or("the program has no output")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut during: Option<Begun> = None;
    let mut last = Instant::now();
    let mut exited = None;
    loop {
        match lines.recv_timeout(QUIET) {
            Ok(line) => {
                last = Instant::now();
                match serde_json::from_str(&line)? {
                    Line::Begin(begun) => during = Some(begun),
                    Line::End { id, result, why } => {
                        let differs = during.take().and_then(|begun| begun.differs);
                        results.insert(id, verdict(&result, why)?.unless(differs));
                    }
                    Line::Source(_) | Line::Fact(_) => return Err(format!("a check has no line {line}").into()),
                }
            }
            // A process that the program leaves behind, such as a Wine service, may keep the pipe open.
            Err(RecvTimeoutError::Timeout) if exited.is_none() => {
                exited = child.0.try_wait()?;
                if exited.is_none() && last.elapsed() > LONGEST {
                    return Ok(End { failure: Some("did not go on".to_owned()), during });
                }
            }
            Err(_) => {
                let status = exited.map_or_else(|| child.0.wait(), Ok)?;
                let failure = (!status.success()).then(|| format!("ended with {status}"));
                return Ok(End { failure, during });
            }
        }
    }
}

fn verdict(result: &str, why: String) -> Result<Verdict, Error> {
    Ok(match result {
        "holds" => Verdict::Holds,
        "skipped" => Verdict::Skipped(why),
        "fails" => Verdict::Fails(why),
        _ => return Err(format!("{result} is not a result of a check").into()),
    })
}

impl Verdict {
    /// Returns this verdict, or the difference that is known and confirmed by it.
    fn unless(self, differs: Option<String>) -> Self {
        match (self, differs) {
            (Self::Fails(_) | Self::Skipped(_), Some(differs)) => Self::Differs(differs),
            // Another version of Wine may behave as Windows does.
            (verdict, _) => verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a shell that runs `before` before fact B is checked in the first process, and goes on after B in the next.
    fn shell(before: &str) -> Option<Command> {
        let end = |id: &str| format!(r#"echo '{{"end":{{"id":"{id}","result":"holds","why":""}}}}'"#);
        let begin = |id: &str| format!(r#"echo '{{"begin":{{"id":"{id}"}}}}'"#);
        let script = format!(
            "if [ \"$2\" = --after ]; then {}; {}; exit; fi; {}; {}; {}; {before}",
            begin("C"),
            end("C"),
            begin("A"),
            end("A"),
            begin("B")
        );
        let mut shell = Command::new(process::find("sh")?);
        shell.args(["-c", &script, "sh"]);
        Some(shell)
    }

    #[test]
    fn a_check_that_ends_the_process_fails_and_the_others_are_checked() {
        if shell("").is_none() {
            println!("skipped: a_check_that_ends_the_process_fails_and_the_others_are_checked: there is no sh");
            return;
        }
        let results = check(|| shell("exit 5").expect("sh"), "local").expect("a run");
        let failure = Verdict::Fails("the program ended with exit status: 5 during this check".to_owned());
        let expected = [("A", Verdict::Holds), ("B", failure), ("C", Verdict::Holds)];
        assert_eq!(results, expected.map(|(id, verdict)| (id.to_owned(), verdict)).into());
    }

    #[test]
    fn a_check_fails_where_the_system_is_known_to_behave_otherwise() {
        let known = || Some("it does not".to_owned());
        let differs = Verdict::Differs("it does not".to_owned());
        assert_eq!(Verdict::Fails("left: 1".to_owned()).unless(known()), differs);
        assert_eq!(Verdict::Skipped("a disk".to_owned()).unless(known()), differs);
        assert_eq!(Verdict::Holds.unless(known()), Verdict::Holds);
        assert_eq!(Verdict::Skipped("a disk".to_owned()).unless(None), Verdict::Skipped("a disk".to_owned()));
    }
}
