//! Tests of which changes of paths wait for each other. A mapping of a server that does not answer
//! holds the lock of its link.

use std::sync::Arc;

use faults::Probed;
use os_sim::Sim;
use storage_ops::{
    Config, CreateSymlink, Error,
    ErrorKind::{self, AlreadyExists, FailedPrecondition, PermissionDenied},
    Executor, HostPath, Mkdir, MountVolume, NewSmbGlobalMapping, Node, Operation, PathContext,
    Rmdir, RmdirContents, UnmountVolume, VolumeId,
};
use tokio::task::JoinHandle;

use crate::concurrency::{ends, spawn};
use crate::executor::Gate;
use crate::setup::{GIB, KUBELET, node_on, path, volume_on};

const CREATE: &str = "wmi call MSFT_SmbGlobalMapping.Create";

fn map(share: &str, local: &HostPath) -> NewSmbGlobalMapping {
    NewSmbGlobalMapping {
        local: Some(local.clone()),
        ..crate::setup::map(share, r"FILES\user", "pw")
    }
}

fn mkdir(path: &HostPath) -> Mkdir {
    Mkdir {
        path: path.clone(),
        context: None,
    }
}

fn rmdir(path: &HostPath, force: bool) -> Rmdir {
    Rmdir {
        path: path.clone(),
        context: None,
        force,
    }
}

fn link(path: &HostPath) -> CreateSymlink {
    CreateSymlink {
        source: crate::setup::path(r"\plugins"),
        target: path.clone(),
    }
}

fn mount(volume: VolumeId, target: &HostPath) -> MountVolume {
    MountVolume {
        volume,
        target: target.clone(),
    }
}

fn unmount(volume: VolumeId, target: &HostPath) -> UnmountVolume {
    UnmountVolume {
        volume,
        target: target.clone(),
    }
}

/// An executor on a node with a mapping in progress, whose server does not answer.
struct Slow {
    executor: Arc<Executor>,
    mapping: JoinHandle<Result<(), Error>>,
    gate: Gate,
}

impl Slow {
    async fn mapping_at(sim: &Sim, local: &str) -> Self {
        let gate = Gate::closed(|call| call.primitive == CREATE);
        let config = Config::default().with(|c| c.pod_dir = Some(path(r"\pods")));
        let node = Node::new(Arc::new(Probed::new(sim.process(), gate.probe())), config);
        let executor = Arc::new(Executor::new(Arc::new(node)));
        let mapping = spawn(&executor, map(r"\\files\one", &path(local)));
        gate.reached_by(1).await;
        Self {
            executor,
            mapping,
            gate,
        }
    }

    /// Runs `operation`, which must not wait for the mapping.
    async fn at_once<O: Operation>(&self, operation: O) -> Result<O::Output, Error> {
        let what = format!("{operation:?}");
        let request = spawn(&self.executor, operation);
        for _ in 0..100 {
            if request.is_finished() || ends(&request).await {
                return request.await.unwrap();
            }
        }
        panic!("waits for the mapping: {what}")
    }

    async fn refused<O: Operation>(&self, operation: O, kind: ErrorKind)
    where
        O::Output: std::fmt::Debug,
    {
        let what = format!("{operation:?}");
        assert_eq!(
            self.at_once(operation).await.unwrap_err().kind(),
            kind,
            "{what}"
        );
    }

    /// Checks that no change of the entry at a path is allowed, and that each is refused at once.
    async fn refuses_changes_of(&self, at: &HostPath, volume: VolumeId) {
        let contents = RmdirContents { path: at.clone() };
        self.refused(rmdir(at, true), PermissionDenied).await;
        self.refused(rmdir(at, false), PermissionDenied).await;
        self.refused(contents, PermissionDenied).await;
        self.refused(link(at), PermissionDenied).await;
        self.refused(mount(volume, at), PermissionDenied).await;
        self.refused(unmount(volume, at), PermissionDenied).await;
        let map = map(r"\\files\two", at);
        self.refused(map, PermissionDenied).await;
    }

    async fn answer(self) {
        self.gate.open();
        self.mapping.await.unwrap().unwrap();
    }
}

fn with_share() -> os_sim::Builder {
    os_sim::node()
        .smb_server("files")
        .share("one")
        .user("user", "pw")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_a_path_that_is_refused_waits_for_nothing_and_delays_no_other() {
    let sim = with_share()
        .dir(r"C:\var\lib\kubelet\plugins")
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    let volume = volume_on(&node_on(&sim), 1);
    let slow = Slow::mapping_at(&sim, r"\plugins\slow").await;
    let deep = format!(r"C:\var\{}", r"a\".repeat(120));
    for outside in [
        r"C:\",
        "c:\\",
        r"C:\VAR",
        r"C:\var\.\lib",
        r"C:\var\\lib\",
        r"C:\var\lib\kubelet-evil",
        &deep,
    ] {
        let outside = path(outside);
        slow.refused(mkdir(&outside), PermissionDenied).await;
        let from_outside = CreateSymlink {
            source: outside.clone(),
            target: path(r"\plugins\slow"),
        };
        slow.refused(from_outside, PermissionDenied).await;
        slow.refuses_changes_of(&outside, volume).await;
    }
    for itself in [KUBELET, r"c:\VAR\Lib\.\kubelet\\"] {
        let itself = path(itself);
        slow.refuses_changes_of(&itself, volume).await;
        slow.at_once(mkdir(&itself)).await.unwrap();
    }
    // A path in a working directory, but not in that of the context.
    let context = Some(PathContext::Pod);
    let plugins = path(r"\plugins");
    let mkdir_there = Mkdir {
        context,
        ..mkdir(&plugins)
    };
    slow.refused(mkdir_there, PermissionDenied).await;
    let rmdir_there = Rmdir {
        context,
        ..rmdir(&plugins, true)
    };
    slow.refused(rmdir_there, PermissionDenied).await;
    slow.at_once(mkdir(&path(r"\plugins\other"))).await.unwrap();
    slow.answer().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_one_entry_does_not_wait_for_changes_below_it() {
    let sim = with_share()
        .dir(r"C:\var\lib\kubelet\plugins\p")
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    let volume = volume_on(&node_on(&sim), 1);
    let slow = Slow::mapping_at(&sim, r"\plugins\p\slow").await;
    let (above, at) = (path(r"\plugins"), path(r"\plugins\p\slow"));
    slow.at_once(mkdir(&above)).await.unwrap();
    slow.at_once(mkdir(&path(r"\plugins\p"))).await.unwrap();
    slow.refused(rmdir(&above, false), FailedPrecondition).await;
    slow.refused(link(&above), AlreadyExists).await;
    slow.refused(map(r"\\files\two", &above), AlreadyExists)
        .await;
    slow.refused(mount(volume, &above), FailedPrecondition)
        .await;
    slow.refused(unmount(volume, &above), FailedPrecondition)
        .await;
    // These would interfere with the mapping.
    let executor = &slow.executor;
    let (same, removal) = (
        spawn(executor, mkdir(&at)),
        spawn(executor, rmdir(&path(r"\plugins\p"), true)),
    );
    assert!(!ends(&same).await && !removal.is_finished());
    slow.answer().await;
    // A link to a directory counts as one.
    same.await.unwrap().unwrap();
    removal.await.unwrap().unwrap();
    assert!(sim.smb_mappings().len() == 1);
}
