//! `MSFT_Disk`: `WMI-DISK`.

use os::{Access, NtPath, Open, Options, U16String, Value};

use super::devices::{device_number, length, open_disk, spare_system_disk};
use super::provider::{
    MIB, call, created, disk, initialized, number, partition, partition_near, settle,
};
use crate::fact::Fact;
use crate::node::{DiskKind, TestNode};

const BASIC_DATA: &str = "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}";

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("WMI-DISK-17", |node| {
        let (raw, mbr) = (node.disk(DiskKind::Raw), node.disk(DiskKind::Mbr));
        let style = |number| disk(node, number).u32("PartitionStyle");
        assert_eq!((style(raw), style(mbr)), (Some(0), Some(1)));
        initialized(node, raw);
        assert_eq!(style(raw), Some(2));
    }),
    Fact::new("WMI-DISK-18", |node| {
        let wanted = node.disk(DiskKind::Raw);
        let instance = disk(node, wanted);
        let path = NtPath::from_win32(&U16String::from_str(instance.text("Path").expect("a path")));
        let device = node
            .os()
            .open(&path, &Open::existing(Access::empty(), Options::empty()))
            .expect("the path opens");
        let number = device_number(&*device);
        assert_eq!(number.device_number, wanted.number);
    }),
    Fact::new("WMI-DISK-19", |node| {
        let wanted = node.disk(DiskKind::Raw);
        let instance = disk(node, wanted);
        let device = open_disk(node, wanted, Access::GENERIC_READ);
        let length = length(&*device);
        assert_eq!(instance.u64("Size"), u64::try_from(length).ok());
    }),
    Fact::new("WMI-DISK-20", |node| {
        let wanted = node.disk(DiskKind::Raw);
        let path = initialized(node, wanted);
        let shown = |attribute: &str| disk(node, wanted).bool(attribute);
        assert_eq!(
            (shown("IsReadOnly"), shown("IsOffline")),
            (Some(false), Some(false))
        );
        for read_only in [true, false] {
            assert_eq!(set_read_only(node, &path, read_only), 0);
            assert_eq!(shown("IsReadOnly"), Some(read_only));
        }
        for (method, offline) in [("Offline", true), ("Online", false)] {
            assert_eq!(call(node, &path, method, &[]).0, 0);
            assert_eq!(shown("IsOffline"), Some(offline));
        }
        settle(node);
    }),
    Fact::new("WMI-DISK-01", |node| {
        let raw = node.disk(DiskKind::Raw);
        let path = disk(node, raw).path;
        assert_eq!(call(node, &path, "Initialize", &[]).0, 0);
        assert_eq!(disk(node, raw).u32("PartitionStyle"), Some(2));
        assert_eq!(call(node, &path, "Initialize", &[]).0, 41001);
    }),
    Fact::new("WMI-DISK-03", |node| {
        let raw = node.disk(DiskKind::Raw);
        let path = disk(node, raw).path;
        let create = |argument| {
            disk(node, raw);
            call(node, &path, "CreatePartition", &[argument]).0
        };
        assert_eq!(create(maximum()), 41000);
        initialized(node, raw);
        assert_eq!(set_read_only(node, &path, true), 0);
        assert_eq!(create(maximum()), 41002);
        assert_eq!(set_read_only(node, &path, false), 0);
        assert_eq!(call(node, &path, "Offline", &[]).0, 0);
        assert_eq!(create(maximum()), 41003);
        assert_eq!(call(node, &path, "Online", &[]).0, 0);
        let size = disk(node, raw).u64("Size").expect("the size");
        assert_eq!(create(("Size", number(size))), 40000);
    }),
    Fact::new("WMI-DISK-06", |node| {
        let raw = node.disk(DiskKind::Raw);
        let path = initialized(node, raw);
        let asked = 100 * MIB + 3 * 512;
        partition(node, &path, asked, 64 * MIB);
        let offset = partition_near(node, raw, asked)
            .u64("Offset")
            .expect("the offset");
        assert!(
            offset != asked && offset.abs_diff(asked) <= MIB && offset.is_multiple_of(64 << 10),
            "{offset}"
        );
    }),
    Fact::new("WMI-DISK-08", |node| {
        let path = disk(node, spare_system_disk(node)).path;
        assert_eq!(set_read_only(node, &path, true), 41009);
        assert_eq!(call(node, &path, "Offline", &[]).0, 41009);
    }),
    Fact::new("WMI-DISK-09", |node| {
        let raw = node.disk(DiskKind::Raw);
        let path = initialized(node, raw);
        assert_eq!(call(node, &path, "Offline", &[]).0, 0);
        disk(node, raw);
        let set = set_read_only(node, &path, true);
        assert_eq!(call(node, &path, "Online", &[]).0, 0);
        assert_eq!(set, 41003);
    }),
    Fact::new("WMI-DISK-10", |node| {
        let raw = node.disk(DiskKind::Raw);
        let path = disk(node, raw).path;
        let refresh = || call(node, &path, "Refresh", &[]).0;
        assert_eq!(refresh(), 41000);
        initialized(node, raw);
        assert_eq!(refresh(), 0);
        assert_eq!(call(node, &path, "Offline", &[]).0, 0);
        let offline = refresh();
        assert_eq!(call(node, &path, "Online", &[]).0, 0);
        assert_eq!(offline, 41003);
    }),
    Fact::new("WMI-DISK-16", |node| {
        let raw = node.disk(DiskKind::Raw);
        let path = initialized(node, raw);
        partition(node, &path, 64 * MIB, 64 * MIB);
        let largest = disk(node, raw)
            .u64("LargestFreeExtent")
            .expect("the largest free range");
        let (code, out) = call(node, &path, "CreatePartition", &[maximum()]);
        assert_eq!(code, 0);
        assert!(!created(&out).is_empty());
        let last = partition_near(node, raw, u64::MAX);
        assert!(last.u64("Offset") >= Some(128 * MIB));
        assert!(
            last.u64("Size")
                .is_some_and(|size| size <= largest && size + 2 * MIB > largest),
            "{largest}"
        );
        assert!(
            last.text("GptType")
                .is_some_and(|kind| kind.eq_ignore_ascii_case(BASIC_DATA))
        );
    }),
    Fact::new("WMI-DISK-21", |node| {
        let raw = node.disk(DiskKind::Raw);
        let instance = disk(node, raw);
        assert_eq!(instance.bool("IsOffline"), Some(false));
        assert_eq!(call(node, &instance.path, "Online", &[]).0, 0);
    }),
    Fact::new("WMI-DISK-22", |node| {
        let raw = node.disk(DiskKind::Raw);
        let path = disk(node, raw).path;
        let initialize = || {
            disk(node, raw);
            call(node, &path, "Initialize", &[]).0
        };
        assert_eq!(set_read_only(node, &path, true), 0);
        assert_eq!(initialize(), 41002);
        assert_eq!(set_read_only(node, &path, false), 0);
        assert_eq!(call(node, &path, "Offline", &[]).0, 0);
        assert_eq!(initialize(), 41003);
        assert_eq!(call(node, &path, "Online", &[]).0, 0);
        assert_eq!(initialize(), 0);
    }),
    Fact::new("WMI-DISK-26", |node| {
        let raw = node.disk(DiskKind::Raw);
        let path = disk(node, raw).path;
        for read_only in [true, false] {
            assert_eq!(set_read_only(node, &path, read_only), 0);
            assert_eq!(disk(node, raw).bool("IsReadOnly"), Some(read_only));
        }
    }),
];

fn set_read_only(node: &dyn TestNode, disk: &str, read_only: bool) -> u32 {
    call(
        node,
        disk,
        "SetAttributes",
        &[("IsReadOnly", Value::Bool(read_only))],
    )
    .0
}

fn maximum() -> (&'static str, Value) {
    ("UseMaximumSize", Value::Bool(true))
}
