//! The sequences of all drivers on nodes on which WMI answers late, the storage provider's cache is
//! stale, automatic mounting is disabled, and every disk that is not mounted arrives offline and
//! read-only, in all combinations.
#![cfg(unix)]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use csi_proxy_sim::demo::{Daemon, Screen, Sequence, run};
use faults::{Fault, FaultAction, Probe, When};
use os_sim::{Description, FileDescription, Sim};

/// What a WMI query or method takes longer: most of the time that csi-proxy waits for a query.
const LATE: Duration = Duration::from_secs(40);

/// Longer than a sequence takes.
const NEVER: Duration = Duration::from_hours(1000);

/// What is unusual about a node.
#[derive(Clone, Copy, Debug)]
struct Conditions {
    /// Each answer of WMI is late.
    late: bool,
    /// The storage provider learns of a new disk or volume only when its cache is refreshed, and
    /// begins with old data.
    stale: bool,
    /// Automatic mounting is disabled, and a volume that is offline answers the query of its
    /// extents or not.
    no_automount: Option<bool>,
    /// Every disk that is not mounted is offline and read-only at first.
    offline: bool,
}

impl Conditions {
    /// Returns the built-in node under these conditions.
    fn node(self) -> Sim {
        let mut description =
            Description::from_toml(Sim::default_node_file()).expect("the built-in node");
        description.no_automount = self.no_automount.is_some();
        for disk in description.disks.iter_mut().filter(|_| self.offline) {
            let is_mounted = description.files.iter().any(
                |file| matches!(file, FileDescription::Mount { disk: on, .. } if Some(*on) == disk.number),
            );
            (disk.offline, disk.read_only) = (!is_mounted, !is_mounted);
        }
        let sim = Sim::describe(&description).expect("a valid node");
        sim.set_offline_volumes_have_extents(self.no_automount == Some(true));
        if self.stale {
            sim.set_timing(|timing| timing.provider = NEVER);
            sim.make_provider_stale();
        }
        sim
    }

    fn probes(self) -> Vec<Arc<dyn Probe>> {
        let late = || Fault::each(faults::Call::is_wmi, When::After, FaultAction::Delay(LATE));
        self.late
            .then(|| Arc::new(late()) as Arc<dyn Probe>)
            .into_iter()
            .collect()
    }
}

/// Runs the sequences of all drivers on one node. Each checks that its disk was formatted once,
/// that the data is kept, and that the other disks have not changed.
async fn check(conditions: Conditions) {
    let daemon = Daemon::start_on(conditions.node(), conditions.probes()).expect("a daemon");
    for sequence in Sequence::all().expect("valid sequences") {
        let report = run(&sequence, &daemon, &mut Screen::new(io::sink())).await;
        assert_eq!(
            report.unexpected,
            Vec::<String>::new(),
            "{}, {conditions:?}",
            sequence.driver
        );
        assert!(
            report.checks > 0,
            "{}: nothing was checked",
            sequence.driver
        );
    }
    assert_eq!(
        daemon.sim().now().0 > 20 * LATE,
        conditions.late,
        "{conditions:?}"
    );
    assert_eq!(
        daemon.stop().await.expect("an end"),
        server::Unfinished::default(),
        "{conditions:?}"
    );
}

macro_rules! no_driver_loses_a_volume_or_fails_to_stage_one {
    ($($test:ident: $late:literal, $stale:literal;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            for no_automount in [None, Some(false), Some(true)] {
                for offline in [false, true] {
                    check(Conditions { late: $late, stale: $stale, no_automount, offline }).await;
                }
            }
        }
    )*};
}

// Each with automatic mounting and without, in both readings, and with disks that are online or
// offline and read-only.
no_driver_loses_a_volume_or_fails_to_stage_one! {
    on_a_node_whose_provider_is_as_usual: false, false;
    on_a_node_whose_provider_has_a_stale_cache: false, true;
    on_a_node_whose_provider_answers_late: true, false;
    on_a_node_whose_provider_answers_late_and_has_a_stale_cache: true, true;
}
