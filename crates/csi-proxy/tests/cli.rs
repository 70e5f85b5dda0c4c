//! `csi-proxy` on a system that is not Windows: names the program to run instead.
#![cfg(not(windows))]

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_csi-proxy"))
        .args(arguments)
        .output()
        .expect("a process")
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("text")
}

#[test]
fn serving_and_the_service_name_the_program_to_run_instead() {
    let commands: [&[&str]; 5] = [
        &[],
        &["-v=5"],
        &["-windows-service"],
        &["service", "install", "-v=5"],
        &["service", "status"],
    ];
    for arguments in commands {
        let refused = run(arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        let error = text(&refused.stderr);
        assert!(
            error.contains("runs on Windows only; on this system use csi-proxy-sim"),
            "{error}"
        );
        texts::seen!(error);
        assert!(refused.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_examination_of_another_system_is_exit_code_2() {
    let refused = run(&["doctor", "--compare-provider"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).starts_with("csi-proxy doctor: this program runs on Windows only"),
        "{refused:?}"
    );
}

#[test]
fn help_and_version_are_printed_on_every_system() {
    for (argument, start) in [
        ("help", "Performs storage operations"),
        ("version", "csi-proxy 0."),
    ] {
        let output = run(&[argument]);
        assert!(
            output.status.success() && text(&output.stdout).starts_with(start),
            "{output:?}"
        );
        assert!(
            !text(&output.stdout).contains('\u{1b}'),
            "no colours where the output is not a terminal"
        );
    }
}

#[test]
fn the_help_is_reviewed() {
    let all = [&["help"][..], &["doctor", "-help"]].map(|arguments| {
        let help = run(arguments);
        assert!(help.status.success(), "{help:?}");
        text(&help.stdout).to_owned()
    });
    texts::golden!("help.txt", all.join("\n"));
}

#[test]
fn the_version_names_the_commit() {
    let git = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let Some(commit) = git.ok().filter(|output| output.status.success()) else {
        return;
    };
    let commit = option_env!("CSI_PROXY_COMMIT")
        .filter(|commit| !commit.is_empty())
        .unwrap_or(text(&commit.stdout));
    let version = run(&["version"]);
    assert!(
        text(&version.stdout).contains(&format!("+{}", &commit[..12])),
        "{version:?}"
    );
}

#[test]
fn an_invalid_command_line_is_one_sentence_and_exit_code_2() {
    for (argument, sentence) in [
        (
            "-nonsense",
            "csi-proxy: unknown flag -nonsense (see 'csi-proxy help')\n",
        ),
        (
            "demo",
            "csi-proxy: unknown command 'demo'; use 'csi-proxy-sim demo' (see 'csi-proxy help')\n",
        ),
    ] {
        let refused = run(&[argument]);
        assert_eq!(refused.status.code(), Some(2));
        assert_eq!(text(&refused.stderr), sentence);
        assert!(refused.stdout.is_empty());
    }
}
