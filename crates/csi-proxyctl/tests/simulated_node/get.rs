//! `get` and `versions`: what the tables and the other forms show.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use faults::{Call, Fault, FaultAction, Probe, Probed, When};
use os::OsError;
use os_sim::Sim;
use serde_json::{Value, json};
use storage_ops::{Config, Node};
use transport::listener::bind;

use super::daemon::{Daemon, Sockets};
use super::node::{IQN, PORTAL, node};
use super::program::{numbered_volumes, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_show_what_the_node_has() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let volume = run(&sockets, &["get", "volumes", "-o", "json", "--disk", "2"]).ok();
    let volume: Value = serde_json::from_str(&volume).unwrap();
    let volume = volume[0]["volume"].as_str().expect("a volume").to_owned();
    for command in [
        &["volume", "format", "--volume", &volume][..],
        &[
            "filesystem",
            "mkdir",
            "--path",
            r"C:\var\lib\kubelet\plugins\mine\mount",
        ],
        &[
            "volume",
            "mount",
            "--volume",
            &volume,
            "--target-path",
            r"C:\var\lib\kubelet\plugins\mine\mount",
        ],
        &["disk", "set-state", "--disk", "1", "--online", "false"],
        &["iscsi", "add-target-portal", "--target-address", PORTAL],
    ] {
        assert_eq!(run(&sockets, command).ok(), "", "{command:?}");
    }
    for (name, arguments) in [
        ("get-disks.txt", &["get", "disks"][..]),
        ("get-disks-wide.txt", &["get", "disks", "-o", "wide"]),
        ("get-disks.json", &["get", "disks", "2", "-o", "json"]),
        ("get-disks.yaml", &["get", "disks", "2", "-o", "yaml"]),
        ("get-volumes.txt", &["get", "volumes"]),
        ("get-volumes-wide.txt", &["get", "volumes", "-o", "wide"]),
        (
            "get-mounts.txt",
            &[
                "get",
                "mounts",
                r"C:\var\lib\kubelet\plugins\mine\mount",
                r"C:\Windows",
                r"C:\missing",
            ],
        ),
        ("get-services.txt", &["get", "services"]),
        ("get-iscsi.txt", &["get", "iscsi"]),
        ("get-iscsi-targets.txt", &["get", "iscsi", "--targets"]),
    ] {
        let text = numbered_volumes(&run(&sockets, arguments).ok());
        if !name.contains("wide") && !name.contains("mounts") {
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
        }
        texts::golden!(name, text);
    }
    sim.unplug_disk(2).expect("a disk");
    let share = sim.external().symlink(r"C:\share", r"\\nowhere\share");
    share.expect("a link");
    let mounts = [
        "get",
        "mounts",
        r"C:\var\lib\kubelet\plugins\mine\mount",
        r"C:\missing",
        r"C:\share",
    ];
    texts::golden!("get-mounts-stale.txt", run(&sockets, &mounts).ok());
    let rows: Value =
        serde_json::from_str(&run(&sockets, &[&mounts[..], &["-o", "json"]].concat()).ok())
            .unwrap();
    let state = |row: usize| &rows[row]["state"];
    assert_eq!([0, 1, 2].map(state), ["stale", "missing", "share"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_get_names_or_rows_without_headings_and_people_type_short_names() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    assert_eq!(
        run(&sockets, &["get", "disk", "-o", "name"]).ok(),
        "0\n1\n2\n"
    );
    assert_eq!(
        run(&sockets, &["get", "svc", "-o", "name"]).ok(),
        "csiproxy\nLanmanWorkstation\nMSiSCSI\n"
    );
    let volumes = run(&sockets, &["get", "vol", "-o", "name"]).ok();
    assert!(
        volumes.lines().count() == 2
            && volumes.lines().all(|name| name.starts_with(r"\\?\Volume{")),
        "{volumes}"
    );
    let rows = run(&sockets, &["get", "disks", "--no-headers"]).ok();
    assert!(
        rows.lines().count() == 3 && rows.starts_with("0  Online"),
        "{rows}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_is_described_with_its_volumes_however_it_is_given() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let volume = run(&sockets, &["get", "volumes", "--disk", "2", "-o", "name"]).ok();
    let guid = volume
        .trim()
        .trim_start_matches(r"\\?\Volume")
        .trim_end_matches('\\');
    let by_disk = run(&sockets, &["describe", "disk", "2"]).ok();
    assert!(
        by_disk.starts_with("DISK           2\nSTATE") && by_disk.contains(volume.trim()),
        "{by_disk}"
    );
    assert_eq!(run(&sockets, &["describe", "vol", guid]).ok(), by_disk);
    assert_eq!(
        run(&sockets, &["describe", "volumes", &guid.to_uppercase()]).ok(),
        by_disk
    );
    let mount = r"C:\var\lib\kubelet\plugins\mine\mount";
    for command in [
        &["volume", "format", "--volume", guid][..],
        &["filesystem", "mkdir", "--path", mount],
        &["volume", "mount", "--volume", guid, "--target-path", mount],
    ] {
        run(&sockets, command).ok();
    }
    assert_eq!(
        run(&sockets, &["describe", "mnt", mount]).ok(),
        run(&sockets, &["describe", "disk", "2"]).ok()
    );
    assert_eq!(
        run(&sockets, &["describe", "mount", r"C:\missing"]).code,
        Some(4)
    );
    let empty: Value =
        serde_json::from_str(&run(&sockets, &["describe", "disk", "1", "-o", "json"]).ok())
            .unwrap();
    assert_eq!(
        (&empty["disks"][0]["disk"], &empty["volumes"]),
        (&json!(1), &json!([]))
    );
    assert_eq!(run(&sockets, &["describe", "disk", "9"]).code, Some(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overview_is_no_failure_in_the_status() {
    let (sim, sockets) = (node(), Sockets::new());
    let daemon = Daemon::on(&sim, &sockets);
    for what in [
        &["disks"][..],
        &["volumes"],
        &["services"],
        &["iscsi"],
        &["mounts", r"C:\var\lib\kubelet\plugins"],
    ] {
        run(&sockets, &[&["get"], what].concat());
    }
    let status = daemon.server.metrics().status();
    // Not the volumes of a disk without partitions, two services, and a directory that is no mount
    // point either.
    assert_eq!(
        status.rpcs.iter().map(|rpc| rpc.failed).sum::<u64>(),
        0,
        "{:?}",
        status.rpcs
    );
    assert!(status.failures.is_empty(), "{:?}", status.failures);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn targets_show_the_disks_of_their_sessions() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    assert_eq!(
        run(&sockets, &["get", "iscsi"]).stderr,
        "no target portals: the initiator knows none\n"
    );
    run(
        &sockets,
        &["iscsi", "add-target-portal", "--target-address", PORTAL],
    )
    .ok();
    let rows = || -> Value {
        serde_json::from_str(&run(&sockets, &["get", "iscsi", "--targets", "-o", "json"]).ok())
            .unwrap()
    };
    assert_eq!(
        rows(),
        json!([{ "address": PORTAL, "port": 3260, "target": IQN, "disks": [] }])
    );
    let portal = [
        "--target-address",
        PORTAL,
        "--iqn",
        IQN,
        "--auth-type",
        "one-way-chap",
        "--chap-username",
        "initiator",
    ];
    let connect = [
        &["iscsi", "connect-target", "--chap-secret-file", "-"],
        &portal[..],
    ]
    .concat();
    super::program::run_with_input(&sockets, &connect, "initiator-12\n").ok();
    assert_eq!(rows()[0]["disks"], json!([3]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_for_and_missing_is_an_error_and_the_rest_is_shown() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    for (arguments, shown) in [
        (&["get", "disks", "2", "9"][..], "   2  Online"),
        (
            &["get", "volumes", "--disk", "2", "--disk", "9"],
            "   2  \\\\?\\Volume{",
        ),
        (&["get", "services", "vds", "nosuch"], "vds      Stopped"),
    ] {
        let run = run(&sockets, arguments);
        assert_eq!(run.code, Some(4), "{run:?}");
        assert_eq!(run.stdout.lines().count(), 2, "{run:?}");
        assert!(
            run.stdout.contains(shown) && run.stderr.contains("gRPC status NotFound (5)"),
            "{run:?}"
        );
    }
}

/// Starts a daemon whose calls of Windows `probe` disturbs.
fn daemon_with(sim: &Sim, sockets: &Sockets, probe: impl Probe + 'static) -> Daemon {
    let node = Node::new(
        Arc::new(Probed::new(sim.process(), probe)),
        Config::default(),
    );
    Daemon::listening(node, sockets, bind)
}

/// Makes the state of disk 2 take longer than the calls of the test wait. Its identifiers, which
/// are read with those of the other disks, do not.
struct SlowState(Sim);

impl Probe for SlowState {
    fn before(&self, call: &Call) -> FaultAction {
        if call.primitive == "control DISK_GET_DISK_ATTRIBUTES"
            && self.0.is_on_disk(&call.object, 2)
        {
            // A delay of FaultAction is one of the simulated clock, which the client does not have.
            thread::sleep(Duration::from_secs(3));
        }
        FaultAction::Go
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_volumes_of_a_disk_that_cannot_be_read_are_an_error_after_those_of_the_others() {
    let (sim, sockets) = (node(), Sockets::new());
    let on_disk = {
        let sim = sim.clone();
        move |call: &Call| sim.is_on_disk(&call.object, 2)
    };
    let unreadable = Fault::each(on_disk, When::Before, FaultAction::Fail(OsError::IO_DEVICE));
    let _daemon = daemon_with(&sim, &sockets, unreadable);
    let run = run(&sockets, &["get", "volumes"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stdout.lines().count() == 2 && run.stdout.contains("\n   0  "),
        "{run:?}"
    );
    assert!(
        run.stderr
            .starts_with("error: ListVolumesOnDisk failed: cannot list the volumes on disk 2: "),
        "{run:?}"
    );
    assert_eq!(run.stderr.matches("error: ").count(), 1, "{run:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_does_not_answer_is_named_and_not_asked_again() {
    let (sim, sockets) = (node(), Sockets::new());
    let daemon = daemon_with(&sim, &sockets, SlowState(sim.clone()));
    for (what, service, rpc) in [
        ("disks", "v1.Disk", "GetDiskStats"),
        ("volumes", "v1.Volume", "ListVolumesOnDisk"),
    ] {
        let run = run(&sockets, &["get", what, "--timeout", "1s"]);
        assert_eq!(run.code, Some(5), "{run:?}");
        assert!(run.stdout.contains("\n   0  "), "{run:?}");
        assert!(
            run.stderr
                .starts_with("error: GetDiskState for disk 2 failed: no answer within 1 s"),
            "{run:?}"
        );
        assert_eq!(run.stderr.matches("error: ").count(), 1, "{run:?}");
        // For each of the two other disks.
        assert_eq!(daemon.calls(service, rpc), 2, "{rpc}");
    }
}

/// Lets the state of a disk be read only while that of another one is read too.
struct Together(Sim, Mutex<BTreeSet<u32>>, Condvar);

impl Probe for Together {
    fn before(&self, call: &Call) -> FaultAction {
        let disk = (1..=2).find(|disk| self.0.is_on_disk(&call.object, *disk));
        if let Some(disk) = disk.filter(|_| call.primitive == "control DISK_GET_DISK_ATTRIBUTES") {
            let mut asked = self.1.lock().unwrap();
            asked.insert(disk);
            self.2.notify_all();
            drop(
                self.2
                    .wait_timeout_while(asked, Duration::from_secs(20), |asked| asked.len() < 2),
            );
        }
        FaultAction::Go
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disks_are_asked_side_by_side() {
    for what in ["disks", "volumes"] {
        let (sim, sockets) = (node(), Sockets::new());
        let _daemon = daemon_with(
            &sim,
            &sockets,
            Together(sim.clone(), Mutex::default(), Condvar::new()),
        );
        run(&sockets, &["get", what, "--timeout", "10s"]).ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_are_not_served_are_shown_as_such() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    sockets.hide("csi-proxy-disk-v1");
    let text = run(&sockets, &["versions", "-o", "json"]).ok();
    let groups: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(groups[0]["not_served"], json!(["v1"]));
    assert_eq!(
        groups[0]["served"],
        json!(["v1beta3", "v1beta2", "v1beta1", "v1alpha1"])
    );
    texts::golden!("versions.txt", run(&sockets, &["versions"]).ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_that_never_answers_is_told_from_one_that_serves() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    sockets.hide("csi-proxy-disk-v1");
    // Nobody accepts: the system connects, and nothing answers.
    let _silent = UnixListener::bind(sockets.folder().join("csi-proxy-disk-v1.sock")).unwrap();
    sockets.hide("csi-proxy-disk-v1beta3");
    let slow = UnixListener::bind(sockets.folder().join("csi-proxy-disk-v1beta3.sock")).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = slow.accept().unwrap();
        thread::sleep(Duration::from_secs(1));
        stream.write_all(&[0]).unwrap();
    });
    let hung = run(&sockets, &["versions"]);
    assert_eq!(hung.code, Some(5), "{hung:?}");
    assert!(
        hung.stdout.contains("NO ANSWER")
            && hung.stderr.contains("csi-proxy does not answer on some"),
        "{hung:?}"
    );
    let disk = hung
        .stdout
        .lines()
        .find(|line| line.starts_with("disk "))
        .expect("a row");
    let words: Vec<&str> = disk.split_whitespace().collect();
    assert_eq!(
        words,
        [
            "disk", "v1beta3", "v1beta2", "v1beta1", "v1alpha1", "-", "v1"
        ]
    );
}
