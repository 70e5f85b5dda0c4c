//! The sequence of each driver, on a fresh node.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use csi_proxy_sim::demo::{Daemon, Screen, Sequence, run};
use os_sim::Sim;

/// Runs the sequence of a driver, which must make `calls` calls.
async fn check(driver: &str, calls: usize) {
    let sequences = Sequence::all().expect("valid sequences");
    let sequence = sequences.iter().find(|sequence| sequence.driver == driver).expect("a sequence of the driver");
    let daemon = Daemon::start().await.expect("a daemon");
    let report = run(sequence, &daemon, &mut Screen::new(io::sink())).await;
    assert_eq!(report.unexpected, Vec::<String>::new());
    assert_eq!(report.calls, calls);
    assert!(report.checks > 0, "nothing was checked");
    assert_eq!(daemon.stop().await.expect("an end"), server::Unfinished::default());
}

/// The WMI calls of the drivers that use disks, on a node on which nothing takes time and no object arrives late.
const WMI_CALLS: [(&str, u64); 5] =
    [("azuredisk", 15), ("gce-pd", 11), ("aws-ebs", 13), ("vsphere", 12), ("longhorn", 48)];

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_a_driver_cost_this_number_of_wmi_calls() {
    for sequence in Sequence::all().expect("valid sequences") {
        let expected = WMI_CALLS.iter().find(|(driver, _)| *driver == sequence.driver);
        let Some((driver, calls)) = expected else { continue };
        let daemon = Daemon::start_on(Sim::default_node().fast(), Vec::new()).await.expect("a daemon");
        let report = run(&sequence, &daemon, &mut Screen::new(io::sink())).await;
        assert_eq!(report.node_calls.wmi, *calls, "{driver}");
        daemon.stop().await.expect("an end");
    }
}

macro_rules! drivers {
    ($($test:ident: $driver:literal makes $calls:literal calls,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                check($driver, $calls).await;
            }
        )*

        #[test]
        fn every_driver_is_tested() {
            let drivers: Vec<String> = Sequence::all().unwrap().into_iter().map(|sequence| sequence.driver).collect();
            assert_eq!(drivers, [$($driver),*]);
        }
    };
}

#[test]
fn the_groups_of_each_driver_are_those_in_the_documentation() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(root.join("drivers")).expect("the folder") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("a sequence");
        let value = |key: &str| text.split(&format!("\"{key}\": \"")).skip(1).collect::<Vec<_>>();
        let name = value("driver")[0].split(['"', ' ']).next().expect("a name");
        let called = value("call").into_iter().filter_map(|call| call.split('/').next()).map(str::to_owned);
        groups.entry(name.to_owned()).or_default().extend(called);
    }
    let row = |(driver, groups): (&String, &BTreeSet<String>)| {
        let groups: Vec<_> = groups.iter().map(String::as_str).collect();
        format!("| {driver} | {} |\n", groups.join(", "))
    };
    let rows: String = groups.iter().map(row).collect();
    let page = fs::read_to_string(root.join("../../docs/security.md")).expect("the page");
    assert!(page.contains(&format!("| driver | groups |\n|---|---|\n{rows}\n")), "the page should contain:\n{rows}");
}

drivers! {
    azuredisk_stages_a_disk_found_by_its_lun: "azuredisk" makes 34 calls,
    azuredisk_works_in_the_versions_before_v1: "azuredisk v1beta" makes 21 calls,
    smb_maps_a_share_and_removes_the_mapping: "smb" makes 13 calls,
    azurefile_maps_a_share_and_keeps_the_mapping: "azurefile" makes 12 calls,
    azurefile_works_in_the_versions_before_v1: "azurefile v1beta" makes 11 calls,
    gce_pd_stages_a_disk_that_it_left_offline: "gce-pd" makes 43 calls,
    gce_pd_works_in_the_versions_before_v1: "gce-pd v1beta" makes 27 calls,
    aws_ebs_recognises_by_an_error_that_nothing_is_mounted: "aws-ebs" makes 37 calls,
    vsphere_creates_a_directory_that_exists: "vsphere" makes 30 calls,
    longhorn_stages_the_disk_of_an_iscsi_session: "longhorn" makes 34 calls,
}
