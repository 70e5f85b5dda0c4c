//! A call that takes half a minute, and the progress of the other clients during the call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::CLIENTS;
use crate::call_counts::CallCounts;
use crate::client::mapping;
use crate::daemon::{FAST_SERVER, SLOW_SERVER};
use crate::service_client::{Connections, ServiceClient};

/// Returns how long the slow call takes in a run of this duration. Part of a run is without it, even if the run is short.
pub(crate) fn duration(run: Duration) -> Duration {
    Duration::from_secs(30).min(run / 2)
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
pub(crate) async fn run(connections: Connections, counts: Arc<CallCounts>) -> Progress {
    const ATTEMPTS: u32 = 10;
    for _ in 0..ATTEMPTS {
        let progress = attempt(&connections, &counts).await;
        if progress.is_sufficient() {
            return progress;
        }
        println!("another attempt, since the progress during the slow call was: {progress}");
    }
    panic!("a slow call blocks all other calls");
}

async fn attempt(connections: &Connections, counts: &Arc<CallCounts>) -> Progress {
    let smb = || ServiceClient::connect(connections, "v1.Smb", counts);
    let (slow, fast) = (smb().await, smb().await);
    let answers_before = counts.answers();
    let slow_call = tokio::spawn(async move {
        map(&slow, SLOW_SERVER).await;
        slow
    });
    let (mut mappings, mut own_answers) = (0, 1);
    while !slow_call.is_finished() {
        map(&fast, FAST_SERVER).await;
        unmap(&fast, FAST_SERVER).await;
        own_answers += 2;
        mappings += u64::from(!slow_call.is_finished());
    }
    let answers = counts.answers() - answers_before - own_answers;
    unmap(&slow_call.await.expect("the slow call is answered"), SLOW_SERVER).await;
    Progress { answers, mappings }
}

/// Maps the share of a server that no other client uses.
async fn map(mappings: &ServiceClient, server: &str) {
    mappings.call_ok("NewSmbGlobalMapping", mapping(&format!(r"\\{server}\share"))).await;
}

async fn unmap(mappings: &ServiceClient, server: &str) {
    mappings.call_ok("RemoveSmbGlobalMapping", json!({"remote_path": format!(r"\\{server}\share")})).await;
}
