//! The demonstration as a process, and the unexpected results that it must detect.
#![cfg(unix)]

use std::io;
use std::process::Command;

use csi_proxy_sim::demo::{Daemon, Screen, Sequence, run};
use os_sim::Sim;

#[test]
fn the_demo_succeeds_and_is_plain_text_of_80_columns_when_piped() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim"));
    // The demo prints the folder of its sockets; that of a test runner may be longer than a line.
    let output = demo
        .arg("demo")
        .env("TMPDIR", "/tmp")
        .output()
        .expect("a process");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    assert!(!text.contains('\u{1b}'), "there are escape codes");
    for line in text.lines() {
        assert!(
            line.chars().count() <= 80,
            "too long for a terminal: {line}"
        );
    }
    for sequence in Sequence::all().unwrap() {
        assert!(
            text.contains(&format!("\n{}\n", sequence.driver)),
            "{} is missing: {text}",
            sequence.driver
        );
    }
    let last = text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("✓ 296 calls, 0 unexpected results, "),
        "{last}"
    );
}

/// Writes nothing, and changes the node when a line with `trigger` is written for the first time.
struct NodeChanger {
    sim: Sim,
    trigger: &'static str,
    act: Option<fn(&Sim)>,
}

impl io::Write for NodeChanger {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if String::from_utf8_lossy(bytes).contains(self.trigger)
            && let Some(act) = self.act.take()
        {
            act(&self.sim);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs the sequence of a driver, changes the node after a line with `trigger`, and checks the
/// first unexpected result and the number of unexpected results.
async fn detects(driver: &str, trigger: &'static str, act: fn(&Sim), first: &str, count: usize) {
    let sequences = Sequence::all().expect("valid sequences");
    let sequence = sequences
        .iter()
        .find(|sequence| sequence.driver == driver)
        .expect("a sequence of the driver");
    let daemon = Daemon::start().expect("a daemon");
    let mut screen = Screen::new(NodeChanger {
        sim: daemon.sim().clone(),
        trigger,
        act: Some(act),
    });
    let unexpected = run(sequence, &daemon, &mut screen).await.unexpected;
    assert!(
        unexpected.len() == count && unexpected[0].contains(first),
        "{driver}: {unexpected:?}"
    );
    daemon.stop().await.expect("an end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_node_behind_the_drivers_back_is_detected() {
    detects(
        "azuredisk",
        "FormatVolume",
        |sim| assert!(sim.unplug_disk(1).is_some()),
        "MountVolume failed with",
        2,
    )
    .await;
    let grow = |sim: &Sim| assert!(sim.grow_disk(2, 1 << 40));
    detects(
        "vsphere",
        "NodeExpandVolume",
        grow,
        "all other disks are unchanged",
        1,
    )
    .await;
    detects(
        "azurefile",
        "CreateSymlink",
        replace_link,
        r"C:\…\mount is a link to",
        2,
    )
    .await;
    detects(
        "gce-pd",
        "MountVolume",
        mount_elsewhere,
        "and nowhere else",
        4,
    )
    .await;
}

fn replace_link(sim: &Sim) {
    let target = r"C:\var\lib\kubelet\pods\azurefile\volumes\kubernetes.io~csi\pvc\mount";
    sim.external()
        .remove_all(target)
        .expect("the link is removed");
    sim.external()
        .symlink(target, r"C:\Windows")
        .expect("another link is created");
}

fn mount_elsewhere(sim: &Sim) {
    let volume = sim.volume_on(4).expect("the driver's volume");
    sim.external().mkdir(r"C:\elsewhere").expect("a directory");
    sim.external()
        .set_mount_point(r"C:\elsewhere", volume.id)
        .expect("a mount point");
}

/// Runs one step and returns the unexpected results.
async fn step(step: &str) -> Vec<String> {
    let text = format!(
        r#"{{"driver": "test", "about": "", "variables": {{}}, "phases": [{{"name": "test", "steps": [{step}]}}]}}"#
    );
    let daemon = Daemon::start().expect("a daemon");
    let sequence: Sequence = text.parse().expect("a sequence");
    let report = run(&sequence, &daemon, &mut Screen::new(io::sink())).await;
    daemon.stop().await.expect("an end");
    report.unexpected
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_a_sequence_does_not_expect_is_detected() {
    for (given, unexpected) in [
        (
            r#"{"call": "disk/v1/Rescan", "keep": {"disk": "diskNumber"}}"#,
            "Rescan: the response has no diskNumber",
        ),
        (
            r#"{"call": "disk/v1/Rescan", "fails": "no"}"#,
            "Rescan must fail with 'no', but returned {}",
        ),
        (
            r#"{"check": "offline", "disk": "1"}"#,
            "the disk is offline",
        ),
        (
            r#"{"as": "pod", "do": "MkdirAll", "path": "C:\\x", "fails": "(19)"}"#,
            r"(pod) os.MkdirAll of C:\x must fail with '(19)'",
        ),
    ] {
        assert_eq!(step(given).await, [unexpected]);
    }
    for (expected, shown) in [
        (r#""fails": "xyz""#, "xyz"),
        (r#""fails": "xyz", "code": "NotFound""#, "xyz"),
        (r#""fails": "does not exist", "code": "Aborted""#, "Aborted"),
    ] {
        let unexpected = step(&format!(
            r#"{{"call": "disk/v1/GetDiskStats", "request": {{"diskNumber": 4000}}, {expected}}}"#
        ))
        .await;
        let begin = "GetDiskStats must fail with '";
        assert!(
            unexpected[0].starts_with(begin)
                && unexpected[0].contains(shown)
                && unexpected[0].contains("', but failed with NotFound: "),
            "{unexpected:?}"
        );
    }
}
