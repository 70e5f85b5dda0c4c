//! Tests of querying a path without a handle: what Windows must have proved, and attacks on the
//! query.

use std::sync::Arc;
use std::time::Duration;

use crate::path_lookup::{
    IgnoresFlag, assert_component_by_component, attributes_behind_links, called, node_with_links,
    tested,
};
use crate::setup::{
    GIB, exists, failing, has_code, is_link, layered, node_on, ntfs, partitioned_disk, probed,
    refused, traced,
};
use faults::{Layer, Layered, Probed, Race, Trace};
use os::abi::FsAttributeInformation;
use os::{
    Access, FsInfo, Handle, NtPath, Open, Options, Os, OsError, OsResult, PathForm, U16Str,
    U16String,
};
use os_sim::{External, Sim};
use storage_ops::{Config, ErrorKind, HostPath, Node};

#[test]
fn each_of_the_two_calls_is_proved_by_itself() {
    for (without, called_then) in [
        ("attributes", &["open", "open_below"][..]),
        ("open_below", &["attributes"]),
    ] {
        let sim = node_with_links();
        let (node, trace) = traced(&sim, failing(without, OsError::INVALID_PARAMETER));
        node.test_path_lookup();
        trace.take();
        assert_eq!(node.run(&exists(r"\pods\a\b\f")), Ok(true));
        assert_eq!(called(&trace), called_then, "without {without}");
    }
}

#[test]
fn a_name_of_the_system_volume_that_leads_elsewhere_is_not_used() {
    /// A Windows that names a device which does not exist, or one without the links of Windows.
    struct Misnames(Option<&'static str>);

    impl Layer for Misnames {
        fn final_path(&self, handle: &dyn Handle, form: PathForm) -> OsResult<U16String> {
            let name = self.0.map_or_else(
                || handle.final_path(form),
                |name| Ok(U16String::from_str(name)),
            );
            if form == PathForm::Device {
                name
            } else {
                handle.final_path(form)
            }
        }
    }

    let sim = ntfs().dir(r"C:\var\lib\kubelet\pods\a\b").build();
    let volume = sim.volume_on(1).unwrap().id;
    let root = sim.open(
        &NtPath::volume_root(volume),
        &Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY),
    );
    let other: &str = root
        .unwrap()
        .final_path(PathForm::Device)
        .unwrap()
        .to_string_lossy()
        .leak();
    for (name, uses) in [
        (None, true),
        (Some(r"\Device\HarddiskVolume1\"), false),
        (Some(""), false),
        (Some(other), false),
    ] {
        let node = tested(layered(&sim, Misnames(name)));
        assert_eq!(node.run(&exists(r"\pods\a\b")), Ok(true), "{name:?}");
        assert_eq!(node.fallbacks().is_empty(), uses, "{name:?}");
    }
}

/// A node whose system drive is a FAT volume, which has no reparse points.
fn node_on_fat() -> Sim {
    let sim = partitioned_disk()
        .formatted("FAT32")
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    let external = sim.external();
    external.set_drive_letter('C', sim.volume_on(1).unwrap().id);
    external.set_drive_letter('E', sim.volume_on(2).unwrap().id);
    external.mkdir_all(r"C:\var\lib\kubelet\pods\a\b").unwrap();
    external.mkdir_all(r"E:\elsewhere\x").unwrap();
    external.mkdir_all(r"E:\moved\a").unwrap();
    external.junction(r"E:\moved\j", r"E:\elsewhere").unwrap();
    sim
}

#[test]
fn a_local_volume_without_reparse_points_needs_no_proof() {
    let sim = node_on_fat();
    let trace = Arc::new(Trace::recording());
    let system = Arc::new(Layered::around(sim.process(), IgnoresFlag));
    let moved = HostPath::parse(r"E:\moved").unwrap();
    let config = Config::default().with(|c| c.working_dirs = vec![moved]);
    let node = tested(Node::new(
        Arc::new(Probed::new(system, Arc::clone(&trace))),
        config,
    ));
    trace.take();
    for (text, answer) in [
        (r"\pods\a\b", true),
        (r"\pods\a\missing", false),
        (r"\pods\missing\x", false),
    ] {
        assert_eq!(node.run(&exists(text)), Ok(answer));
        assert_eq!(called(&trace), ["attributes"], "{text}");
    }
    assert_eq!(node.run(&is_link(r"\pods\a\b")), Ok(false));
    assert_eq!(called(&trace), ["attributes"]);
    assert_eq!(node.fallbacks(), []);
    // What holds for one volume says nothing about others, nor about opens.
    let error = node.run(&exists(r"E:\moved\j\x")).unwrap_err();
    has_code(&error, OsError::REPARSE_POINT_ENCOUNTERED);
    assert_component_by_component(&trace);
    assert_eq!(node.run(&exists(r"E:\moved\a")), Ok(true));
    assert_component_by_component(&trace);
}

/// A Windows that does not know `OBJ_DONT_REPARSE`, whose file systems report that they have no
/// reparse points, and whose volumes have no GUID if they are shares.
struct DeniesReparsePoints {
    is_share: bool,
}

impl Layer for DeniesReparsePoints {
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

    fn query_fs(&self, handle: &dyn Handle, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        let filled = handle.query_fs(class, output)?;
        if class == FsInfo::Attribute {
            let attributes = &mut output[..4];
            let reported = u32::from_le_bytes(attributes.try_into().unwrap());
            let reported = reported & !FsAttributeInformation::SUPPORTS_REPARSE_POINTS;
            attributes.copy_from_slice(&reported.to_le_bytes());
        }
        Ok(filled)
    }

    fn final_path(&self, handle: &dyn Handle, form: PathForm) -> OsResult<U16String> {
        if self.is_share && form == PathForm::VolumeGuid {
            return Err(OsError::PATH_NOT_FOUND);
        }
        handle.final_path(form)
    }
}

#[test]
fn a_share_or_a_followed_link_refutes_what_a_file_system_reports() {
    for (is_share, has_windows_links) in [(true, false), (true, true), (false, true)] {
        let sim = node_with_links();
        let external = sim.external();
        external.mkdir_all(r"C:\ProgramData\Microsoft").unwrap();
        if !has_windows_links {
            external.remove_all(r"C:\Documents and Settings").unwrap();
            external.remove_all(r"C:\Users\All Users").unwrap();
        }
        let node = tested(layered(&sim, DeniesReparsePoints { is_share }));
        let error = node.run(&exists(r"\pods\a\j\x")).unwrap_err();
        has_code(&error, OsError::REPARSE_POINT_ENCOUNTERED);
    }
}

#[test]
fn what_happens_between_the_query_and_the_opens_is_judged_by_the_opens() {
    const A: &str = r"C:\var\lib\kubelet\pods\a";
    const KEPT: &str = r"C:\var\lib\kubelet\pods\kept";
    type Swap = fn(&External<'_>);
    let cases: [(&str, Swap, Result<bool, OsError>); 3] = [
        // The query has met a link, which then becomes a directory, or is gone.
        (
            r"\pods\a\j\x",
            |external| external.remove_all(&format!(r"{A}\j")).unwrap(),
            Ok(false),
        ),
        (
            r"\pods\a\j\x",
            |external| {
                external.remove_all(&format!(r"{A}\j")).unwrap();
                external.mkdir_all(&format!(r"{A}\j\x")).unwrap();
            },
            Ok(true),
        ),
        // The query has found a link, and a directory above it then becomes a link.
        (
            r"\pods\a\l",
            |external| {
                external.rename(A, KEPT).unwrap();
                external.junction(A, r"C:\elsewhere").unwrap();
            },
            Err(OsError::REPARSE_POINT_ENCOUNTERED),
        ),
    ];
    for (text, swap, answer) in cases {
        let sim = node_with_links();
        let attacked = sim.clone();
        let race = Race::before(0, move || swap(&attacked.external()))
            .among(|call| call.primitive == "open" && call.object.ends_with("kubelet"));
        let node = tested(probed(&sim, race));
        assert_eq!(
            node.run(&exists(text))
                .map_err(|error| error.code().unwrap()),
            answer,
            "{text}"
        );
    }
}

#[test]
fn the_query_does_not_wait_for_a_server() {
    let sim = os_sim::node()
        .smb_server("files")
        .share("one")
        .guest()
        .build();
    sim.external()
        .symlink(r"C:\var\lib\kubelet\pods\l", r"\\files\one")
        .unwrap();
    let node = tested(node_on(&sim));
    assert!(sim.set_smb_reachable("files", false));
    refused(&node, &exists(r"\pods\l\x"), ErrorKind::FailedPrecondition);
    assert_eq!(sim.now().0, Duration::ZERO);
}
