//! `MSFT_Disk`: `WMI-DISK`. What its methods return is in `wmi_disk_method.rs`.

use os::{Access, NtPath, Open, Options, U16String, Value};

use super::devices::{device_number, length, open_disk};
use super::provider::{call, disk, initialized, settle};
use crate::fact::Fact;
use crate::node::DiskKind;

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
        let device = node.os().open(&path, &Open::existing(Access::empty(), Options::empty())).expect("the path opens");
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
        assert_eq!((shown("IsReadOnly"), shown("IsOffline")), (Some(false), Some(false)));
        for read_only in [true, false] {
            assert_eq!(call(node, &path, "SetAttributes", &[("IsReadOnly", Value::Bool(read_only))]).0, 0);
            assert_eq!(shown("IsReadOnly"), Some(read_only));
        }
        for (method, offline) in [("Offline", true), ("Online", false)] {
            assert_eq!(call(node, &path, method, &[]).0, 0);
            assert_eq!(shown("IsOffline"), Some(offline));
        }
        settle(node);
    }),
];
