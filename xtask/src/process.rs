//! Running other programs, and finding them.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// How long a test program may print nothing before it is killed.
pub(crate) const SILENCE_OF_TESTS: Duration = Duration::from_mins(5);
/// How long a compiler or another check may print nothing before it is killed.
pub(crate) const SILENCE_OF_CHECKS: Duration = Duration::from_mins(30);
/// How long a program may take to end after it has printed its result. Under Wine, a thread can
/// hang at the end.
pub(crate) const LONGEST_END: Duration = Duration::from_secs(30);
/// How often a silent program is asked whether it has exited.
const POLL: Duration = Duration::from_millis(500);

/// Prints a command, runs it with the standard streams of this process, and returns whether it
/// succeeded.
pub(crate) fn succeeds(command: &mut Command) -> io::Result<bool> {
    print(command);
    Ok(command.status()?.success())
}

/// Runs a command as [`succeeds`] does. A command that fails is an error.
pub(crate) fn must_succeed(command: &mut Command) -> Result<(), Error> {
    if succeeds(command)? {
        Ok(())
    } else {
        Err(format!("`{}` failed", typed(command)).into())
    }
}

/// Lets Go and cargo fail instead of downloading: what a test needs is set up before.
pub(crate) fn forbid_downloads(test: &mut Command) {
    test.env("GOPROXY", "off")
        .env("GOTOOLCHAIN", "local")
        .env("CARGO_NET_OFFLINE", "true");
}

/// How a program ended.
#[derive(Debug)]
pub(crate) enum End {
    Exited(ExitStatus),
    /// It printed nothing for this time and was killed.
    Killed(Duration),
}

/// Prints a command, runs it, prints its output, and calls `on_line` with each line. `on_line`
/// returns whether the program has printed its result. A program that prints nothing for
/// `longest_silence` is killed.
///
/// Standard output and standard error share one pipe, so that their lines stay in order. The
/// function returns when the program has exited, not when the pipe is closed: a process that the
/// program leaves behind, such as a Wine service, can keep the pipe open.
pub(crate) fn stream(
    command: &mut Command,
    longest_silence: Duration,
    on_line: impl FnMut(&str) -> bool,
) -> io::Result<End> {
    stream_within(command, on_line, [longest_silence, LONGEST_END])
}

fn stream_within(
    command: &mut Command,
    mut on_line: impl FnMut(&str) -> bool,
    [longest_silence, longest_end]: [Duration; 2],
) -> io::Result<End> {
    print(command);
    let (reader, writer) = io::pipe()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    // The command owns two write ends of the pipe. The reader sees its end only after they are
    // closed.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for bytes in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            if sender.send(bytes).is_err() {
                return;
            }
        }
    });
    let mut exited = None;
    let mut limit = longest_silence;
    let mut last_line = Instant::now();
    loop {
        match lines.recv_timeout(POLL) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.trim_end_matches('\r');
                println!("{text}");
                last_line = Instant::now();
                if on_line(text) {
                    limit = longest_end;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return child.wait().map(End::Exited),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = exited {
                    return Ok(End::Exited(status));
                }
                exited = child.try_wait()?;
                if exited.is_none() && last_line.elapsed() > limit {
                    child.kill()?;
                    child.wait()?;
                    return Ok(End::Killed(limit));
                }
            }
        }
    }
}

/// Runs a program and returns its standard output without the final newline, or `None` if the
/// program fails.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| {
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    })
}

/// A running program, which is killed when this is dropped.
pub(crate) struct KillOnDrop(pub(crate) Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Both calls fail if the program has exited already.
        let _killed = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Returns the first program of this name on the PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = [program.to_owned(), format!("{program}.exe")];
    std::env::split_paths(&path)
        .flat_map(|folder| names.clone().map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// Formats a command as one would type it, without its environment.
pub(crate) fn typed(command: &Command) -> String {
    let program = command.get_program();
    let program = if std::env::var_os("CARGO").as_deref() == Some(program) {
        "cargo".as_ref()
    } else {
        program
    };
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Prints a command as one would type it.
pub(crate) fn print(command: &Command) {
    println!("$ {}", typed(command));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limits: [Duration; 2]) -> Option<(End, Vec<String>)> {
        let mut lines = Vec::new();
        let mut shell = Command::new(find("sh")?);
        let on_line = |line: &str| {
            lines.push(line.to_owned());
            line == "result"
        };
        let end = stream_within(shell.args(["-c", script]), on_line, limits).expect("a shell");
        Some((end, lines))
    }

    #[test]
    fn a_process_left_behind_does_not_delay_the_result() {
        let Some((end, lines)) = run(
            "echo one; (sleep 9; echo 3) & echo two >&2; exit 3",
            [SILENCE_OF_TESTS; 2],
        ) else {
            println!(
                "skipped: a_process_left_behind_does_not_delay_the_result: sh is not on the PATH"
            );
            return;
        };
        assert!(
            matches!(end, End::Exited(status) if status.code() == Some(3)),
            "{end:?}"
        );
        assert_eq!(lines, ["one", "two"]);
    }

    #[test]
    fn a_program_that_hangs_is_killed_and_sooner_after_its_result() {
        let (long, short) = (Duration::from_mins(1), Duration::from_millis(1));
        for (script, limits) in [
            ("exec sleep 50", [short, long]),
            ("echo result; exec sleep 50", [long, short]),
        ] {
            let Some((end, _)) = run(script, limits) else {
                println!(
                    "skipped: a_program_that_hangs_is_killed_and_sooner_after_its_result: sh is \
                     not on the PATH"
                );
                return;
            };
            assert!(
                matches!(end, End::Killed(limit) if limit == short),
                "{end:?}"
            );
        }
    }
}
