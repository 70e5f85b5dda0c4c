//! The script of the action for GitHub installs a program that is on the machine, or one with the
//! hash of its release.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const ACTION: &str = include_str!("../../../.github/actions/csi-proxy-sim/action.yml");

/// Runs the script with the path of a program and the address of a release, either of which may be
/// empty.
fn install(program: &str, release: &str, folder: &Path) -> Output {
    let (_, script) = ACTION.split_once("below RUNNER_TEMP\n").expect("a script");
    Command::new("bash")
        .args(["-eo", "pipefail", "-c", script])
        .envs([("PROGRAM", program), ("RELEASES", release)])
        .env("RUNNER_TEMP", folder)
        .env("GITHUB_PATH", folder.join("path"))
        .env("GITHUB_ENV", folder.join("environment"))
        .output()
        .expect("bash")
}

#[test]
fn the_action_installs_a_local_program_for_the_steps_that_follow() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = install(env!("CARGO_BIN_EXE_csi-proxy-sim"), "", folder.path());
    assert!(output.status.success(), "{output:?}");
    let added = fs::read_to_string(folder.path().join("path")).expect("the PATH");
    let set = fs::read_to_string(folder.path().join("environment")).expect("the environment");
    let program = set
        .trim()
        .strip_prefix("CSI_PROXY_SIM=")
        .expect("the variable");
    assert_eq!(program, format!("{}/csi-proxy-sim", added.trim()));
    assert!(
        Command::new(program)
            .arg("version")
            .status()
            .expect("a process")
            .success()
    );
}

#[test]
fn the_action_installs_a_released_program_only_if_it_has_the_hash_of_the_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |script| {
        Command::new("bash")
            .current_dir(&folder)
            .args(["-c", script])
            .status()
            .expect("bash")
    };
    let install = || {
        install(
            "",
            &format!("file://{}", folder.path().display()),
            folder.path(),
        )
    };
    run(
        "tee csi-proxy-sim-linux-{amd,arm}64 <<<'#!/bin/sh' >/dev/null; sha256sum csi-* >SHA256SUMS",
    );
    assert!(install().status.success());
    run("tee -a csi-proxy-sim-linux-{amd,arm}64 <<<true >/dev/null");
    assert!(!install().status.success());
}

#[test]
fn the_action_says_that_it_needs_a_path_as_long_as_there_is_no_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = install("", "", folder.path());
    assert!(
        !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("no release"),
        "{output:?}"
    );
}
