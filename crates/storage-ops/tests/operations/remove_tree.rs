//! Tests of removing trees while other processes hold, add and remove entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::setup::{
    NoProbe, TREE, contents, failing, failing_once, has_code, node_on, ntfs, probed, refused,
    rmdir, says, traced,
};
use faults::{Call, Fault, FaultAction, Outcome, Probe, Race, Trace, When};
use os::{Access, NtPath, Open, Options, Os, OsError, Share, U16String};
use os_sim::Sim;
use storage_ops::ErrorKind::{Busy, FailedPrecondition, PermissionDenied};

/// Returns a node with `pods\p`, which contains `full\deep\f`, `full\f` and `empty`.
fn tree() -> Sim {
    let node = os_sim::node().dir(r"C:\var\lib\kubelet\pods\p\empty");
    let node = node.file(r"C:\var\lib\kubelet\pods\p\full\deep\f", b"1");
    node.file(r"C:\var\lib\kubelet\pods\p\full\f", b"1").build()
}

fn is_removed(sim: &Sim) -> bool {
    !sim.external().exists(TREE)
}

/// Returns a handle of another process to an entry of the tree, with the right to rename or delete
/// it.
fn held(sim: &Sim, below: &str, share: Share) -> Box<dyn os::Handle> {
    let how = Open {
        share,
        ..Open::existing(Access::READ_DATA | Access::DELETE, Options::REPARSE_POINT)
    };
    sim.open(
        &NtPath::from_win32(&U16String::from_str(&format!("{TREE}{below}"))),
        &how,
    )
    .unwrap()
}

/// Another process that creates a new file in a directory each time the directory has been listed,
/// up to `times` times.
struct Refill {
    sim: Sim,
    directory: &'static str,
    times: usize,
    done: AtomicUsize,
}

impl Refill {
    fn of(sim: &Sim, directory: &'static str, times: usize) -> Self {
        Self {
            sim: sim.clone(),
            directory,
            times,
            done: AtomicUsize::new(0),
        }
    }
}

impl Probe for Refill {
    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        let listed = call.primitive == "list" && outcome == Outcome::Failed(OsError::NO_MORE_FILES);
        if listed
            && call.object.ends_with(self.directory)
            && self.done.load(Ordering::SeqCst) < self.times
        {
            let number = self.done.fetch_add(1, Ordering::SeqCst);
            let file = format!(r"C:\var\lib\kubelet\{}\new{number}", self.directory);
            self.sim.external().write(&file, b"1").unwrap();
        }
        FaultAction::Go
    }
}

#[test]
fn a_directory_that_another_process_keeps_filling_is_emptied_three_more_times_and_then_an_error() {
    for directory in [
        r"pods\p",
        r"pods\p\empty",
        r"pods\p\full",
        r"pods\p\full\deep",
    ] {
        for times in 0..=3 {
            let sim = tree();
            probed(&sim, Refill::of(&sim, directory, times))
                .run(&rmdir(TREE, true))
                .unwrap();
            assert!(is_removed(&sim), "{directory} filled {times} times");
        }
        // An operation without a limit would empty the directory twenty times and succeed.
        for times in [4, 20] {
            let sim = tree();
            let node = probed(&sim, Refill::of(&sim, directory, times));
            let error = refused(&node, &rmdir(TREE, true), FailedPrecondition);
            assert_eq!(
                error.code(),
                Some(OsError::DIR_NOT_EMPTY),
                "{directory} filled {times} times"
            );
            assert!(!is_removed(&sim));
            node_on(&sim).run(&rmdir(TREE, true)).unwrap();
        }
    }
}

#[test]
fn a_directory_is_removed_in_parts_however_many_entries_it_has() {
    // The deeper a directory is, the fewer of its names are held at once.
    let deep = format!(r"{TREE}\{}", ["d"; 60].join(r"\"));
    for (directory, files, emptied) in [
        (&deep[..], 300, false),
        (&deep[..], 300, true),
        (TREE, 4200, true),
    ] {
        let sim = os_sim::node().dir(directory).build();
        for number in 0..files {
            sim.external()
                .write(&format!(r"{directory}\{number}"), b"")
                .unwrap();
        }
        let (node, trace) = traced(&sim, NoProbe);
        if emptied {
            node.run(&contents(TREE)).unwrap();
        } else {
            node.run(&rmdir(TREE, true)).unwrap();
        }
        assert_eq!(sim.external().exists(TREE), emptied);
        assert!(!emptied || sim.external().read_dir(TREE).unwrap().is_empty());
        let (mut parts, mut has_deleted) = (0, false);
        for call in trace.take().into_iter().map(|record| record.call) {
            let is_listed = call.primitive == "list"
                && call.object.ends_with(&directory[directory.len() - 10..]);
            parts += usize::from(is_listed && has_deleted);
            has_deleted = !is_listed && (has_deleted || call.primitive == "set DispositionEx");
        }
        // A directory that is emptied is listed once more in the end.
        assert!(parts > 1, "{directory}: {parts}");
    }
}

#[test]
fn rmdir_contents_removes_entries_that_are_added_while_it_runs_or_fails() {
    let empty = os_sim::node().dir(TREE).build();
    node_on(&empty).run(&contents(TREE)).unwrap();
    for (times, emptied) in [(0, true), (1, true), (20, false)] {
        let sim = tree();
        let node = probed(&sim, Refill::of(&sim, r"pods\p", times));
        if emptied {
            node.run(&contents(TREE)).unwrap();
        } else {
            let error = refused(&node, &contents(TREE), FailedPrecondition);
            has_code(&error, OsError::DIR_NOT_EMPTY);
        }
        assert_eq!(
            sim.external().read_dir(TREE).unwrap().is_empty(),
            emptied,
            "filled {times} times"
        );
    }
}

#[test]
fn removing_a_tree_that_another_process_removes_at_the_same_time_succeeds() {
    for below in ["", r"\full", r"\full\deep", r"\full\deep\f", r"\empty"] {
        for emptying in [false, true] {
            for nth in 0.. {
                let sim = tree();
                let other = sim.clone();
                // Fails at an entry that the node holds open at that moment.
                let race = Arc::new(Race::before(nth, move || {
                    let _ = other.external().remove_all(&format!("{TREE}{below}"));
                }));
                let node = probed(&sim, Arc::clone(&race));
                if emptying && !below.is_empty() {
                    node.run(&contents(TREE))
                        .unwrap_or_else(|error| panic!("{error}, {race:?}, {below:?}"));
                    assert!(
                        sim.external().read_dir(TREE).unwrap().is_empty(),
                        "{race:?}, {below:?}"
                    );
                } else {
                    node.run(&rmdir(TREE, true))
                        .unwrap_or_else(|error| panic!("{error}, {race:?}, {below:?}"));
                    assert!(is_removed(&sim), "{race:?}, {below:?}");
                }
                if race.taken_before().is_none() {
                    break;
                }
            }
        }
    }
}

#[test]
fn an_entry_that_another_process_has_open_without_sharing_deletion_is_an_error() {
    for below in [r"\full\deep\f", r"\full", r"\empty"] {
        let sim = tree();
        let holder = held(&sim, below, Share::READ | Share::WRITE);
        for _ in 0..2 {
            let error = refused(&node_on(&sim), &rmdir(TREE, true), FailedPrecondition);
            assert_eq!(error.code(), Some(OsError::SHARING_VIOLATION), "{below}");
            let error = refused(&node_on(&sim), &contents(TREE), FailedPrecondition);
            assert_eq!(error.code(), Some(OsError::SHARING_VIOLATION), "{below}");
            assert!(sim.external().exists(&format!("{TREE}{below}")));
        }
        drop(holder);
        node_on(&sim).run(&rmdir(TREE, true)).unwrap();
    }
}

#[test]
fn an_entry_that_another_process_has_open_with_deletion_shared_is_removed() {
    for below in ["", r"\full\deep\f", r"\full", r"\empty"] {
        let sim = tree();
        let holder = held(&sim, below, Share::all());
        node_on(&sim).run(&rmdir(TREE, true)).unwrap();
        assert!(is_removed(&sim), "{below}");
        drop(holder);
    }
}

#[test]
fn a_read_only_file_is_deleted_on_a_file_system_without_disposition_flags() {
    for code in [
        OsError::INVALID_FUNCTION,
        OsError::NOT_SUPPORTED,
        OsError::INVALID_PARAMETER,
    ] {
        let sim = tree();
        sim.external()
            .set_read_only(r"C:\var\lib\kubelet\pods\p\full\f", true)
            .unwrap();
        let (node, trace) = traced(&sim, failing("set DispositionEx", code));
        node.run(&rmdir(TREE, true)).unwrap();
        assert!(is_removed(&sim), "{code}");
        let changed: Vec<_> = trace
            .take()
            .into_iter()
            .filter(|record| record.call.primitive == "set Basic")
            .collect();
        assert!(
            matches!(&changed[..], [one] if one.call.object.ends_with(r"full\f")),
            "{changed:?}"
        );
    }
}

#[test]
fn a_read_only_file_that_cannot_be_deleted_is_left_unchanged() {
    let sim = tree();
    sim.external()
        .set_read_only(r"C:\var\lib\kubelet\pods\p\full\f", true)
        .unwrap();
    let (node, before) = (
        probed(&sim, failing("set DispositionEx", OsError::ACCESS_DENIED)),
        sim.snapshot(),
    );
    refused(&node, &rmdir(TREE, true), PermissionDenied);
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn an_entry_whose_access_control_list_grants_nobody_a_right_is_removed() {
    for below in ["", r"\full\deep\f", r"\full\f", r"\empty"] {
        for share in [None, Some(Share::all())] {
            let sim = tree();
            if below.is_empty() {
                sim.external().remove_all(TREE).unwrap();
                sim.external().mkdir(TREE).unwrap();
            }
            let holder = share.map(|share| held(&sim, below, share));
            sim.external()
                .revoke_all_rights(&format!("{TREE}{below}"))
                .unwrap();
            node_on(&sim).run(&rmdir(TREE, true)).unwrap();
            assert!(is_removed(&sim), "{below}");
            drop(holder);
        }
    }
}

#[test]
fn a_full_directory_whose_access_control_list_grants_nobody_a_right_is_an_error() {
    let sim = tree();
    sim.external()
        .revoke_all_rights(&format!(r"{TREE}\full\deep"))
        .unwrap();
    for _ in 0..2 {
        let error = refused(&node_on(&sim), &rmdir(TREE, true), PermissionDenied);
        has_code(&error, OsError::ACCESS_DENIED);
        assert!(sim.external().exists(&format!(r"{TREE}\full\deep\f")));
    }
}

/// Returns a tree with the mount point of a volume, and with links that are not mount points.
fn tree_with_a_mount_point() -> Sim {
    let node = ntfs();
    let node = node
        .mounted(r"C:\var\lib\kubelet\pods\p\d\m")
        .file(r"C:\var\lib\kubelet\pods\p\d\f", b"1");
    node.symlink(r"C:\var\lib\kubelet\pods\p\l", r"C:\outside")
        .junction(r"C:\var\lib\kubelet\pods\p\j", "C:\\")
        .build()
}

#[test]
fn the_mount_manager_is_called_only_for_a_mount_point() {
    for top in [
        r"C:\var\lib\kubelet\pods\p",
        r"C:\var\lib\kubelet\pods\p\d\m",
    ] {
        let sim = tree_with_a_mount_point();
        let (node, trace) = traced(&sim, Trace::counting());
        node.run(&rmdir(top, true)).unwrap();
        assert_eq!(sim.stale_mounts(), Vec::<String>::new());
        let records = trace.take().into_iter();
        let calls: Vec<_> = records
            .filter(|record| record.call.primitive == "delete_volume_mount_point")
            .collect();
        assert!(
            matches!(&calls[..], [one] if one.call.object.ends_with(r"\pods\p\d\m\")),
            "{calls:?}"
        );
    }
}

#[test]
fn a_mount_point_is_unregistered_if_the_mount_manager_needs_the_directory_for_itself() {
    let sim = tree_with_a_mount_point();
    let once = failing_once("delete_volume_mount_point", OsError::SHARING_VIOLATION);
    let node = probed(&sim, once);
    node.run(&rmdir(TREE, true)).unwrap();
    assert!(is_removed(&sim));
    assert_eq!(sim.stale_mounts(), Vec::<String>::new());
    assert_eq!(sim.volume_on(1).unwrap().paths, Vec::<String>::new());
}

#[test]
fn the_mount_manager_is_not_called_by_a_path_that_others_can_rename() {
    let sim = tree_with_a_mount_point();
    let holder = held(&sim, r"\d", Share::all());
    let (node, trace) = traced(&sim, Trace::counting());
    node.run(&rmdir(TREE, true)).unwrap();
    assert!(is_removed(&sim));
    assert_eq!(trace.counts().of("delete_volume_mount_point"), 0);
    drop(holder);
}

#[test]
fn contract_13_rmdir_does_not_report_success_while_the_tree_exists() {
    for primitive in [
        "open_child",
        "query AttributeTag",
        "list",
        "set DispositionEx",
    ] {
        for nth in 0.. {
            let sim = tree();
            let vanished = Fault::at(
                nth,
                When::Before,
                FaultAction::Fail(OsError::DELETE_PENDING),
            );
            let vanished =
                Arc::new(vanished.among(move |call| {
                    call.primitive == primitive && call.object.contains(r"pods\p")
                }));
            match probed(&sim, Arc::clone(&vanished)).run(&rmdir(TREE, true)) {
                Ok(()) => assert!(is_removed(&sim), "{vanished:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), Busy, "{error}, {vanished:?}");
                    has_code(&error, OsError::DELETE_PENDING);
                    says(&error, "another process is removing entries of it");
                    assert!(!is_removed(&sim), "{vanished:?}");
                }
            }
            if vanished.last_hit().is_none() {
                break;
            }
        }
    }
}

#[test]
fn rmdir_contents_continues_after_an_entry_further_down_was_removed() {
    for primitive in [
        "open_child",
        "query AttributeTag",
        "list",
        "set DispositionEx",
    ] {
        for nth in 0.. {
            let sim = os_sim::node()
                .file(r"C:\var\lib\kubelet\pods\p\full\deep\f", b"1")
                .build();
            let vanished = Fault::at(
                nth,
                When::Before,
                FaultAction::Fail(OsError::DELETE_PENDING),
            );
            let vanished = Arc::new(vanished.among(move |call| {
                call.primitive == primitive && call.object.contains(r"pods\p\full\")
            }));
            probed(&sim, Arc::clone(&vanished))
                .run(&contents(TREE))
                .unwrap_or_else(|error| panic!("{error}, {vanished:?}"));
            assert!(
                sim.external().read_dir(TREE).unwrap().is_empty(),
                "{vanished:?}"
            );
            if vanished.last_hit().is_none() {
                break;
            }
        }
    }
}
