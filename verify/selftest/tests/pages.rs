//! The reports in docs/evidence, and what the documentation makes of them.
//!
//! `BLESS=1 cargo test -p csi-proxy-selftest` writes the part of docs/windows.md.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};

use selftest::{BUILDS, Evidence, part_about_clouds, part_of_windows_page};

const HEADING: &str = "\n## What is proven on Windows\n\n";

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
}

fn evidence(json: &str) -> Evidence {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json:.100}"))
}

#[test]
fn the_page_about_windows_has_what_the_reports_prove() {
    let folder = fs::read_dir(docs("evidence")).expect("docs/evidence");
    let mut files: Vec<PathBuf> = folder
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    let reports: Vec<Evidence> = files
        .iter()
        .map(|file| evidence(&fs::read_to_string(file).expect("a report")))
        .collect();
    let page = fs::read_to_string(docs("windows.md"))
        .expect("the page")
        .replace("\r\n", "\n");
    let (before, rest) = page.split_once(HEADING).expect("the heading");
    let (_, after) = rest.split_once("\n## ").expect("another heading");
    let names = files
        .iter()
        .filter_map(|file| file.file_name().and_then(OsStr::to_str));
    let of_nodes: Vec<_> = names
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

#[test]
fn a_fact_is_proven_once_it_holds_on_each_build() {
    let report = |build: &str, system: &str, holds: &str, fails: &str| {
        evidence(&format!(
            r#"{{"version": "1.0.0", "system": "{system}", "build": "{build}", "edition": "ServerStandard",
                "installation": "Server Core", "seconds": 9, "holds": [{holds}], "fails": {{{fails}}},
                "not_run": {{"a share": ["SMB-01", "SMB-02"]}}, "fallbacks": ["mount 32"]}}"#
        ))
    };
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
    reports[3].cluster = Some(BTreeSet::from(["mount 32".to_owned()]));
    let part = part_of_windows_page(&reports);
    assert!(
        part.contains("26100: 1 of ") && part.contains("Fallbacks used in 1 clusters: mount 32."),
        "{part}"
    );
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
fn each_fallback_ends_with_facts_or_stays() {
    let facts = facts::all();
    let page = fs::read_to_string(docs("appendix-fallbacks.md")).expect("the page");
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `") && !line.starts_with("| `call`"));
    let ends: Vec<&str> = rows
        .map(|row| {
            row.trim_end_matches(" |")
                .rsplit("| ")
                .next()
                .expect("a cell")
        })
        .collect();
    for id in ends
        .iter()
        .filter(|end| **end != "stays")
        .flat_map(|end| end.split(", "))
    {
        assert!(facts.iter().any(|fact| fact.id == id), "no fact is {id}");
    }
    // Those of a change: set_disk_state, disk_update, mount, unmount, flush, create_link,
    // provider_cache.
    assert_eq!(
        (
            ends.len(),
            ends.iter().filter(|end| **end == "stays").count()
        ),
        (20, 7)
    );
    assert!(
        BUILDS.iter().all(|build| page.contains(build)),
        "the rule names the builds"
    );
}
