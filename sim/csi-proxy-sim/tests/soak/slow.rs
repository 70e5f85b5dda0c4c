//! One call that takes half a minute, and what it does to the others.

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
use crate::client::mapping;
use crate::daemon::{QUICK_SERVER, SLOW_SERVER};
use crate::ledger::Ledger;
use crate::service::{PRESENT, Service};
use crate::stage::Stage;

/// Where the slow call is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not yet sent.
    Before,
    Pending,
    Answered,
}

/// What was answered while the slow call was pending.
pub(crate) struct Meanwhile {
    /// To others.
    answers: u64,
    /// Mappings made and removed, each sent and answered within that time: they are of the same kind, and so have the
    /// same threads.
    mappings: u64,
}

impl Meanwhile {
    /// Whether others got on: each has one call under way, so more answers than that were to calls sent meanwhile.
    fn shows_that_others_got_on(&self) -> bool {
        self.answers > CLIENTS.into() && self.mappings > 0
    }
}

impl fmt::Display for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls of others answered, and {} other shares mapped and unmapped", self.answers, self.mappings)
    }
}

/// Maps a share of the server that takes its time, and fails if all others had to wait for it.
///
/// A machine may be so busy that others get nowhere in any case, so that shows only if it is so again and again.
pub(crate) async fn call(place: Location, ledger: Arc<Ledger>, phase: watch::Sender<Phase>) -> Meanwhile {
    const ATTEMPTS: u32 = 10;
    for _ in 0..ATTEMPTS {
        let meanwhile = attempt(&place, &ledger, &phase).await;
        if meanwhile.shows_that_others_got_on() {
            return meanwhile;
        }
        println!("once more, for during the slow call there were {meanwhile}");
    }
    panic!("a slow call lets no other get on");
}

async fn attempt(place: &Location, ledger: &Arc<Ledger>, phase: &watch::Sender<Phase>) -> Meanwhile {
    let smb = || Service::connect(place, "Smb", PRESENT.smb, ledger);
    let (mut slow, mut quick) = (smb().await, smb().await);
    let before = ledger.answers();
    phase.send_replace(Phase::Pending);
    let slow_call = tokio::spawn(async move {
        map(&mut slow, SLOW_SERVER).await;
        slow
    });
    let (mut mappings, mut own_answers) = (0, 1);
    while !slow_call.is_finished() {
        map(&mut quick, QUICK_SERVER).await;
        unmap(&mut quick, QUICK_SERVER).await;
        own_answers += 2;
        mappings += u64::from(!slow_call.is_finished());
    }
    phase.send_replace(Phase::Answered);
    let answers = ledger.answers() - before - own_answers;
    unmap(&mut slow_call.await.expect("the slow call is answered"), SLOW_SERVER).await;
    Meanwhile { answers, mappings }
}

/// Maps the share of a server that no client has.
async fn map(mappings: &mut Service, server: &str) {
    let _: NewSmbGlobalMappingResponse =
        mappings.must("NewSmbGlobalMapping", mapping(format!(r"\\{server}\share"))).await;
}

async fn unmap(mappings: &mut Service, server: &str) {
    let remove = RemoveSmbGlobalMappingRequest { remote_path: format!(r"\\{server}\share") };
    let _: RemoveSmbGlobalMappingResponse = mappings.must("RemoveSmbGlobalMapping", remove).await;
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
    place: Location,
    ledger: Arc<Ledger>,
    phase: watch::Receiver<Phase>,
    stage: Arc<Stage>,
) -> JoinHandle<Latencies> {
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(watch_the_clock(place, ledger, phase, stage))
    })
}

async fn watch_the_clock(
    place: Location,
    ledger: Arc<Ledger>,
    phase: watch::Receiver<Phase>,
    stage: Arc<Stage>,
) -> Latencies {
    let mut latencies = Latencies::default();
    let mut files = Service::connect(&place, "Filesystem", PRESENT.filesystem, &ledger).await;
    let request = PathExistsRequest { path: r"C:\var\lib\kubelet\plugins".to_owned() };
    while !stage.is_closed() {
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
