//! Running other programs, and finding them.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::durations;

/// Prints a command, runs it with the standard streams of this process, and returns whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> io::Result<bool> {
    print(command);
    Ok(durations::record(command, Command::status)?.success())
}

/// Prints a command, runs it, prints its output, and calls `on_line` with each line of it.
///
/// Standard output and standard error share one pipe, so that their lines stay in order. The function returns when
/// the program has exited, not when the pipe is closed: a process that the program leaves behind, such as a Wine
/// service, can keep the pipe open indefinitely.
pub(crate) fn stream(command: &mut Command, mut on_line: impl FnMut(&str)) -> io::Result<ExitStatus> {
    stream_shown(command, |line| {
        on_line(line);
        true
    })
}

/// Does what [`stream`] does, but prints only the lines for which `is_shown` returns `true`.
pub(crate) fn stream_shown(command: &mut Command, is_shown: impl FnMut(&str) -> bool) -> io::Result<ExitStatus> {
    stream_within(command, is_shown, LAST_THREADS)
}

/// How long the other threads of a program may take to end after its first thread has ended.
const LAST_THREADS: Duration = Duration::from_secs(30);

fn stream_within(
    command: &mut Command,
    mut is_shown: impl FnMut(&str) -> bool,
    last_threads: Duration,
) -> io::Result<ExitStatus> {
    const QUIET: Duration = Duration::from_millis(500);
    print(command);
    let (reader, writer) = io::pipe()?;
    let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command owns two write ends of the pipe. The reader sees its end only after they are closed.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for bytes in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            if sender.send(bytes).is_err() {
                return;
            }
        }
    });
    let (mut exited, mut first_ended) = (None, None);
    loop {
        match lines.recv_timeout(QUIET) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.trim_end_matches('\r');
                if is_shown(text) {
                    println!("{text}");
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = exited {
                    return Ok(status);
                }
                exited = child.try_wait()?;
                // A thread of a program can hang while Wine ends the program.
                if exited.is_none()
                    && let Some(success) = first_thread_ended(child.id())
                    && first_ended.get_or_insert_with(Instant::now).elapsed() >= last_threads
                {
                    println!("{}: a thread hangs although the program has ended; killed", typed(command));
                    child.kill()?;
                    let killed = child.wait()?;
                    return Ok(if success { ExitStatus::default() } else { killed });
                }
            }
            Err(RecvTimeoutError::Disconnected) => return child.wait(),
        }
    }
}

/// Returns whether the first thread of a process has ended with success, or `None` if it has not ended. Only Linux tells.
fn first_thread_ended(process: u32) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything. The state follows it, and the last field is the exit code.
    let fields = stat.rsplit_once(')')?.1;
    fields.trim_start().starts_with('Z').then(|| fields.split_whitespace().last() == Some("0"))
}

/// Runs a program and returns its standard output without the final newline, or `None` if the program fails.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
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

/// Returns a copy of a command: program, arguments, environment and working directory.
pub(crate) fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => copy.env(name, value),
            None => copy.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        copy.current_dir(folder);
    }
    copy
}

/// Formats a command as one would type it, without its environment.
pub(crate) fn typed(command: &Command) -> String {
    let program = command.get_program();
    let program = if std::env::var_os("CARGO").as_deref() == Some(program) { "cargo".as_ref() } else { program };
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Prints a command as one would type it.
pub(crate) fn print(command: &Command) {
    println!("$ {}", typed(command));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_left_behind_does_not_delay_the_result() {
        let Some(shell) = find("sh") else {
            println!("skipped: a_process_left_behind_does_not_delay_the_result: sh is not on the PATH");
            return;
        };
        let mut lines = Vec::new();
        let status = stream(
            Command::new(shell).args(["-c", "echo one; (sleep 9; echo three) & echo two >&2; exit 3"]),
            |line| {
                lines.push(line.to_owned());
            },
        );
        assert_eq!(status.expect("a shell").code(), Some(3));
        assert_eq!(lines, ["one", "two"]);
    }

    #[test]
    fn a_thread_that_hangs_after_the_end_of_its_program_does_not_delay_the_result() {
        const NAME: &str = "a_thread_that_hangs_after_the_end_of_its_program_does_not_delay_the_result";
        let Some(python) = find("python3").filter(|_| std::env::consts::OS == "linux") else {
            println!("skipped: {NAME}: this is not Linux, or python3 is not on the PATH");
            return;
        };
        for (code, success) in [(0, true), (3, false)] {
            // The system call `exit` ends the calling thread alone.
            let program = format!(
                "import ctypes, platform, threading, time\n\
                 threading.Thread(target=time.sleep, args=(60,)).start()\n\
                 print('ended', flush=True)\n\
                 ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, {code})"
            );
            let mut lines = Vec::new();
            let mut command = Command::new(&python);
            let status = stream_within(
                command.args(["-c", &program]),
                |line| {
                    lines.push(line.to_owned());
                    true
                },
                Duration::from_millis(100),
            );
            assert_eq!((status.expect("python").success(), &lines[..]), (success, &["ended".to_owned()][..]));
        }
    }

    #[test]
    fn a_copied_command_keeps_arguments_and_environment() {
        let mut command = Command::new("cargo");
        command.arg("test").env("A", "1").env_remove("B").current_dir("/");
        let copy = copy(&command);
        assert_eq!(typed(&copy), "cargo test");
        assert!(copy.get_envs().eq(command.get_envs()));
        assert_eq!(copy.get_current_dir(), command.get_current_dir());
    }
}
