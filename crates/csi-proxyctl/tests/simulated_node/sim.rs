//! `sim`: the control API of a simulated node.

use std::sync::Arc;

use csi_proxy_sim::control::{self, Control};
use faults::{FaultSet, Trace};
use os_sim::Sim;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use transport::address::Location;
use transport::listener::bind;

use super::daemon::Sockets;
use super::program::{Run, assert_golden, file, run, run_with_input};

/// Serves the control API of a node with one disk, whose restarts end at once.
fn serve(sockets: &Sockets) -> (Sim, JoinHandle<()>) {
    let sim = os_sim::node().disk(1 << 30).serial("vol-1").smb_server("files").user("user", "old").build();
    let (restarts, mut requests) = mpsc::channel(1);
    let control = Control::new(sim.clone(), Arc::new(FaultSet::default()), Arc::new(Trace::counting()), restarts);
    let address = sim_control::address(&Location::Directory(sockets.folder()));
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
    let sim_command = |arguments: &[&str]| run(&sockets, &[&["sim"], arguments].concat());
    let set = r#"page83={ ascii = "Google  pvc-2" }"#;
    let added = sim_command(&["add-disk", "--size", "2Gi", "--serial", "vol-2", "--set", "offline=true", "--set", set]);
    assert_eq!(added.ok(), "disk_numbers:\n  - 2\n");
    assert!(sim.disk(2).expect("the disk").offline);
    let file = file(&sockets.folder(), "more.toml", b"[[disk]]\nsize = \"1 GiB\"\nserial = \"\"\n");
    let added = sim_command(&["add", &file, "--undetected", "-o", "json"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&added).expect("JSON")["disk_numbers"][0], 3);
    assert_eq!(sim_command(&["grow", "1", "5Gi"]).ok(), "");
    let handle = sim_command(&["unplug", "2"]).ok();
    let handle = handle.trim().strip_prefix("handle: ").expect("a handle").to_owned();
    let table = sim_command(&["disks"]).ok();
    let rows: Vec<String> = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(rows[0], "DISK STATE HANDLE SIZE SERIAL NUMBER TABLE MOUNTED AT");
    assert!(rows[1].starts_with("0 Online - 128Gi ") && rows[1].ends_with(r" gpt C:\"), "{table}");
    let unplugged = format!("- Unplugged {handle} 2.00Gi vol-2 - -");
    assert_eq!(rows[2..], ["1 Online - 5.00Gi vol-1 raw -", "3 Undetected - 1.00Gi - raw -", &unplugged]);
    assert_eq!(sim_command(&["plug", &handle]).ok(), "disk_number: 2\n");

    failed(&sim_command(&["grow", "1", "1Gi"]), 1, &["error: disk 1 has 5368709120 bytes already"]);
    failed(&sim_command(&["unplug", "9"]), 4, &["no disk has the number 9\n", "hint:  `csi-proxyctl sim disks`"]);
    failed(&sim_command(&["add-disk", "--size", "1Gi", "--set", "colour=1"]), 1, &["line 3: unknown field `colour`"]);
    failed(&sim_command(&["add-disk"]), 2, &["--size <SIZE>"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_injected_listed_and_cleared() {
    let sockets = Sockets::new();
    let (_sim, _served) = serve(&sockets);
    let sim_command = |arguments: &[&str]| run(&sockets, &[&["sim"], arguments].concat());
    let format = ["inject", "--primitive", "wmi call MSFT_Volume.Format", "--count", "1", "--code", "0x80041001"];
    assert_eq!(sim_command(&format).ok(), "id: 1\n");
    assert_eq!(sim_command(&["inject", "--disk", "1", "--delay", "1h", "--after"]).ok(), "id: 2\n");
    assert_eq!(sim_command(&["inject", "--object", "kubelet", "--crash", "--count", "1"]).ok(), "id: 3\n");
    assert_golden("sim-faults.txt", &sim_command(&["faults"]).ok());
    assert_eq!(sim_command(&["clear-faults", "2"]).ok(), "");
    assert_eq!(sim_command(&["clear-faults"]).ok(), "");
    assert_eq!(sim_command(&["faults", "-o", "json"]).ok(), "[]\n");
    assert_eq!(sim_command(&["primitives", "-o", "json"]).ok(), "[]\n");

    failed(&sim_command(&["clear-faults", "2"]), 4, &["no fault has the id 2"]);
    failed(
        &sim_command(&["inject", "--primitive", "fromat", "--code", "5"]),
        1,
        &["no primitive is called \"fromat\""],
    );
    failed(&sim_command(&["inject", "--primitive", "open"]), 2, &["--code", "--delay", "--crash"]);
    failed(&sim_command(&["inject", "--code", "x"]), 2, &["a code is a number such as 5"]);
    failed(&sim_command(&["inject", "--crash"]), 2, &["--count"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_made_read_listed_and_removed() {
    let sockets = Sockets::new();
    let (sim, _served) = serve(&sockets);
    let sim_command = |arguments: &[&str]| run(&sockets, &[&["sim"], arguments].concat());
    assert_eq!(sim_command(&["mkdir", r"C:\csi\staging"]).ok(), "");
    let written = run_with_input(&sockets, &["sim", "write", r"C:\csi\vol_data.json"], "{}\n");
    assert_eq!(written.ok(), "");
    assert_eq!(sim.external().read(r"C:\csi\vol_data.json").expect("a file"), b"{}\n");
    assert_eq!(sim_command(&["cat", "/csi/vol_data.json"]).ok(), "{}\n");
    assert_eq!(sim_command(&["symlink", r"C:\csi\staging", r"C:\csi\mount"]).ok(), "");
    assert_eq!(sim_command(&["readlink", r"C:\csi\mount"]).ok(), "C:\\csi\\staging\n");
    assert_golden("sim-ls.txt", &sim_command(&["ls", r"C:\csi"]).ok());
    let stat = sim_command(&["stat", r"C:\csi\mount", "-o", "json"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&stat).expect("JSON")["kind"], "symlink");

    failed(&sim_command(&["rm", r"C:\csi"]), 1, &[r"cannot remove C:\csi: ", "(145)"]);
    assert_eq!(sim_command(&["rm", "-r", r"C:\csi"]).ok(), "");
    failed(&sim_command(&["cat", r"C:\csi\vol_data.json"]), 4, &[r"cannot read the file C:\csi\vol_data.json: "]);
    failed(&sim_command(&["stat", r"C:\csi"]), 4, &[r"C:\csi does not exist"]);
    failed(&sim_command(&["write", r"C:\file", "/nosuch"]), 2, &["cannot read the content from /nosuch"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_stop_and_the_node_restarts() {
    let sockets = Sockets::new();
    let (sim, _served) = serve(&sockets);
    let sim_command = |arguments: &[&str]| run(&sockets, &[&["sim"], arguments].concat());
    assert_eq!(sim_command(&["stop", "--smb-server", "files"]).ok(), "");
    assert_eq!(sim_command(&["start", "--smb-server", "files"]).ok(), "");
    failed(
        &sim_command(&["stop", "--iscsi-portal", "10.0.0.1"]),
        4,
        &["no iSCSI portal 10.0.0.1:3260", "`sim node` shows the servers"],
    );
    failed(&sim_command(&["stop"]), 2, &["--smb-server"]);
    let password = file(&sockets.folder(), "password", b"new\n");
    assert_eq!(sim_command(&["set-smb-password", "files", "user", "--password-file", &password]).ok(), "");
    let file = file(&sockets.folder(), "more.toml", b"[[disk]]\nsize = \"1 GiB\"\n");
    sim_command(&["add", &file, "--undetected"]).ok();
    assert!(sim.disk(2).is_none());
    assert_eq!(sim_command(&["restart"]).ok(), "");
    // Larger than the messages that tonic accepts by default.
    sim.external().write(r"C:\large", vec![0; 5 << 20]).expect("a file");
    assert_eq!(sim_command(&["node"]).ok(), sim.node_file());
    failed(&sim_command(&["save"]), 1, &["csi-proxy-sim was started without -state"]);
    assert!(sim.disk(2).is_some());
}

#[test]
fn a_simulator_that_does_not_run_is_code_3_with_a_hint() {
    let sockets = Sockets::new();
    let run = run(&sockets, &["sim", "disks"]);
    let folder = sockets.folder().display().to_string();
    failed(&run, 3, &["cannot connect to", "sim-control.sock", "hint:  is csi-proxy-sim running with"]);
    assert!(run.stderr.replace(['\n', ' '], "").contains(&folder.replace(' ', "")), "{run:?}");
}
