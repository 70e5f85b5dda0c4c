//! One call that takes half a minute, and what it does to the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use api::filesystem::v1::{PathExistsRequest, PathExistsResponse};
use api::smb::v1::NewSmbGlobalMappingResponse;
use pipe::address::Place;
use tokio::runtime;
use tokio::sync::watch;

use crate::client::mapping;
use crate::daemon::SLOW_SERVER;
use crate::ledger::Ledger;
use crate::service::{PRESENT, Service};

/// Where the slow call is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not yet sent, and the daemon not yet warm.
    Before,
    Pending,
    Answered,
}

/// What others were answered while the slow call was pending.
pub(crate) struct Meanwhile {
    pub(crate) answers: u64,
    /// Those that are of the same kind, and so of the same threads.
    pub(crate) mappings: u64,
}

impl fmt::Display for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls answered, {} of its own kind", self.answers, self.mappings)
    }
}

/// Waits for a while, and maps a share of the server that takes its time.
pub(crate) async fn call(place: Place, ledger: Arc<Ledger>, after: Duration, phase: watch::Sender<Phase>) -> Meanwhile {
    const METHOD: &str = "NewSmbGlobalMapping";
    tokio::time::sleep(after).await;
    let mut mappings = Service::connect(&place, "Smb", PRESENT.smb, &ledger).await;
    let answers = || [ledger.answers(""), ledger.answers(&format!("{}.Smb/{METHOD}", PRESENT.smb))];
    let before = answers();
    phase.send_replace(Phase::Pending);
    let _: NewSmbGlobalMappingResponse = mappings.must(METHOD, mapping(format!(r"\\{SLOW_SERVER}\share"))).await;
    phase.send_replace(Phase::Answered);
    // One of them is its own.
    let [all, of_its_kind] = answers();
    Meanwhile { answers: all - before[0] - 1, mappings: of_its_kind - before[1] - 1 }
}

/// How long calls took without the slow one and beside it.
#[derive(Default)]
pub(crate) struct Latencies {
    alone: Vec<Duration>,
    beside: Vec<Duration>,
}

/// Asks for the same again and again until told to stop, and writes down how long each answer took.
///
/// On a thread of its own: among the tasks of the clients it would measure how long those let it wait.
pub(crate) fn bystander(
    place: Place,
    ledger: Arc<Ledger>,
    phase: watch::Receiver<Phase>,
    over: Arc<AtomicBool>,
) -> JoinHandle<Latencies> {
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(watch_the_clock(place, ledger, phase, over))
    })
}

async fn watch_the_clock(
    place: Place,
    ledger: Arc<Ledger>,
    phase: watch::Receiver<Phase>,
    over: Arc<AtomicBool>,
) -> Latencies {
    let mut latencies = Latencies::default();
    let mut files = Service::connect(&place, "Filesystem", PRESENT.filesystem, &ledger).await;
    let request = PathExistsRequest { path: r"C:\var\lib\kubelet\plugins".to_owned() };
    while !over.load(Ordering::Relaxed) {
        let (at_first, sent) = (*phase.borrow(), Instant::now());
        let _: PathExistsResponse = files.must("PathExists", request.clone()).await;
        let took = sent.elapsed();
        // One during which the phase changed belongs to neither.
        let at_last = *phase.borrow();
        match (at_first, at_last) {
            (Phase::Pending, Phase::Pending) => latencies.beside.push(took),
            (Phase::Answered, Phase::Answered) => latencies.alone.push(took),
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    latencies
}

/// What `percent` of them stay below, in microseconds; 0 where there are none.
fn percentile(latencies: &[Duration], percent: usize) -> u128 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() * percent / 100).map_or(0, Duration::as_micros)
}

/// Only told, never asserted: on a machine that does other things, too, a percentile says little about the daemon.
impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alone, beside } = self;
        write!(f, "PathExists {} times without the slow call, {} beside it:", alone.len(), beside.len())?;
        for percent in [50, 99] {
            let (alone, beside) = (percentile(alone, percent), percentile(beside, percent));
            let ratio = (beside * 100).checked_div(alone).unwrap_or_default();
            write!(f, " p{percent} {alone} and {beside} us, {ratio} %;")?;
        }
        Ok(())
    }
}
