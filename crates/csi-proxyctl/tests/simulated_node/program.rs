//! The program as a process.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::iter;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use super::daemon::Sockets;

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Returns standard output, and panics if the run has failed.
    pub(crate) fn ok(self) -> String {
        assert!(self.code == Some(0) && self.stderr.is_empty(), "{self:?}");
        self.stdout
    }
}

pub(crate) fn command(sockets: &Sockets) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_csi-proxyctl"));
    command.arg("--endpoint-dir").arg(sockets.folder());
    command
}

pub(crate) fn finished(output: Output) -> Run {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Run {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Runs the program with the daemon of these sockets.
pub(crate) fn run(sockets: &Sockets, arguments: &[&str]) -> Run {
    finished(
        command(sockets)
            .args(arguments)
            .output()
            .expect("a process"),
    )
}

/// Runs the program with a text on its standard input.
pub(crate) fn run_with_input(sockets: &Sockets, arguments: &[&str], input: &str) -> Run {
    let mut command = command(sockets);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().expect("a process");
    process
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes())
        .expect("the program reads it");
    finished(process.wait_with_output().expect("an end"))
}

/// Runs the program on a terminal of its own, types `input` when it has shown `prompt` and the
/// terminal no longer shows what is typed, and returns what the terminal shows.
pub(crate) fn on_terminal(
    sockets: &Sockets,
    arguments: &[&str],
    prompt: &str,
    input: &str,
) -> String {
    let quoted = |argument: &OsStr| format!("'{}'", argument.to_str().expect("UTF-8"));
    let program = command(sockets);
    let words = iter::once(program.get_program())
        .chain(program.get_args())
        .chain(arguments.iter().map(OsStr::new));
    let line: Vec<String> = words.map(quoted).collect();
    // Of util-linux: it makes a pseudoterminal, and copies what is typed and shown.
    let mut script = Command::new("script");
    script.args([
        "--quiet",
        "--return",
        "--command",
        &format!("tty; {}", line.join(" ")),
        "/dev/null",
    ]);
    let mut process = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script of util-linux");
    let (mut typed, mut screen) = (
        process.stdin.take().expect("a pipe"),
        process.stdout.take().expect("a pipe"),
    );
    let mut shown = Vec::new();
    let mut byte = [0];
    while !shown.ends_with(prompt.as_bytes()) {
        screen
            .read_exact(&mut byte)
            .unwrap_or_else(|_| panic!("{}", shown.escape_ascii()));
        shown.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&shown);
    let terminal = text
        .lines()
        .next()
        .expect("the name of the terminal")
        .to_owned();
    let shows_input = || {
        let settings = Command::new("stty")
            .args(["-F", &terminal, "-a"])
            .output()
            .expect("stty of coreutils");
        assert!(settings.status.success(), "{settings:?}");
        !String::from_utf8_lossy(&settings.stdout).contains(" -echo ")
    };
    while shows_input() {
        thread::yield_now();
    }
    typed
        .write_all(input.as_bytes())
        .expect("the program reads it");
    screen.read_to_end(&mut shown).expect("an end");
    process.wait().expect("an end");
    String::from_utf8(shown).expect("UTF-8")
}

/// Returns the GUID paths of volumes with a number in place of each GUID, in the order of their
/// appearance.
pub(crate) fn numbered_volumes(text: &str) -> String {
    let mut found: Vec<String> = Vec::new();
    let mut numbered = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("Volume{") {
        let (guid, after) = after.split_once('}').expect("a brace ends a GUID");
        let number = found.iter().position(|own| own == guid).unwrap_or_else(|| {
            found.push(guid.to_owned());
            found.len() - 1
        });
        numbered += before;
        // Writing to a String does not fail.
        let _ = write!(numbered, "Volume{{{number:0>36}}}");
        rest = after;
    }
    numbered + rest
}

/// Creates a file in the folder of the test.
pub(crate) fn file(folder: &Path, name: &str, contents: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, contents).expect("the folder is writable");
    path.to_str().expect("UTF-8").to_owned()
}
