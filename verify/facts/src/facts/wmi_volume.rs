//! `MSFT_Volume`: `WMI-VOL`.

use std::time::Duration;

use os::{Access, CallStatus, MethodCall, Namespace, OsError, Value};

use super::devices::{file_system, spare_system_disk};
use super::provider::{
    MIB, call, disk, initialized, one, partition, partition_near, query_in, settle, text, volume, volume_query,
};
use crate::fact::Fact;
use crate::node::{DiskKind, TestDisk, TestNode, TestVolume, VolumeKind, missing};

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "WMI-VOL-01",
        "Format returns 43001 for a file system that is not supported, 43000 for a cluster size that is no power of \
         two, and 43006 on a disk that is read-only.",
        "DRV Format",
        |node| {
            let raw = node.volume(VolumeKind::Raw);
            let path = volume(node, raw).path;
            let force = ("Force", Value::Bool(true));
            assert_eq!(call(node, &path, "Format", &[("FileSystem", text("ext4")), force.clone()]).0, 43001);
            let odd = [("FileSystem", text("NTFS")), ("AllocationUnitSize", Value::U32(5000)), force];
            assert_eq!(call(node, &path, "Format", &odd).0, 43000);
            let disk = disk(node, TestDisk { number: raw.disk }).path;
            let read_only = |set| call(node, &disk, "SetAttributes", &[("IsReadOnly", Value::Bool(set))]).0;
            assert_eq!(read_only(true), 0);
            settle(node);
            let refused = call(node, &path, "Format", &ntfs()).0;
            assert_eq!(read_only(false), 0);
            assert_eq!(refused, 43006);
        },
    ),
    Fact::assumed(
        "WMI-VOL-02",
        "Format of a volume that is being formatted returns 40001.",
        "In use (6) is not among the return values on the page. FormatVolume treats 5, 6, 4099, 40001, 40003 and \
         43006 alike: it looks at the volume and tries again.",
        |node| {
            let raw = node.volume(VolumeKind::Raw);
            begin_format(node, raw);
            let path = one(node, &volume_query(raw)).path;
            assert_eq!(call(node, &path, "Format", &ntfs()).0, 40001);
        },
    ),
    Fact::published("WMI-VOL-04", "Flush of a volume with NTFS returns 0.", "DRV Flush", |node| {
        let path = volume(node, node.volume(VolumeKind::Ntfs)).path;
        assert_eq!(call(node, &path, "Flush", &[]).0, 0);
    }),
    Fact::published(
        "WMI-VOL-05",
        "After Format with NTFS, MSFT_Volume.FileSystem is NTFS.",
        "DRV MSFT_Volume",
        |node| {
            let raw = node.volume(VolumeKind::Raw);
            let before = volume(node, raw);
            assert_ne!(before.text("FileSystem"), Some("NTFS"));
            assert_eq!(call(node, &before.path, "Format", &ntfs()).0, 0);
            assert_eq!(volume(node, raw).text("FileSystem"), Some("NTFS"));
        },
    ),
    Fact::published("WMI-VOL-06", "Format of the system volume returns 42010.", "DRV Format", |node| {
        let system = spare_system_disk(node);
        settle(node);
        let wql = format!("SELECT * FROM MSFT_Partition WHERE DiskNumber = {} AND IsBoot = TRUE", system.number);
        let partitions = query_in(node, Namespace::Storage, &wql).expect("the partitions");
        let boot = partitions.into_iter().max_by_key(|partition| partition.u64("Size")).expect("the boot partition");
        let wql = format!("ASSOCIATORS OF {{{}}} WHERE AssocClass = MSFT_PartitionToVolume", boot.path);
        assert_eq!(call(node, &one(node, &wql).path, "Format", &ntfs()).0, 42010);
    }),
    Fact::assumed(
        "WMI-VOL-08",
        "Format without FileSystemLabel leaves MSFT_Volume.FileSystemLabel empty.",
        "The page gives no default. No operation reads the label, and no driver is known to.",
        |node| {
            let raw = node.volume(VolumeKind::Raw);
            let path = volume(node, raw).path;
            let label = |label: &str| {
                [("FileSystem", text("NTFS")), ("Force", Value::Bool(true)), ("FileSystemLabel", text(label))]
            };
            assert_eq!(call(node, &path, "Format", &label("before")).0, 0);
            assert_eq!(volume(node, raw).text("FileSystemLabel"), Some("before"));
            assert_eq!(call(node, &path, "Format", &ntfs()).0, 0);
            assert_eq!(volume(node, raw).text("FileSystemLabel"), Some(""));
        },
    ),
    Fact::published(
        "WMI-VOL-09",
        "The volume of a new partition can be formatted some seconds after CreatePartition; until then Format may \
         return 43006.",
        "https://github.com/dsccommunity/StorageDsc/issues/85",
        |node| {
            let raw = node.disk(DiskKind::Raw);
            let path = initialized(node, raw, 2);
            partition(node, &path, 64 * MIB, 256 * MIB);
            let created = partition_near(node, raw, 64 * MIB).path;
            node.os().clock().sleep(Duration::from_secs(10));
            let wql = format!("ASSOCIATORS OF {{{created}}} WHERE AssocClass = MSFT_PartitionToVolume");
            assert_eq!(call(node, &one(node, &wql).path, "Format", &ntfs()).0, 0);
        },
    ),
    Fact::assumed(
        "WMI-VOL-10",
        "While a volume is formatted, opening it for reading fails with ACCESS_DENIED (5) or NOT_READY (21).",
        "FSCTL_LOCK_VOLUME keeps others out, but no page says that Format uses it. After a format with an unknown \
         outcome, FormatVolume waits on 5, 21, 32, 1006 and 1110; IsVolumeFormatted returns an error and never \
         false.",
        |node| {
            let raw = node.volume(VolumeKind::Raw);
            begin_format(node, raw);
            let mut refusals = 0;
            let opened = loop {
                match raw.open(node.os(), Access::GENERIC_READ) {
                    Ok(opened) => break opened,
                    Err(code) => assert!([OsError::ACCESS_DENIED, OsError::NOT_READY].contains(&code), "{code}"),
                }
                refusals += 1;
                assert!(refusals < 1000, "the format does not end");
                node.os().clock().sleep(Duration::from_millis(100));
            };
            assert!(refusals > 0, "the volume was open to others");
            assert_eq!(file_system(&*opened).as_deref(), Ok("NTFS"), "the format had ended");
        },
    ),
    Fact::assumed(
        "WMI-VOL-11",
        "MSFT_Volume.Path is the GUID path of the volume with a final backslash, as FindFirstVolumeW returns it.",
        "The page says that it is a GUID path. If no row has the path, FormatVolume changes nothing and fails.",
        |node| {
            let raw = node.volume(VolumeKind::Raw);
            let path = volume(node, raw).text("Path").map(str::to_owned).expect("the path");
            let volumes = node.os().volumes().expect("the volumes");
            assert!(volumes.iter().any(|volume| volume.to_string_lossy() == path), "{path}");
        },
    ),
];

fn ntfs() -> [(&'static str, Value); 3] {
    [("FileSystem", text("NTFS")), ("Full", Value::Bool(false)), ("Force", Value::Bool(true))]
}

/// Begins to format a volume and returns without waiting for the end.
fn begin_format(node: &dyn TestNode, wanted: TestVolume) {
    let path = volume(node, wanted).path;
    let arguments = [("FileSystem", text("NTFS")), ("Full", Value::Bool(true)), ("Force", Value::Bool(true))];
    let call = MethodCall::new(Namespace::Storage, &path, "Format", &arguments);
    let soon = node.os().clock().now() + Duration::from_millis(500);
    if let CallStatus::Done(returned) = node.os().wmi().call(&call, soon).expect("the format begins") {
        assert_eq!(returned.code, 0);
        missing("a volume whose format takes longer than half a second");
    }
}
