//! The log while another program holds its files without sharing them, as a virus scanner holds a
//! file that has changed.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use api::filesystem::v2alpha1::PathExistsRequest;
use api::filesystem::v2alpha1::filesystem_client::FilesystemClient;
use tonic::transport::Channel;

use crate::daemon::{Daemon, Scratch, connect, turn};

/// Opens a file so that no other program can open, rename or delete it.
fn hold(file: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).share_mode(0).open(file)
}

/// Starts a daemon that logs each call to `csi-proxy.log`, of which all files together have 1 MB.
fn start(scratch: &Scratch) -> Daemon {
    Daemon::start(&[
        "-logtostderr=false",
        "-v=2",
        "-log_file_max_size=1",
        &format!("-log_file={}", scratch.join("csi-proxy.log")),
        &format!("-working-dir={}", scratch.path.display()),
    ])
}

async fn client() -> FilesystemClient<Channel> {
    FilesystemClient::new(connect("csi-proxy-filesystem-v2alpha1").await)
}

/// Makes a call whose lines in the log have the number.
async fn call(client: &mut FilesystemClient<Channel>, scratch: &Scratch, number: usize) {
    let path = scratch.join(&format!("call-{number:05}"));
    let request = PathExistsRequest { path };
    client.path_exists(request).await.expect("an answer");
}

#[tokio::test]
async fn the_daemon_starts_although_its_log_is_held_for_a_second() {
    let _turn = turn().await;
    let scratch = Scratch::new("held-log");
    let log = scratch.join("csi-proxy.log");
    fs::write(&log, "before\n").expect("a file");
    let held = hold(Path::new(&log)).expect("the file");
    let scanner = thread::spawn(move || {
        thread::sleep(Duration::from_secs(1));
        drop(held);
    });
    let daemon = start(&scratch);
    scanner.join().expect("no panic");
    call(&mut client().await, &scratch, 1).await;
    drop(daemon);
    let text = fs::read_to_string(&log).expect("the log");
    assert!(
        text.starts_with("before\n") && text.contains("call-00001"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn held_files_only_delay_the_rotation_of_the_log() {
    // Their lines fill two files and begin a third one.
    const CALLS: usize = 1200;
    let _turn = turn().await;
    let scratch = Scratch::new("held-logs");
    let daemon = start(&scratch);
    let mut files = client().await;
    let is_over = AtomicBool::new(false);
    let holds = thread::scope(|scope| {
        let scanner = scope.spawn(|| {
            let mut holds = 0;
            while !is_over.load(Ordering::Relaxed) {
                for entry in fs::read_dir(&scratch.path).expect("the folder") {
                    if let Ok(_held) = hold(&entry.expect("an entry").path()) {
                        holds += 1;
                        thread::sleep(Duration::from_millis(50));
                    }
                }
                thread::sleep(Duration::from_millis(1));
            }
            holds
        });
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                for number in 0..CALLS {
                    call(&mut files, &scratch, number).await;
                }
            });
        });
        is_over.store(true, Ordering::Relaxed);
        scanner.join().expect("no panic")
    });
    drop(daemon);
    let texts = ["log.3", "log.2", "log.1", "log"].map(|name| {
        fs::read_to_string(scratch.path.join(format!("csi-proxy.{name}"))).unwrap_or_default()
    });
    assert!(
        holds > 0 && !texts[2].is_empty(),
        "{holds} files were held, and the log was not rotated"
    );
    let all = texts.concat();
    assert!(all.len() <= 1 << 20, "{} bytes", all.len());
    let numbers = all
        .split("call-")
        .skip(1)
        .filter_map(|rest| rest.get(..5)?.parse().ok());
    let numbers: BTreeSet<usize> = numbers.collect();
    assert_eq!(numbers.len(), CALLS, "no line is lost");
}
