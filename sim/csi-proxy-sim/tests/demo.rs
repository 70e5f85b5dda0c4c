//! The demonstration as a process, and as something that can fail.
#![cfg(unix)]

use std::cell::RefCell;
use std::io;
use std::process::Command;

use csi_proxy_sim::demo::{Daemon, PLAYS, Screen};
use os_sim::Sim;

#[test]
fn the_demonstration_succeeds_and_is_plain_when_piped() {
    let output = Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim")).arg("demo").output().expect("a process");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    assert!(!text.contains('\u{1b}'), "there are escape codes");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "too long for a terminal: {line}");
    }
    for play in &PLAYS {
        assert!(text.contains(&format!("\n{}  ", play.name)), "{} is not played", play.name);
    }
    assert!(text.contains("Every state of the node was as it should be"), "{text}");
}

/// Lets something happen on the node the first time that a line with `cue` is shown.
struct Intruder {
    sim: Sim,
    cue: &'static str,
    act: Option<fn(&Sim)>,
}

impl io::Write for Intruder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if String::from_utf8_lossy(bytes).contains(self.cue)
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

/// Plays `name` while somebody interferes, and returns what was found to be wrong.
async fn disturbed(name: &str, cue: &'static str, act: fn(&Sim)) -> Vec<String> {
    let play = PLAYS.iter().find(|play| play.name == name).expect("a play of that name");
    let daemon = Daemon::start().await.expect("a daemon");
    let screen = Screen::new(Intruder { sim: daemon.sim().clone(), cue, act: Some(act) });
    let played = play.play(&daemon, &RefCell::new(screen)).await;
    daemon.stop().await.expect("an end");
    played.tally.differences
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_taken_away_is_noticed() {
    let wrong = disturbed("azuredisk", "FormatVolume", |sim| drop(sim.detach_disk(1))).await;
    assert!(wrong.iter().any(|line| line.contains("MountVolume failed with")), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_another_drivers_disk_is_noticed() {
    let wrong = disturbed("vsphere", "NodeExpandVolume", |sim| assert!(sim.grow_disk(2, 1 << 40))).await;
    assert_eq!(wrong, ["all other disks are as they were"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_leads_elsewhere_is_noticed() {
    let wrong = disturbed("azurefile", "CreateSymlink", |sim| {
        let target = r"C:\var\lib\kubelet\pods\azurefile\volumes\kubernetes.io~csi\pvc\mount";
        sim.external().remove_all(target).expect("the link goes");
        sim.external().symlink(target, r"C:\Windows").expect("another comes");
    })
    .await;
    assert!(wrong.iter().any(|line| line.starts_with(r"C:\…\mount leads to")), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_mount_of_the_volume_is_noticed() {
    let wrong = disturbed("gce-pd", "MountVolume", |sim| {
        let volume = sim.volume_on(4).expect("the driver's volume");
        sim.external().mkdir(r"C:\elsewhere").expect("a directory");
        sim.external().set_mount_point(r"C:\elsewhere", volume.id).expect("a mount point");
    })
    .await;
    assert!(wrong.iter().any(|line| line.ends_with("and nowhere else")), "{wrong:?}");
}
