//! `--watch`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use super::daemon::{Daemon, Sockets};
use super::node::node;
use super::program::{command, on_terminal, run};

/// A program that watches, killed at the end of the test.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("an end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watching_shows_changes_and_survives_a_restart_of_the_daemon() {
    let (sim, sockets) = (node(), Sockets::new());
    let daemon = Daemon::on(&sim, &sockets);
    let mut process = command(&sockets)
        .args(["get", "disks", "1", "--watch", "--interval", "10ms"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe"))
        .lines()
        .map(|line| line.expect("text"));
    let _watching = Watching(process);
    assert!(lines.next().expect("a line").ends_with(" UTC"));
    assert!(lines.next().expect("a line").starts_with("DISK  STATE"));
    assert!(lines.by_ref().any(|line| line.starts_with("   1  Online")));
    run(
        &sockets,
        &["disk", "set-state", "--disk", "1", "--online", "false"],
    )
    .ok();
    assert!(lines.by_ref().any(|line| line.starts_with("   1  Offline")));
    daemon.stop().await;
    assert!(lines.by_ref().any(|line| line.starts_with("error: ")));
    let _daemon = Daemon::on(&sim, &sockets);
    assert!(lines.by_ref().any(|line| line.starts_with("   1  Offline")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn q_ends_a_refresh_on_a_terminal() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let shown = on_terminal(
        &sockets,
        &["get", "disks", "--watch", "--interval", "1h"],
        ", q ends",
        "q",
    );
    assert!(
        shown.contains("get disks, every 3600 s; ") && shown.contains("Online"),
        "{shown}"
    );
}
