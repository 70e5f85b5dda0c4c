//! A call that takes half a minute, the progress of the other clients during it, and their latencies.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use api::filesystem::v1::{PathExistsRequest, PathExistsResponse};
use api::smb::v1::{NewSmbGlobalMappingResponse, RemoveSmbGlobalMappingRequest, RemoveSmbGlobalMappingResponse};
use tokio::runtime;
use tokio::sync::watch;
use transport::address::Location;

use crate::CLIENTS;
use crate::call_counts::CallCounts;
use crate::client::mapping;
use crate::daemon::{FAST_SERVER, SLOW_SERVER};
use crate::run_control::RunControl;
use crate::service_client::{CURRENT, ServiceClient};

/// Returns how long the slow call takes in a run of this duration. Part of a run is without it, even if the run is short.
pub(crate) fn duration(run: Duration) -> Duration {
    Duration::from_secs(30).min(run / 2)
}

/// The phase of the slow call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallPhase {
    NotSent,
    Pending,
    Answered,
}

/// The progress of other calls while the slow call was pending.
pub(crate) struct Progress {
    /// Calls of the other clients that were answered.
    answers: u64,
    /// Shares that were mapped and unmapped. These calls use the same worker pool as the slow call.
    mappings: u64,
}

impl Progress {
    /// Returns whether the slow call blocked no others. Each client has one call at a time, so with more answers than
    /// clients some calls were both sent and answered in that time.
    fn is_sufficient(&self) -> bool {
        self.answers > CLIENTS.into() && self.mappings > 0
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls of other clients answered, {} other shares mapped and unmapped",
            self.answers, self.mappings
        )
    }
}

/// Maps a share of the slow server, and panics if all other calls wait for it.
///
/// On a busy machine the other clients may make no progress for other reasons, so it panics only after several attempts.
pub(crate) async fn run(location: Location, counts: Arc<CallCounts>, phase: watch::Sender<CallPhase>) -> Progress {
    const ATTEMPTS: u32 = 10;
    for _ in 0..ATTEMPTS {
        let progress = attempt(&location, &counts, &phase).await;
        if progress.is_sufficient() {
            return progress;
        }
        println!("another attempt, since the progress during the slow call was: {progress}");
    }
    panic!("a slow call blocks all other calls");
}

async fn attempt(location: &Location, counts: &Arc<CallCounts>, phase: &watch::Sender<CallPhase>) -> Progress {
    let smb = || ServiceClient::connect(location, "Smb", CURRENT.smb, counts);
    let (mut slow, mut fast) = (smb().await, smb().await);
    let answers_before = counts.answers();
    phase.send_replace(CallPhase::Pending);
    let slow_call = tokio::spawn(async move {
        map(&mut slow, SLOW_SERVER).await;
        slow
    });
    let (mut mappings, mut own_answers) = (0, 1);
    while !slow_call.is_finished() {
        map(&mut fast, FAST_SERVER).await;
        unmap(&mut fast, FAST_SERVER).await;
        own_answers += 2;
        mappings += u64::from(!slow_call.is_finished());
    }
    phase.send_replace(CallPhase::Answered);
    let answers = counts.answers() - answers_before - own_answers;
    unmap(&mut slow_call.await.expect("the slow call is answered"), SLOW_SERVER).await;
    Progress { answers, mappings }
}

/// Maps the share of a server that no other client uses.
async fn map(mappings: &mut ServiceClient, server: &str) {
    let _: NewSmbGlobalMappingResponse =
        mappings.call_ok("NewSmbGlobalMapping", mapping(format!(r"\\{server}\share"))).await;
}

async fn unmap(mappings: &mut ServiceClient, server: &str) {
    let remove = RemoveSmbGlobalMappingRequest { remote_path: format!(r"\\{server}\share") };
    let _: RemoveSmbGlobalMappingResponse = mappings.call_ok("RemoveSmbGlobalMapping", remove).await;
}

/// The latencies of a call, with and without a pending slow call.
#[derive(Default)]
pub(crate) struct Latencies {
    without: Vec<Duration>,
    with: Vec<Duration>,
}

/// Starts a thread that repeats a call until the run stops, and measures its latency.
///
/// A task in the clients' runtime would measure how long it waits for their tasks.
pub(crate) fn start_latency_probe(
    location: Location,
    counts: Arc<CallCounts>,
    phase: watch::Receiver<CallPhase>,
    control: Arc<RunControl>,
) -> JoinHandle<Latencies> {
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(measure_latencies(location, counts, phase, control))
    })
}

async fn measure_latencies(
    location: Location,
    counts: Arc<CallCounts>,
    phase: watch::Receiver<CallPhase>,
    control: Arc<RunControl>,
) -> Latencies {
    let mut latencies = Latencies::default();
    let mut files = ServiceClient::connect(&location, "Filesystem", CURRENT.filesystem, &counts).await;
    let request = PathExistsRequest { path: r"C:\var\lib\kubelet\plugins".to_owned() };
    while !control.is_stopping() {
        let (phase_before, sent) = (*phase.borrow(), Instant::now());
        let _: PathExistsResponse = files.call_ok("PathExists", request.clone()).await;
        let latency = sent.elapsed();
        // A call during which the phase changes does not count.
        match (phase_before, *phase.borrow()) {
            (CallPhase::Pending, CallPhase::Pending) => latencies.with.push(latency),
            (CallPhase::Answered, CallPhase::Answered) => latencies.without.push(latency),
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    latencies
}

/// Returns a percentile in microseconds, or 0 without any latencies.
fn percentile(latencies: &[Duration], percent: usize) -> u128 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() * percent / 100).map_or(0, Duration::as_micros)
}

/// The percentiles are only printed: on a machine with other load they depend on more than the daemon.
impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { without, with } = self;
        write!(f, "PathExists {} times without the slow call, {} during it:", without.len(), with.len())?;
        for percent in [50, 99] {
            let (without, with) = (percentile(without, percent), percentile(with, percent));
            let ratio = (with * 100).checked_div(without).unwrap_or_default();
            write!(f, " p{percent} {without} and {with} us, {ratio} %;")?;
        }
        Ok(())
    }
}
