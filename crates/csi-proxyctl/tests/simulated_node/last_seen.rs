//! What calls have last seen of the node: `get smb`, `get mounts`, mount paths, and the identity of a
//! disk that hangs.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use faults::{Call, FaultAction, Probe, Probed};
use os_sim::Sim;
use serde_json::{Value, json};
use storage_ops::{Config, Node};
use transport::listener::bind;

use super::daemon::{Daemon, Sockets};
use super::node::node;
use super::program::{Run, run, run_with_input};

const MOUNT: &str = r"C:\var\lib\kubelet\plugins\mine\mount";
const LINK: &str = r"C:\var\lib\kubelet\pods\link";

/// Makes each call to disk 2 hang while the switch is on.
struct Hanging(Sim, Arc<AtomicBool>);

impl Probe for Hanging {
    fn before(&self, call: &Call) -> FaultAction {
        if self.1.load(Ordering::Relaxed) && self.0.is_on_disk(&call.object, 2) {
            // A delay of FaultAction is one of the simulated clock, which the client does not have.
            thread::sleep(Duration::from_secs(6));
        }
        FaultAction::Go
    }
}

/// A daemon with a status page, and the calls of csi-proxyctl.
struct Observed {
    sockets: Sockets,
    hangs: Arc<AtomicBool>,
    address: String,
    _daemon: Daemon,
}

impl Observed {
    fn new() -> Self {
        let (sim, sockets, hangs) = (node(), Sockets::new(), Arc::default());
        let probe = Hanging(sim.clone(), Arc::clone(&hangs));
        let node = Node::new(
            Arc::new(Probed::new(sim.process(), probe)),
            Config::default(),
        );
        let daemon = Daemon::listening(node, &sockets, bind);
        let server = Arc::clone(&daemon.server);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let pattern = sockets.folder().join("csi-proxy-*.sock");
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut status = json!(server.metrics().status());
                status["endpoints"] = json!(pattern);
                answer(stream.expect("a connection"), &status.to_string());
            }
        });
        Self {
            sockets,
            hangs,
            address,
            _daemon: daemon,
        }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        run(&self.sockets, arguments)
    }

    fn run_with_status(&self, arguments: &[&str]) -> Run {
        self.run(&[arguments, &["--address", &self.address]].concat())
    }

    fn rows(&self, arguments: &[&str]) -> Value {
        let text = self
            .run_with_status(&[arguments, &["-o", "json"]].concat())
            .ok();
        serde_json::from_str(&text).expect("JSON")
    }
}

fn answer(mut stream: TcpStream, body: &str) {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a request");
        request.push(byte[0]);
    }
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}").expect("a client");
}

/// A daemon on which the volume of disk 2 is mounted, and linked to, and a share mapped.
fn observed() -> (Observed, String) {
    let daemon = Observed::new();
    let volume = daemon
        .run(&["get", "volumes", "-o", "name", "--disk", "2"])
        .ok();
    let volume = volume.trim().to_owned();
    let call = |rpc: &str, request: Value| {
        daemon.run(&["call", rpc, &request.to_string()]).ok();
    };
    daemon.run(&["get", "disks"]).ok();
    call("volume/v1/FormatVolume", json!({ "volume_id": volume }));
    call("filesystem/v1/Mkdir", json!({ "path": MOUNT }));
    call(
        "volume/v1/MountVolume",
        json!({ "volume_id": volume, "target_path": MOUNT }),
    );
    call(
        "filesystem/v1/Mkdir",
        json!({ "path": r"C:\var\lib\kubelet\pods" }),
    );
    call(
        "filesystem/v1/CreateSymlink",
        json!({ "source_path": MOUNT, "target_path": LINK }),
    );
    let share = json!({ "remote_path": r"\\FileServer\share", "username": r"corp\anna", "password": "hunter2" });
    let map = ["call", "smb/v1/NewSmbGlobalMapping", "-"];
    run_with_input(&daemon.sockets, &map, &share.to_string()).ok();
    (daemon, volume)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mounts_and_mappings_are_listed_until_they_are_removed() {
    let (daemon, volume) = observed();
    let mounts = daemon.rows(&["get", "mounts"]);
    let paths = |mounts: &Value| {
        let rows = mounts.as_array().expect("rows").iter();
        rows.map(|row| row["path"].clone()).collect::<Value>()
    };
    assert_eq!(paths(&mounts), json!([MOUNT, LINK]));
    assert_eq!(
        (&mounts[0]["source"], &mounts[0]["disk"]),
        (&json!(volume), &json!(2))
    );
    assert_eq!(
        daemon.rows(&["get", "smb"])[0]["remote"],
        r"\\fileserver\share"
    );
    assert!(
        daemon
            .run_with_status(&["get", "mounts"])
            .ok()
            .contains("VOLUME OR SHARE")
    );
    let volumes = daemon.rows(&["get", "volumes", "--disk", "2"]);
    assert_eq!(paths(&volumes[0]["mounted_at"]), json!([MOUNT, LINK]));
    let table = daemon.run_with_status(&["get", "volumes"]).ok();
    assert!(
        table.contains("MOUNTED AT") && table.contains(&format!("{MOUNT}, {LINK}")),
        "{table}"
    );

    daemon.run(&["filesystem", "rmdir", "--path", LINK]).ok();
    daemon
        .run(&[
            "volume",
            "unmount",
            "--volume",
            &volume,
            "--target-path",
            MOUNT,
        ])
        .ok();
    let share = [
        "smb",
        "remove-global-mapping",
        "--remote-path",
        r"\\fileserver\share",
    ];
    daemon.run(&share).ok();
    assert_eq!(daemon.rows(&["get", "mounts"]), json!([]));
    assert_eq!(daemon.rows(&["get", "smb"]), json!([]));
    for (what, text) in [
        ("mounts", "no mounts seen since csi-proxy started"),
        ("smb", "no SMB mappings seen since csi-proxy started"),
    ] {
        let run = daemon.run_with_status(&["get", what]);
        assert!(run.stderr.contains(text), "{run:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_status_page_mounts_and_mappings_are_an_error_that_names_the_flag() {
    let sockets = Sockets::new();
    for what in ["smb", "mounts"] {
        let run = run(&sockets, &["get", what, "--address", "127.0.0.1:1"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
        assert!(
            run.stderr
                .contains("start csi-proxy with -metrics-bind-address"),
            "{run:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_hangs_is_described_in_two_seconds_with_the_identity_that_was_last_seen() {
    let (daemon, volume) = observed();
    let serial = daemon.rows(&["get", "disks", "2"])[0]["serial_number"].clone();
    let serial = serial.as_str().expect("a serial number");
    daemon.hangs.store(true, Ordering::Relaxed);
    for (what, name) in [("disk", "2"), ("volume", &volume), ("mount", MOUNT)] {
        let started = Instant::now();
        let run = daemon.run_with_status(&["describe", what, name]);
        let took = started.elapsed();
        assert!(took < Duration::from_millis(2600), "{what}: {took:?}");
        assert_eq!(run.code, Some(5), "{run:?}");
        let shown = |text: &str| run.stdout.contains(text);
        assert!(
            shown(&format!("{serial} (")) && shown(" ago)"),
            "{what}: {run:?}"
        );
        assert!(shown(&volume) && shown(MOUNT), "{what}: {run:?}");
    }
}
