//! Tests on file systems that lack what NTFS has: flags of deletion, reparse points, the class of
//! attributes and tag.

use crate::setup::{
    KUBELET, NoProbe, both, contents, exists, failing, has_code, is_link, layered, link, mkdir,
    node_on, partitioned_disk, probed, refused, refused_saying, rmdir, traced, volume_on,
};
use faults::{Fault, FaultAction, Layer, When};
use os::{Handle, OsError, OsResult};
use os_sim::{FileKind, Sim};
use storage_ops::{
    CreateSymlink,
    ErrorKind::{AlreadyExists, FailedPrecondition, PermissionDenied},
    GetVolumeStats,
};

/// The codes with which a file system refuses a class of information that it does not have.
const UNSUPPORTED: [OsError; 3] = [
    OsError::INVALID_FUNCTION,
    OsError::NOT_SUPPORTED,
    OsError::INVALID_PARAMETER,
];

const LINK: &str = r"C:\var\lib\kubelet\pods\l";

/// Returns a node whose disk 1 has a FAT32 volume, mounted at `C:\fat`.
fn fat() -> os_sim::Builder {
    partitioned_disk().formatted("FAT32").mounted(r"C:\fat")
}

/// Returns a node on which kubelet's directory is a link to one on the FAT32 volume.
fn kubelet_on_fat() -> Sim {
    let sim = fat().dir(r"C:\fat\kubelet\pods").build();
    sim.external().remove_all(KUBELET).unwrap();
    sim.external().symlink(KUBELET, r"C:\fat\kubelet").unwrap();
    sim
}

fn new_link() -> CreateSymlink {
    link(r"\plugins\d", LINK)
}

#[test]
fn rmdir_contents_empties_a_fat_volume() {
    let sim = partitioned_disk()
        .formatted("FAT32")
        .mounted(r"C:\var\lib\kubelet\plugins\v");
    let sim = sim
        .file(r"C:\var\lib\kubelet\plugins\v\d\e\f", b"1")
        .file(r"C:\var\lib\kubelet\plugins\v\g", b"2")
        .build();
    let external = sim.external();
    external
        .mkdir(r"C:\var\lib\kubelet\plugins\v\System Volume Information")
        .unwrap();
    for read_only in [
        r"C:\var\lib\kubelet\plugins\v\d\e\f",
        r"C:\var\lib\kubelet\plugins\v\d",
    ] {
        external.set_read_only(read_only, true).unwrap();
    }
    node_on(&sim).run(&contents(r"\plugins\v")).unwrap();
    assert_eq!(
        external.read_dir(r"C:\var\lib\kubelet\plugins\v").unwrap(),
        ["System Volume Information"]
    );
    sim.invariants().unwrap();
}

#[test]
fn a_working_directory_may_be_on_a_fat_volume() {
    let sim = kubelet_on_fat();
    let (node, external) = (node_on(&sim), sim.external());
    let exists = |text| node.run(&exists(text)).unwrap();
    node.run(&mkdir(r"\pods\a\b\c")).unwrap();
    assert!(exists(r"\pods\a\b\c"));
    assert!(!exists(r"\pods\a\missing"));
    external.write(r"C:\fat\kubelet\pods\a\b\f", b"1").unwrap();
    external
        .set_read_only(r"C:\fat\kubelet\pods\a\b\f", true)
        .unwrap();
    refused(&node, &mkdir(r"\pods\a\b\f"), AlreadyExists);
    assert!(!node.run(&is_link(r"\pods\a")).unwrap());
    assert!(!node.run(&is_link(r"C:\fat\kubelet\pods\a\b\f")).unwrap());
    let full = refused(&node, &rmdir(r"\pods\a", false), FailedPrecondition);
    assert_eq!(full.code(), Some(OsError::DIR_NOT_EMPTY));
    node.run(&rmdir(r"\pods\a", true)).unwrap();
    assert!(!exists(r"\pods\a"));
}

#[test]
fn a_link_on_a_fat_volume_is_refused_and_leaves_nothing() {
    let sim = kubelet_on_fat();
    let (node, before) = (node_on(&sim), sim.snapshot());
    let link = link(r"\pods", r"\pods\l");
    refused_saying(
        &node,
        &link,
        FailedPrecondition,
        "the file system does not support symbolic links",
    );
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn a_link_is_created_where_delete_on_close_cannot_be_cleared() {
    for code in UNSUPPORTED {
        let sim = os_sim::node().dir(r"C:\var\lib\kubelet\plugins\d").build();
        let node = probed(&sim, failing("set DispositionEx", code));
        node.run(&new_link()).unwrap();
        node.run(&new_link()).unwrap();
        let created = sim.tree(r"C:\var\lib\kubelet\pods").unwrap();
        assert!(
            matches!(&created[..], [link] if matches!(link.kind, FileKind::Symlink(_))),
            "{code}: {created:?}"
        );
    }
}

#[test]
fn a_link_that_cannot_be_created_there_leaves_nothing() {
    for nth in 0..2 {
        let sim = os_sim::node().dir(r"C:\var\lib\kubelet\plugins\d").build();
        let no_privilege = Fault::at(
            nth,
            When::Before,
            FaultAction::Fail(OsError::PRIVILEGE_NOT_HELD),
        )
        .among(|call| call.primitive == "control FSCTL_SET_REPARSE_POINT");
        let no_flags = failing("set DispositionEx", OsError::INVALID_PARAMETER);
        refused(
            &probed(&sim, both(no_privilege, no_flags)),
            &new_link(),
            PermissionDenied,
        );
        assert!(!sim.external().exists(LINK), "{nth}");
    }
}

#[test]
fn a_link_whose_tag_cannot_be_read_is_neither_followed_nor_deleted() {
    let node = os_sim::node().file(r"C:\outside\kept", b"1");
    let sim = node
        .symlink(r"C:\var\lib\kubelet\pods\p\l", r"C:\outside")
        .build();
    let before = sim.snapshot();
    for code in UNSUPPORTED {
        let node = probed(&sim, failing("query AttributeTag", code));
        let error = node.run(&contents(r"\pods\p")).unwrap_err();
        has_code(&error, code);
        assert_eq!(sim.snapshot(), before);
    }
}

#[test]
fn the_size_of_a_volume_without_a_file_system_is_not_queried() {
    let sim = partitioned_disk().build();
    let (node, trace) = traced(&sim, NoProbe);
    let volume = volume_on(&node, 1);
    let error = refused(&node, &GetVolumeStats { volume }, FailedPrecondition);
    has_code(&error, OsError::UNRECOGNIZED_VOLUME);
    assert_eq!(trace.counts().of("query_fs FullSize"), 0);
}

/// A file system that reports success for a listing although it wrote no entry.
struct EmptySuccess;

impl Layer for EmptySuccess {
    fn list(&self, handle: &dyn Handle, restart: bool, output: &mut [u8]) -> OsResult<()> {
        if restart {
            handle.list(restart, output)
        } else {
            Ok(())
        }
    }
}

#[test]
fn a_listing_that_succeeds_without_an_entry_is_an_error() {
    let sim = os_sim::node()
        .file(r"C:\var\lib\kubelet\pods\p\f", b"1")
        .build();
    let node = layered(&sim, EmptySuccess);
    let error = refused(&node, &contents(r"\pods\p"), FailedPrecondition);
    has_code(&error, OsError::FILE_CORRUPT);
}
