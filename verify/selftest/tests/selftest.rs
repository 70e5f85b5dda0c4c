//! The program, on a simulated node or under Wine.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use facts::System;
use selftest::Evidence;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_csi-proxy-selftest"));
    // The disk of an earlier run, which must not be used.
    program.env(
        "CSI_PROXY_FACTS_DISKS",
        "DISK_RAW\tC:\\disk.vhdx\tDiskIdentity",
    );
    program
        .arg("--output")
        .arg(folder)
        .args(arguments)
        .output()
        .expect("the program runs")
}

fn evidence(folder: &Path) -> Evidence {
    let file = fs::read_to_string(folder.join("selftest.json")).expect("selftest.json");
    serde_json::from_str(&file).expect("the evidence")
}

/// Returns whether this is Windows, where the program would make disks.
fn is_windows(test: &str) -> bool {
    let windows = facts::local_node().is_some_and(|node| node.system() == System::Windows);
    if windows {
        println!("skipped: {test}: on Windows, the workflow runs the program");
    }
    windows
}

#[test]
fn nothing_happens_without_the_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--create-disks"));
    let help = run(folder.path(), &["-h"]);
    // The width of the terminal decides where the help breaks its lines.
    let help = String::from_utf8_lossy(&help.stdout)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let (_, minutes) = help.split_once("--minutes <MINUTES>").expect(&help);
    let (minutes, _) = minutes.split_once("--output").expect(&help);
    assert!(minutes.ends_with("[default: 30] "), "{help}");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

#[test]
fn the_acceptance_holds_without_a_fallback() {
    if is_windows("the_acceptance_holds_without_a_fallback") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["--create-disks", "--only=ACCEPTANCE"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let evidence = evidence(folder.path());
    let expected = if evidence.system == "Simulator" { 3 } else { 0 };
    assert_eq!(evidence.holds.len(), expected);
    assert_eq!(
        evidence.not_run.values().map(BTreeSet::len).sum::<usize>(),
        3 - expected
    );
    assert!(evidence.fallbacks.is_empty(), "{:?}", evidence.fallbacks);
    let page = fs::read_to_string(folder.path().join("selftest.md")).expect("selftest.md");
    assert!(
        page.starts_with("# What is proven on ") && page.contains("ACCEPTANCE-DISK"),
        "{page}"
    );
}

#[test]
fn another_program_runs_with_the_disks() {
    if is_windows("another_program_runs_with_the_disks") {
        return;
    }
    let program = env!("CARGO_BIN_EXE_csi-proxy-selftest");
    let run = |flag: Option<&str>| {
        Command::new(program)
            .args(["create-disks-for", program])
            .args(flag)
            .output()
            .expect("the program runs")
            .status
            .code()
    };
    assert_eq!(run(Some("--help")), Some(0));
    assert_eq!(run(None), Some(1), "it fails without a flag");
}

#[test]
fn facts_are_checked_each_in_a_process_of_its_own() {
    if is_windows("facts_are_checked_each_in_a_process_of_its_own") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), &["--create-disks", "--only=FILE-OPEN-0"]);
    let evidence = evidence(folder.path());
    assert!(
        evidence.holds.contains("FILE-OPEN-01") && evidence.fails.is_empty(),
        "{evidence:?}"
    );
    assert_eq!(evidence.system == "Wine", evidence.build != "unknown");
}

#[test]
fn a_check_that_is_not_reached_is_reported() {
    if is_windows("a_check_that_is_not_reached_is_reported") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(
        folder.path(),
        &["--create-disks", "--only=LIST-02", "--minutes=0"],
    );
    assert!(output.status.success());
    let evidence = evidence(folder.path());
    let reasons: Vec<_> = evidence.not_run.iter().collect();
    assert_eq!(
        format!("{reasons:?}"),
        r#"[("time for this check", {"LIST-02"})]"#
    );
}

#[test]
fn the_program_does_not_begin_if_nothing_can_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    if is_windows("the_program_does_not_begin_if_nothing_can_be_written") {
        return;
    }
    let output = run(&folder.path().join("none"), &["--create-disks"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with("Cannot write "), "{errors}");
    assert!(errors.contains("selftest.json: "), "{errors}");
    let none = run(folder.path(), &["--create-disks", "--only=NOTHING"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn the_program_cleans_or_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["--clean", "--create-disks"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

#[test]
fn a_folder_that_exists_is_not_used() {
    let Some(node) = facts::local_node() else {
        println!("skipped: a_folder_that_exists_is_not_used: it needs Windows or Wine");
        return;
    };
    // Of a process that had the same id.
    let existing = Path::new(facts::FOLDER).join(format!("facts-{}-0", std::process::id()));
    fs::create_dir_all(&existing).expect("the folder is created");
    let new = node.new_directory();
    assert_ne!(Path::new(&new).parent(), Some(&*existing));
    fs::remove_dir(&existing).expect("the folder is empty");
}
