//! The sequence of each driver, on a fresh node.
#![cfg(unix)]

use std::io;

use csi_proxy_sim::demo::{Daemon, Screen, Sequence, run};

/// Runs the sequence of a driver, which must make `calls` calls.
async fn check(driver: &str, calls: usize) {
    let sequences = Sequence::all().expect("valid sequences");
    let sequence = sequences.iter().find(|sequence| sequence.driver == driver).expect("a sequence of the driver");
    let daemon = Daemon::start().await.expect("a daemon");
    let report = run(sequence, &daemon, &mut Screen::new(io::sink())).await;
    assert_eq!(report.unexpected, Vec::<String>::new());
    assert_eq!(report.call_times.len(), calls);
    assert!(report.checks > 0, "nothing was checked");
    assert_eq!(daemon.stop().await.expect("an end"), server::Unfinished::default());
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
