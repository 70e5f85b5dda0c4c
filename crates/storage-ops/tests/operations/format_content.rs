//! Formatting a volume that has a file system: nothing changes if it is empty, and it is refused if
//! it has content.

use std::sync::Arc;

use faults::{Layer, Layered, Probed, Trace};
use os::{FsInfo, Handle, OsError, OsResult};
use os_sim::Sim;
use storage_ops::{Config, ErrorKind::FailedPrecondition, FormatVolume, Node};

use crate::format_again::{Change, again, format, format_with, grant, refuses};
use crate::setup::{
    MOUNT, failing, failing_on, mount, node_on, ntfs, partitioned_disk, refused, unmount, volume_on,
};

#[test]
fn contract_22_an_empty_volume_is_as_if_it_had_just_been_formatted() {
    for fill in [
        (|_| {}) as fn(&Sim),
        |sim| {
            let directory = format!(r"{MOUNT}\System Volume Information\x");
            sim.external().mkdir_all(&directory).unwrap();
        },
        // A former user's entry in the access control list of the root directory.
        grant,
    ] {
        let sim = ntfs().mounted(MOUNT).build();
        fill(&sim);
        let before = sim.snapshot();
        for config in [Config::default(), again()] {
            format(&sim, config).unwrap();
            assert_eq!(sim.snapshot(), before);
        }
    }
}

#[test]
fn contract_22_a_volume_with_content_is_refused_and_the_error_names_the_flag() {
    let cases: [(Change, &str); 6] = [
        (
            |sim| sim.external().write(&format!(r"{MOUNT}\a"), b"").unwrap(),
            r#"its root directory has the entry "a"; csi-proxy formats a volume again only with its flag -format-again=DIR"#,
        ),
        (
            |sim| {
                for name in ["b", "c", "System Volume Information"] {
                    sim.external().mkdir(&format!(r"{MOUNT}\{name}")).unwrap();
                }
            },
            r#"its root directory has 2 entries, such as "b""#,
        ),
        (
            |sim| {
                sim.external()
                    .mkdir(&format!(r"{MOUNT}\$RECYCLE.BIN"))
                    .unwrap();
            },
            r#"the entry "$RECYCLE.BIN""#,
        ),
        (
            |sim| {
                let file = format!(r"{MOUNT}\System Volume Information");
                sim.external().write(&file, b"secret").unwrap();
            },
            r#"the entry "System Volume Information""#,
        ),
        (
            |sim| {
                let link = format!(r"{MOUNT}\System Volume Information");
                sim.external().symlink(&link, r"C:\Windows").unwrap();
            },
            r#"the entry "System Volume Information""#,
        ),
        (
            |sim| sim.external().add_stream(MOUNT, "hidden", 6).unwrap(),
            r#"the alternate data stream ":hidden:$DATA""#,
        ),
    ];
    for (fill, words) in cases {
        let sim = ntfs().mounted(MOUNT).build();
        fill(&sim);
        refuses(&sim, Config::default(), words);
        refuses(&sim, again(), words);
    }
    let sim = ntfs().mounted(MOUNT).build();
    for number in 0..1000 {
        sim.external()
            .write(&format!(r"{MOUNT}\{number:03}"), b"")
            .unwrap();
    }
    let error = refuses(&sim, Config::default(), "its root directory has more than ");
    assert!(error.contains(r#" entries, such as "000""#), "{error}");
}

#[test]
fn contract_22_a_late_second_call_after_a_pod_has_written_is_refused() {
    for config in [Config::default(), again()] {
        let sim = partitioned_disk().dir(MOUNT).build();
        format(&sim, config.clone()).unwrap();
        let node = node_on(&sim);
        let volume = volume_on(&node, 1);
        node.run(&mount(volume, MOUNT)).unwrap();
        sim.external()
            .write(&format!(r"{MOUNT}\data"), b"precious")
            .unwrap();
        // While the volume is mounted, and between two mounts.
        for unmounts in [false, true] {
            if unmounts {
                node.run(&unmount(volume, MOUNT)).unwrap();
            }
            let node = Node::new(sim.process(), config.clone());
            refused(&node, &FormatVolume::new(volume), FailedPrecondition);
        }
        node.run(&mount(volume, MOUNT)).unwrap();
        assert_eq!(
            sim.external().read(&format!(r"{MOUNT}\data")).unwrap(),
            b"precious"
        );
    }
}

fn root(object: &str) -> bool {
    object.contains("Volume{") && object.ends_with('\\')
}

#[test]
fn contract_22_a_root_directory_that_cannot_be_read_is_refused_and_the_error_names_the_flag() {
    for fault in [
        failing_on("open", root, OsError::ACCESS_DENIED),
        failing_on("open", root, OsError::OPLOCK_BREAK_IN_PROGRESS),
        failing("list", OsError::IO_DEVICE),
        failing("list", OsError(4711)),
        failing("query Stream", OsError::ACCESS_DENIED),
        // The file system has streams, so the answer says nothing.
        failing("query Stream", OsError::INVALID_PARAMETER),
        failing("query Stream", OsError::NOT_SUPPORTED),
        failing("query Stream", OsError::MORE_DATA),
        failing("query Stream", OsError::BAD_LENGTH),
    ] {
        let sim = ntfs().build();
        let node = node_on(&sim);
        let (volume, before) = (volume_on(&node, 1), sim.snapshot());
        let node = Node::new(
            Arc::new(Probed::new(sim.process(), fault)),
            Config::default(),
        );
        let error = refused(&node, &FormatVolume::new(volume), FailedPrecondition);
        let text = error.to_string();
        assert!(
            text.contains("its root directory cannot be read")
                && text.contains("-format-again=DIR"),
            "{text}"
        );
        assert!(error.code().is_some());
        assert_eq!(sim.snapshot(), before);
    }
}

/// A file system without alternate data streams.
struct WithoutStreams;

impl Layer for WithoutStreams {
    fn query_fs(&self, handle: &dyn Handle, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        let length = handle.query_fs(class, output)?;
        if class == FsInfo::Attribute {
            output[2] &= !4;
        }
        Ok(length)
    }
}

#[test]
fn the_streams_of_a_file_system_that_has_none_need_not_be_read() {
    let sim = ntfs().build();
    let volume = volume_on(&node_on(&sim), 1);
    let layered = Arc::new(Layered::around(sim.process(), WithoutStreams));
    let unknown = failing("query Stream", OsError::NOT_SUPPORTED);
    let node = Node::new(Arc::new(Probed::new(layered, unknown)), Config::default());
    node.run(&FormatVolume::new(volume)).unwrap();
}

#[test]
fn without_the_flag_no_mount_point_and_no_link_is_looked_at() {
    let sim = ntfs().build();
    let trace = Arc::new(Trace::recording());
    format_with(&sim, Config::default(), Arc::clone(&trace)).unwrap();
    let counts = trace.counts();
    assert_eq!(
        (
            counts.of("volume_paths"),
            counts.of("control FSCTL_LOCK_VOLUME")
        ),
        (0, 0)
    );
}
