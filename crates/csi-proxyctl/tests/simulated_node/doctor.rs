//! `doctor` runs the csi-proxy in the folder of csi-proxyctl.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::program::{Run, finished};

#[test]
fn doctor_runs_the_csi_proxy_beside_it_and_returns_its_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("csi-proxyctl");
    fs::copy(env!("CARGO_BIN_EXE_csi-proxyctl"), &program).expect("a copy");
    let run = |arguments: &[&str]| -> Run {
        finished(
            Command::new(&program)
                .arg("doctor")
                .args(arguments)
                .output()
                .expect("a process"),
        )
    };
    let missing = run(&["-x"]);
    assert_eq!(missing.code, Some(2));
    let text = missing
        .stderr
        .replace(folder.path().to_str().expect("UTF-8"), "FOLDER");
    texts::golden!("doctor-without-csi-proxy.txt", text);

    let csi_proxy = folder.path().join("csi-proxy");
    fs::write(&csi_proxy, "#!/bin/sh\necho \"$@\"\nexit 1\n").expect("a script");
    fs::set_permissions(&csi_proxy, fs::Permissions::from_mode(0o700)).expect("a program");
    let found = run(&["-x", "-o=json", "--show-names"]);
    assert_eq!(
        (found.code, found.stdout.as_str()),
        (Some(1), "doctor -x -o=json --show-names\n")
    );
}
