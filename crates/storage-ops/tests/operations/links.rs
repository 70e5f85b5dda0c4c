//! Tests of links that Windows treats in a special way: without the privilege, with targets that
//! cannot be followed, and reparse points that are no links.

use crate::setup::{
    NoProbe, closest, contents, exists, failing_once, has_code, is_link, layered, link, mounted_at,
    node_on, path, probed, refused, refused_saying, rmdir, says, traced,
};
use faults::{Fault, Layer};
use os::abi::{ControlCode, REPARSE_TAG_MOUNT_POINT, REPARSE_TAG_SYMLINK};
use os::{Access, FileInfo, Handle, NtPath, Open, Options, Os, OsError, OsResult, U16String};
use os_sim::Sim;
use storage_ops::{
    Config, CreateSymlink,
    ErrorKind::{FailedPrecondition, NotFound, PermissionDenied},
    FallbackCount, GetClosestVolumeIdFromTargetPath, IsSymlink, Node,
};

const POD: &str = r"C:\var\lib\kubelet\pods\p";

fn new_link() -> CreateSymlink {
    link(r"\pods\p", r"\pods\l")
}

/// The reparse point of a placeholder of cloud storage, whose tag has the bit of directories.
pub(crate) const PLACEHOLDER: [u8; 12] = [0x1a, 0, 0, 0x90, 4, 0, 0, 0, 1, 2, 3, 4];

/// Sets the reparse point of `file`, as any process that can write its attributes can.
pub(crate) fn set_reparse_point(sim: &Sim, file: &str, data: &[u8]) {
    let nt = NtPath::from_win32(&U16String::from_str(file));
    let how = Open::existing(Access::WRITE_ATTRIBUTES, Options::REPARSE_POINT);
    sim.open(&nt, &how)
        .unwrap()
        .control(ControlCode::FSCTL_SET_REPARSE_POINT, data, &mut [])
        .unwrap();
}

/// Returns the data of a mount point with this target.
pub(crate) fn mount_point(target: &str) -> Vec<u8> {
    let names: Vec<u8> = target
        .encode_utf16()
        .chain([0, 0])
        .flat_map(u16::to_le_bytes)
        .collect();
    let length = u16::try_from(names.len()).unwrap() - 4;
    let fields = [length + 12, 0, 0, length, length + 2, 0]
        .map(u16::to_le_bytes)
        .concat();
    [&REPARSE_TAG_MOUNT_POINT.to_le_bytes()[..], &fields, &names].concat()
}

/// Returns the data of a symbolic link with this relative target.
pub(crate) fn relative_link(target: &str) -> Vec<u8> {
    let names: Vec<u8> = target.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let length = u16::try_from(names.len()).unwrap();
    let fields = [length + 12, 0, 0, length, length, 0, 1, 0]
        .map(u16::to_le_bytes)
        .concat();
    [&REPARSE_TAG_SYMLINK.to_le_bytes()[..], &fields, &names].concat()
}

#[test]
fn a_pipe_or_mailslot_of_a_server_is_not_opened_through_a_link() {
    // Windows would log LocalSystem on to the node's own server, whose pipes any account can
    // create.
    for target in [
        r"\??\UNC\localhost\pipe\x",
        r"\??\UNC\127.0.0.1\IPC$\x",
        r"\??\UNC\localhost\Mailslot\x",
        r"\??\UNC\;LanmanRedirector\localhost\pipe\x",
        r"\??\GLOBALROOT\Device\Mup\localhost\pipe\x",
        r"\Device\Mup\;x\localhost\PIPE\x",
    ] {
        let sim = os_sim::node()
            .dir(r"C:\var\lib\kubelet\pods\l")
            .dir(POD)
            .build();
        set_reparse_point(&sim, r"C:\var\lib\kubelet\pods\l", &mount_point(target));
        sim.external()
            .symlink(r"C:\var\lib\kubelet\pods\p\l", r"C:\var\lib\kubelet\pods\l")
            .unwrap();
        let (node, trace) = traced(&sim, NoProbe);
        for link in [r"\pods\l", r"\pods\p\l"] {
            let below = path(&format!(r"{link}\x"));
            refused(&node, &mounted_at(link), FailedPrecondition);
            refused(&node, &closest(link), FailedPrecondition);
            refused(
                &node,
                &IsSymlink {
                    path: below.clone(),
                },
                FailedPrecondition,
            );
            refused(
                &node,
                &GetClosestVolumeIdFromTargetPath { target: below },
                FailedPrecondition,
            );
        }
        // It leads to a link, which exists and is not followed.
        assert!(node.run(&is_link(r"\pods\p\l")).unwrap());
        refused(&node, &is_link(r"\pods\l"), FailedPrecondition);
        let calls = trace.take();
        let opens = calls
            .iter()
            .map(|record| &record.call)
            .filter(|call| call.primitive == "open");
        // A final link is opened itself, and no path leads through one.
        let ends = [
            r"\pods",
            r"\p",
            r"\l",
            r"\kubelet",
            r"\lib",
            r"\var",
            r"C:\",
        ];
        let is_plain = |object: &str| {
            ends.iter().any(|end| object.ends_with(end)) && !object.ends_with(r"\l\x")
        };
        for call in opens {
            assert!(
                is_plain(&call.object) && call.object.starts_with(r"\??\C:"),
                "{target}: {call:?}"
            );
        }
    }
    // A directory of that name on a share is one.
    let sim = os_sim::node()
        .smb_server("files")
        .share("one")
        .user("user", "password")
        .build();
    sim.external()
        .mkdir_all(r"C:\var\lib\kubelet\pods\l")
        .unwrap();
    set_reparse_point(
        &sim,
        r"C:\var\lib\kubelet\pods\l",
        &mount_point(r"\??\UNC\files\one\pipe"),
    );
    let (node, trace) = traced(&sim, NoProbe);
    let _ = node.run(&is_link(r"\pods\l"));
    assert!(
        trace
            .take()
            .iter()
            .any(|record| record.call.object.contains(r"UNC\files\one"))
    );
}

#[test]
fn a_device_or_pipe_that_a_link_names_is_not_opened_by_name() {
    // Opened by name, Windows would connect LocalSystem to the pipe of the account that made the
    // link.
    for target in [
        r"\??\pipe\x",
        r"\??\PhysicalDrive0",
        r"\??\GLOBALROOT\Device\NamedPipe\x",
        r"\??\GLOBALROOT\Device\HarddiskVolume1\Windows",
        r"\Device\NamedPipe\x",
    ] {
        let sim = os_sim::node().dir(r"C:\var\lib\kubelet\pods\l").build();
        set_reparse_point(&sim, r"C:\var\lib\kubelet\pods\l", &mount_point(target));
        let (node, trace) = traced(&sim, NoProbe);
        let _ = node.run(&is_link(r"\pods\l"));
        let _ = node.run(&mounted_at(r"\pods\l\x"));
        let _ = node.run(&closest(r"\pods\l"));
        refused(&node, &exists(r"\pods\l\x"), FailedPrecondition);
        let calls = trace.take();
        let opens: Vec<_> = calls
            .iter()
            .map(|record| &record.call)
            .filter(|call| call.primitive == "open")
            .collect();
        assert!(
            opens.len() > 3 && opens.iter().all(|call| call.object.starts_with(r"\??\C:\")),
            "{opens:?}"
        );
    }
}

#[test]
fn an_account_without_the_privilege_is_told_which_right_it_needs() {
    let sim = os_sim::node().dir(POD).build();
    let node = Node::new(sim.process_without_symlink_privilege(), Config::default());
    let before = sim.snapshot();
    let error = refused(&node, &new_link(), PermissionDenied);
    has_code(&error, OsError::PRIVILEGE_NOT_HELD);
    says(
        &error,
        "(SeCreateSymbolicLinkPrivilege): a required privilege",
    );
    assert_eq!(sim.snapshot(), before);
}

/// A file system that does not make a link of an object that is deleted when it is closed.
fn refusing_unkept(primitive: &'static str, code: OsError) -> Fault {
    failing_once(primitive, code)
}

/// Checks that the link exists, and was made in the second way after `code`.
fn assert_made_as_go_does(sim: &Sim, node: &Node, code: OsError) {
    assert_eq!(
        sim.external()
            .read_link(r"C:\var\lib\kubelet\pods\l")
            .unwrap(),
        POD
    );
    let count = FallbackCount {
        call: "create_link",
        code: Some(code.0),
        count: 1,
    };
    assert_eq!(node.fallbacks(), [count]);
}

#[test]
fn a_link_is_created_as_go_does_if_windows_refuses_the_way_that_leaves_nothing_behind() {
    for step in ["control FSCTL_SET_REPARSE_POINT", "set DispositionEx"] {
        for code in [
            OsError::ACCESS_DENIED,
            OsError::DELETE_PENDING,
            OsError::NOT_SUPPORTED,
            OsError(0xe000_0abc),
        ] {
            let sim = os_sim::node().dir(POD).build();
            let node = probed(&sim, refusing_unkept(step, code));
            node.run(&new_link())
                .unwrap_or_else(|error| panic!("{step}, {code}: {error}"));
            assert_made_as_go_does(&sim, &node, code);
        }
        for code in [OsError::DISK_FULL, OsError::WRITE_PROTECT] {
            let sim = os_sim::node().dir(POD).build();
            let (node, before) = (probed(&sim, refusing_unkept(step, code)), sim.snapshot());
            assert_eq!(
                node.run(&new_link()).unwrap_err().code(),
                Some(code),
                "{step}"
            );
            assert_eq!(
                (sim.snapshot(), node.fallbacks()),
                (before, vec![]),
                "{step}, {code}"
            );
        }
    }
}

/// A file system that says that it keeps an object which is deleted when it is closed, and deletes
/// the object all the same.
struct Forgetful;

impl Layer for Forgetful {
    fn set(&self, handle: &dyn Handle, class: FileInfo, input: &[u8]) -> OsResult<()> {
        if class == FileInfo::DispositionEx {
            return Ok(());
        }
        handle.set(class, input)
    }
}

#[test]
fn a_link_that_windows_loses_after_a_success_is_created_as_go_does() {
    let sim = os_sim::node().dir(POD).build();
    let node = layered(&sim, Forgetful);
    node.run(&new_link()).unwrap();
    assert_made_as_go_does(&sim, &node, OsError::FILE_NOT_FOUND);
}

#[test]
fn a_link_whose_target_is_not_a_valid_path_leads_nowhere() {
    for target in [
        "foobar",
        r"C:\var\lib\kubelet",
        r"\\?\C:\var\lib\kubelet",
        r"\??\C:\var\..\var",
        r"\??\C:\a|b",
    ] {
        let sim = os_sim::node().dir(POD).build();
        set_reparse_point(&sim, POD, &mount_point(target));
        let node = node_on(&sim);
        assert!(!node.run(&is_link(POD)).unwrap(), "{target}");
        refused_saying(
            &node,
            &mounted_at(POD),
            NotFound,
            "because it does not exist",
        );
    }
}

#[test]
fn a_directory_with_a_tag_that_is_no_link_is_removed_with_its_contents() {
    let sim = os_sim::node()
        .file(r"C:\var\lib\kubelet\pods\p\cloud\sub\file", b"1")
        .build();
    for directory in [
        r"C:\var\lib\kubelet\pods\p\cloud",
        r"C:\var\lib\kubelet\pods\p\cloud\sub",
    ] {
        set_reparse_point(&sim, directory, &PLACEHOLDER);
    }
    let node = node_on(&sim);
    node.run(&contents(POD)).unwrap();
    assert!(sim.external().read_dir(POD).unwrap().is_empty());
    sim.external()
        .mkdir_all(r"C:\var\lib\kubelet\pods\p\cloud\sub")
        .unwrap();
    set_reparse_point(&sim, r"C:\var\lib\kubelet\pods\p\cloud", &PLACEHOLDER);
    node.run(&rmdir(POD, true)).unwrap();
    assert!(!sim.external().exists(POD));
}
