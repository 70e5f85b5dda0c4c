//! One of the two programs, served under Wine, and a client of it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::call::Call;
use crate::Error;
use crate::process::{self, KillOnDrop};
use crate::wine::Prefix;

/// The result of a call, as the client prints it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) response: serde_json::Value,
}

impl Answer {
    pub(super) fn is_ok(&self) -> bool {
        self.code == "OK"
    }

    /// Returns whether the call was not sent, not answered in time or not known to the program.
    pub(super) fn is_missing(&self) -> bool {
        ["Unavailable", "Unimplemented", "DeadlineExceeded", "Canceled"].contains(&self.code.as_str())
    }
}

/// A served program with its client. Both are killed when this is dropped.
pub(super) struct Program {
    drive_c: PathBuf,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
    _processes: [KillOnDrop; 2],
}

/// How long a program may take until it serves its pipes.
const START: Duration = Duration::from_mins(2);

impl Program {
    /// Starts `server` with its default settings and `client` in a prefix, and waits until the server answers.
    pub(super) fn start(prefix: &Prefix, server: &Path, client: &Path) -> Result<Self, Error> {
        let drive_c = prefix.drive_c();
        std::fs::create_dir_all(super::kubelet(&drive_c))?;
        let mut server = prefix.command(server);
        // The current directory of a service: a path without a drive is on its drive.
        server.current_dir(drive_c.join("windows/system32"));
        let server = KillOnDrop(silent(&mut server).stdout(Stdio::null()).spawn()?);
        let mut client = prefix.command(client);
        let mut client = silent(client.arg("-calls")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(calls), Some(answers)) = (client.stdin.take(), client.stdout.take()) else {
            return Err("the client has no standard streams".into());
        };
        let answers = BufReader::new(answers);
        let mut program = Self { drive_c, calls, answers, _processes: [KillOnDrop(client), server] };
        let started = Instant::now();
        while program.call(&Call::probe())?.code == "Unavailable" {
            if started.elapsed() > START {
                return Err("a program does not serve its pipes".into());
            }
            thread::sleep(Duration::from_millis(200));
        }
        Ok(program)
    }

    /// Returns the folder that is drive C: of the program.
    pub(super) fn drive_c(&self) -> &Path {
        &self.drive_c
    }

    /// Makes a call and returns its result.
    pub(super) fn call(&mut self, call: &Call) -> Result<Answer, Error> {
        writeln!(self.calls, "{}", call.line())?;
        self.calls.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(|error| format!("the client answered {line:?}: {error}").into())
    }
}

/// Prints a command, whose errors and log are not shown.
fn silent(command: &mut Command) -> &mut Command {
    process::print(command);
    command.stdin(Stdio::null()).stderr(Stdio::null())
}
