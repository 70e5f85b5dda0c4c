//! The status of a server: what runs now, what waits for what, and what has failed.
//!
//! `/statusz?format=json` returns the fields of `Status` and further fields of the program. Fields
//! may be added, but are not renamed or removed. All durations are in seconds. No field contains a
//! secret or the name of a user; `object`, `key` and `message` contain text that came from clients:
//! escape it before showing it on a terminal.
//!
//! Most texts are worded elsewhere: `state` in `storage_ops::RequestState` (`executor/activity.rs`;
//! waits for a thread: `scheduling/quotas.rs`), `key` in `storage_ops::LockKey`
//! (`scheduling/locks.rs`), `object` in the `describe` of each operation.
//!
//! ```json
//! {
//!   "calls": [{"call": 17, "rpc": "/v1.Volume/FormatVolume", "object": "format volume \\\\?\\Volume{...}\\",
//!              "seconds": 12.5, "connection": 3, "has_caller": true, "state": "waiting for lock disk 2"}],
//!   "pools": [{"name": "disks", "threads": 16, "busy": 1, "waiting": 0}],
//!   "locks": [{"key": "disk 2", "held_by": [16], "held_by_others": 0, "waiting": [17]}],
//!   "counts": {"connections": 4, "in_flight": 2, "in_transfer": 0, "waiting_for_slot": 0, "operations": 2},
//!   "rpcs": [{"rpc": "/v1.Volume/FormatVolume", "started": 2, "succeeded": 1, "failed": 0, "mean_seconds": 1.5,
//!             "max_seconds": 2.0}],
//!   "failures": [{"call": 9, "rpc": "/v1.Volume/MountVolume", "code": "NotFound", "message": "cannot mount ...",
//!                 "seconds_ago": 60.0, "count": 1}],
//!   "last_seen": {"disks": [{"disk": 2, "serial_number": "a", "page83": "b", "adapter": "0", "bus": "0",
//!                            "target": "0", "lun": "1", "seconds_ago": 9.0}],
//!                 "mounts": [{"path": "C:\\a", "source": "\\\\?\\Volume{...}\\", "disk": 2, "seconds_ago": 9.0}],
//!                 "mappings": [{"remote": "\\\\server\\share", "seconds_ago": 9.0}]}
//! }
//! ```

use std::time::Duration;

use serde::Serialize;
use storage_ops::{ActiveRequest, Activity, LockUse, PoolUse};
use tokio::time::Instant;

use crate::admission::connections::calls::WaitingCall;
use crate::drain::readiness::NotReady;
use crate::metrics::registry::Metrics;
use crate::metrics::rpc::RpcMetrics;
use crate::seconds::seconds;
pub use crate::server_state::failures::Failure;
pub use crate::server_state::last_seen::{LastSeen, SeenDisk, SeenMapping, SeenMount};

/// The status of a server at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The calls whose operation has been requested, and operations that continue without their
    /// caller, in the order of their arrival. Then the calls that wait for a slot.
    pub calls: Vec<RunningCall>,
    /// The pools of worker threads.
    pub pools: Vec<Pool>,
    /// The objects that are locked, or that a call waits for.
    pub locks: Vec<Lock>,
    /// The numbers of connections, calls and operations.
    pub counts: Counts,
    /// The RPCs that have been called.
    pub rpcs: Vec<RpcSummary>,
    /// The last failures, the last one first; one for each RPC and code.
    pub failures: Vec<Failure>,
    /// What calls have last seen of the node, which may have changed since.
    pub last_seen: LastSeen,
}

/// A call in progress.
#[derive(Clone, Debug, Serialize)]
pub struct RunningCall {
    /// The number of the call, which the log has as `id`; `null` for an operation that no call
    /// requested.
    pub call: Option<u64>,
    /// The path of the RPC, or the name of an operation that no call requested.
    pub rpc: &'static str,
    /// What is done to which object, such as `partition disk 2`.
    pub object: String,
    /// How long the call has been in progress.
    pub seconds: f64,
    /// The number of its connection, which stands for its client.
    pub connection: Option<u64>,
    /// Whether its caller still waits for the result.
    pub has_caller: bool,
    /// `running`, `starting`, `waiting for lock KEY`, `waiting for a slot`,
    /// `sharing the result of call NUMBER`, which requested the same, or what keeps the call from a
    /// thread, such as `waiting: disk 5 already uses its 5 of the 16 threads of pool disks`.
    pub state: String,
}

/// A pool of worker threads.
#[derive(Clone, Debug, Serialize)]
pub struct Pool {
    /// Its name, such as `disks`.
    pub name: &'static str,
    /// The maximum number of threads.
    pub threads: usize,
    /// The number of threads in use.
    pub busy: usize,
    /// The number of operations that wait for a thread.
    pub waiting: usize,
}

/// A lock.
#[derive(Clone, Debug, Serialize)]
pub struct Lock {
    /// The locked object, such as `disk 2`.
    pub key: String,
    /// The numbers of the calls that hold the lock.
    pub held_by: Vec<u64>,
    /// The number of Windows calls that hold the lock although their request has ended.
    pub held_by_others: usize,
    /// The numbers of the calls that wait for the lock, in their order.
    pub waiting: Vec<u64>,
}

/// The numbers of connections, calls and operations.
#[derive(Clone, Debug, Serialize)]
pub struct Counts {
    /// Open connections.
    pub connections: usize,
    /// Calls from their headers until the client has read the response.
    pub in_flight: usize,
    /// Of these, the calls whose request is incomplete or whose response the client has not read.
    pub in_transfer: usize,
    /// Calls that wait for a slot.
    pub waiting_for_slot: usize,
    /// Changes that run or wait, including changes without a caller.
    pub operations: usize,
}

/// An RPC that has been called.
#[derive(Clone, Debug, Serialize)]
pub struct RpcSummary {
    /// The path of the RPC.
    pub rpc: &'static str,
    /// How many calls have been started.
    pub started: u64,
    /// How many calls have succeeded.
    pub succeeded: u64,
    /// How many calls have failed.
    pub failed: u64,
    /// How long a call takes on average.
    pub mean_seconds: Option<f64>,
    /// How long the longest call has taken.
    pub max_seconds: Option<f64>,
}

impl Metrics {
    /// Returns why the server is not ready, unless all of its endpoints accept connections.
    pub fn check_ready(&self) -> Result<(), NotReady> {
        self.state().readiness.check()
    }

    /// Returns the status of the server now.
    pub fn status(&self) -> Status {
        let state = self.state();
        let Activity {
            requests,
            pools,
            locks,
        } = state.executor.activity();
        let now = state.since_start(Instant::now());
        let counts = state.connections.counts();
        let running = requests
            .into_iter()
            .map(|request| RunningCall::new(request, now));
        let waiting = state
            .connections
            .waiting_calls()
            .into_iter()
            .map(|call| RunningCall::waiting(call, now));
        Status {
            calls: running.chain(waiting).collect(),
            pools: pools.into_iter().map(Pool::from).collect(),
            locks: locks.into_iter().map(Lock::from).collect(),
            counts: Counts {
                connections: counts.busy
                    + counts.idle
                    + counts.leaving
                    + counts.silent
                    + counts.unused,
                in_flight: counts.calls,
                in_transfer: counts.transferring(),
                waiting_for_slot: counts.waiting,
                operations: state.executor.running(),
            },
            rpcs: self.rpcs().filter_map(RpcSummary::of).collect(),
            failures: state.failures.list(),
            last_seen: state.last_seen.list(),
        }
    }
}

impl RunningCall {
    pub(crate) fn new(request: ActiveRequest, now: Duration) -> Self {
        let ActiveRequest {
            call,
            operation,
            description,
            has_caller,
            state,
        } = request;
        Self {
            call: call.map(|call| call.number),
            rpc: call.map_or(operation, |call| call.label),
            object: description,
            seconds: seconds(call.map_or(Duration::ZERO, |call| now.saturating_sub(call.began))),
            connection: call.map(|call| call.connection.0),
            has_caller,
            state: state.to_string(),
        }
    }

    /// Returns a call that waits for a slot.
    fn waiting(WaitingCall { call, object }: WaitingCall, now: Duration) -> Self {
        Self {
            call: Some(call.number),
            rpc: call.label,
            object,
            seconds: seconds(now.saturating_sub(call.began)),
            connection: Some(call.connection.0),
            has_caller: true,
            state: "waiting for a slot".to_owned(),
        }
    }
}

impl From<PoolUse> for Pool {
    fn from(
        PoolUse {
            pool,
            threads,
            busy,
            waiting,
            ..
        }: PoolUse,
    ) -> Self {
        Self {
            name: pool.name(),
            threads,
            busy,
            waiting,
        }
    }
}

impl From<LockUse> for Lock {
    fn from(
        LockUse {
            key,
            held_by,
            held_by_others,
            waiting,
        }: LockUse,
    ) -> Self {
        Self {
            key: key.to_string(),
            held_by,
            held_by_others,
            waiting,
        }
    }
}

impl RpcSummary {
    /// Returns the summary of an RPC that has been called.
    fn of(metrics: &RpcMetrics) -> Option<Self> {
        let started = metrics.calls_started();
        (started > 0).then(|| Self {
            rpc: metrics.rpc.path,
            started,
            succeeded: metrics.calls_succeeded(),
            failed: metrics.calls_failed(),
            mean_seconds: metrics.mean().map(seconds),
            max_seconds: metrics.max().map(seconds),
        })
    }
}
