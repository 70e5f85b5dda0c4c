//! Running other programs, and finding them.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Announces a step, runs it with our own output, and says whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> io::Result<bool> {
    announce(command);
    Ok(command.status()?.success())
}

/// Announces a program and runs it, showing its output and handing each line of it to `line`.
///
/// Standard output and error share one pipe, so that they stay in order. A program's end is its exit, not the end of
/// the pipe: something it left running (a Wine service, a daemon) may hold the pipe open for ever.
pub(crate) fn stream(command: &mut Command, mut line: impl FnMut(&str)) -> io::Result<ExitStatus> {
    const QUIET: Duration = Duration::from_millis(500);
    announce(command);
    let (reader, writer) = io::pipe()?;
    let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command holds our ends of the pipe; without them the reader sees the end.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for bytes in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            if sender.send(bytes).is_err() {
                return;
            }
        }
    });
    let mut ended = None;
    loop {
        match lines.recv_timeout(QUIET) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.trim_end_matches('\r');
                println!("{text}");
                line(text);
            }
            Err(RecvTimeoutError::Timeout) => match ended {
                Some(status) => return Ok(status),
                None => ended = child.try_wait()?,
            },
            Err(RecvTimeoutError::Disconnected) => return child.wait(),
        }
    }
}

/// The standard output of a program that must succeed, without the final newline.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// The first program of this name on the PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = [program.to_owned(), format!("{program}.exe")];
    std::env::split_paths(&path)
        .flat_map(|folder| names.clone().map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// Shows a command as one would type it, without its environment.
pub(crate) fn typed(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn announce(command: &Command) {
    println!("$ {}", typed(command));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_left_behind_does_not_hold_the_run() {
        let Some(shell) = find("sh") else {
            println!("skipped: a_program_left_behind_does_not_hold_the_run: there is no sh");
            return;
        };
        let mut seen = Vec::new();
        let status = stream(
            Command::new(shell).args(["-c", "echo one; (sleep 9; echo three) & echo two >&2; exit 3"]),
            |line| {
                seen.push(line.to_owned());
            },
        );
        assert_eq!(status.expect("a shell").code(), Some(3));
        assert_eq!(seen, ["one", "two"]);
    }
}
