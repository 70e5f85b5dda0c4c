//! Disks, volumes, snapshots and the built-in node.

use std::time::Duration;

use os::abi::ControlCode;
use os::{Access, FsInfo, Handle, NtPath, Open, Options, Os, OsError, Time, U16String};
use os_sim::{Content, DiskDescription, Sim, node};

const GIB: u64 = 1 << 30;

fn open(os: &dyn Os, path: &NtPath) -> Box<dyn Handle> {
    os.open(
        path,
        &Open::existing(Access::GENERIC_READ, Options::empty()),
    )
    .expect("the open succeeds")
}

#[test]
fn the_paths_of_a_volume_that_is_mounted_on_itself_are_found() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").build();
    let volume = node.volume_on(1).expect("a volume").id;
    let external = node.external();
    let on_itself = [r"C:\mnt\a", r"C:\mnt\b", r"C:\mnt\c"];
    for path in [r"C:\mnt"].into_iter().chain(on_itself) {
        external.mkdir(path).unwrap();
        external.set_mount_point(path, volume).unwrap();
    }
    let name = U16String::from_str(&format!(r"\\?\Volume{{{volume}}}\"));
    let paths: Vec<_> = node
        .process()
        .volume_paths(&name)
        .unwrap()
        .iter()
        .map(|path| path.to_string_lossy())
        .collect();
    assert_eq!(
        paths,
        [r"C:\mnt\", r"C:\mnt\a\", r"C:\mnt\b\", r"C:\mnt\c\"]
    );
    external.remove_all(r"C:\mnt").unwrap();
    assert!(node.process().volume_paths(&name).unwrap().is_empty());
}

#[test]
fn the_built_in_node_satisfies_the_invariants() {
    let node = Sim::default_node();
    node.invariants().unwrap();
    assert_eq!(node.disks().len(), 10);
    assert_eq!(node.now(), Time::default());
}

#[test]
fn a_snapshot_names_volumes_by_disk_and_partition_and_shows_differences() {
    let builder = node().dir(r"C:\mnt");
    let (one, other) = (builder.build(), builder.build());
    let temporary = other.attach_disk(&DiskDescription::new(GIB), true).unwrap();
    other.unplug_disk(temporary).unwrap();
    for node in [&one, &other] {
        let partitioned = DiskDescription {
            content: Content::Partitioned,
            ..DiskDescription::new(GIB)
        };
        assert_eq!(node.attach_disk(&partitioned, true), Ok(1));
        node.advance(Duration::from_secs(1));
        node.external()
            .set_mount_point(r"C:\mnt", node.volume_on(1).unwrap().id)
            .unwrap();
    }
    assert_ne!(one.volume_on(1).unwrap().id, other.volume_on(1).unwrap().id);
    assert_eq!(one.snapshot(), other.snapshot());
    other.external().mkdir(r"C:\more").unwrap();
    assert_eq!(
        one.snapshot().difference(&other.snapshot()),
        "+ disk 0 partition 2 \\more directory 0x10\n"
    );
}

#[test]
fn requests_to_a_removed_disk_fail_with_the_code_that_was_set() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").build();
    let handle = open(&node, &NtPath::disk(1));
    let volume = open(&node, &NtPath::volume(node.volume_on(1).unwrap().id));
    node.unplug_disk(1).unwrap();
    let requests = || {
        let number = handle.control(ControlCode::STORAGE_GET_DEVICE_NUMBER, &[], &mut [0; 64]);
        [
            number,
            volume.read(0, &mut [0; 512]),
            volume.query_fs(FsInfo::Attribute, &mut [0; 64]),
        ]
    };
    assert_eq!(requests(), [Err(OsError::DEV_NOT_EXIST); 3]);
    node.set_removed_code(OsError::NO_SUCH_DEVICE);
    assert_eq!(requests(), [Err(OsError::NO_SUCH_DEVICE); 3]);
    node.invariants().unwrap();
}
