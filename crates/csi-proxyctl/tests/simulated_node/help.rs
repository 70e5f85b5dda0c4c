//! Help texts: at the width of a usual terminal, of a narrow one and of a wide one.

use std::process::Command;

fn help(arguments: &[&str], columns: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_csi-proxyctl"));
    let output = command
        .args(arguments)
        .env("COLUMNS", columns)
        .output()
        .expect("a process");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The tables of a help text are aligned, so no line is checked to be short; what is wrapped must
/// be.
fn assert_width(text: &str, width: usize) {
    for line in text.lines().filter(|line| !line.starts_with("Usage:")) {
        assert!(line.chars().count() <= width, "{width}: {line}");
    }
}

#[test]
fn help_fits_a_terminal_of_80_columns() {
    for (name, arguments) in [
        ("help.txt", &["--help"][..]),
        ("help-get.txt", &["get", "--help"]),
        ("help-get-iscsi.txt", &["get", "iscsi", "--help"]),
        ("help-call.txt", &["call", "--help"]),
        ("help-volume.txt", &["volume", "--help"]),
        ("help-volume-format.txt", &["volume", "format", "--help"]),
        (
            "help-disk-set-state-v1beta2.txt",
            &["disk", "set-state", "--api-version", "v1beta2", "--help"],
        ),
        (
            "help-filesystem-rmdir.txt",
            &["filesystem", "rmdir", "--help"],
        ),
        (
            "help-iscsi-connect-target.txt",
            &["iscsi", "connect-target", "--help"],
        ),
        (
            "help-smb-new-global-mapping.txt",
            &["smb", "new-global-mapping", "--help"],
        ),
    ] {
        let text = help(arguments, "80");
        assert_width(&text, 80);
        texts::golden!(name, text);
    }
}

#[test]
fn the_help_of_other_commands_is_reviewed() {
    const COMMANDS: &str = "describe,describe disk,describe volume,describe mount,get disks,\
                            get volumes,get mounts,get smb,get services,top,completions,\
                            versions";
    let all = COMMANDS.split(',').map(|command| {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        help(&arguments, "80")
    });
    texts::golden!("help-others.txt", all.collect::<Vec<_>>().join("\n"));
}

#[test]
fn help_fits_narrow_and_wide_terminals() {
    for (columns, width) in [("60", 60), ("160", 120)] {
        let text = help(&["disk", "partition", "--help"], columns);
        assert_width(&text, width);
        texts::golden!(&format!("help-disk-partition-{columns}.txt"), &text);
    }
}

#[test]
fn the_readme_lists_the_exit_codes() {
    let readme = include_str!("../../README.md");
    let text = help(&["--help"], "200");
    let (_, codes) = text
        .split_once("Exit codes:\n")
        .expect("a list of exit codes");
    assert_eq!(codes.lines().filter(|line| !line.is_empty()).count(), 7);
    for (code, meaning) in codes
        .lines()
        .filter_map(|line| line.trim().split_once("  "))
    {
        let row = format!("| {code} | {meaning} |");
        assert!(readme.contains(&row), "README.md lacks: {row}");
    }
}
