//! Tests of the executor where several pools, locks or callers meet.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use faults::{Call, Fault, FaultAction, Outcome, Probe, Probed, When};
use os::OsError;
use os_sim::Sim;
use storage_ops::{
    AddTargetPortal, Authentication, Config, ConnectTarget, DisconnectTarget, DiscoverTargetPortal,
    Error, Executor, GetTargetDisks, Iqn, IsSymlink, ListDiskLocations, Node, Rescan, SecretText,
    ServiceName, StartService, StopService, TargetPortal,
};
use tokio::task::JoinHandle;

use crate::executor::{Gate, executor, settled};
use crate::quotas::spawn_for;
use crate::setup::{
    GIB, contents, exists, is_link, mkdir, partitioned_disk, path, raw_disk, set_online,
};

/// Returns an executor on `sim` whose calls pass `gate`.
fn behind(gate: &Gate, sim: &Sim) -> Arc<Executor> {
    executor(sim, gate).0
}

pub(crate) fn spawn<O: storage_ops::Operation>(
    executor: &Arc<Executor>,
    operation: O,
) -> JoinHandle<Result<O::Output, Error>> {
    let executor = Arc::clone(executor);
    tokio::spawn(async move { executor.run(operation).await })
}

#[tokio::test]
async fn callers_that_cancel_while_they_wait_for_their_second_pool_use_no_thread_of_it() {
    static OPENED: AtomicUsize = AtomicUsize::new(0);
    let sim = os_sim::node()
        .symlink(r"C:\var\lib\kubelet\plugins\share", r"\\files\one\")
        .build();
    let gate = Gate::closed(|call| {
        let is_remote = call.object.contains("UNC");
        OPENED.fetch_add(usize::from(is_remote), Ordering::SeqCst);
        is_remote
    });
    let (executor, _) = executor(&sim, &gate);
    let ask = || spawn(&executor, is_link(r"\plugins\share"));
    let running: Vec<_> = (0..5).map(|_| ask()).collect();
    gate.reached_by(5).await;
    let waiting: Vec<_> = (0..300).map(|_| ask()).collect();
    assert!(
        !ends(&waiting[0]).await,
        "the server has its share of the threads"
    );
    for one in &waiting {
        one.abort();
    }
    gate.open();
    for one in running {
        assert!(one.await.unwrap().is_ok());
    }
    assert_eq!(OPENED.load(Ordering::SeqCst), 5);
    ask().await.unwrap().unwrap();
    assert_eq!(OPENED.load(Ordering::SeqCst), 6);
}

/// Returns whether `request` ends although nothing that it should wait for has happened. Waits long
/// enough for one that does.
pub(crate) async fn ends<T>(request: &JoinHandle<T>) -> bool {
    for _ in 0..50 {
        settled().await;
        std::thread::sleep(Duration::from_millis(2));
    }
    request.is_finished()
}

#[test]
fn a_request_on_a_runtime_that_shuts_down_returns() {
    let sim = raw_disk().build();
    let (executor, _) = executor(&sim, &Gate::closed(|_| false));
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let handle = runtime.handle().clone();
    runtime.shutdown_background();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _in_runtime = handle.enter();
        let mut run = std::pin::pin!(executor.run(Rescan));
        loop {
            if let Poll::Ready(result) = run.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            {
                return sender.send(result.is_err());
            }
            std::thread::yield_now();
        }
    });
    let returned = receiver.recv_timeout(Duration::from_secs(20));
    assert_eq!(returned, Ok(true), "the request ends with an error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_locked_while_its_parent_is_emptied() {
    let sim = os_sim::node().dir(r"C:\var\lib\kubelet\plugins\p").build();
    let gate = Gate::closed_after(|call, outcome| {
        call.primitive == "list" && matches!(outcome, Outcome::Failed(_))
    });
    let executor = behind(&gate, &sim);
    let empty = || spawn(&executor, contents(r"\plugins\p"));
    let first = empty();
    gate.reached_by(1).await;
    let child = spawn(&executor, mkdir(r"\plugins\p\c"));
    assert!(!ends(&child).await, "the parent is locked");
    gate.open();
    first.await.unwrap().unwrap();
    child.await.unwrap().unwrap();
    empty().await.unwrap().unwrap();
    let exists = executor.run(exists(r"\plugins\p\c")).await.unwrap();
    assert!(
        !exists,
        "a request to empty the directory that is made later removes it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_locked_for_requests_through_all_portals() {
    const TARGET: &str = "iqn.2001-04.com.example:t";
    let sim = os_sim::node()
        .iscsi_portal("10.0.0.1", 3260)
        .target(TARGET)
        .lun(GIB)
        .build();
    let gate = Gate::closed_after(|call, _| {
        call.is_wmi() && call.object.contains("MSFT_iSCSISessionToDisk")
    });
    let executor = behind(&gate, &sim);
    let portal = TargetPortal::parse("10.0.0.1", 0).unwrap();
    let iqn = Iqn::parse(TARGET).unwrap();
    executor
        .run(AddTargetPortal {
            portal: portal.clone(),
        })
        .await
        .unwrap();
    executor
        .run(DiscoverTargetPortal {
            portal: portal.clone(),
        })
        .await
        .unwrap();
    let connect = || {
        spawn(
            &executor,
            ConnectTarget {
                portal: portal.clone(),
                iqn: iqn.clone(),
                authentication: Authentication::None,
                username: SecretText::default(),
                secret: SecretText::default(),
            },
        )
    };
    let first = connect();
    gate.reached_by(1).await;
    // A name may be that of the same portal.
    let other = TargetPortal::parse("storage.test", 0).unwrap();
    let disconnect = spawn(
        &executor,
        DisconnectTarget {
            portal: other,
            iqn: iqn.clone(),
        },
    );
    assert!(!ends(&disconnect).await, "the target is locked");
    gate.open();
    first.await.unwrap().unwrap();
    disconnect.await.unwrap().unwrap();
    connect().await.unwrap().unwrap();
    let disks = executor
        .run(GetTargetDisks {
            portal: portal.clone(),
            iqn: iqn.clone(),
        })
        .await
        .unwrap();
    assert_eq!(
        disks.len(),
        1,
        "the request that is made later connects again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_not_stopped_with_its_base_while_it_is_started() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    let sim = os_sim::node();
    let sim = sim
        .service("base", "Base")
        .running()
        .service("dependent", "Dependent")
        .depends_on("base")
        .build();
    // The start has seen the service run, and has not returned yet.
    let gate = Gate::closed_after(|call, _| {
        STARTED.fetch_or(call.primitive.contains("start"), Ordering::SeqCst);
        call.primitive.contains("state") && STARTED.load(Ordering::SeqCst)
    });
    let executor = behind(&gate, &sim);
    let start = spawn(
        &executor,
        StartService {
            name: ServiceName::parse("dependent").unwrap(),
        },
    );
    gate.reached_by(1).await;
    let stop = spawn(
        &executor,
        StopService {
            name: ServiceName::parse("base").unwrap(),
            force: true,
        },
    );
    assert!(!ends(&stop).await, "the dependent service is locked");
    gate.open();
    start.await.unwrap().unwrap();
    stop.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_has_changed_something_needs_no_share_of_its_next_pool() {
    let sim = partitioned_disk().offline().read_only().build();
    let gate = Gate::closed(|call| call.primitive == "wmi query" && !call.object.contains("WHERE"));
    let fault = Fault::at(1, When::Before, FaultAction::Fail(OsError::GEN_FAILURE))
        .among(|call| call.primitive == "control DISK_SET_DISK_ATTRIBUTES");
    let probes: Vec<Arc<dyn Probe>> = vec![gate.probe(), Arc::new(fault)];
    let node = Node::new(
        Arc::new(Probed::new(sim.process(), probes)),
        Config::default(),
    );
    let executor = Arc::new(Executor::new(Arc::new(node)));
    // The connection has its share of the threads for WMI, and more of its operations wait.
    let queries: Vec<_> = (0..20)
        .map(|_| spawn_for(&executor, 1, ListDiskLocations))
        .collect();
    gate.reached_by(9).await;
    assert!(!ends(&queries[19]).await);
    spawn_for(&executor, 1, set_online(1, true))
        .await
        .unwrap()
        .unwrap();
    assert!(!sim.disk(1).unwrap().offline);
    assert!(!ends(&queries[19]).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_local_files_that_hang_delay_nothing_else() {
    let sim = os_sim::node().build();
    let gate = Gate::closed(|call| call.object.contains("hung"));
    let (executor, _) = executor(&sim, &gate);
    let hung: Vec<_> = (0..10)
        .map(|_| spawn(&executor, exists(r"\pods\hung")))
        .collect();
    gate.reached_by(10).await;
    for _ in 0..1000 {
        assert!(spawn(&executor, exists(r"\pods")).await.unwrap().unwrap());
    }
    gate.open();
    for one in hung {
        assert!(!one.await.unwrap().unwrap());
    }
}

/// Records the paths that one thread opens.
struct OpensOf(std::thread::ThreadId, Mutex<Vec<String>>);

impl Probe for OpensOf {
    fn before(&self, call: &Call) -> FaultAction {
        if call.primitive == "open" && std::thread::current().id() == self.0 {
            self.1.lock().unwrap().push(call.object.to_lowercase());
        }
        FaultAction::Go
    }
}

fn kubelet(name: &str) -> String {
    format!(r"C:\var\lib\kubelet\{name}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_leads_to_a_server_is_not_followed_on_the_thread_that_polls() {
    let sim = os_sim::node()
        .smb_server("files")
        .share("one")
        .guest()
        .symlink(&kubelet(r"plugins\share"), r"\\files\one\")
        .symlink(&kubelet("local"), &kubelet("plugins"))
        .symlink(
            &kubelet(r"pods\below"),
            &kubelet(r"plugins\share\directory"),
        )
        .symlink(&kubelet(r"plugins\relative"), "share")
        .symlink(&kubelet(r"pods\loop"), &kubelet(r"pods\loop\loop"))
        .build();
    for name in [
        r"local\share\x",
        r"pods\below",
        r"pods\below\x",
        r"plugins\relative",
        r"plugins\relative\x",
        r"pods\loop",
    ] {
        let opens = Arc::new(OpensOf(std::thread::current().id(), Mutex::default()));
        let probes: Vec<Arc<dyn Probe>> = vec![Arc::clone(&opens) as Arc<dyn Probe>];
        let node = Node::new(
            Arc::new(Probed::new(sim.process(), probes)),
            Config::default(),
        );
        let executor = Arc::new(Executor::new(Arc::new(node)));
        let target = path(&kubelet(name));
        let _ = executor
            .run(IsSymlink {
                path: target.clone(),
            })
            .await;
        let opens = std::mem::take(&mut *opens.1.lock().unwrap());
        assert!(!opens.is_empty(), "the read begins on this thread");
        let through = [r"share\", r"below\", r"relative\", r"\unc\"];
        let led: Vec<_> = opens
            .iter()
            .filter(|object| through.iter().any(|part| object.contains(part)))
            .collect();
        assert!(led.is_empty(), "{name}: {led:?}");
        let relative = opens
            .iter()
            .filter(|object| object.ends_with(r"\relative"))
            .count();
        assert!(
            relative <= 1,
            "{name}: the link is opened, but not followed"
        );
    }
}
