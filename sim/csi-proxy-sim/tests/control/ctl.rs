//! The help of `ctl`, and command lines that are not valid.

use std::process::Command;

use super::program::{PROGRAM, ctl, folder};

#[test]
fn a_simulator_that_does_not_run_is_code_3_with_a_hint() {
    let folder = folder();
    let ended = ctl(folder.path(), &["disks"], "");
    ended.fails(
        3,
        &[
            "cannot connect to",
            "sim-control.sock",
            "hint:  is csi-proxy-sim running with",
        ],
    );
    let shown = folder.path().display().to_string();
    assert!(
        ended
            .stderr
            .replace(['\n', ' '], "")
            .contains(&shown.replace(' ', "")),
        "{ended:?}"
    );
}

#[test]
fn a_wrong_command_line_is_code_2() {
    let folder = folder();
    for (arguments, words) in [
        (&[][..], &["Usage:"][..]),
        (&["nosuch"], &["unrecognized subcommand"]),
        (&["add-disk"], &["--size <SIZE>"]),
        (&["stop"], &["--smb-server"]),
        (&["clear-faults", "0"], &["the ids of faults begin with 1"]),
        (
            &["inject", "--primitive", "open"],
            &["--code", "--delay", "--crash"],
        ),
        (
            &["inject", "--code", "x"],
            &["a code is a number such as 5"],
        ),
        (&["inject", "--crash"], &["--count"]),
        (
            &["inject", "--crash", "--count", "x"],
            &["expected a whole number"],
        ),
    ] {
        ctl(folder.path(), arguments, "").fails(2, words);
    }
}

fn help(arguments: &[&str], columns: &str) -> String {
    let mut command = Command::new(PROGRAM);
    let output = command
        .arg("ctl")
        .args(arguments)
        .arg("--help")
        .env("COLUMNS", columns)
        .output()
        .expect("a process");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn the_help_fits_a_terminal_and_the_readme_lists_the_commands() {
    for (name, command) in [
        ("help.txt", &[][..]),
        ("help-inject.txt", &["inject"]),
        ("help-clear-faults.txt", &["clear-faults"]),
    ] {
        let text = help(command, "80");
        let is_short = |line: &str| line.starts_with("Usage:") || line.chars().count() <= 80;
        assert!(text.lines().all(is_short), "{text}");
        texts::golden!(name, text);
    }
    let text = help(&[], "200");
    let (_, commands) = text.split_once("Commands:\n").expect("a list of commands");
    for row in commands.lines().take_while(|line| !line.is_empty()) {
        let (command, about) = row.trim().split_once("  ").expect("a command and its help");
        let row = format!("| `ctl {command}` | {} |", about.trim());
        assert!(
            command == "help" || include_str!("../../README.md").contains(&row),
            "README.md lacks: {row}"
        );
    }
}
