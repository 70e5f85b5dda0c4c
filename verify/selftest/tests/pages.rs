//! The reports in docs/evidence, and what the documentation makes of them.
//!
//! `BLESS=1 cargo test -p csi-proxy-selftest` writes the part of docs/windows.md.

use std::path::{Path, PathBuf};
use std::{env, fs};

use selftest::{
    BUILDS, Evidence, ended_fallbacks, fallbacks, part_about_clouds, part_of_windows_page,
};

const HEADING: &str = "\n## What is proven on Windows\n\n";

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
}

fn evidence(json: &str) -> Evidence {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json:.100}"))
}

/// Returns the reports in a folder, with the names of their files.
fn reports_in(folder: &Path) -> (Vec<String>, Vec<Evidence>) {
    let entries = fs::read_dir(folder).expect("the folder of reports");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string())
        .map(|name| name.expect("a name in Unicode"))
        .filter(|name| matches!(name.rsplit_once('.'), Some((_, "json"))))
        .collect();
    names.sort();
    let read = |name: &String| evidence(&fs::read_to_string(folder.join(name)).expect("a report"));
    let reports = names.iter().map(read).collect();
    (names, reports)
}

#[test]
fn the_page_about_windows_has_what_the_reports_prove() {
    let (names, reports) = reports_in(&docs("evidence"));
    let page = fs::read_to_string(docs("windows.md"))
        .expect("the page")
        .replace("\r\n", "\n");
    let (before, rest) = page.split_once(HEADING).expect("the heading");
    let (_, after) = rest.split_once("\n## ").expect("another heading");
    let of_nodes: Vec<_> = names
        .iter()
        .map(String::as_str)
        .zip(&reports)
        .filter(|(_, report)| report.system == "Windows")
        .map(|(name, report)| (name, &report.disks_of_node))
        .collect();
    let renewed = format!(
        "{before}{HEADING}{}\n{}\n## {after}",
        part_of_windows_page(&reports),
        part_about_clouds(&of_nodes)
    );
    if env::var_os("BLESS").is_some() {
        fs::write(docs("windows.md"), &renewed).expect("the page is written");
    }
    assert!(page == renewed, "BLESS=1 renews docs/windows.md");
}

/// Returns a made-up report.
fn report(build: &str, system: &str, holds: &str, fails: &str) -> Evidence {
    evidence(&format!(
        r#"{{"version": "1.0.0", "system": "{system}", "build": "{build}", "edition": "ServerStandard",
            "installation": "Server Core", "seconds": 9, "holds": [{holds}], "fails": {{{fails}}},
            "not_run": {{"a share": ["SMB-01", "SMB-02"]}}, "fallbacks": ["mount 32"]}}"#
    ))
}

#[test]
fn a_fact_is_proven_once_it_holds_on_each_build() {
    let mut reports = vec![
        report(
            "17763",
            "Windows",
            r#""DISK-01", "ACCEPTANCE-GROW""#,
            r#""VOL-01": "volume.rs:7 ACCESS_DENIED""#,
        ),
        report("20348", "Windows", r#""DISK-01", "VOL-01""#, ""),
        report("26100", "Wine", r#""DISK-01""#, ""),
    ];
    let part = part_of_windows_page(&reports);
    for line in [
        "| 17763, ServerStandard, Server Core | 1.0.0 | 2 | 1 | 2 | 1 of 3 | mount 32 |",
        "- VOL-01 fails on build 17763: volume.rs:7 ACCESS_DENIED",
        "Proven on each of the builds 17763, 20348, 26100: 0 of ",
    ] {
        assert!(part.contains(line), "{line}\n{part}");
    }
    assert!(!part.contains("| 26100"), "Wine is not Windows");
    reports.push(report("26100", "Windows", r#""DISK-01", "VOL-01""#, ""));
    assert!(part_of_windows_page(&reports).contains("26100: 1 of "));
    reports[3].installation = "Client".to_owned();
    assert!(part_of_windows_page(&reports).contains("26100: 0 of "));
    reports[3].installation = "Server".to_owned();
    reports.push(report("26100", "Windows", "", r#""DISK-01": "disk.rs:7""#));
    assert!(
        part_of_windows_page(&reports).contains("26100: 0 of "),
        "one report says that the fact fails"
    );
}

#[test]
fn a_fallback_ends_once_each_build_proves_its_facts_and_no_report_needs_it() {
    const FACTS: &str = r#""DISK-07", "DISK-08", "DISK-22", "VOL-15""#;
    let folder = tempfile::tempdir().expect("a folder");
    let add = |name: &str, report: Evidence| {
        fs::write(folder.path().join(name), report.to_json()).expect("a report is written");
        part_of_windows_page(&reports_in(folder.path()).1)
    };
    let names = |page: &str, fallbacks: &str| {
        let end = format!("(appendix-fallbacks.md#when-a-fallback-ends): {fallbacks}.\n");
        assert!(page.ends_with(&end), "{fallbacks}: {page}");
    };
    assert!(ended_fallbacks(&reports_in(folder.path()).1).is_empty());
    let mut client = report("26100", "Windows", FACTS, "");
    client.installation = "Client".to_owned();
    names(&add("26100-1.json", client), "none");
    names(
        &add("17763-2.json", report("17763", "Windows", FACTS, "")),
        "none",
    );
    names(
        &add("20348-3.json", report("20348", "Windows", FACTS, "")),
        "none",
    );
    names(
        &add("26100-4.json", report("26100", "Windows", FACTS, "")),
        "partition_table, volume_list",
    );
    let mut with_use = report("20348", "Windows", FACTS, "");
    with_use.fallbacks.insert("volume_list 1".to_owned());
    names(&add("20348-5.json", with_use), "partition_table");
    let failing = report("17763", "Windows", "", r#""DISK-22": "disk.rs:7""#);
    names(&add("17763-6.json", failing), "none");
}

#[test]
fn each_fallback_ends_with_facts_or_stays() {
    let facts = facts::all();
    let all: Vec<_> = fallbacks().collect();
    let stays = |end: &[&str]| *end == ["stays"];
    for id in all
        .iter()
        .filter(|(_, end)| !stays(end))
        .flat_map(|(_, end)| end)
    {
        assert!(facts.iter().any(|fact| fact.id == *id), "no fact is {id}");
    }
    // Those of a change: set_disk_state, disk_update, mount, unmount, flush, create_link,
    // provider_cache.
    let staying = all.iter().filter(|(_, end)| stays(end)).count();
    assert_eq!((all.len(), staying), (20, 7));
    let page = fs::read_to_string(docs("appendix-fallbacks.md")).expect("the page");
    assert!(
        BUILDS.iter().all(|build| page.contains(build)),
        "the rule names the builds"
    );
}
