//! The command `doctor` on the node that the tests run on.

use api::GROUP_VERSIONS;
use serde_json::Value;

use crate::daemon::{Daemon, spawn, turn};

/// Runs the command and returns its exit code and what it printed.
fn doctor(flags: &[&str]) -> (Option<i32>, String) {
    let words: Vec<&str> = std::iter::once("doctor")
        .chain(flags.iter().copied())
        .collect();
    let output = spawn(&words).wait_with_output().expect("an end");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors, "", "{flags:?}");
    (
        output.status.code(),
        String::from_utf8(output.stdout).expect("text"),
    )
}

fn findings<'j>(report: &'j Value, check: &str) -> Vec<&'j Value> {
    let all = report["findings"].as_array().expect("findings").iter();
    all.filter(|finding| finding["check"] == check).collect()
}

#[tokio::test]
async fn the_examination_names_the_process_that_serves_the_pipes() {
    let _turn = turn().await;
    let daemon = Daemon::start(&[]);
    let (code, json) = doctor(&["-o", "json"]);
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["node"], "this Windows node");
    let pipes = findings(&report, "Pipes");
    let served = format!(
        "{} pipes served by process {}",
        GROUP_VERSIONS.len(),
        daemon.process.id()
    );
    assert!(
        pipes.iter().any(|finding| finding["seen"]
            .as_str()
            .is_some_and(|seen| seen.starts_with(&served))),
        "{json}"
    );
    let open = "only LocalSystem and Administrators may open the pipes";
    assert!(
        pipes.iter().any(|finding| finding["seen"] == open),
        "{json}"
    );
    assert_eq!(findings(&report, "Windows").len(), 1, "{json}");
    // Wine cannot read much, and nothing of that ends the examination.
    assert!(
        !findings(&report, "iSCSI sessions").is_empty()
            || !findings(&report, "Links and mount points").is_empty()
    );
}

#[tokio::test]
async fn without_a_daemon_the_pipes_are_not_served() {
    let _turn = turn().await;
    let (code, text) = doctor(&[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains(&format!("{} pipes not served", GROUP_VERSIONS.len())),
        "{text}"
    );
}

#[tokio::test]
async fn the_comparison_of_both_ways_ends_with_json() {
    let _turn = turn().await;
    let (code, json) = doctor(&["--compare-provider", "-o", "json"]);
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    let comparison: Value = serde_json::from_str(&json).expect("JSON");
    let rows = comparison["rows"].as_array().expect("rows");
    assert!(
        rows.iter()
            .any(|row| row["object"] == "machine" && row["property"] == "serial number"),
        "{json}"
    );
    assert_eq!(
        rows.iter()
            .filter(|row| row["agreement"] == "different")
            .count(),
        comparison["differences"]
    );
}
