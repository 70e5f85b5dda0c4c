//! The sequence of each driver, on a fresh node.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use csi_proxy_sim::demo::{Daemon, Screen, Sequence, run};
use os_sim::Sim;

/// The sequences in the order in which they run, with the number of their calls and of the WMI
/// calls that these cause on a node on which nothing takes time and no object arrives late.
const DRIVERS: [(&str, usize, u64); 12] = [
    ("azuredisk", 37, 14),
    ("azuredisk v1beta", 21, 12),
    ("smb", 13, 4),
    ("trident", 15, 4),
    ("azurefile", 12, 2),
    ("azurefile v1beta", 11, 2),
    ("gce-pd", 43, 13),
    ("gce-pd v1beta", 27, 10),
    ("aws-ebs", 37, 12),
    ("vsphere", 30, 11),
    ("longhorn-fork", 42, 37),
    ("local-static-provisioner", 8, 0),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_driver_works_on_a_fresh_node_with_this_number_of_calls() {
    let mut counted = Vec::new();
    let sequences = Sequence::all().expect("valid sequences");
    for sequence in &sequences {
        let daemon = Daemon::start_on(Sim::default_node().fast(), Vec::new()).expect("a daemon");
        let report = run(sequence, &daemon, &mut Screen::new(io::sink())).await;
        assert_eq!(
            report.unexpected,
            Vec::<String>::new(),
            "{}",
            sequence.driver
        );
        assert!(
            report.checks > 0,
            "{}: nothing was checked",
            sequence.driver
        );
        assert_eq!(
            daemon.stop().await.expect("an end"),
            server::Unfinished::default(),
            "{}",
            sequence.driver
        );
        counted.push((
            sequence.driver.as_str(),
            report.calls,
            report.node_calls.wmi,
        ));
    }
    assert_eq!(counted, DRIVERS);
}

#[test]
fn the_groups_of_each_driver_are_those_in_the_documentation() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(root.join("drivers")).expect("the folder") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("a sequence");
        let value = |key: &str| {
            text.split(&format!("\"{key}\": \""))
                .skip(1)
                .collect::<Vec<_>>()
        };
        let name = value("driver")[0].split(['"', ' ']).next().expect("a name");
        let called = value("call")
            .into_iter()
            .filter_map(|call| call.split('/').next())
            .map(str::to_owned);
        groups.entry(name.to_owned()).or_default().extend(called);
    }
    let row = |(driver, groups): (&String, &BTreeSet<String>)| {
        let groups: Vec<_> = groups.iter().map(String::as_str).collect();
        format!("| {driver} | {} |\n", groups.join(", "))
    };
    let rows: String = groups.iter().map(row).collect();
    let page = fs::read_to_string(root.join("../../docs/security.md")).expect("the page");
    assert!(
        page.contains(&format!("| driver | groups |\n|---|---|\n{rows}\n")),
        "the page should contain:\n{rows}"
    );
}
