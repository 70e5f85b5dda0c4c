//! The commands of `ctl`, as processes.
#![cfg(unix)]

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use csi_proxy_sim::control::{self, Control};
use csi_proxy_sim::control_api;
use faults::{FaultSet, Trace};
use os_sim::Sim;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use transport::address::Location;
use transport::listener::bind;

/// The folder of the sockets, in a temporary folder.
struct Sockets(TempDir);

/// A run that has ended.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Sockets {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("sockets")
    }

    /// Runs the program with a text on its standard input.
    fn run_with_input(&self, arguments: &[&str], input: &str) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim"));
        command.args(["ctl", "--endpoint-dir"]).arg(self.folder()).args(arguments);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process");
        // A program that fails early does not read it.
        let _ = process.stdin.take().expect("a pipe").write_all(input.as_bytes());
        let Output { status, stdout, stderr } = process.wait_with_output().expect("an end");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Run { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.run_with_input(arguments, "")
    }

    /// Creates a file.
    fn file(&self, name: &str, contents: &[u8]) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, contents).expect("the folder is writable");
        path.to_str().expect("UTF-8").to_owned()
    }
}

impl Run {
    /// Returns standard output, and panics if the run has failed.
    fn ok(self) -> String {
        assert!(self.code == Some(0) && self.stderr.is_empty(), "{self:?}");
        self.stdout
    }
}

/// Compares a text with a file in `tests/golden`. With `UPDATE_GOLDEN=1`, writes the file instead.
fn assert_golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).expect("the folder is writable");
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text == expected, "{name} is now:\n{text}\nUPDATE_GOLDEN=1 writes it");
}

/// Serves the control API of a node with one disk, whose restarts end at once.
fn serve(sockets: &Sockets) -> (Sim, JoinHandle<()>) {
    let sim = os_sim::node().disk(1 << 30).serial("vol-1").smb_server("files").user("user", "old").build();
    let (restarts, mut requests) = mpsc::channel(1);
    let control = Control::new(sim.clone(), Arc::new(FaultSet::default()), Arc::new(Trace::counting()), restarts);
    let address = control_api::address(&Location::Directory(sockets.folder()));
    let listener = bind(&address).expect("a socket");
    let node = sim.clone();
    let served = tokio::spawn(async move {
        let restarts = async {
            while let Some(restart) = requests.recv().await {
                node.reboot();
                control::Restart::done(restart);
            }
        };
        tokio::join!(control::serve(control, listener), restarts);
    });
    (sim, served)
}

fn failed(run: &Run, code: i32, words: &[&str]) {
    assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "{run:?}");
    for word in words {
        assert!(run.stderr.contains(word), "{word}: {run:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disks_come_go_and_grow() {
    let sockets = Sockets::new();
    let (sim, _served) = serve(&sockets);
    let set = r#"page83={ ascii = "Google  pvc-2" }"#;
    let added = sockets.run(&["add-disk", "--size", "2Gi", "--serial", "vol-2", "--set", "offline=true", "--set", set]);
    assert_eq!(added.ok(), "disk_numbers:\n  - 2\n");
    assert!(sim.disk(2).expect("the disk").offline);
    let file = sockets.file("more.toml", b"[[disk]]\nsize = \"1 GiB\"\nserial = \"\"\n");
    let added = sockets.run(&["add", &file, "--undetected", "-o", "json"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&added).expect("JSON")["disk_numbers"][0], 3);
    assert_eq!(sockets.run(&["grow", "1", "5Gi"]).ok(), "");
    let handle = sockets.run(&["unplug", "2"]).ok();
    let handle = handle.trim().strip_prefix("handle: ").expect("a handle").to_owned();
    let table = sockets.run(&["disks"]).ok();
    let rows: Vec<String> = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(rows[0], "DISK STATE HANDLE SIZE SERIAL NUMBER TABLE MOUNTED AT");
    assert!(rows[1].starts_with("0 Online - 128Gi ") && rows[1].ends_with(r" gpt C:\"), "{table}");
    let unplugged = format!("- Unplugged {handle} 2.00Gi vol-2 - -");
    assert_eq!(rows[2..], ["1 Online - 5.00Gi vol-1 raw -", "3 Undetected - 1.00Gi - raw -", &unplugged]);
    assert_eq!(sockets.run(&["plug", &handle]).ok(), "disk_number: 2\n");

    failed(&sockets.run(&["grow", "1", "1Gi"]), 1, &["error: disk 1 has 5368709120 bytes already"]);
    failed(&sockets.run(&["unplug", "9"]), 4, &["no disk has the number 9\n", "hint:  `csi-proxy-sim ctl disks`"]);
    failed(&sockets.run(&["add-disk", "--size", "1Gi", "--set", "colour=1"]), 1, &["line 3: unknown field `colour`"]);
    failed(&sockets.run(&["add-disk"]), 2, &["--size <SIZE>"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_injected_listed_and_cleared() {
    let sockets = Sockets::new();
    let (_sim, _served) = serve(&sockets);
    let format = ["inject", "--primitive", "wmi call MSFT_Volume.Format", "--count", "1", "--code", "0x80041001"];
    assert_eq!(sockets.run(&format).ok(), "id: 1\n");
    assert_eq!(sockets.run(&["inject", "--disk", "1", "--delay", "1h", "--after"]).ok(), "id: 2\n");
    assert_eq!(sockets.run(&["inject", "--object", "kubelet", "--crash", "--count", "1"]).ok(), "id: 3\n");
    assert_golden("faults.txt", &sockets.run(&["faults"]).ok());
    assert_eq!(sockets.run(&["clear-faults", "2"]).ok(), "");
    assert_eq!(sockets.run(&["clear-faults"]).ok(), "");
    assert_eq!(sockets.run(&["faults", "-o", "json"]).ok(), "[]\n");
    assert_eq!(sockets.run(&["primitives", "-o", "json"]).ok(), "[]\n");

    failed(&sockets.run(&["clear-faults", "2"]), 4, &["no fault has the id 2"]);
    failed(
        &sockets.run(&["inject", "--primitive", "fromat", "--code", "5"]),
        1,
        &["no primitive is called \"fromat\""],
    );
    failed(&sockets.run(&["inject", "--primitive", "open"]), 2, &["--code", "--delay", "--crash"]);
    failed(&sockets.run(&["inject", "--code", "x"]), 2, &["a code is a number such as 5"]);
    failed(&sockets.run(&["inject", "--crash"]), 2, &["--count"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_made_read_listed_and_removed() {
    let sockets = Sockets::new();
    let (sim, _served) = serve(&sockets);
    assert_eq!(sockets.run(&["mkdir", r"C:\csi\staging"]).ok(), "");
    let written = sockets.run_with_input(&["write", r"C:\csi\vol_data.json"], "{}\n");
    assert_eq!(written.ok(), "");
    assert_eq!(sim.external().read(r"C:\csi\vol_data.json").expect("a file"), b"{}\n");
    assert_eq!(sockets.run(&["cat", "/csi/vol_data.json"]).ok(), "{}\n");
    assert_eq!(sockets.run(&["symlink", r"C:\csi\staging", r"C:\csi\mount"]).ok(), "");
    assert_eq!(sockets.run(&["readlink", r"C:\csi\mount"]).ok(), "C:\\csi\\staging\n");
    assert_golden("ls.txt", &sockets.run(&["ls", r"C:\csi"]).ok());
    let stat = sockets.run(&["stat", r"C:\csi\mount", "-o", "json"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&stat).expect("JSON")["kind"], "symlink");

    failed(&sockets.run(&["rm", r"C:\csi"]), 1, &[r"cannot remove C:\csi: ", "(145)"]);
    assert_eq!(sockets.run(&["rm", "-r", r"C:\csi"]).ok(), "");
    failed(&sockets.run(&["cat", r"C:\csi\vol_data.json"]), 4, &[r"cannot read the file C:\csi\vol_data.json: "]);
    failed(&sockets.run(&["stat", r"C:\csi"]), 4, &[r"C:\csi does not exist"]);
    failed(&sockets.run(&["write", r"C:\file", "/nosuch"]), 2, &["cannot read the content from /nosuch"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_stop_and_the_node_restarts() {
    let sockets = Sockets::new();
    let (sim, _served) = serve(&sockets);
    assert_eq!(sockets.run(&["stop", "--smb-server", "files"]).ok(), "");
    assert_eq!(sockets.run(&["start", "--smb-server", "files"]).ok(), "");
    failed(
        &sockets.run(&["stop", "--iscsi-portal", "10.0.0.1"]),
        4,
        &["no iSCSI portal 10.0.0.1:3260", "`ctl node` shows the servers"],
    );
    failed(&sockets.run(&["stop"]), 2, &["--smb-server"]);
    let password = sockets.file("password", b"new\n");
    assert_eq!(sockets.run(&["set-smb-password", "files", "user", "--password-file", &password]).ok(), "");
    let file = sockets.file("more.toml", b"[[disk]]\nsize = \"1 GiB\"\n");
    sockets.run(&["add", &file, "--undetected"]).ok();
    assert!(sim.disk(2).is_none());
    assert_eq!(sockets.run(&["restart"]).ok(), "");
    // Larger than the messages that tonic accepts by default.
    sim.external().write(r"C:\large", vec![0; 5 << 20]).expect("a file");
    assert_eq!(sockets.run(&["node"]).ok(), sim.node_file());
    failed(&sockets.run(&["save"]), 1, &["csi-proxy-sim was started without -state"]);
    assert!(sim.disk(2).is_some());
}

#[test]
fn a_simulator_that_does_not_run_is_code_3_with_a_hint() {
    let sockets = Sockets::new();
    let run = sockets.run(&["disks"]);
    let folder = sockets.folder().display().to_string();
    failed(&run, 3, &["cannot connect to", "sim-control.sock", "hint:  is csi-proxy-sim running with"]);
    assert!(run.stderr.replace(['\n', ' '], "").contains(&folder.replace(' ', "")), "{run:?}");
}

#[test]
fn a_wrong_command_line_is_code_2() {
    let sockets = Sockets::new();
    for (arguments, word) in [
        (&[][..], "Usage:"),
        (&["nosuch"], "unrecognized subcommand"),
        (&["clear-faults", "0"], "the ids of faults begin with 1"),
        (&["inject", "--crash", "--count", "x"], "expected a whole number"),
    ] {
        failed(&sockets.run(arguments), 2, &[word]);
    }
}

fn help(arguments: &[&str], columns: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim"));
    let output = command.arg("ctl").args(arguments).arg("--help").env("COLUMNS", columns).output().expect("a process");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn the_help_fits_a_terminal_and_the_readme_lists_the_commands() {
    for (name, command) in
        [("help.txt", &[][..]), ("help-inject.txt", &["inject"]), ("help-clear-faults.txt", &["clear-faults"])]
    {
        let text = help(command, "80");
        let is_short = |line: &str| line.starts_with("Usage:") || line.chars().count() <= 80;
        assert!(text.lines().all(is_short), "{text}");
        assert_golden(name, &text);
    }
    let text = help(&[], "200");
    let (_, commands) = text.split_once("Commands:\n").expect("a list of commands");
    for row in commands.lines().take_while(|line| !line.is_empty()) {
        let (command, about) = row.trim().split_once("  ").expect("a command and its help");
        let row = format!("| `ctl {command}` | {} |", about.trim());
        assert!(command == "help" || include_str!("../README.md").contains(&row), "README.md lacks: {row}");
    }
}
