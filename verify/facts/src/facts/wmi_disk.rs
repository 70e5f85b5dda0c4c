//! `MSFT_Disk`: `WMI-DISK`. What its methods return is in `wmi_disk_method.rs`.

use os::abi::{ControlCode, LengthInformation, StorageDeviceNumber};
use os::{Access, NtPath, Open, Options, U16String, Value};

use super::devices::{ask, open_disk};
use super::provider::{call, disk, initialized, settle};
use crate::fact::Fact;
use crate::node::DiskKind;

pub(crate) const FACTS: &[Fact] = &[
    Fact::published("WMI-DISK-15", "MSFT_Disk.Guid is null unless the disk has a GPT.", "DRV MSFT_Disk", |node| {
        let raw = node.disk(DiskKind::Raw);
        assert_eq!(disk(node, raw).get("Guid"), None);
        let mbr = node.disk(DiskKind::Mbr);
        assert_eq!(disk(node, mbr).get("Guid"), None);
        initialized(node, raw, 2);
        assert!(disk(node, raw).text("Guid").is_some_and(|guid| guid.len() == 38));
    }),
    Fact::published(
        "WMI-DISK-17",
        "MSFT_Disk.PartitionStyle is 1 for an MBR, 2 for a GPT, and 0, which the page calls unknown, for a disk \
         without a partition table.",
        "DRV MSFT_Disk; kubernetes-csi/csi-proxy pkg/os/disk/api.go IsDiskInitialized",
        |node| {
            let (raw, mbr) = (node.disk(DiskKind::Raw), node.disk(DiskKind::Mbr));
            let style = |number| disk(node, number).u32("PartitionStyle");
            assert_eq!((style(raw), style(mbr)), (Some(0), Some(1)));
            initialized(node, raw, 2);
            assert_eq!(style(raw), Some(2));
        },
    ),
    Fact::published(
        "WMI-DISK-18",
        "MSFT_Disk.Path can be opened as a device, which has the number in MSFT_Disk.Number.",
        "kubernetes-csi/csi-proxy pkg/os/disk/api.go GetDiskNumberAndPage83ID",
        |node| {
            let wanted = node.disk(DiskKind::Raw);
            let instance = disk(node, wanted);
            let path = NtPath::from_win32(&U16String::from_str(instance.text("Path").expect("a path")));
            let device =
                node.os().open(&path, &Open::existing(Access::empty(), Options::empty())).expect("the path opens");
            let number: StorageDeviceNumber =
                ask(&*device, ControlCode::STORAGE_GET_DEVICE_NUMBER).expect("its number");
            assert_eq!(number.device_number, wanted.number);
        },
    ),
    Fact::assumed(
        "WMI-DISK-19",
        "MSFT_Disk.Size is the length that IOCTL_DISK_GET_LENGTH_INFO returns.",
        "The page calls it the size in bytes and does not name the control code. It identifies a disk only if it has \
         neither a path nor a serial number, and then with a tolerance of a mebibyte.",
        |node| {
            let wanted = node.disk(DiskKind::Raw);
            let instance = disk(node, wanted);
            let device = open_disk(node, wanted, Access::GENERIC_READ);
            let length: LengthInformation = ask(&*device, ControlCode::DISK_GET_LENGTH_INFO).expect("its length");
            assert_eq!(instance.u64("Size"), u64::try_from(length.length).ok());
        },
    ),
    Fact::published(
        "WMI-DISK-20",
        "MSFT_Disk.IsReadOnly shows what SetAttributes has set, and MSFT_Disk.IsOffline what Offline and Online have \
         set.",
        "DRV MSFT_Disk; DRV SetAttributes; DRV Offline; DRV Online",
        |node| {
            let wanted = node.disk(DiskKind::Raw);
            let path = initialized(node, wanted, 2);
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
        },
    ),
];
