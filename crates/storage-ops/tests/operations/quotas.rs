//! Tests of the quotas of the worker threads that connections and resources have.

use std::sync::Arc;

use os::OsError;
use storage_ops::{ConnectionId, Error, Executor, Operation};
use tokio::task::JoinHandle;

use crate::executor::{Gate, executor, settled};
use crate::setup::map;

const USER: &str = r"FILES\user";

pub(crate) fn spawn_for<O: Operation>(
    executor: &Arc<Executor>,
    connection: u64,
    operation: O,
) -> JoinHandle<Result<O::Output, Error>> {
    let executor = Arc::clone(executor);
    tokio::spawn(async move { executor.run_for(ConnectionId(connection), operation).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn contract_05_calls_to_a_slow_server_do_not_delay_a_mapping_on_another_server() {
    let sim = os_sim::node()
        .smb_server("files")
        .share("one")
        .user("user", "pw")
        .build();
    let gate = Gate::closed(|call| call.is_wmi() && call.object.contains("slow"));
    let (executor, _) = executor(&sim, &gate);
    // All of one driver, which has one connection.
    let slow: Vec<_> = (0..400)
        .map(|n| spawn_for(&executor, 1, map(&format!(r"\\slow\share{n}"), USER, "pw")))
        .collect();
    gate.reached_by(5).await;
    settled().await;
    executor
        .run_for(ConnectionId(1), map(r"\\files\one", USER, "pw"))
        .await
        .unwrap();
    gate.open();
    for one in slow {
        assert_eq!(
            one.await.unwrap().unwrap_err().code(),
            Some(OsError::BAD_NETPATH),
            "there is no such server"
        );
    }
}
