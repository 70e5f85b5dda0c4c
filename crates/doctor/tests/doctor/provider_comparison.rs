//! Both ways agree on a healthy node, and each difference is found.

use doctor::{Agreement, ProviderComparison, Row};
use os_sim::Sim;

use crate::setup::Patient;

fn differences(comparison: &ProviderComparison) -> Vec<&Row> {
    comparison.rows_of(Agreement::Different).collect()
}

#[test]
fn both_ways_agree_on_a_healthy_node() {
    let comparison = Patient::healthy().compare();
    let (same, one_way): (Vec<_>, Vec<_>) = comparison
        .rows
        .iter()
        .partition(|row| row.agreement == Agreement::Same);
    assert!(
        one_way
            .iter()
            .all(|row| row.agreement == Agreement::OneWay && row.property == "location"),
        "{comparison}"
    );
    assert_eq!((one_way.len(), same.len() > 30), (2, true), "{comparison}");
    assert!(
        one_way
            .iter()
            .all(|row| row.provider.as_ref().is_ok_and(|text| text.contains("LUN"))),
        "{comparison}"
    );
    let has = |object: &str, property| {
        comparison
            .rows
            .iter()
            .any(|row| row.object.starts_with(object) && row.property == property)
    };
    for property in [
        "present",
        "number by path",
        "state",
        "read-only",
        "size",
        "serial number",
        "page 83",
        "volumes",
    ] {
        assert!(has("disk 1", property), "{property}");
    }
    assert!(has("disk 1, partition 2", "offset") && has("disk 1, partition 2", "size"));
    for property in ["size", "free", "file system", "formatted"] {
        assert!(has("volume ", property), "{property}");
    }
    assert!(has("machine", "serial number"));
}

#[test]
fn serial_numbers_have_names_and_a_difference_in_blanks_is_said() {
    let patient = Patient::with(
        r#"serial = "disk-serial""#,
        "serial = \"disk-serial\"\nprovider_serial = \"DISK-serial \"",
    );
    let comparison = patient.compare();
    let [row] = differences(&comparison)[..] else {
        panic!("{comparison}")
    };
    assert_eq!(
        (row.object.as_str(), row.property),
        ("disk 1", "serial number")
    );
    assert!(
        row.native
            .as_ref()
            .is_ok_and(|name| name.starts_with("serial-")),
        "{row:?}"
    );
    assert_ne!(row.native, row.provider);
    assert_eq!(row.note, "only in case or in blanks at the ends");
    assert!(
        !comparison
            .to_string()
            .to_lowercase()
            .contains("disk-serial"),
        "{comparison}"
    );
    let shown = doctor::compare(&patient.os(), &patient.settings.node, true);
    assert!(
        shown.to_string().contains("disk-serial") && shown.to_string().contains("VMware-42"),
        "{shown}"
    );
}

#[test]
fn a_disk_that_the_provider_does_not_know_yet_is_a_difference() {
    let patient = Patient::healthy();
    let new = os_sim::DiskDescription::new(1 << 30);
    let number = patient.sim.attach_disk(&new, true).expect("a disk");
    let comparison = patient.compare();
    let object = format!("disk {number}");
    if let [row] = differences(&comparison)[..] {
        assert_eq!(
            (row.object.as_str(), row.property, row.provider.as_deref()),
            (object.as_str(), "present", Ok("no"))
        );
    } else {
        panic!("{comparison}");
    }
}

#[test]
fn the_built_in_node_is_compared_without_a_failed_reading_except_for_what_it_describes() {
    let sim = Sim::default_node();
    let os: std::sync::Arc<dyn os::Os> = sim.process();
    let comparison = doctor::compare(&os, &storage_ops::Config::default(), false);
    let unknown: Vec<_> = comparison.rows_of(Agreement::Unknown).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}
