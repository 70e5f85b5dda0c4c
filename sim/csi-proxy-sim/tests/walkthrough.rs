//! The commands of docs/walkthrough.md, one after the other, on a running csi-proxy-sim, and what
//! they print.
//!
//! The page runs two programs, and a test has only the program of its own package. So the test is
//! csi-proxyctl too, if it is started under that name.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::{env, fs, thread};

use libtest_mimic::{Arguments, Trial};

/// What the shell prints after each block of commands.
const END: &str = "end of the block";

const NAME: &str = "the_commands_of_the_walkthrough_print_what_it_shows";

const SIMULATOR: &str = env!("CARGO_BIN_EXE_csi-proxy-sim");

/// The program that the test also is.
const CSI_PROXYCTL: &str = "csi-proxyctl";

/// A block of commands, and what they print: `...` stands for any text.
struct Step {
    commands: String,
    shown: String,
}

/// Returns the blocks of the page. Commands without a block of text after them print nothing.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').expect("a block has lines");
        match language {
            "sh" => steps.push(Step {
                commands: text.to_owned(),
                shown: String::new(),
            }),
            "text" => steps.last_mut().expect("commands").shown.push_str(text),
            other => panic!("no test runs {other:?}"),
        }
    }
    steps
}

/// Whether `text` is as `shown`.
fn is_as_shown(text: &str, shown: &str) -> bool {
    let parts: Vec<&str> = shown.split("...").collect();
    let [first, parts @ .., last] = &parts[..] else {
        return text == shown;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(*part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

fn trimmed(text: &str) -> String {
    text.lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
        .trim_end()
        .to_owned()
}

/// A process that is killed when this is dropped.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves the simulated node as a command line that begins with `cargo sim` does, and returns the
/// address of its status page.
fn serve(line: &str) -> (KilledOnDrop, String) {
    let words = line
        .trim()
        .strip_prefix("cargo sim ")
        .expect("cargo sim")
        .split(' ');
    let flags = [
        "-fast",
        "-logtostderr=false",
        "-metrics-bind-address=127.0.0.1:0",
    ];
    let mut process = Command::new(SIMULATOR)
        .args(words)
        .args(flags)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe"))
        .lines()
        .map(|line| line.expect("text"));
    let status = lines.find_map(|line| {
        Some(
            line.split_once("status at http://")?
                .1
                .split_once('/')?
                .0
                .to_owned(),
        )
    });
    // Each start of the daemon announces itself, and needs a reader.
    thread::spawn(move || lines.for_each(drop));
    (KilledOnDrop(process), status.expect("an address"))
}

/// Runs the commands of the page on this test's own node.
fn commands_of_the_walkthrough_print_what_it_shows() {
    if env::consts::OS == "windows"
        || Command::new("curl")
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_err()
    {
        println!("skipped: {NAME}: the page needs Linux and curl");
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/walkthrough.md");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let node = folder.path().join("node");
    let page = fs::read_to_string(page)
        .expect("the page")
        .replace("/tmp/node", node.to_str().expect("UTF-8"));
    let steps = steps(&page);
    let (start, steps) = steps.split_first().expect("the page has commands");
    let (_simulator, address) = serve(&start.commands);

    fs::hard_link(
        env::current_exe().expect("a path"),
        folder.path().join(CSI_PROXYCTL),
    )
    .expect("a link");
    let simulator = Path::new(SIMULATOR).parent().expect("a folder");
    let path = env::var("PATH").expect("a path");
    let path = format!("{}:{}:{path}", folder.path().display(), simulator.display());
    let mut bash = Command::new("bash")
        .env("PATH", path)
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash");
    let mut typed = bash.stdin.take().expect("a pipe");
    let mut printed = BufReader::new(bash.stdout.take().expect("a pipe")).lines();
    // Both programs are built already.
    let cargo = "cargo() { if [ \"$1\" = sim ]; then csi-proxy-sim \"${@:2}\"; \
                 else [ \"$*\" = 'build -p csi-proxyctl' ]; fi; }";
    writeln!(typed, "exec 2>&1\n{cargo}").expect("it reads");
    for Step { commands, shown } in steps {
        let commands = commands.replace("127.0.0.1:9818", &address);
        let commands = commands.replace("ctl top", &format!("ctl top --address {address}"));
        writeln!(typed, "{commands}\necho '{END}'").expect("it reads");
        let lines = printed
            .by_ref()
            .map(|line| line.expect("text"))
            .take_while(|line| line != END);
        let text = lines.collect::<Vec<_>>().join("\n");
        assert!(
            is_as_shown(&trimmed(&text), &trimmed(shown)),
            "the page has\n{commands}\nwhich prints\n{text}\nand not\n{shown}"
        );
    }
    drop(typed);
    assert!(bash.wait().expect("an end").success());
    assert!(steps.len() > 12, "{} blocks", steps.len());
}

fn dots_stand_for_any_text_and_nothing_else_does() {
    assert!(is_as_shown("a 1 b\nc 2", "a ... b\nc ..."));
    assert!(is_as_shown("a\nx\ny\nb", "a\n...\nb") && is_as_shown("a", "a"));
    assert!(!is_as_shown("a 1 b", "a ... c") && !is_as_shown("a 1", "a"));
    assert!(!is_as_shown("x a", "a") && !is_as_shown("a c b", "a ... b ..."));
}

fn main() -> ExitCode {
    if env::args_os()
        .next()
        .is_some_and(|name| Path::new(&name).ends_with(CSI_PROXYCTL))
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        return runtime.block_on(csi_proxyctl::main());
    }
    let test = |name, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    };
    let tests = vec![
        test(NAME, commands_of_the_walkthrough_print_what_it_shows),
        test(
            "dots_stand_for_any_text_and_nothing_else_does",
            dots_stand_for_any_text_and_nothing_else_does,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}
