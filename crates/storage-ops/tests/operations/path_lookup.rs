//! Tests of looking up a whole path in one call: the same answers as component by component, with
//! fewer calls.

use std::sync::Arc;

use crate::links::{PLACEHOLDER, mount_point, set_reparse_point};
use crate::setup::{
    GIB, KUBELET, NoProbe, closest, exists, has_code, is_link, layered, mkdir, mounted_at, ntfs,
    probed, refused, rmdir, says, traced,
};
use faults::{Fault, FaultAction, Layer, Layered, Trace, When};
use os::abi::FileBasicInfo;
use os::{Access, FileInfo, Handle, NtPath, Open, Options, Os, OsError, OsResult, U16Str};
use os_sim::Sim;
use proptest::prelude::*;
use storage_ops::{
    Config,
    ErrorKind::{FailedPrecondition, NotFound},
    FallbackCount, HostPath, Node, PathExists,
};
use zerocopy::{FromZeros, IntoBytes};

/// Queries attributes as a system does that does not know `OBJ_DONT_REPARSE`.
pub(crate) fn attributes_behind_links(node: &dyn Os, path: &NtPath) -> OsResult<u32> {
    let mut info = FileBasicInfo::new_zeroed();
    let object = node.open(
        path,
        &Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT),
    )?;
    object.query(FileInfo::Basic, info.as_mut_bytes())?;
    Ok(info.attributes)
}

/// A Windows that does not know `OBJ_DONT_REPARSE`: it follows links.
pub(crate) struct IgnoresFlag;

impl Layer for IgnoresFlag {
    fn attributes(&self, node: &dyn Os, path: &NtPath) -> OsResult<u32> {
        attributes_behind_links(node, path)
    }

    fn open_below(
        &self,
        parent: &dyn Handle,
        path: &U16Str,
        how: &Open,
    ) -> OsResult<Box<dyn Handle>> {
        parent.open_child(path, how)
    }
}

/// A Windows that refuses junctions and follows symbolic links.
struct FollowsSymlinks;

impl Layer for FollowsSymlinks {
    fn attributes(&self, node: &dyn Os, path: &NtPath) -> OsResult<u32> {
        let is_symlink = path.to_string().contains("All Users\\");
        if is_symlink {
            attributes_behind_links(node, path)
        } else {
            node.attributes(path)
        }
    }

    fn open_below(
        &self,
        parent: &dyn Handle,
        path: &U16Str,
        how: &Open,
    ) -> OsResult<Box<dyn Handle>> {
        if path.to_string_lossy().contains("All Users\\") {
            parent.open_child(path, how)
        } else {
            parent.open_below(path, how)
        }
    }
}

pub(crate) fn tested(node: Node) -> Node {
    node.test_path_lookup();
    node
}

fn ignoring(sim: &Sim) -> Node {
    tested(layered(sim, IgnoresFlag))
}

fn counted(code: u32, count: u64) -> [FallbackCount; 1] {
    [FallbackCount {
        call: "path_lookup",
        code: Some(code),
        count,
    }]
}

/// Returns the primitives that were called since the last time.
pub(crate) fn called(trace: &Trace) -> Vec<String> {
    trace
        .take()
        .iter()
        .map(|record| record.call.primitive.to_string())
        .collect()
}

/// Checks that the recorded calls have opened paths, but looked up none in one call.
pub(crate) fn assert_component_by_component(trace: &Trace) {
    let called = called(trace);
    assert!(
        called.iter().any(|primitive| primitive == "open_child"),
        "{called:?}"
    );
    assert!(
        !called
            .iter()
            .any(|primitive| ["attributes", "open_below"].contains(&&**primitive)),
        "{called:?}"
    );
}

/// Returns a fault that fails both calls that look up a whole path with `code`, if it contains
/// `part`.
fn failing_look_up(part: &'static str, code: OsError) -> Fault {
    let looks_up = |primitive: &str| ["attributes", "open_below"].contains(&primitive);
    Fault::each(
        move |call| looks_up(&call.primitive) && call.object.contains(part),
        When::Before,
        FaultAction::Fail(code),
    )
}

/// A node with directories, files and links at each depth.
pub(crate) fn node_with_links() -> Sim {
    let sim = os_sim::node()
        .dir(r"C:\var\lib\kubelet\pods\a\b\c")
        .file(r"C:\var\lib\kubelet\pods\a\b\f", "data")
        .dir(r"C:\elsewhere\x")
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\var\lib\kubelet\pods\a\m")
        .build();
    let external = sim.external();
    external
        .junction(r"C:\var\lib\kubelet\pods\a\j", r"C:\elsewhere")
        .unwrap();
    external
        .symlink(
            r"C:\var\lib\kubelet\pods\a\l",
            r"C:\var\lib\kubelet\pods\a\b",
        )
        .unwrap();
    external
        .symlink(
            r"C:\var\lib\kubelet\pods\a\gone",
            r"C:\var\lib\kubelet\pods\a\missing",
        )
        .unwrap();
    sim
}

#[test]
fn a_path_is_looked_up_in_one_call_and_a_link_in_five() {
    let sim = node_with_links();
    let (node, trace) = traced(&sim, NoProbe);
    node.test_path_lookup();
    let calls = |run: &dyn Fn() -> bool| {
        trace.take();
        (run(), called(&trace))
    };
    for (text, answer, further) in [
        (r"\pods", true, &[][..]),
        (r"\pods\a", true, &[]),
        (r"\pods\a\b\f", true, &[]),
        (r"\pods\a\b\f\", false, &[]),
        (r"\pods\a\b\c\", true, &[]),
        (r"\pods\a\b\missing", false, &[]),
        (r"\pods\missing\x\y", false, &[]),
        (r"\pods\a\b\f\x", false, &[]),
        (r"\pods\a\l", true, &["open", "open_below"]),
        (r"\pods\a\gone", true, &["open", "open_below"]),
        (r"\pods\a\m", true, &["open", "open_below"]),
    ] {
        let found = calls(&|| node.run(&exists(text)).unwrap());
        let expected: Vec<_> = ["attributes"]
            .iter()
            .chain(further)
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, (answer, expected), "PathExists {text}");
    }
    for text in [r"\pods\a\b\c", r"\pods\a\b\f", r"\pods", ""] {
        let found = calls(&|| node.run(&is_link(&format!("{KUBELET}{text}"))).unwrap());
        assert_eq!(
            found,
            (false, vec!["attributes".to_owned()]),
            "IsSymlink {text}"
        );
    }
    for (text, answer, target) in [
        (r"\pods\a\l", true, "open_below"),
        (r"\pods\a\gone", false, "open_below"),
        (r"\pods\a\j", true, "open"),
        (r"\pods\a\m", true, "open"),
    ] {
        let (found, made) = calls(&|| node.run(&is_link(text)).unwrap());
        let expected = [
            "attributes",
            "open_below",
            "query AttributeTag",
            "control FSCTL_GET_REPARSE_POINT",
            target,
        ];
        assert_eq!(
            (found, made),
            (answer, expected.map(String::from).to_vec()),
            "IsSymlink {text}"
        );
    }
    let (result, made) = calls(&|| node.run(&is_link(r"\pods\a\b\missing")).is_ok());
    assert_eq!((result, made.len()), (false, 1));
    for (text, count) in [(r"\pods\a\b\c", 2), (r"\pods\a\m", 5)] {
        let (_, made) = calls(&|| node.run(&mounted_at(text)).is_ok());
        assert_eq!(
            made.len(),
            count,
            "GetVolumeIDFromTargetPath {text}: {made:?}"
        );
    }
    assert_eq!(node.fallbacks(), []);
    assert_eq!(
        (sim.open_handles(), node.held_handles()),
        (1, 1),
        "the root directory of the system drive"
    );
    drop(node);
    assert_eq!(sim.open_handles(), 0);
}

#[test]
fn a_link_on_the_way_is_named_in_the_error() {
    let sim = node_with_links();
    let node = tested(Node::new(sim.process(), Config::default()));
    for (link, below) in [("j", r"\x"), ("l", r"\f"), ("m", r"\x\y"), ("gone", r"\x")] {
        let error = node
            .run(&exists(&format!(r"\pods\a\{link}{below}")))
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (FailedPrecondition, Some(OsError::REPARSE_POINT_ENCOUNTERED))
        );
        let kind = if link == "m" {
            "the mount point of volume "
        } else {
            "a link and is not followed"
        };
        says(&error, &format!(": {link} is {kind}"));
    }
    assert_eq!(node.links_refused(), 4);
    assert_eq!(
        node.run(&is_link(r"\pods\a\j\x")),
        Ok(false),
        "links above the last component are followed"
    );
}

#[test]
fn a_system_that_follows_links_all_the_same_is_not_trusted() {
    let sim = node_with_links();
    let node = ignoring(&sim);
    let error = node.run(&exists(r"\pods\a\j\x")).unwrap_err();
    has_code(&error, OsError::REPARSE_POINT_ENCOUNTERED);
    assert_eq!(node.run(&exists(r"\pods\a\b\f")), Ok(true));
    assert_eq!(node.fallbacks(), counted(0, 4));
    assert_eq!((sim.open_handles(), node.held_handles()), (0, 0));
}

#[test]
fn a_system_that_refuses_one_link_and_follows_another_is_not_trusted() {
    let sim = node_with_links();
    sim.external()
        .mkdir_all(r"C:\ProgramData\Microsoft")
        .unwrap();
    let node = tested(layered(&sim, FollowsSymlinks));
    assert_eq!(node.run(&exists(r"\pods\a\b\f")), Ok(true));
    assert_eq!(
        (node.fallbacks(), node.held_handles()),
        (counted(0, 2).to_vec(), 0)
    );
}

#[test]
fn a_system_that_proves_nothing_is_not_trusted() {
    for code in [
        OsError::INVALID_PARAMETER,
        OsError::FILE_NOT_FOUND,
        OsError::ACCESS_DENIED,
        OsError(0xe000_0abc),
    ] {
        let sim = node_with_links();
        let (node, trace) = traced(&sim, failing_look_up("", code));
        node.test_path_lookup();
        trace.take();
        assert_eq!(node.run(&exists(r"\pods\a\b\f")), Ok(true));
        assert_eq!(node.run(&is_link(r"\pods\a\l")), Ok(true));
        assert_component_by_component(&trace);
        // No path of the root directory answers the query.
        let mut codes: Vec<_> = node.fallbacks().iter().map(|count| count.code).collect();
        codes.retain(|counted| *counted != Some(OsError::PATH_NOT_FOUND.0));
        assert_eq!(codes, [Some(code.0)]);
    }
}

#[test]
fn a_node_without_the_links_of_windows_is_not_trusted() {
    const LINKS: [&str; 2] = [r"C:\Documents and Settings", r"C:\Users\All Users"];
    // The system may honour the flag for the kind of the link that is left only.
    for missing in [&LINKS[..1], &LINKS[1..], &LINKS] {
        let sim = node_with_links();
        for link in missing {
            sim.external().remove_all(link).unwrap();
        }
        let node = tested(Node::new(sim.process(), Config::default()));
        assert_eq!(node.run(&exists(r"\pods\a\b")), Ok(true));
        assert_eq!(node.fallbacks(), counted(OsError::PATH_NOT_FOUND.0, 2));
    }
}

#[test]
fn without_the_test_nothing_is_opened_in_one_call_and_nothing_is_counted() {
    let sim = node_with_links();
    let (node, trace) = traced(&sim, NoProbe);
    assert_eq!(node.run(&exists(r"\pods\a\b\f")), Ok(true));
    assert_component_by_component(&trace);
    assert_eq!(node.fallbacks(), []);
}

#[test]
fn an_answer_that_says_nothing_about_links_leads_to_the_components() {
    for code in [
        OsError::INVALID_PARAMETER,
        OsError::ACCESS_DENIED,
        OsError::NOT_READY,
        OsError(0xe000_0abc),
    ] {
        let sim = node_with_links();
        // The calls of the test proceed.
        let node = tested(probed(&sim, failing_look_up("kubelet", code)));
        assert_eq!(node.run(&exists(r"\pods\a\b\f")), Ok(true), "{code}");
        assert_eq!(node.run(&exists(r"\pods\a\b\missing")), Ok(false), "{code}");
        assert_eq!(node.run(&is_link(r"\pods\a\l")), Ok(true), "{code}");
        let expected = if code == OsError::INVALID_PARAMETER {
            counted(code.0, 7).to_vec()
        } else {
            vec![]
        };
        assert_eq!(node.fallbacks(), expected);
    }
}

#[test]
fn a_path_on_another_drive_is_looked_up_below_its_root() {
    let sim = ntfs().build();
    sim.external()
        .set_drive_letter('E', sim.volume_on(1).unwrap().id);
    sim.external().mkdir_all(r"E:\a\b").unwrap();
    sim.external().symlink(r"E:\a\l", r"E:\a\b").unwrap();
    let (node, trace) = traced(&sim, NoProbe);
    node.test_path_lookup();
    for (text, answer, calls) in [(r"E:\a\b", false, 3), (r"E:\a\l", true, 6)] {
        trace.take();
        assert_eq!(
            (node.run(&is_link(text)), trace.take().len()),
            (Ok(answer), calls),
            "{text}"
        );
    }
    sim.unplug_disk(1);
    refused(&node, &is_link(r"E:\a\b"), NotFound);
    assert_eq!(sim.open_handles(), 1);
}

#[test]
fn the_target_of_a_link_is_what_windows_takes_it_for() {
    for (target, answer) in [
        (r"\??\C:\var\lib\kubelet\pods\a\b", true),
        (r"\??\c:\VAR\lib\kubelet\pods\a\b\", true),
        (r"\??\C:\var\lib\kubelet\pods\a\b\f\", false),
        (r"\??\C:\var\lib\kubelet\pods\a\\b", false),
        (r"\??\C:\var\lib\kubelet\pods\a\.\b", false),
    ] {
        let sim = node_with_links();
        sim.external()
            .mkdir_all(r"C:\var\lib\kubelet\pods\t")
            .unwrap();
        set_reparse_point(&sim, r"C:\var\lib\kubelet\pods\t", &mount_point(target));
        let walk = Node::new(sim.process(), Config::default());
        let at_once = tested(Node::new(sim.process(), Config::default()));
        let query = is_link(r"\pods\t");
        assert_eq!(
            (walk.run(&query), at_once.run(&query)),
            (Ok(answer), Ok(answer)),
            "{target}"
        );
    }
}

fn inner(name: &str) -> PathExists {
    exists(&format!(r"\pods\secret\inner\{name}"))
}

#[test]
fn a_directory_whose_attributes_may_not_be_read_is_refused_only_component_by_component() {
    let sim = node_with_links();
    let external = sim.external();
    external
        .mkdir_all(r"C:\var\lib\kubelet\pods\secret\inner\x")
        .unwrap();
    for directory in [
        r"C:\var\lib\kubelet\pods\secret",
        r"C:\var\lib\kubelet\pods\secret\inner",
    ] {
        external.revoke_all_rights(directory).unwrap();
    }
    let walk = Node::new(sim.process(), Config::default());
    let at_once = tested(Node::new(sim.process(), Config::default()));
    assert_eq!(
        (at_once.run(&inner("x")), at_once.run(&inner("y"))),
        (Ok(true), Ok(false))
    );
    assert_eq!(
        walk.run(&inner("x")).unwrap_err().code(),
        Some(OsError::ACCESS_DENIED)
    );
}

#[test]
fn a_directory_with_the_directory_bit_is_a_directory_to_every_request() {
    let sim = node_with_links();
    let cloud = r"C:\var\lib\kubelet\pods\cloud";
    sim.external().mkdir_all(cloud).unwrap();
    set_reparse_point(&sim, cloud, &PLACEHOLDER);
    for node in [
        Node::new(sim.process(), Config::default()),
        tested(Node::new(sim.process(), Config::default())),
    ] {
        let new = mkdir(r"\pods\cloud\x\y");
        assert_eq!(node.run(&exists(r"\pods\cloud\x\y")), Ok(false));
        assert_eq!(
            (node.run(&new), node.run(&exists(r"\pods\cloud\x\y"))),
            (Ok(()), Ok(true))
        );
        node.run(&rmdir(r"\pods\cloud\x", true)).unwrap();
        assert_eq!(node.run(&exists(r"\pods\cloud\x\y")), Ok(false));
    }
    // A tag without the bit: nothing handles it, so Windows does not look below such a directory
    // either.
    sim.external()
        .mkdir_all(r"C:\var\lib\kubelet\pods\other")
        .unwrap();
    let unhandled = [
        &0x8000_0abc_u32.to_le_bytes()[..],
        &[4, 0, 0, 0, 1, 2, 3, 4],
    ]
    .concat();
    set_reparse_point(&sim, r"C:\var\lib\kubelet\pods\other", &unhandled);
    for node in [
        Node::new(sim.process(), Config::default()),
        tested(Node::new(sim.process(), Config::default())),
    ] {
        let error = node.run(&exists(r"\pods\other\x")).unwrap_err();
        has_code(&error, OsError::REPARSE_POINT_ENCOUNTERED);
    }
}

/// A change of the tree, by another process.
#[derive(Clone, Debug)]
enum Change {
    Mkdir(String),
    Write(String),
    Symlink(String, String),
    Junction(String, String),
    Mount(String),
    Remove(String),
    Rename(String, String),
}

/// Returns a path of one to four names that are often the same, with or without a backslash at its
/// end.
fn below() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "B", "c"]), 1..=4)
        .prop_map(|names| names.join(r"\"))
}

/// Returns a path in a working directory or beside it.
fn place() -> impl Strategy<Value = String> {
    let root = prop::sample::select(vec![
        r"C:\var\lib\kubelet",
        r"C:\var\lib\kubelet",
        r"C:\var\lib\kubelet",
        r"C:\moved",
        r"C:\outside",
        r"E:",
    ]);
    (root, below()).prop_map(|(root, below)| format!(r"{root}\{below}"))
}

fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => place(),
        1 => below(),
        1 => below().prop_map(|below| format!(r"..\{below}")),
        1 => place().prop_map(|path| format!(r"{path}\")),
        1 => Just(r"C:\missing".to_owned()),
        1 => Just(r"\\server\share\x".to_owned()),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        5 => place().prop_map(Change::Mkdir),
        2 => place().prop_map(Change::Write),
        3 => (place(), target()).prop_map(|(path, target)| Change::Symlink(path, target)),
        3 => (place(), place()).prop_map(|(path, target)| Change::Junction(path, target)),
        1 => place().prop_map(Change::Mount),
        1 => place().prop_map(Change::Remove),
        1 => (place(), place()).prop_map(|(from, to)| Change::Rename(from, to)),
    ]
}

/// Makes the change, or none if it is not possible.
fn make(sim: &Sim, change: &Change) {
    let external = sim.external();
    let _ = match change {
        Change::Mkdir(path) => external.mkdir_all(path),
        Change::Write(path) => external.write(path, b"data"),
        Change::Symlink(path, target) => external.symlink(path, target),
        Change::Junction(path, target) => external.junction(path, target),
        Change::Mount(path) => external
            .mkdir_all(path)
            .and_then(|()| external.set_mount_point(path, sim.volume_on(1).expect("a volume").id)),
        Change::Remove(path) => external.remove_all(path),
        Change::Rename(from, to) => external.rename(from, to),
    };
}

fn config() -> Config {
    let moved = HostPath::parse(r"C:\moved").unwrap();
    Config::default().with(|c| c.working_dirs = vec![moved])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_call_answers_as_the_components_do(
        changes in prop::collection::vec(change(), 4..40),
        queries in prop::collection::vec((place(), any::<bool>()), 40),
        kubelet_moved: bool,
    ) {
        let sim = os_sim::node().dir(r"C:\outside\a\B").disk(GIB).partitioned().formatted("NTFS").build();
        sim.external().set_drive_letter('E', sim.volume_on(1).unwrap().id);
        sim.external().mkdir_all(r"E:\a\a").unwrap();
        if kubelet_moved {
            sim.external().remove_all(KUBELET).unwrap();
            sim.external().junction(KUBELET, r"C:\outside\a").unwrap();
        }
        for change in &changes {
            make(&sim, change);
        }
        let walk = Node::new(sim.process(), config());
        let at_once = tested(Node::new(sim.process(), config()));
        let ignoring = tested(Node::new(Arc::new(Layered::around(sim.process(), IgnoresFlag)), config()));
        prop_assert_eq!((at_once.held_handles(), ignoring.held_handles()), (1, 0));
        for (text, is_directory) in &queries {
            let text = if *is_directory { format!(r"{text}\") } else { text.clone() };
            let (exists, is_symlink) = (exists(&text), is_link(&text));
            prop_assert_eq!(at_once.run(&exists), walk.run(&exists), "PathExists {}", text);
            prop_assert_eq!(ignoring.run(&exists), walk.run(&exists), "PathExists {}", text);
            prop_assert_eq!(at_once.run(&is_symlink), walk.run(&is_symlink), "IsSymlink {}", text);
            prop_assert_eq!(ignoring.run(&is_symlink), walk.run(&is_symlink), "IsSymlink {}", text);
            let volume = mounted_at(&text);
            prop_assert_eq!(at_once.run(&volume), walk.run(&volume), "volume at {}", text);
            let volume = closest(&text);
            prop_assert_eq!(at_once.run(&volume), walk.run(&volume), "volume closest to {}", text);
        }
        prop_assert_eq!(at_once.fallbacks(), []);
        prop_assert_eq!(sim.open_handles(), 1);
    }
}
