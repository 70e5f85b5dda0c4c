//! What the executor reports of requests in progress.

use std::sync::Arc;
use std::time::Duration;

use storage_ops::{
    ActiveRequest, Activity, Call, ConnectionId, DiskNumber, ErrorKind, Executor,
    ListDiskLocations, LockKey, Operation, PoolKind, RequestState,
};
use tokio::task::JoinHandle;

use crate::executor::{Gate, executor, map};
use crate::setup::{PARTITION, raw_disk, set_online};

const DAY: Duration = Duration::from_hours(24);

fn call(number: u64, label: &'static str) -> Call {
    Call {
        number,
        label,
        connection: ConnectionId(7),
        began: Duration::from_secs(number),
    }
}

fn start<O: Operation>(executor: &Arc<Executor>, number: u64, operation: O) -> JoinHandle<()> {
    let executor = Arc::clone(executor);
    tokio::spawn(async move { drop(executor.run_for(call(number, O::NAME), operation).await) })
}

/// Waits until the request of the call `number` is in `state`.
async fn reached(executor: &Executor, number: u64, state: &RequestState) -> Activity {
    loop {
        let activity = executor.activity();
        if find(&activity, number).is_some_and(|request| request.state == *state) {
            return activity;
        }
        tokio::task::yield_now().await;
    }
}

fn find(activity: &Activity, number: u64) -> Option<&ActiveRequest> {
    activity
        .requests
        .iter()
        .find(|request| request.call.is_some_and(|call| call.number == number))
}

/// A node with one disk, on which creating a partition and listing disks wait for the gate.
fn gated() -> (Arc<Executor>, Gate) {
    let gate = Gate::closed(|call| {
        call.primitive.contains("CreatePartition") || call.primitive.contains("wmi query")
    });
    let sim = raw_disk().build();
    let (executor, _) = executor(&sim, &gate);
    (executor, gate)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_tells_what_it_does_and_what_it_waits_for() {
    let (executor, gate) = gated();
    let disk = LockKey::Disk(DiskNumber(1));
    let first = start(&executor, 1, PARTITION);
    gate.reached_by(1).await;
    let second = start(&executor, 2, set_online(1, false));
    reached(&executor, 2, &RequestState::WaitingForLock(disk.clone())).await;
    let retry = start(&executor, 3, PARTITION);
    reached(&executor, 3, &RequestState::Joined(Some(1))).await;
    let read = start(&executor, 4, ListDiskLocations);
    let activity = reached(&executor, 4, &RequestState::Running(PoolKind::Wmi)).await;

    let first_request = find(&activity, 1).unwrap();
    assert!(
        matches!(first_request.state, RequestState::Running(_)),
        "{first_request:?}"
    );
    assert_eq!(
        (first_request.description.as_str(), first_request.has_caller),
        ("partition disk 1", true)
    );
    assert_eq!(first_request.call, Some(call(1, "PartitionDisk")));
    assert_eq!(activity.locks.len(), 1, "{:?}", activity.locks);
    let lock = &activity.locks[0];
    assert_eq!((&lock.key, lock.held_by_others), (&disk, 0));
    assert_eq!(
        (lock.held_by.as_slice(), lock.waiting.as_slice()),
        (&[1][..], &[2][..])
    );
    let busy: usize = activity.pools.iter().map(|pool| pool.busy).sum();
    assert_eq!(busy, 2, "{:?}", activity.pools);
    assert_eq!(
        (executor.coalesced_requests(), executor.lock_waits().waits),
        (1, 0)
    );

    // The operation has begun to change the disk, so it goes on without its callers.
    first.abort();
    retry.abort();
    while executor
        .activity()
        .requests
        .iter()
        .any(|request| request.has_caller && request.operation == "PartitionDisk")
    {
        tokio::task::yield_now().await;
    }
    let activity = executor.activity();
    assert!(!find(&activity, 1).unwrap().has_caller && find(&activity, 3).is_none());

    gate.open();
    second.await.unwrap();
    read.await.unwrap();
    executor.idle().await;
    assert_eq!(
        executor.lock_waits().waits,
        1,
        "the change of the state of the disk waited"
    );
    let counts = executor.node().wmi_calls();
    assert!(
        counts
            .iter()
            .any(|count| count.method == "query" && count.calls > 0),
        "{counts:?}"
    );
    let activity = executor.activity();
    assert!(
        activity.requests.is_empty() && activity.locks.is_empty(),
        "{activity:?}"
    );
    assert!(
        activity
            .pools
            .iter()
            .all(|pool| pool.busy == 0 && pool.waiting == 0),
        "{:?}",
        activity.pools
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_a_call_of_windows_has_kept_is_held_by_no_request() {
    let sim = raw_disk().build();
    // Longer than the time that passes until a busy machine has noticed the timeout of the
    // operation.
    sim.set_timing(|timing| timing.create_partition = 1000 * DAY);
    let (executor, _) = executor(&sim, &Gate::closed(|_| false));
    let partition = async |number, step| {
        let executor = Arc::clone(&executor);
        let calling = tokio::spawn(async move {
            executor
                .run_for(call(number, "PartitionDisk"), PARTITION)
                .await
        });
        while !calling.is_finished() {
            sim.advance(step);
            tokio::task::yield_now().await;
        }
        calling.await.expect("no panic")
    };
    let error = partition(1, Duration::from_millis(20))
        .await
        .expect_err("it does not end in time");
    assert_eq!(error.kind(), ErrorKind::StillRunning, "{error}");
    let activity = executor.activity();
    let [lock] = &activity.locks[..] else {
        panic!("{activity:?}")
    };
    assert_eq!(
        (&lock.key, &lock.held_by[..], lock.held_by_others),
        (&LockKey::Disk(DiskNumber(1)), &[][..], 1)
    );
    partition(2, DAY).await.expect("it waits for the lock");
    assert!(executor.activity().locks.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_waits_tells_its_pool_and_one_that_hangs_is_listed_until_it_ends_without_its_caller()
 {
    let (executor, gate) = gated();
    let reads: Vec<_> = (1..=10)
        .map(|number| start(&executor, number, ListDiskLocations))
        .collect();
    // The share of one connection: the last one waits for a thread.
    gate.reached_by(9).await;
    let wait = "waiting: the connection already uses its 9 of the 16 threads of pool wmi";
    let waiting = RequestState::WaitingForThread(wait.to_owned());
    let activity = loop {
        let activity = executor.activity();
        if activity
            .requests
            .iter()
            .any(|request| request.state == waiting)
        {
            break activity;
        }
        tokio::task::yield_now().await;
    };
    let pool = activity
        .pools
        .iter()
        .find(|pool| pool.pool == PoolKind::Wmi)
        .unwrap();
    assert_eq!((pool.threads, pool.busy, pool.waiting), (16, 9, 1));
    for read in reads {
        read.abort();
        assert!(read.await.unwrap_err().is_cancelled());
    }
    let activity = executor.activity();
    let running = RequestState::Running(PoolKind::Wmi);
    assert!(
        activity
            .requests
            .iter()
            .all(|request| request.state == running && !request.has_caller),
        "{activity:?}"
    );
    assert_eq!(
        activity.requests.len(),
        9,
        "a request without a thread ends with its caller: {activity:?}"
    );
    gate.open();
    while !executor.activity().requests.is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_of_a_mapping_names_neither_its_user_nor_the_password() {
    let gate = Gate::closed(|call| call.primitive == "wmi call MSFT_SmbGlobalMapping.Create");
    let sim = os_sim::node()
        .smb_server("files")
        .share("one")
        .user("user", "pw")
        .build();
    let (executor, _) = executor(&sim, &gate);
    let mapping = start(&executor, 1, map(r"\plugins\a"));
    gate.reached_by(1).await;
    let activity = format!("{:?}", executor.activity());
    assert!(activity.contains(r"map \\\\files\\one at C:"), "{activity}");
    assert!(
        !activity.contains("user\"")
            && !activity.contains(r"FILES\\user")
            && !activity.contains("pw"),
        "{activity}"
    );
    gate.open();
    mapping.await.unwrap();
}
