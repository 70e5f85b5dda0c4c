//! The script of the action for GitHub installs a program that is on the machine.
#![cfg(unix)]

use std::fs;
use std::process::Command;

const ACTION: &str = include_str!("../../../.github/actions/csi-proxy-sim/action.yml");

#[test]
fn the_action_installs_a_local_program_for_the_steps_that_follow() {
    let (_, script) = ACTION.split_once("below RUNNER_TEMP\n").expect("a script");
    let folder = tempfile::tempdir().expect("a folder");
    let [path, environment] = ["path", "environment"].map(|name| folder.path().join(name));
    let output = Command::new("bash")
        .args(["-eo", "pipefail", "-c", script])
        .env("PROGRAM", env!("CARGO_BIN_EXE_csi-proxy-sim"))
        .env("RUNNER_TEMP", folder.path())
        .env("GITHUB_PATH", &path)
        .env("GITHUB_ENV", &environment)
        .output()
        .expect("bash");
    assert!(output.status.success(), "{output:?}");
    let added = fs::read_to_string(path).expect("the PATH");
    let set = fs::read_to_string(environment).expect("the environment");
    let program = set.trim().strip_prefix("CSI_PROXY_SIM=").expect("the variable");
    assert_eq!(program, format!("{}/csi-proxy-sim", added.trim()));
    assert!(Command::new(program).arg("version").status().expect("a process").success());
}
