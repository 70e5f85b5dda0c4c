//! Clients that are processes and are killed, in the middle of a call as a rule.
//!
//! Such a client is this same program, told by its environment whose part to play. It writes its ledger to standard
//! output before each call goes out and after each answer, so what it had done is known when it is gone. Each generation
//! of them begins where the one before was cut off, on the same disks and the same paths, and must find nothing held
//! back: no lock, no call that never ends.

use std::io::{BufRead as _, BufReader};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{env, fmt, thread};

use crate::client::Client;
use crate::ledger::{Entry, Ledger};
use crate::metrics::Metrics;
use crate::random::Random;
use crate::service::FORMER;
use crate::stage::Stage;
use crate::system;

/// The variable that makes a client of this program: its number, how it ends, and where the daemon is.
const PART: &str = "CSI_PROXY_SOAK_CLIENT";

/// How long a client may live once it has begun its first call. A cycle takes about as long.
const LIFE: Duration = Duration::from_millis(400);

/// How a client ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// By being killed.
    Killed,
    /// By itself, after one cycle in which nothing failed.
    Done,
}

/// Plays a client's part, where this process is one, and says whether it was.
pub(crate) async fn played() -> bool {
    let Ok(part) = env::var(PART) else { return false };
    let mut words = part.splitn(3, ' ');
    let mut word = || words.next().expect("three words");
    let (number, end, folder) = (word().parse().expect("a number"), word(), word());
    // The runner may have begun a line.
    println!();
    let client = Client::new(number, FORMER, system::place(Path::new(folder)), Arc::new(Ledger::written()));
    let stage = if end == "done" { Stage::closed() } else { Stage::default() };
    client.work(Arc::new(stage)).await;
    true
}

/// The clients that are processes, one for each of some disks.
pub(crate) struct Processes {
    numbers: RangeInclusive<u32>,
    folder: PathBuf,
    ledger: Arc<Ledger>,
    random: Random,
    killed: Killed,
}

/// How many were killed, and how many of those within a call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Killed {
    processes: u64,
    pub(crate) within_a_call: u64,
}

impl Processes {
    pub(crate) fn new(numbers: RangeInclusive<u32>, folder: PathBuf, ledger: Arc<Ledger>) -> Self {
        let random = Random::new(*numbers.start());
        Self { numbers, folder, ledger, random, killed: Killed::default() }
    }

    /// Generation after generation is killed; the last one comes to its end.
    ///
    /// After each the daemon must come to the end of all that it was asked for: no call is left without its client. So
    /// what a client began last is over when its successor begins, and what then fails is held by somebody who is gone.
    pub(crate) async fn live(mut self, metrics: Metrics, stage: Arc<Stage>) -> Killed {
        loop {
            let last = stage.is_closed();
            let generation = move || {
                self.generation(if last { End::Done } else { End::Killed });
                self
            };
            self = tokio::task::spawn_blocking(generation).await.expect("a client failed, for the reason above");
            metrics.once_ended(&FORMER.services()).await;
            if last {
                return self.killed;
            }
        }
    }

    fn generation(&mut self, end: End) {
        // All live before the first is killed.
        let start = |number| Process::start(number, &self.folder, &self.ledger, end);
        let clients: Vec<_> = self.numbers.clone().map(start).collect();
        for client in clients {
            match end {
                End::Killed => {
                    self.killed.processes += 1;
                    self.killed.within_a_call += u64::from(client.kill_after(self.random.time_below(LIFE)));
                }
                End::Done => client.finish(),
            }
        }
    }
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} client processes killed, {} of them within a call", self.processes, self.within_a_call)
    }
}

/// A client that is a process.
struct Process {
    child: Child,
    /// Told once its first call has begun.
    begun: mpsc::Receiver<()>,
    /// Copies its ledger to its end, and says whether that was within a call.
    copying: JoinHandle<bool>,
}

impl Process {
    fn start(number: u32, folder: &Path, ledger: &Arc<Ledger>, end: End) -> Self {
        let end = if end == End::Done { "done" } else { "killed" };
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", crate::TEST, "--nocapture"])
            .env(PART, format!("{number} {end} {}", folder.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = child.stdout.take().expect("a pipe");
        let (first_call, begun) = mpsc::channel();
        let ledger = Arc::clone(ledger);
        Self { child, begun, copying: thread::spawn(move || copy(output, &ledger, &first_call)) }
    }

    /// Kills it some time after its first call has begun, and says whether it was within one.
    fn kill_after(mut self, life: Duration) -> bool {
        self.begun.recv().expect("it begins a call: above is why it did not");
        thread::sleep(life);
        let ended = self.child.try_wait().expect("a process");
        assert!(ended.is_none(), "a client ended by itself, for the reason above");
        self.child.kill().expect("a process");
        self.child.wait().expect("an end");
        self.copying.join().expect("a ledger")
    }

    fn finish(mut self) {
        let status = self.child.wait().expect("an end");
        assert!(status.success(), "a client that came after one that was killed failed, for the reason above");
        assert!(!self.copying.join().expect("a ledger"), "each of its calls was answered");
    }
}

/// Enters what a client writes; a call that it never told the end of was abandoned.
fn copy(output: ChildStdout, ledger: &Ledger, first_call: &mpsc::Sender<()>) -> bool {
    let mut under_way = None;
    let (mut output, mut line) = (BufReader::new(output), String::new());
    // A last line that was cut off is none.
    while output.read_line(&mut line).is_ok() && line.ends_with('\n') {
        if let Some(entry) = Entry::parse(line.trim_end()) {
            ledger.enter(&entry);
            under_way = match entry {
                Entry::Sent(call) => Some(call.to_owned()),
                Entry::Answered(..) | Entry::Abandoned(_) => None,
            };
            // Nobody listens any more but for the first.
            let _ = first_call.send(());
        }
        line.clear();
    }
    if let Some(call) = &under_way {
        ledger.abandoned(call);
    }
    under_way.is_some()
}
