//! Client processes, which are killed, usually during a call.
//!
//! A client process is this same program with an environment variable that makes it a client. It writes an event to
//! standard output before it sends each call and after each answer, so that its calls are known after it is killed. Each
//! generation uses the same disks and paths as the one before, and must find nothing left behind: no lock that is held,
//! and no call that never ends.

use std::io::{BufRead as _, BufReader};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{env, fmt, thread};

use crate::call_counts::{CallCounts, CallEvent};
use crate::client::Client;
use crate::metrics::Metrics;
use crate::platform;
use crate::rng::Rng;
use crate::run_control::RunControl;
use crate::service_client::PREVIOUS;

/// The variable that makes this program a client: the client's number, how it ends, and the daemon's folder.
const CLIENT: &str = "CSI_PROXY_SOAK_CLIENT";

/// The longest time between a client's first call and its end. A cycle takes about as long.
const MAX_LIFETIME: Duration = Duration::from_millis(400);

/// How a client process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is killed.
    Killed,
    /// It exits after one cycle without a failure.
    Exited,
}

/// Runs a client if this process is one. Returns whether it was.
pub(crate) async fn run_as_client() -> bool {
    let Ok(client) = env::var(CLIENT) else { return false };
    let mut words = client.splitn(3, ' ');
    let mut word = || words.next().expect("three words");
    let (number, end, folder) = (word().parse().expect("a number"), word(), word());
    // The test runner may have written an incomplete line.
    println!();
    let client =
        Client::new(number, PREVIOUS, platform::location(Path::new(folder)), Arc::new(CallCounts::printing_events()));
    let control = if end == "exited" { RunControl::one_cycle() } else { RunControl::default() };
    client.run(Arc::new(control)).await;
    true
}

/// The client processes, one for each disk in a range.
pub(crate) struct ClientProcesses {
    numbers: RangeInclusive<u32>,
    folder: PathBuf,
    counts: Arc<CallCounts>,
    rng: Rng,
    kills: Kills,
}

/// How many client processes were killed, and how many of them during a call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kills {
    processes: u64,
    pub(crate) during_a_call: u64,
}

impl ClientProcesses {
    pub(crate) fn new(numbers: RangeInclusive<u32>, folder: PathBuf, counts: Arc<CallCounts>) -> Self {
        let rng = Rng::new(*numbers.start());
        Self { numbers, folder, counts, rng, kills: Kills::default() }
    }

    /// Runs generations of clients. All are killed but those of the last, which exit.
    ///
    /// After each generation the daemon must end all its calls. A client therefore starts after the calls of its
    /// predecessor have ended, and fails only if a process that no longer exists still holds a resource.
    pub(crate) async fn run(mut self, metrics: Metrics, control: Arc<RunControl>) -> Kills {
        loop {
            let last = control.is_stopping();
            let generation = move || {
                self.run_generation(if last { End::Exited } else { End::Killed });
                self
            };
            self = tokio::task::spawn_blocking(generation).await.expect("a client process failed, see above");
            metrics.when_idle(&PREVIOUS.services()).await;
            if last {
                return self.kills;
            }
        }
    }

    fn run_generation(&mut self, end: End) {
        // All start before the first is killed.
        let start = |number| ClientProcess::start(number, &self.folder, &self.counts, end);
        let clients: Vec<_> = self.numbers.clone().map(start).collect();
        for client in clients {
            match end {
                End::Killed => {
                    self.kills.processes += 1;
                    self.kills.during_a_call += u64::from(client.kill_after(self.rng.duration_below(MAX_LIFETIME)));
                }
                End::Exited => client.wait(),
            }
        }
    }
}

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} client processes killed, {} of them during a call", self.processes, self.during_a_call)
    }
}

/// A client process.
struct ClientProcess {
    child: Child,
    /// Receives a message when its first call has begun.
    begun: mpsc::Receiver<()>,
    /// Counts its events, and returns whether it ended during a call.
    reader: JoinHandle<bool>,
}

impl ClientProcess {
    fn start(number: u32, folder: &Path, counts: &Arc<CallCounts>, end: End) -> Self {
        let end = if end == End::Exited { "exited" } else { "killed" };
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", crate::TEST, "--nocapture"])
            .env(CLIENT, format!("{number} {end} {}", folder.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = child.stdout.take().expect("a pipe");
        let (first_call, begun) = mpsc::channel();
        let counts = Arc::clone(counts);
        Self { child, begun, reader: thread::spawn(move || count_events(output, &counts, &first_call)) }
    }

    /// Kills it `delay` after its first call has begun. Returns whether that was during a call.
    fn kill_after(mut self, delay: Duration) -> bool {
        self.begun.recv().expect("a client process begins a call, or see above");
        thread::sleep(delay);
        let ended = self.child.try_wait().expect("a child process");
        assert!(ended.is_none(), "a client process exited, see above");
        self.child.kill().expect("a running process");
        self.child.wait().expect("an exit code");
        self.reader.join().expect("no panic")
    }

    fn wait(mut self) {
        let status = self.child.wait().expect("an exit code");
        assert!(status.success(), "a client process failed after its predecessor was killed, see above");
        assert!(!self.reader.join().expect("no panic"), "a call of a client process that exited was not answered");
    }
}

/// Counts the events that a client process writes. A call without an end was abandoned. Returns whether there was one.
fn count_events(output: ChildStdout, counts: &CallCounts, first_call: &mpsc::Sender<()>) -> bool {
    let mut pending = None;
    let (mut output, mut line) = (BufReader::new(output), String::new());
    // The last line may be incomplete.
    while output.read_line(&mut line).is_ok() && line.ends_with('\n') {
        if let Some(event) = CallEvent::parse(line.trim_end()) {
            counts.add(&event);
            pending = match event {
                CallEvent::Sent(call) => Some(call.to_owned()),
                CallEvent::Answered(..) | CallEvent::Abandoned(_) => None,
            };
            // After the first event the receiver may have been dropped.
            let _ = first_call.send(());
        }
        line.clear();
    }
    if let Some(call) = &pending {
        counts.add_abandoned(call);
    }
    pending.is_some()
}
