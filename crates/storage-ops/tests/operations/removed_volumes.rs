//! Tests of directories on volumes that are removed, dismounted or replaced while they are in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::setup::{
    GIB, KUBELET, MOUNT, contents, exists, has_code, node_on, ntfs, probed, refused_saying, rmdir,
};
use faults::{Call, FaultAction, Outcome, Probe};
use os::OsError;
use os_sim::Sim;
use storage_ops::ErrorKind;

/// The codes with which calls on a handle fail whose volume was removed or dismounted.
const LOST: [OsError; 7] = [
    OsError::FILE_NOT_FOUND,
    OsError::NOT_READY,
    OsError::DEV_NOT_EXIST,
    OsError::NO_SUCH_DEVICE,
    OsError::FILE_INVALID,
    OsError::DEVICE_NOT_CONNECTED,
    OsError::DEVICE_REMOVED,
];

/// Returns a node with two NTFS volumes, mounted at `C:\one` and `C:\two`. Kubelet's directory is a
/// link to the first.
fn kubelet_on_a_volume() -> Sim {
    let node = ntfs().mounted(r"C:\one").dir(r"C:\one\pods");
    let sim = node
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\two")
        .dir(r"C:\two\pods")
        .build();
    sim.external().remove_all(KUBELET).unwrap();
    sim.external().symlink(KUBELET, r"C:\one").unwrap();
    sim
}

#[test]
fn a_volume_counts_as_used_by_the_node_once_a_working_directory_is_on_it() {
    let sim = kubelet_on_a_volume();
    let (node, external) = (node_on(&sim), sim.external());
    assert!(node.run(&exists(r"\pods")).unwrap());
    external.mkdir_all(r"C:\two\plugins\v").unwrap();
    external
        .set_mount_point(r"C:\two\plugins\v", sim.volume_on(2).unwrap().id)
        .unwrap();
    external.remove_all(KUBELET).unwrap();
    external.symlink(KUBELET, r"C:\two").unwrap();
    let before = sim.snapshot();
    refused_saying(
        &node,
        &contents(MOUNT),
        ErrorKind::PermissionDenied,
        "used by the node itself",
    );
    assert_eq!(sim.snapshot(), before);
}

/// Fails each call on a handle with a code.
struct Lost(OsError);

impl Probe for Lost {
    fn before(&self, call: &Call) -> FaultAction {
        let on_handle = call.primitive == "open_child" || call.primitive.starts_with("query ");
        if on_handle {
            FaultAction::Fail(self.0)
        } else {
            FaultAction::Go
        }
    }
}

#[test]
fn a_path_on_a_disk_that_has_gone_away_is_not_reported_missing_or_removed() {
    for code in LOST
        .into_iter()
        .filter(|code| *code != OsError::FILE_NOT_FOUND)
    {
        let sim = os_sim::node().dir(r"C:\var\lib\kubelet\pods\p").build();
        let error = probed(&sim, Lost(code))
            .run(&exists(r"\pods\p"))
            .unwrap_err();
        has_code(&error, code);
        let rmdir = rmdir(r"\pods\p", true);
        let error = probed(&sim, Lost(code)).run(&rmdir).unwrap_err();
        has_code(&error, code);
    }
}

/// The volume mounted at [`MOUNT`] is removed when its root directory has been listed: all calls on
/// it fail.
struct Removed {
    code: OsError,
    volume: String,
    listed: AtomicBool,
}

impl Probe for Removed {
    fn before(&self, call: &Call) -> FaultAction {
        let on_volume = call.object.contains(&self.volume);
        if on_volume && self.listed.load(Ordering::SeqCst) {
            FaultAction::Fail(self.code)
        } else {
            FaultAction::Go
        }
    }

    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        if call.primitive == "list" && outcome == Outcome::Failed(OsError::NO_MORE_FILES) {
            self.listed.store(true, Ordering::SeqCst);
        }
        FaultAction::Go
    }
}

#[test]
fn rmdir_contents_does_not_succeed_on_a_volume_that_is_removed() {
    for code in LOST {
        let sim = ntfs().mounted(MOUNT);
        let sim = sim
            .file(r"C:\var\lib\kubelet\plugins\v\f", b"1")
            .dir(r"C:\var\lib\kubelet\plugins\v\d")
            .build();
        let volume = format!("{{{}}}", sim.volume_on(1).unwrap().id);
        let probe = Arc::new(Removed {
            code,
            volume,
            listed: false.into(),
        });
        let error = probed(&sim, Arc::clone(&probe))
            .run(&contents(MOUNT))
            .unwrap_err();
        assert!(probe.listed.load(Ordering::SeqCst));
        has_code(&error, code);
        assert_eq!(sim.external().read_dir(MOUNT).unwrap(), ["d", "f"]);
    }
}
