//! The number of calls, and the tables of docs/performance.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use csi_proxy_sim::demo::CalledRpc;

use crate::go_program;
use crate::measurement::{DEVICE, WMI, counts, disk_state, is_iscsi, phases, with_costs, with_late_objects, wmi_calls};
use crate::reasons::REASONS;

/// The drivers whose volumes are disks.
const DRIVERS: [&str; 5] = ["azuredisk", "gce-pd", "aws-ebs", "vsphere", "longhorn"];

#[tokio::test(flavor = "multi_thread")]
async fn a_formatted_disk_needs_no_wmi_call_but_those_of_rescan_and_list_disk_locations() {
    for driver in DRIVERS {
        for rpcs in [with_costs(driver).await, with_late_objects(driver).await] {
            let formatted: Vec<_> = rpcs.iter().filter(|rpc| disk_state(&rpc.phase) == "formatted disk").collect();
            for phase in ["NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"] {
                assert!(formatted.iter().any(|rpc| rpc.phase == phase), "{driver} {phase}");
            }
            let is_of_wmi = |rpc: &CalledRpc| is_iscsi(rpc) || ["Rescan", "ListDiskLocations"].contains(&rpc.name);
            for rpc in formatted.iter().filter(|rpc| !is_of_wmi(rpc)) {
                assert_eq!(wmi_calls(rpc), Vec::<String>::new(), "{driver}, {}, {}", rpc.phase, rpc.name);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_disk_is_staged_with_at_most_ten_wmi_calls() {
    for driver in DRIVERS {
        for rpcs in [with_costs(driver).await, with_late_objects(driver).await] {
            let is_listing = |rpc: &CalledRpc| is_iscsi(rpc) || ["Rescan", "ListDiskLocations"].contains(&rpc.name);
            let stage = rpcs.iter().filter(|rpc| rpc.phase == "NodeStageVolume" && !is_listing(rpc));
            let calls: Vec<_> = stage.flat_map(wmi_calls).collect();
            // Two fewer if the provider knows that the disk is online, and one fewer if it learns of the volume at once.
            assert!((7..=10).contains(&calls.len()), "{driver}: {calls:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_the_tables_of_these_counts() {
    let page = include_str!("../../../../docs/performance.md");
    let (mut by_phase, mut by_rpc, mut seen) = (String::new(), String::new(), BTreeMap::new());
    for driver in DRIVERS {
        let timed = with_costs(driver).await;
        for rpc in &timed {
            let (wmi, device) = counts(&[rpc]);
            assert_eq!(rpc.simulated, WMI * wmi + DEVICE * device, "{driver}, {}: nothing else takes time", rpc.name);
        }
        let mut all = phases(&timed);
        for (phase, rpcs) in &all {
            row_of_rpcs(&mut by_rpc, driver, phase, rpcs);
        }
        all.push(("**all**", timed.iter().collect()));
        for (phase, rpcs) in all {
            row_of_phase(&mut by_phase, driver, phase, &rpcs);
        }
        for rpc in timed.iter().chain(&with_late_objects(driver).await) {
            let calls = wmi_calls(rpc);
            for call in &calls {
                let (most, states): &mut (usize, BTreeSet<_>) = seen.entry((rpc.name, call.clone())).or_default();
                *most = calls.iter().filter(|other| *other == call).count().max(*most);
                states.insert(disk_state(&rpc.phase));
            }
        }
    }
    let mut reasons = String::new();
    for (rpc, call, reason) in REASONS {
        let (most, states) = seen.remove(&(rpc, call.to_owned())).unwrap_or_else(|| panic!("{rpc}: no {call}"));
        let states: Vec<_> = states.into_iter().collect();
        let _ = writeln!(reasons, "| {rpc} | {call} | {most} | {} | {reason} |", states.join(", "));
    }
    assert!(seen.is_empty(), "these calls have no reason: {seen:?}");
    let tables = [by_phase, reasons, by_rpc, go_program::table()];
    let missing: Vec<&str> = tables.iter().map(String::as_str).filter(|table| !page.contains(table)).collect();
    assert!(missing.is_empty(), "docs/performance.md must contain these rows:\n\n{}", missing.join("\n"));
}

fn row_of_phase(table: &mut String, driver: &str, phase: &str, rpcs: &[&CalledRpc]) {
    let (wmi, device) = counts(rpcs);
    let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
    let ours = ms(rpcs.iter().map(|rpc| rpc.simulated).sum());
    let [newer, older] = go_program::counts(rpcs);
    let (newer_ms, older_ms) = (ms(WMI * newer), ms(WMI * older));
    let _ = writeln!(
        table,
        "| {driver} | {phase} | {} | {wmi} | {device} | {ours} | {newer} | {newer_ms} | {older} | {older_ms} |",
        rpcs.len()
    );
}

fn row_of_rpcs(table: &mut String, driver: &str, phase: &str, rpcs: &[&CalledRpc]) {
    let cost = |rpc: &&CalledRpc| {
        let (wmi, device) = counts(&[*rpc]);
        format!("{} {wmi} + {device}", rpc.name)
    };
    let rpcs: Vec<_> = rpcs.iter().map(cost).collect();
    let _ = writeln!(table, "| {driver} | {phase} | {} |", rpcs.join(", "));
}
