//! Trees that are removed while others hold, fill and remove what is in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::setup::{GIB, over, path, probed, refused};
use faults::{Call, Fault, FaultAction, Outcome, Probe, Race, Trace, When};
use os::{Access, NtPath, Open, Options, Os, OsError, Share, U16String};
use os_sim::Sim;
use storage_ops::{Kind, Rmdir, RmdirContents};

const TREE: &str = r"C:\var\lib\kubelet\pods\p";

fn rmdir() -> Rmdir {
    Rmdir { path: path(TREE), context: None, force: true }
}

fn contents() -> RmdirContents {
    RmdirContents { path: path(TREE) }
}

/// `pods\p` with `full\deep\f`, `full\f` and `empty` in it.
fn tree() -> Sim {
    let node = os_sim::node().dir(r"C:\var\lib\kubelet\pods\p\empty");
    let node = node.file(r"C:\var\lib\kubelet\pods\p\full\deep\f", b"1");
    node.file(r"C:\var\lib\kubelet\pods\p\full\f", b"1").build()
}

fn is_gone(sim: &Sim) -> bool {
    !sim.external().exists(TREE)
}

/// Somebody's handle on something in the tree, with a right to rename or delete it.
fn held(sim: &Sim, below: &str, share: Share) -> Box<dyn os::Handle> {
    let how = Open { share, ..Open::existing(Access::READ_DATA | Access::DELETE, Options::REPARSE_POINT) };
    sim.open(&NtPath::from_win32(&U16String::from_str(&format!("{TREE}{below}"))), &how).unwrap()
}

/// Somebody who puts a new file into a directory each time that it has been listed, so often.
struct Refill {
    sim: Sim,
    directory: &'static str,
    times: usize,
    done: AtomicUsize,
}

impl Refill {
    fn of(sim: &Sim, directory: &'static str, times: usize) -> Self {
        Self { sim: sim.clone(), directory, times, done: AtomicUsize::new(0) }
    }
}

impl Probe for Refill {
    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        let listed = call.primitive == "list" && outcome == Outcome::Failed(OsError::NO_MORE_FILES);
        if listed && call.object.ends_with(self.directory) && self.done.load(Ordering::SeqCst) < self.times {
            let number = self.done.fetch_add(1, Ordering::SeqCst);
            let file = format!(r"C:\var\lib\kubelet\{}\new{number}", self.directory);
            self.sim.external().write(&file, b"1").unwrap();
        }
        FaultAction::Go
    }
}

#[test]
fn a_directory_that_others_fill_meanwhile_is_emptied_three_times_more_and_then_called_not_empty() {
    for directory in [r"pods\p", r"pods\p\empty", r"pods\p\full", r"pods\p\full\deep"] {
        for times in 0..=3 {
            let sim = tree();
            probed(&sim, Refill::of(&sim, directory, times)).run(&rmdir()).unwrap();
            assert!(is_gone(&sim), "{directory} filled {times} times");
        }
        // If it went on, twenty times would be over some time, and all be gone.
        for times in [4, 20] {
            let sim = tree();
            let node = probed(&sim, Refill::of(&sim, directory, times));
            let error = refused(&node, &rmdir(), Kind::FailedPrecondition);
            assert_eq!(error.code(), Some(OsError::DIR_NOT_EMPTY), "{directory} filled {times} times");
            assert!(!is_gone(&sim));
            over(&sim).run(&rmdir()).unwrap();
        }
    }
}

#[test]
fn rmdir_contents_leaves_nothing_that_was_put_there_meanwhile_or_says_so() {
    let empty = os_sim::node().dir(TREE).build();
    over(&empty).run(&contents()).unwrap();
    for (times, emptied) in [(0, true), (1, true), (20, false)] {
        let sim = tree();
        let node = probed(&sim, Refill::of(&sim, r"pods\p", times));
        if emptied {
            node.run(&contents()).unwrap();
        } else {
            let error = refused(&node, &contents(), Kind::FailedPrecondition);
            assert_eq!(error.code(), Some(OsError::DIR_NOT_EMPTY));
        }
        assert_eq!(sim.external().read_dir(TREE).unwrap().is_empty(), emptied, "filled {times} times");
    }
}

#[test]
fn a_tree_that_somebody_else_removes_at_the_same_time_is_gone_and_that_is_success() {
    for below in ["", r"\full", r"\full\deep", r"\full\deep\f", r"\empty"] {
        for emptying in [false, true] {
            for nth in 0.. {
                let sim = tree();
                let other = sim.clone();
                // Where the node holds something at that moment, it goes as far as it can.
                let step = move || {
                    let _ = other.external().remove_all(&format!("{TREE}{below}"));
                };
                let race = Arc::new(Race::before(nth, step));
                let node = probed(&sim, Arc::clone(&race));
                if emptying && !below.is_empty() {
                    node.run(&contents()).unwrap_or_else(|error| panic!("{error}, {race:?}, {below:?}"));
                    assert!(sim.external().read_dir(TREE).unwrap().is_empty(), "{race:?}, {below:?}");
                } else {
                    node.run(&rmdir()).unwrap_or_else(|error| panic!("{error}, {race:?}, {below:?}"));
                    assert!(is_gone(&sim), "{race:?}, {below:?}");
                }
                if race.taken_before().is_none() {
                    break;
                }
            }
        }
    }
}

#[test]
fn something_in_a_tree_that_others_let_nobody_delete_is_the_reason_given() {
    for below in [r"\full\deep\f", r"\full", r"\empty"] {
        let sim = tree();
        let holder = held(&sim, below, Share::READ | Share::WRITE);
        for _ in 0..2 {
            let error = refused(&over(&sim), &rmdir(), Kind::FailedPrecondition);
            assert_eq!(error.code(), Some(OsError::SHARING_VIOLATION), "{below}");
            let error = refused(&over(&sim), &contents(), Kind::FailedPrecondition);
            assert_eq!(error.code(), Some(OsError::SHARING_VIOLATION), "{below}");
            assert!(sim.external().exists(&format!("{TREE}{below}")));
        }
        drop(holder);
        over(&sim).run(&rmdir()).unwrap();
    }
}

#[test]
fn what_others_hold_for_deleting_or_renaming_it_goes_all_the_same() {
    for below in ["", r"\full\deep\f", r"\full", r"\empty"] {
        let sim = tree();
        let holder = held(&sim, below, Share::all());
        over(&sim).run(&rmdir()).unwrap();
        assert!(is_gone(&sim), "{below}");
        drop(holder);
    }
}

/// A trace, and `probe` behind it.
fn traced(sim: &Sim, probe: impl Probe + 'static) -> (storage_ops::Node, Arc<Trace>) {
    let trace = Arc::new(Trace::recording());
    let probes: Vec<Arc<dyn Probe>> = vec![Arc::clone(&trace) as _, Arc::new(probe)];
    (probed(sim, probes), trace)
}

fn failing(primitive: &'static str, code: OsError) -> Fault {
    Fault::each(move |call| call.primitive == primitive, When::Before, FaultAction::Fail(code))
}

#[test]
fn where_a_file_system_knows_only_the_older_way_of_deleting_a_read_only_file_goes_too() {
    for code in [OsError::INVALID_FUNCTION, OsError::NOT_SUPPORTED, OsError::INVALID_PARAMETER] {
        let sim = tree();
        sim.external().set_read_only(r"C:\var\lib\kubelet\pods\p\full\f", true).unwrap();
        let (node, trace) = traced(&sim, failing("set DispositionEx", code));
        node.run(&rmdir()).unwrap();
        assert!(is_gone(&sim), "{code}");
        let changed: Vec<_> = trace.take().into_iter().filter(|record| record.call.primitive == "set Basic").collect();
        assert!(matches!(&changed[..], [one] if one.call.object.ends_with(r"full\f")), "no other: {changed:?}");
    }
}

#[test]
fn a_read_only_file_that_may_not_be_deleted_stays_as_it_is() {
    let sim = tree();
    sim.external().set_read_only(r"C:\var\lib\kubelet\pods\p\full\f", true).unwrap();
    let (node, before) = (probed(&sim, failing("set DispositionEx", OsError::ACCESS_DENIED)), sim.snapshot());
    refused(&node, &rmdir(), Kind::PermissionDenied);
    assert_eq!(sim.snapshot(), before);
}

/// A disk's volume, mounted in the tree, beside links that are no mount points.
fn tree_with_a_mount_point() -> Sim {
    let node = os_sim::node().disk(GIB).partitioned().formatted("NTFS");
    let node = node.mounted(r"C:\var\lib\kubelet\pods\p\d\m").file(r"C:\var\lib\kubelet\pods\p\d\f", b"1");
    node.symlink(r"C:\var\lib\kubelet\pods\p\l", r"C:\outside").junction(r"C:\var\lib\kubelet\pods\p\j", "C:\\").build()
}

#[test]
fn the_mount_manager_is_told_of_a_mount_point_that_goes_and_of_nothing_else() {
    for top in [r"C:\var\lib\kubelet\pods\p", r"C:\var\lib\kubelet\pods\p\d\m"] {
        let sim = tree_with_a_mount_point();
        let (node, trace) = traced(&sim, Trace::counting());
        node.run(&Rmdir { path: path(top), context: None, force: true }).unwrap();
        assert_eq!(sim.stale_mounts(), Vec::<String>::new());
        let records = trace.take().into_iter();
        let told: Vec<_> = records.filter(|record| record.call.primitive == "delete_volume_mount_point").collect();
        assert!(matches!(&told[..], [one] if one.call.object.ends_with(r"\pods\p\d\m\")), "{told:?}");
    }
}

#[test]
fn where_others_may_rename_what_leads_to_a_mount_point_nobody_is_told_by_its_path() {
    let sim = tree_with_a_mount_point();
    let holder = held(&sim, r"\d", Share::all());
    let (node, trace) = traced(&sim, Trace::counting());
    node.run(&rmdir()).unwrap();
    assert!(is_gone(&sim));
    assert_eq!(trace.counts().of("delete_volume_mount_point"), 0);
    drop(holder);
}

#[test]
fn everything_in_a_tree_is_opened_once_and_deleted_once_and_a_directory_listed_once() {
    let sim = tree();
    for number in 0..300 {
        sim.external().write(&format!(r"{TREE}\full\file{number}"), b"").unwrap();
    }
    let (node, trace) = traced(&sim, Trace::counting());
    node.run(&rmdir()).unwrap();
    assert!(is_gone(&sim));
    let (counts, directories, files) = (trace.counts(), 4, 302);
    assert_eq!(counts.of("set DispositionEx"), directories + files);
    // And `pods` on the way.
    assert_eq!(counts.of("open_child"), 1 + directories + files);
    // Some hundred names come at once; the second look finds that there are no more.
    assert_eq!(counts.of("list"), 2 * directories);
}

#[test]
fn a_tree_that_is_still_there_is_not_said_to_be_missing_whatever_vanishes_in_it() {
    for primitive in ["open_child", "query AttributeTag", "list", "set DispositionEx"] {
        for nth in 0.. {
            let sim = tree();
            let gone = Fault::at(nth, When::Before, FaultAction::Fail(OsError::DELETE_PENDING));
            let gone = Arc::new(gone.among(move |call| call.primitive == primitive && call.object.contains(r"pods\p")));
            match probed(&sim, Arc::clone(&gone)).run(&rmdir()) {
                Ok(()) => assert!(is_gone(&sim), "{gone:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Busy, "{error}, {gone:?}");
                    assert_eq!(error.code(), Some(OsError::DELETE_PENDING));
                    assert!(error.to_string().contains("others are removing something there"), "{error}");
                    assert!(!is_gone(&sim), "{gone:?}");
                }
            }
            if gone.last_hit().is_none() {
                break;
            }
        }
    }
}

#[test]
fn rmdir_contents_does_not_take_something_gone_further_down_for_all_gone() {
    for primitive in ["open_child", "query AttributeTag", "list", "set DispositionEx"] {
        for nth in 0.. {
            let sim = os_sim::node().file(r"C:\var\lib\kubelet\pods\p\full\deep\f", b"1").build();
            let gone = Fault::at(nth, When::Before, FaultAction::Fail(OsError::DELETE_PENDING));
            let inside = move |call: &Call| call.primitive == primitive && call.object.contains(r"pods\p\full\");
            let gone = Arc::new(gone.among(inside));
            probed(&sim, Arc::clone(&gone)).run(&contents()).unwrap_or_else(|error| panic!("{error}, {gone:?}"));
            assert!(sim.external().read_dir(TREE).unwrap().is_empty(), "{gone:?}");
            if gone.last_hit().is_none() {
                break;
            }
        }
    }
}
