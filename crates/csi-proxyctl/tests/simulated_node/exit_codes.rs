//! Exit codes, and errors that say what to do.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;

use api::{Group, GroupVersion};

use super::daemon::{Daemon, Sockets};
use super::node::node;
use super::program::{Run, command, run};

/// Asserts what a run that failed has said. Nothing of Rust's own forms may be in it.
fn assert_failed(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:?}");
    assert_eq!(run.stdout, "", "{run:?}");
    for word in words {
        assert!(run.stderr.contains(word), "{word}: {run:?}");
    }
    for word in ["panicked", "Err(", "Some(", "{ kind", "Error {"] {
        assert!(!run.stderr.contains(word), "{run:?}");
    }
    texts::seen!(run.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_call_is_code_1_with_its_status_and_number() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let refused = run(
        &sockets,
        &["filesystem", "mkdir", "--path", r"C:\Windows\x"],
    );
    assert_failed(
        &refused,
        1,
        &[
            "error: Mkdir failed: ",
            "gRPC status ",
            " in the log of csi-proxy\n",
        ],
    );
    let invalid = run(&sockets, &["volume", "format", "--volume", "bogus"]);
    assert_failed(
        &invalid,
        2,
        &["error: FormatVolume failed: \"bogus\" is not a volume id"],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn usage_errors_are_code_2_and_call_nothing() {
    let sockets = Sockets::new();
    for (arguments, word) in [
        (&[][..], "Usage:"),
        (&["nosuch"], "unrecognized subcommand"),
        (&["disk", "partition"], "--disk <NUMBER>"),
        (
            &["disk", "get-stats", "2"],
            "a value follows its flag, as in `--NAME VALUE`",
        ),
        (
            &["disk", "set-state", "--disk", "1"],
            "<--online [<true|false>]|--offline>",
        ),
        (
            &["disk", "partition", "--disk", "one"],
            "invalid value 'one' for '--disk <NUMBER>': expected a whole number",
        ),
        (
            &["disk", "partition", "--disk", "4294967296"],
            "the number is too large",
        ),
        (
            &["top", "--address", "node"],
            "'--address <HOST:PORT>': expected HOST:PORT",
        ),
        (
            &["top", "--address", "http://"],
            "expected HOST:PORT or :PORT",
        ),
        (&["top", "--address", "node:http"], "expected HOST:PORT"),
        (
            &["disk", "partition", "--disk", "1", "--api-version", "v9"],
            "the versions that have it are v1, v1beta3",
        ),
        (
            &[
                "disk",
                "get-state",
                "--disk",
                "1",
                "--api-version",
                "v1alpha1",
            ],
            "are v1, v1beta3, v1beta2",
        ),
        (
            &["volume", "resize", "--volume", "1", "--size", "5GB"],
            "Ki, Mi, Gi or Ti",
        ),
        (&["call", "disk/v1"], "csi-proxy has no RPC disk/v1"),
        (
            &["call", "disk/v9/Rescan"],
            "csi-proxy has no group-version disk/v9",
        ),
        (&["call", "disk"], "GROUP/VERSION/RPC"),
        (&["call", "disk/v1/Nosuch"], "call --list"),
        (
            &["call", "disk/v1/Rescan", "{"],
            "the request is not JSON: ",
        ),
        (
            &[
                "call",
                "disk/v1/GetDiskStats",
                r#"{"disk_number":1,"disk_number":2}"#,
            ],
            "disk_number is given twice",
        ),
        (
            &["call", "disk/v1/Rescan", "@/nosuch"],
            "cannot read the request from /nosuch: ",
        ),
        (
            &["call", "disk/v1/GetDiskState", r#"{ "disk": 1 }"#],
            "does not fit GetDiskStateRequest: unrecognized field name 'disk'",
        ),
        (
            &["call", "disk/v1/GetDiskStats", r#"{ "diskNumber": "a" }"#],
            "diskNumber: invalid digit found in string; its fields are disk_number\n",
        ),
        (
            &["call", "disk/v1/Rescan", r#"{ "disk": 1 }"#],
            "; it has no fields\n",
        ),
        (
            &[
                "call",
                "iscsi/v1alpha2/DiscoverTargetPortal",
                r#"{ "portal": 1 }"#,
            ],
            "; its fields are target_portal (target_address, target_port)\n",
        ),
        (&["get", "disks", "--timeout", "0"], "more than zero"),
        (&["get", "disks", "--watch", "2"], "--interval 2`; to"),
        (&["get", "disks", "-w", "2s"], "invalid value '2s'"),
        (
            &["get", "services", "-w", "10s"],
            "write `--watch --interval 10s`",
        ),
        (&["get", "disks", "--interval", "2s"], "--watch"),
        (
            &["get", "disks", "--watch", "--interval", "2x"],
            "not one of ms, s, m and h",
        ),
    ] {
        assert_failed(&run(&sockets, arguments), 2, &[word]);
    }
}

#[test]
fn an_argument_that_is_not_unicode_is_a_usage_error() {
    let argument = std::ffi::OsStr::from_bytes(b"\xff");
    let output = command(&Sockets::new())
        .arg(argument)
        .output()
        .expect("a process");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_csi_proxy_is_code_3_and_the_hint_says_where_it_was_looked_for() {
    let sockets = Sockets::new();
    let folder = sockets.folder();
    let hint = format!(
        "is csi-proxy-sim running with -socket-folder {}?",
        folder.display()
    );
    for arguments in [
        &["get", "disks"][..],
        &["versions"],
        &["disk", "rescan"],
        &["call", "smb/v1beta1/RemoveSmbGlobalMapping"],
    ] {
        assert_failed(
            &run(&sockets, arguments),
            3,
            &[
                "error: nothing serves ",
                "csi-proxy does not run on the node",
                &hint,
            ],
        );
    }
}

#[test]
fn a_system_without_pipes_and_without_a_folder_is_code_3() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_csi-proxyctl"));
    // An empty variable counts as unset.
    command
        .args(["get", "disks"])
        .env("XDG_RUNTIME_DIR", "")
        .env("CSI_PROXY_ENDPOINT_DIR", "");
    let output = command.output().expect("a process");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    let expected = "error: the folder of the sockets of csi-proxy is not known, because \
                    CSI_PROXY_ENDPOINT_DIR and XDG_RUNTIME_DIR are not set\n\
                    hint:  --endpoint-dir selects the folder of the sockets, which is the \
                    -socket-folder of csi-proxy-sim\n";
    assert_eq!(stderr, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_environment_variable_selects_the_folder() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_csi-proxyctl"));
    let output = command
        .args(["get", "disks"])
        .env("CSI_PROXY_ENDPOINT_DIR", sockets.folder())
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stdout.starts_with(b"DISK  STATE"),
        "{output:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_object_is_code_4_and_the_hint_shows_objects_of_its_kind() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let missing = run(&sockets, &["disk", "get-stats", "--disk", "9"]);
    assert_failed(
        &missing,
        4,
        &[
            "gRPC status NotFound (5)",
            "hint:  `csi-proxyctl get disks` shows the disks\n",
        ],
    );
    let service = run(
        &sockets,
        &["call", "system/v1alpha1/GetService", r#"{"name":"nosuch"}"#],
    );
    assert_failed(&service, 4, &["nosuch"]);
    assert!(!service.stderr.contains("hint:"), "{service:?}");
}

#[test]
fn a_daemon_that_does_not_answer_is_code_5() {
    let sockets = Sockets::new();
    fs::create_dir(sockets.folder()).unwrap();
    // Nobody accepts: the system connects, and the request is never read.
    let _silent = UnixListener::bind(sockets.folder().join("csi-proxy-disk-v1.sock")).unwrap();
    let run = run(&sockets, &["disk", "rescan", "--timeout", "300ms"]);
    assert_failed(
        &run,
        5,
        &[
            "no answer within 0.3 s; the node finishes any change that it has begun",
            "--timeout",
        ],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_left_out_is_code_6_and_not_a_daemon_that_does_not_run() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    for group in [Group::Filesystem, Group::Volume] {
        GroupVersion::of(group).for_each(|version| sockets.hide(version.pipe()));
    }
    for (arguments, error) in [
        (
            &["filesystem", "mkdir", "--path", r"C:\x"][..],
            "error: Mkdir failed: csi-proxy serves other groups here, but not filesystem: ",
        ),
        (
            &["get", "volumes"],
            "error: ListVolumesOnDisk failed: csi-proxy serves other groups here, but not volume: ",
        ),
        (&["get", "mounts", r"C:\x"], "but not volume: "),
    ] {
        let run = run(&sockets, arguments);
        assert_failed(&run, 6, &[error, "-api-groups", "`csi-proxyctl versions`"]);
        assert_eq!(run.stderr.matches("error: ").count(), 1, "{run:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_not_served_is_code_6() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    sockets.hide("csi-proxy-volume-v2alpha1");
    let arguments = ["volume", "get-closest-id", "--target-path", r"C:\"];
    assert_failed(
        &run(&sockets, &arguments),
        6,
        &["needs v2alpha1", "`csi-proxyctl versions`"],
    );
}
