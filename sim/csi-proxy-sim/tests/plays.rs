//! Each driver's play, on a node of its own.
#![cfg(unix)]

use std::cell::RefCell;

use csi_proxy_sim::demo::{Daemon, PLAYS, Screen};

async fn play(name: &str) {
    let play = PLAYS.iter().find(|play| play.name == name).expect("a play of that name");
    let daemon = Daemon::start().await.expect("a daemon");
    let played = play.play(&daemon, &RefCell::new(Screen::off())).await;
    assert_eq!(played.tally.differences, Vec::<String>::new());
    assert!(!played.tally.times.is_empty() && played.tally.held > 0, "nothing was played");
    assert_eq!(daemon.stop().await.expect("an end"), server::Unfinished::default());
}

macro_rules! plays {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                play($name).await;
            }
        )*

        #[test]
        fn every_play_is_tested() {
            assert_eq!(PLAYS.iter().map(|play| play.name).collect::<Vec<_>>(), [$($name),*]);
        }
    };
}

plays! {
    azuredisk_stages_a_disk_found_by_its_lun: "azuredisk",
    azuredisk_works_in_the_versions_before_v1: "azuredisk beta",
    smb_maps_a_share_and_removes_the_mapping: "smb",
    azurefile_maps_a_share_and_leaves_the_mapping: "azurefile",
    azurefile_works_in_the_versions_before_v1: "azurefile beta",
    gce_pd_stages_a_disk_that_it_left_offline: "gce-pd",
    gce_pd_works_in_the_versions_before_v1: "gce-pd beta",
    aws_ebs_knows_from_an_error_that_nothing_is_staged: "aws-ebs",
    vsphere_makes_a_directory_that_is_there: "vsphere",
    longhorn_stages_the_disk_of_an_iscsi_session: "longhorn",
}
