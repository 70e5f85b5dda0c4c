//! The output: lines that fit a terminal, and JSON.

use doctor::{ProviderComparison, Report};
use unicode_width::UnicodeWidthStr as _;

use crate::setup::Patient;
use crate::simulated_system::SimulatedSystem;

/// A node with findings of all kinds, and long paths with letters that are two columns wide.
fn patient() -> Patient {
    let deep = format!(r"C:\var\lib\kubelet\plugins\{}", "\u{4e2d}".repeat(100));
    let patient = Patient::changed(|text| {
        let text = text.replace(
            r"target = 'C:\var\lib\kubelet\pods\1'",
            r"target = 'C:\gone'",
        );
        text.replace(
            r"path = 'C:\var\lib\kubelet\plugins\link'",
            &format!("path = '{deep}'"),
        )
    });
    Patient {
        system: SimulatedSystem {
            build: 1,
            service: None,
            ..patient.system
        },
        ..patient
    }
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(line.width() <= 80, "{line}");
        assert!(!line.ends_with(' '), "{line:?}");
    }
}

#[test]
fn no_line_of_the_text_is_longer_than_a_terminal() {
    let patient = patient();
    let report = plain(&patient.examine().to_string());
    assert_fits(&report);
    assert!(
        report.contains("\n  problem    ") && report.contains("\n             -> "),
        "{report}"
    );
    assert!(
        report.ends_with("1 problem, 1 warning, 0 unchecked, 14 ok\n"),
        "{report}"
    );
    patient.sim.unplug_disk(1);
    let comparison = plain(&patient.compare().to_string());
    assert_fits(&comparison);
    assert!(comparison.contains("The same\n"), "{comparison}");
}

#[test]
fn differences_come_first() {
    let patient = Patient::with(
        r#"serial = "disk-serial""#,
        "serial = \"a\"\nprovider_serial = \"b\"",
    );
    let text = plain(&patient.compare().to_string());
    let start = "Different\n  disk 1\n    serial number\n      native    serial-";
    assert!(text.starts_with(start), "{text}");
    let json = patient.compare().to_json("node", "1.2.3");
    assert_eq!(json["rows"][0]["agreement"], "different");
    assert_eq!(
        (&json["differences"], &json["unknown"], &json["version"]),
        (&1.into(), &0.into(), &"1.2.3".into())
    );
}

#[test]
fn the_json_has_every_finding_and_every_row() {
    let patient = patient();
    let report: Report = patient.examine();
    let json = report.to_json("node", "0.0.0");
    let findings = json["findings"].as_array().expect("an array");
    assert_eq!(findings.len(), report.findings.len());
    for (json, finding) in findings.iter().zip(&report.findings) {
        assert_eq!(json["check"], finding.check);
        assert_eq!(
            (&json["seen"], &json["advice"]),
            (&finding.seen.clone().into(), &finding.advice.clone().into())
        );
        assert!(
            ["ok", "warning", "problem", "unchecked"]
                .contains(&json["state"].as_str().expect("a word"))
        );
    }
    assert_eq!(json["problems"], 1);
    let comparison: ProviderComparison = patient.compare();
    assert_eq!(
        comparison.to_json("node", "")["rows"]
            .as_array()
            .map(Vec::len),
        Some(comparison.rows.len())
    );
}
