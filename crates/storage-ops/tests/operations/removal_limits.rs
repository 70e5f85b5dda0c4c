//! Tests of removals that another process would delay for ever: by an opportunistic lock, or by
//! adding entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::setup::{GIB, TREE, contents, mount, node_on, probed, rmdir, unmount};
use faults::{Call, Fault, FaultAction, Outcome, Probe, When};
use os::OsError;
use os_sim::{Oplock, Sim};
use storage_ops::{
    ErrorKind::{self, Busy},
    Node, VolumeId,
};

/// The time limit of a removal.
const LIMIT: Duration = Duration::from_mins(2);

/// Runs one of the removals. Returns the kind and the text of its error.
fn remove(node: &Node, contents_only: bool) -> Result<(), (ErrorKind, Option<OsError>, String)> {
    let outcome = if contents_only {
        node.run(&contents(TREE))
    } else {
        node.run(&rmdir(TREE, true))
    };
    outcome.map_err(|error| (error.kind(), error.code(), error.to_string()))
}

#[test]
fn the_owner_of_an_oplock_is_not_waited_for() {
    for (below, oplock) in [
        (r"\d\f", Oplock::Exclusive),
        (r"\d\f", Oplock::Handle),
        (r"\d", Oplock::Handle),
        ("", Oplock::Handle),
        (r"\link", Oplock::Handle),
    ] {
        for contents_only in [false, true] {
            let sim = os_sim::node()
                .file(r"C:\var\lib\kubelet\pods\p\d\f", b"1")
                .build();
            sim.external()
                .symlink(r"C:\var\lib\kubelet\pods\p\link", r"C:\outside")
                .unwrap();
            sim.external()
                .hold_oplock(&format!("{TREE}{below}"), oplock)
                .unwrap();
            let (node, began) = (node_on(&sim), sim.now());
            if below.is_empty() && contents_only {
                // The directory itself is not deleted.
                remove(&node, true).unwrap();
                continue;
            }
            let (kind, code, text) = remove(&node, contents_only).unwrap_err();
            assert_eq!(
                (kind, code),
                (Busy, Some(OsError::OPLOCK_BREAK_IN_PROGRESS)),
                "{below}: {text}"
            );
            assert!(
                sim.now() - began < Duration::from_secs(5),
                "{below}: {:?}",
                sim.now() - began
            );
            assert_eq!(
                (sim.open_handles(), node.locked_objects()),
                (0, 0),
                "{below}"
            );
            assert!(sim.external().exists(&format!("{TREE}{below}")));
        }
    }
}

/// Another program that gives up its oplock while the node waits.
struct GivesUp(Sim);

impl Probe for GivesUp {
    fn before(&self, call: &Call) -> FaultAction {
        if call.primitive == "open_child"
            && call.object.ends_with(r"p\f")
            && self.0.now().0 > Duration::from_millis(500)
        {
            self.0.external().remove_all(&format!(r"{TREE}\f")).unwrap();
            self.0
                .external()
                .write(&format!(r"{TREE}\f"), b"1")
                .unwrap();
        }
        FaultAction::Go
    }
}

#[test]
fn a_program_that_gives_up_its_oplock_at_once_is_no_obstacle() {
    let sim = os_sim::node()
        .file(r"C:\var\lib\kubelet\pods\p\f", b"1")
        .build();
    sim.external()
        .hold_oplock(&format!(r"{TREE}\f"), Oplock::Exclusive)
        .unwrap();
    let node = probed(&sim, GivesUp(sim.clone()));
    node.run(&rmdir(TREE, true)).unwrap();
    assert!(!sim.external().exists(TREE));
}

#[test]
fn a_held_directory_with_an_oplock_is_mounted_and_unmounted() {
    let target = r"C:\var\lib\kubelet\pods\p\m";
    let sim = os_sim::node()
        .dir(target)
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    for directory in [TREE, target] {
        sim.external()
            .hold_oplock(directory, Oplock::Handle)
            .unwrap();
    }
    let (node, began) = (node_on(&sim), sim.now());
    let volume = VolumeId::parse(&sim.volume_on(1).unwrap().name()).unwrap();
    node.run(&mount(volume, target)).unwrap();
    node.run(&unmount(volume, target)).unwrap();
    assert!(sim.now() - began < Duration::from_secs(5));
}

/// Another process that replaces each entry that is deleted in a directory, up to `times` times.
struct Replace {
    sim: Sim,
    directory: String,
    times: usize,
    done: AtomicUsize,
}

impl Probe for Replace {
    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        let deleted = call.primitive == "set DispositionEx" && outcome == Outcome::Done;
        if deleted && call.object.contains(r"\x") && self.done.load(Ordering::SeqCst) < self.times {
            let number = self.done.fetch_add(1, Ordering::SeqCst);
            self.sim
                .external()
                .write(&format!(r"{}\x-{number}", self.directory), b"")
                .unwrap();
        }
        FaultAction::Go
    }
}

/// Returns a probe that makes each deletion take a second.
fn slow() -> Arc<dyn Probe> {
    let delay = FaultAction::Delay(Duration::from_secs(1));
    Arc::new(Fault::each(
        |call| call.primitive == "set DispositionEx",
        When::Before,
        delay,
    ))
}

#[test]
fn a_removal_whose_owner_keeps_adding_entries_ends() {
    let deep = format!(r"{TREE}\{}", ["d"; 60].join(r"\"));
    // In a directory that deep, so many entries are listed in parts.
    let (directory, entries) = (deep.as_str(), 300);
    for contents_only in [false, true] {
        let sim = os_sim::node().dir(directory).build();
        for number in 0..entries {
            sim.external()
                .write(&format!(r"{directory}\x{number}"), b"")
                .unwrap();
        }
        let replace = Replace {
            sim: sim.clone(),
            directory: directory.to_owned(),
            times: 1000,
            done: AtomicUsize::default(),
        };
        let replace = Arc::new(replace);
        let probes: Vec<Arc<dyn Probe>> = vec![Arc::clone(&replace) as Arc<dyn Probe>, slow()];
        let (node, began) = (probed(&sim, probes), sim.now());
        let (kind, _, text) = remove(&node, contents_only).unwrap_err();
        assert_eq!(kind, Busy, "{text}");
        assert!(text.contains("repeat the request"), "{text}");
        assert!(
            sim.now() - began < LIMIT + Duration::from_secs(5),
            "{:?}",
            sim.now() - began
        );
        assert_eq!((sim.open_handles(), node.locked_objects()), (0, 0));
    }
}

#[test]
fn the_removal_of_a_large_tree_goes_on_when_the_request_is_repeated() {
    for contents_only in [false, true] {
        let sim = os_sim::node().dir(TREE).build();
        for number in 0..300 {
            sim.external()
                .write(&format!(r"{TREE}\{number}"), b"")
                .unwrap();
        }
        let node = probed(&sim, slow());
        for expected in [180, 60] {
            let (kind, _, text) = remove(&node, contents_only).unwrap_err();
            assert_eq!(
                (
                    kind,
                    sim.external().read_dir(TREE).map_or(0, |names| names.len())
                ),
                (Busy, expected),
                "{text}"
            );
        }
        remove(&node, contents_only).unwrap();
        assert_eq!(sim.external().exists(TREE), contents_only);
    }
}
