//! The command `doctor` as a process.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

fn doctor(flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim"))
        .arg("doctor")
        .args(flags)
        .output()
        .expect("a process")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn the_built_in_node_has_warnings_and_no_problem() {
    let output = doctor(&[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.contains(", node: the built-in simulated node, flags: as given\n"),
        "{text}"
    );
    assert!(
        text.contains("0 problems, ") && text.contains("disk 3 is offline and read-only"),
        "{text}"
    );
    let (_, heading) = text.split_once(", ").expect("a heading after the version");
    texts::seen!(heading.lines().next().expect("a line"));
    assert!(
        !text.contains('\u{1b}'),
        "no colours where the output is not a terminal"
    );
    let report = json(&doctor(&["-o", "json"]));
    assert_eq!(
        (&report["problems"], &report["node"]),
        (&0.into(), &"the built-in simulated node".into())
    );
}

#[test]
fn a_problem_is_exit_code_1_and_a_wrong_file_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("node.toml");
    fs::write(
        &file,
        "[[service]]\nname = \"LanmanWorkstation\"\ndisplay_name = \"Workstation\"\n",
    )
    .expect("a file");
    let file = file.display().to_string();
    let problem = doctor(&["-node", &file, "-o=json"]);
    assert_eq!(problem.status.code(), Some(1), "{problem:?}");
    assert_eq!(json(&problem)["problems"], 1);
    for flags in [&["-node=missing.toml"][..], &["-nonsense"], &["-o=yaml"]] {
        let refused = doctor(flags);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(
            refused.stdout.is_empty() && !refused.stderr.is_empty(),
            "{refused:?}"
        );
    }
}

#[test]
fn the_comparison_is_parsed_and_shows_serial_numbers_only_if_asked_to() {
    let hidden = doctor(&["--compare-provider", "-o", "json"]);
    assert_eq!(hidden.status.code(), Some(0), "{hidden:?}");
    let rows = json(&hidden)["rows"].as_array().expect("rows").len();
    assert!(rows > 50, "{rows}");
    assert!(!String::from_utf8_lossy(&hidden.stdout).contains("vol0123456789abcdef0"));
    let shown = doctor(&["-compare-provider", "-show-names"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("vol0123456789abcdef0"));
    let help = doctor(&["-help"]);
    assert!(
        help.status.success() && String::from_utf8_lossy(&help.stdout).contains("-show-names"),
        "{help:?}"
    );
}

#[test]
fn a_node_without_a_finding_is_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = folder.path().join("node.toml");
    let services = ["LanmanWorkstation", "MSiSCSI"].map(|name| {
        format!(
            "[[service]]\nname = \"{name}\"\ndisplay_name = \"{name}\"\nstart_type = \"automatic\"\n\
             state = \"running\"\n"
        )
    });
    fs::write(&node, services.concat()).expect("a node file");
    let output = doctor(&["-x", "-node", node.to_str().expect("UTF-8")]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text, "all is well: 14 checks\n");
    texts::seen!(text);
}
