//! Runs the sequences of the drivers and counts their calls.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use csi_proxy_sim::demo::{CalledRpc, Daemon, Screen, Sequence, run};
use faults::{Call, FaultAction, Probe};
use os_sim::{Sim, Timing};

/// What a WMI query or method takes.
pub(crate) const WMI: Duration = Duration::from_millis(100);
/// What any other call takes.
pub(crate) const DEVICE: Duration = Duration::from_micros(50);

/// Makes each call of the daemon to the node take its time.
struct Costs;

impl Probe for Costs {
    fn before(&self, call: &Call) -> FaultAction {
        FaultAction::Delay(if call.is_wmi() { WMI } else { DEVICE })
    }
}

/// Returns a node on which nothing takes time by itself, and no object arrives late.
fn immediate() -> Sim {
    let sim = Sim::default_node();
    let none = Duration::ZERO;
    sim.set_timing(|timing| {
        *timing = Timing {
            volume_arrival: none,
            new_volume: none,
            provider: none,
            query: none,
            initialize: none,
            create_partition: none,
            format: none,
            resize: none,
            set_online: none,
            rescan: none,
        };
    });
    sim
}

/// Runs the sequence of `driver` on a node.
async fn rpcs(driver: &str, sim: Sim, probes: Vec<Arc<dyn Probe>>) -> Vec<CalledRpc> {
    let sequences = Sequence::all().expect("valid sequences");
    let sequence = sequences.iter().find(|sequence| sequence.driver == driver).expect("a sequence of the driver");
    let daemon = Daemon::start_on(sim, probes).await.expect("a daemon");
    let report = run(sequence, &daemon, &mut Screen::new(io::sink())).await;
    assert_eq!(report.unexpected, Vec::<String>::new());
    assert_eq!(daemon.stop().await.expect("an end"), server::Unfinished::default());
    report.rpcs
}

/// Runs the sequence of `driver` with each call taking its time, and nothing else.
pub(crate) async fn with_costs(driver: &str) -> Vec<CalledRpc> {
    rpcs(driver, immediate(), vec![Arc::new(Costs)]).await
}

/// Runs the sequence of `driver` on a node whose provider learns late of a volume, which cannot be formatted at once.
pub(crate) async fn with_late_objects(driver: &str) -> Vec<CalledRpc> {
    rpcs(driver, Sim::default_node(), Vec::new()).await
}

/// Returns the name of a WMI call; `None` for another call.
fn wmi_call(call: &Call) -> Option<String> {
    let name = call.primitive.strip_prefix("wmi ")?;
    if let Some(method) = name.strip_prefix("call ") {
        return Some(format!("`{method}`"));
    }
    let after = |keyword: &str| call.object.split_once(keyword).map(|(_, rest)| rest);
    let class = after(" ResultClass = ").or_else(|| after(" FROM ")).expect("a class").split(' ').next();
    Some(format!("query of `{}`", class.unwrap_or_default()))
}

pub(crate) fn wmi_calls(rpc: &CalledRpc) -> Vec<String> {
    rpc.node_calls.iter().filter_map(|record| wmi_call(&record.call)).collect()
}

/// Returns the numbers of WMI calls and of other calls.
pub(crate) fn counts(rpcs: &[&CalledRpc]) -> (u32, u32) {
    let count = |is_wmi: bool| {
        let calls = rpcs.iter().flat_map(|rpc| &rpc.node_calls).filter(|record| record.call.is_wmi() == is_wmi);
        u32::try_from(calls.count()).expect("few calls")
    };
    (count(true), count(false))
}

/// Returns what the disk is when a phase begins.
pub(crate) fn disk_state(phase: &str) -> &'static str {
    match phase {
        "NodeStageVolume" => "new disk",
        "NodeExpandVolume" => "grown disk",
        _ => "formatted disk",
    }
}

/// Returns whether the RPC is one of those for iSCSI, which WMI alone offers.
pub(crate) fn is_iscsi(rpc: &CalledRpc) -> bool {
    rpc.name.contains("Target") && !rpc.name.contains("TargetPath")
}

/// Returns the phases in their order, each with its RPCs.
pub(crate) fn phases(rpcs: &[CalledRpc]) -> Vec<(&str, Vec<&CalledRpc>)> {
    rpcs.chunk_by(|a, b| a.phase == b.phase).map(|rpcs| (&*rpcs[0].phase, rpcs.iter().collect())).collect()
}
