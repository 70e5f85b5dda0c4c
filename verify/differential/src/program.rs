//! One of the two programs, served under Wine, and a client of it.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::call::Call;
use super::tree::Drive;

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
        [
            "Unavailable",
            "Unimplemented",
            "DeadlineExceeded",
            "Canceled",
        ]
        .contains(&self.code.as_str())
    }
}

/// A served program with its client. Both are killed when this is dropped.
pub(super) struct Program {
    pub(super) drive: Drive,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
    _processes: [KilledOnDrop; 2],
}

/// How long a program may take until it serves its pipes.
const START: Duration = Duration::from_mins(2);

impl Program {
    /// Starts `server` with its default settings and `client` in a Wine prefix, and waits until the
    /// server answers.
    pub(super) fn start(
        wine: &Path,
        prefix: &Path,
        server: &Path,
        client: &Path,
    ) -> Result<Self, Box<dyn Error>> {
        let drive = Drive::new(prefix.join("drive_c"))?;
        drive.replace_working_directory()?;
        let in_prefix = |program: &Path| {
            let mut command = Command::new(wine);
            command
                .env("WINEPREFIX", prefix)
                .arg(program)
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            command.stderr(Stdio::null());
            command
        };
        // The current directory of a service: a path without a drive is on the drive of this
        // directory.
        let server = KilledOnDrop(
            in_prefix(server)
                .current_dir(prefix.join("drive_c/windows/system32"))
                .spawn()?,
        );
        let mut client = in_prefix(client);
        let mut client = client
            .arg("-calls")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(calls), Some(answers)) = (client.stdin.take(), client.stdout.take()) else {
            return Err("the client has no standard streams".into());
        };
        let answers = BufReader::new(answers);
        let mut program = Self {
            drive,
            calls,
            answers,
            _processes: [KilledOnDrop(client), server],
        };
        let started = Instant::now();
        while program.call(&Call::probe())?.code == "Unavailable" {
            if started.elapsed() > START {
                return Err("a program does not serve its pipes".into());
            }
            thread::sleep(Duration::from_millis(200));
        }
        Ok(program)
    }

    /// Makes a call and returns its result.
    pub(super) fn call(&mut self, call: &Call) -> Result<Answer, Box<dyn Error>> {
        writeln!(self.calls, "{}", call.line())?;
        self.calls.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line)
            .map_err(|error| format!("the client answered {line:?}: {error}").into())
    }
}

/// A process that is killed when this is dropped.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Both calls fail if the process has exited already.
        let _killed = self.0.kill();
        let _status = self.0.wait();
    }
}
