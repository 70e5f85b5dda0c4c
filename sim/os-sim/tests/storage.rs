//! The storage provider: from a raw disk to a volume that is mounted and grown.

use std::time::Duration;

use os::abi::{ControlCode, DiskExtent, FsAttributeInformation, FsFullSizeInformation};
use os::{
    Access, CallStatus, FsInfo, Instance, MethodCall, Namespace, NtPath, Open, Options, Os, OsError, Time, U16String,
    Value,
};
use os_sim::{Sim, node};
use zerocopy::FromBytes;

const GIB: u64 = 1 << 30;

fn query(os: &dyn Os, wql: &str) -> Vec<Instance> {
    let deadline = os.clock().now() + Duration::from_mins(1);
    os.wmi().query(Namespace::Storage, wql, deadline).expect("the query is valid")
}

fn only(os: &dyn Os, wql: &str) -> Instance {
    let mut rows = query(os, wql);
    assert_eq!(rows.len(), 1, "{wql}");
    rows.remove(0)
}

fn call(os: &dyn Os, path: &str, method: &str, arguments: &[(&str, Value)]) -> (u32, Instance) {
    let deadline = os.clock().now() + Duration::from_mins(1);
    match os.wmi().call(&MethodCall::new(Namespace::Storage, path, method, arguments), deadline) {
        Ok(CallStatus::Done(returned)) => (returned.code, returned.out),
        Ok(CallStatus::StillRunning(_)) => panic!("{method} takes more than a minute"),
        Err(error) => panic!("{method}: {error}"),
    }
}

fn disk(os: &dyn Os, number: u32) -> Instance {
    only(os, &format!("SELECT * FROM MSFT_Disk WHERE Number = {number}"))
}

fn partition(os: &dyn Os, disk: u32) {
    let path = self::disk(os, disk).path;
    assert_eq!(call(os, &path, "Initialize", &[("PartitionStyle", Value::U32(2))]).0, 0);
    let whole = [
        ("UseMaximumSize", Value::Bool(true)),
        ("GptType", Value::Text("{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}".into())),
    ];
    assert_eq!(call(os, &path, "CreatePartition", &whole).0, 0);
}

fn open(os: &dyn Os, path: &str, access: Access) -> Box<dyn os::Handle> {
    let path = NtPath::from_win32(&U16String::from_str(path));
    os.open(&path, &Open::existing(access, Options::empty())).expect("the open succeeds")
}

#[test]
fn a_raw_disk_becomes_a_mounted_volume_and_grows() {
    let node = node().disk(10 * GIB).dir(r"C:\var\lib\kubelet\mount").build();
    partition(&node, 1);
    assert_eq!(node.volumes().unwrap().len(), 1, "the volume has not arrived yet");
    node.clock().sleep(Duration::from_millis(200));
    assert_eq!(node.volumes().unwrap().len(), 2);

    let volume = node.volume_on(1).unwrap();
    let name = volume.name();
    let volumes = "SELECT * FROM MSFT_Volume";
    assert_eq!(query(&node, volumes).len(), 1, "the provider does not know the volume yet");
    node.clock().sleep(Duration::from_millis(250));
    let row = only(&node, &format!("SELECT * FROM MSFT_Volume WHERE UniqueId = '{}'", name.replace('\\', r"\\")));
    assert_eq!(row.u32("FileSystemType"), Some(0));
    let device = open(&node, name.trim_end_matches('\\'), Access::GENERIC_READ);
    let mut info = [0; 64];
    let length = device.query_fs(FsInfo::Attribute, &mut info).unwrap();
    assert_eq!(&info[FsAttributeInformation::NAME_OFFSET..length], b"R\0A\0W\0");

    let format = [("FileSystem", Value::Text("NTFS".into())), ("Force", Value::Bool(true))];
    assert_eq!(call(&node, &row.path, "Format", &format).0, 0);
    assert_eq!(node.formats_of(volume.id), 1);
    let directory = U16String::from_str(r"C:\var\lib\kubelet\mount\");
    node.set_volume_mount_point(&directory, &U16String::from_str(&name)).unwrap();
    node.external().write(r"C:\var\lib\kubelet\mount\data", "kept").unwrap();
    assert_eq!(node.external().read_link(r"C:\var\lib\kubelet\mount").unwrap(), name);

    assert!(node.grow_disk(1, 20 * GIB));
    let part = only(&node, "SELECT * FROM MSFT_Partition WHERE DiskNumber = 1 AND PartitionNumber = 2").path;
    let most = |node: &Sim| call(node, &part, "GetSupportedSize", &[]).1.u64("SizeMax").unwrap();
    assert!(most(&node) < 10 * GIB, "the provider does not know yet");
    assert_eq!(call(&node, &disk(&node, 1).path, "Refresh", &[]).0, 0);
    let size = most(&node);
    assert!(size > 20 * GIB - (18 << 20));
    assert_eq!(call(&node, &part, "Resize", &[("Size", Value::Text(size.to_string()))]).0, 0);
    let mut full = [0; 32];
    device.query_fs(FsInfo::FullSize, &mut full).unwrap();
    let full = FsFullSizeInformation::read_from_bytes(&full).unwrap();
    assert!(full.total_units * 4096 > size - (1 << 20));
    assert_eq!(node.external().read(r"C:\var\lib\kubelet\mount\data").unwrap(), b"kept");
    node.invariants().unwrap();
}

#[test]
fn a_job_continues_after_its_caller_and_its_process() {
    let node = node().disk(GIB).partitioned().build();
    let volume = node.volume_on(1).unwrap();
    let process = node.process();
    let row =
        only(&*process, &format!("SELECT * FROM MSFT_Volume WHERE Path = '{}'", volume.name().replace('\\', r"\\")));
    let soon = process.clock().now() + Duration::from_secs(1);
    let force = [("FileSystem", Value::Text("NTFS".into())), ("Force", Value::Bool(true))];
    let status = process.wmi().call(&MethodCall::new(Namespace::Storage, &row.path, "Format", &force), soon).unwrap();
    let CallStatus::StillRunning(pending) = status else { panic!("the format has ended") };
    assert_eq!((node.now(), node.running_jobs(), node.formats_of(volume.id)), (soon, 1, 0));

    let (sender, receiver) = std::sync::mpsc::channel();
    pending.when_ended(Box::new(move || sender.send(()).unwrap()));
    drop(process);
    let (code, _) = call(&node, &row.path, "Format", &force);
    assert_eq!(code, 40001, "the volume is locked");
    assert!(receiver.try_recv().is_err());
    node.advance(Duration::from_secs(1));
    receiver.try_recv().expect("the job has ended");
    assert_eq!(node.formats_of(volume.id), 1);
}

#[test]
fn volumes_exist_while_their_disk_is_online() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").build();
    let name = node.volume_on(1).unwrap().name();
    let volume = open(&node, name.trim_end_matches('\\'), Access::empty());
    let path = disk(&node, 1).path;
    assert_eq!(call(&node, &path, "Offline", &[]).0, 0);
    assert_eq!(node.volumes().unwrap().len(), 1);
    let mut extents = [0; 32];
    let extents_of = ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS;
    assert_eq!(volume.control(extents_of, &[], &mut extents), Err(OsError::NOT_READY));
    let path_of = NtPath::from_win32(&U16String::from_str(&name));
    let gone = node.open(&path_of, &Open::existing(Access::GENERIC_READ, Options::empty())).err();
    assert_eq!(gone, Some(OsError::PATH_NOT_FOUND));

    assert_eq!(call(&node, &path, "Online", &[]).0, 0);
    assert_eq!(node.volumes().unwrap().len(), 1, "the volume has not arrived yet");
    node.advance(Duration::from_millis(150));
    assert_eq!(node.volumes().unwrap().len(), 2);
    assert_eq!(volume.control(extents_of, &[], &mut extents), Ok(32));
    assert_eq!(DiskExtent::read_from_bytes(&extents[8..]).unwrap().disk_number, 1);

    node.detach_disk(1).unwrap();
    assert_eq!(volume.control(extents_of, &[], &mut extents), Err(OsError::DEV_NOT_EXIST));
}

#[test]
fn a_disk_keeps_its_content_while_it_is_detached() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").mounted(r"C:\mnt").build();
    node.external().write(r"C:\mnt\file", "data").unwrap();
    let disk = node.detach_disk(1).unwrap();
    assert_eq!(node.external().read(r"C:\mnt\file"), Err(OsError::PATH_NOT_FOUND));
    assert!(node.external().exists(r"C:\mnt"), "the mount point dangles");
    let number = node.reattach_disk(disk, true);
    node.advance(Duration::from_millis(150));
    assert_eq!(node.external().read(r"C:\mnt\file").unwrap(), b"data");
    assert_eq!(number, 1);
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
    let paths: Vec<_> = node.process().volume_paths(&name).unwrap().iter().map(|path| path.to_string_lossy()).collect();
    assert_eq!(paths, [r"C:\mnt\", r"C:\mnt\a\", r"C:\mnt\b\", r"C:\mnt\c\"]);
    external.remove_all(r"C:\mnt").unwrap();
    assert!(node.process().volume_paths(&name).unwrap().is_empty());
}

#[test]
fn the_built_in_node_satisfies_the_invariants() {
    let node = Sim::default_node();
    node.invariants().unwrap();
    assert_eq!(node.disks().len(), 9);
    assert_eq!(node.now(), Time::default());
}

#[test]
fn a_snapshot_names_volumes_by_disk_and_partition_and_shows_differences() {
    let builder = node().disk(GIB).dir(r"C:\mnt");
    let (one, other) = (builder.build(), builder.build());
    let temporary = other.attach_disk(&os_sim::DiskDescription::new(GIB), true).unwrap();
    other.detach_disk(temporary).unwrap();
    for node in [&one, &other] {
        partition(node, 1);
        node.advance(Duration::from_secs(1));
        node.external().set_mount_point(r"C:\mnt", node.volume_on(1).unwrap().id).unwrap();
    }
    assert_ne!(one.volume_on(1).unwrap().id, other.volume_on(1).unwrap().id);
    assert_eq!(one.snapshot(), other.snapshot());
    other.external().mkdir(r"C:\more").unwrap();
    assert_eq!(one.snapshot().difference(&other.snapshot()), "+ disk 0 partition 2 \\more directory 0x10\n");
}

#[test]
fn a_change_by_a_control_code_makes_the_providers_cache_stale() {
    let node = node().disk(GIB).grown_to(2 * GIB).build();
    open(&node, r"\\.\PhysicalDrive1", Access::empty())
        .control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut [])
        .unwrap();
    let path = disk(&node, 1).path;
    assert_eq!(disk(&node, 1).u64("Size"), Some(GIB));
    assert_eq!(call(&node, &path, "Initialize", &[]).0, 40003);
    assert_eq!(call(&node, "MSFT_StorageSetting", "UpdateHostStorageCache", &[]).0, 0);
    assert_eq!(disk(&node, 1).u64("Size"), Some(2 * GIB));
    assert_eq!(call(&node, &path, "Initialize", &[]).0, 0);
}

#[test]
fn partitions_and_volumes_can_be_queried_by_association() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").build();
    let related = |object: &str, association: &str| {
        query(&node, &format!("ASSOCIATORS OF {{{object}}} WHERE AssocClass = {association}"))
    };
    let partitions = related(&disk(&node, 1).path, "MSFT_DiskToPartition");
    assert_eq!(partitions.iter().map(|row| row.u32("PartitionNumber")).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(related(&partitions[0].path, "MSFT_PartitionToVolume").is_empty(), "the reserved partition has no volume");
    let volumes = related(&partitions[1].path, "MSFT_PartitionToVolume");
    assert_eq!(volumes[0].text("UniqueId"), Some(&*node.volume_on(1).unwrap().name()));
    let back = related(&volumes[0].path, "MSFT_PartitionToVolume");
    assert_eq!(back[0].path, partitions[1].path);
}
