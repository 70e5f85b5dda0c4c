//! `MSFT_Disk`: `WMI-DISK`. What its methods return is in `wmi_disk_method.rs`.

use os::abi::{ControlCode, LengthInformation, StorageDeviceNumber};
use os::{Access, NtPath, Open, Options, U16String, Value};

use super::devices::{ask, open_disk};
use super::provider::{WINE, call, disk, initialized, settle};
use crate::fact::{Fact, Verdict};
use crate::node::{DiskKind, TestNode};

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "WMI-DISK-15",
        "MSFT_Disk.Guid is null unless the disk has a GPT.",
        "DRV MSFT_Disk",
        only_a_gpt_disk_has_a_guid,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-17",
        "MSFT_Disk.PartitionStyle is 1 for an MBR, 2 for a GPT, and 0, which the page calls unknown, for a disk without a \
         partition table.",
        "DRV MSFT_Disk; kubernetes-csi/csi-proxy pkg/os/disk/api.go IsDiskInitialized",
        the_partition_style_is_numbered,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-18",
        "MSFT_Disk.Path can be opened as a device, which has the number in MSFT_Disk.Number.",
        "kubernetes-csi/csi-proxy pkg/os/disk/api.go GetDiskNumberAndPage83ID",
        the_path_leads_to_the_disk,
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-DISK-19",
        "MSFT_Disk.Size is the length that IOCTL_DISK_GET_LENGTH_INFO returns.",
        "The page calls it the size in bytes and does not name the control code. It identifies a disk only if it has \
         neither a path nor a serial number, and then with a tolerance of a mebibyte.",
        the_size_is_that_of_the_device,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-20",
        "MSFT_Disk.IsReadOnly shows what SetAttributes has set, and MSFT_Disk.IsOffline what Offline and Online have set.",
        "DRV MSFT_Disk; DRV SetAttributes; DRV Offline; DRV Online",
        the_attributes_are_shown,
    )
    .wine(WINE),
    Fact::unchecked(
        "WMI-DISK-12",
        "MSFT_Disk.OfflineReason is 1 for a policy, 2 for a redundant path, 3 for a snapshot, 4 for a collision, 5 for \
         missing resources, 6 for write failures and 7 for an integrity scan.",
        "DRV MSFT_Disk",
        "no operation reads it: SetDiskState brings a disk online whatever took it offline",
    ),
    Fact::unchecked(
        "WMI-DISK-13",
        "MSFT_Disk.Location is null for the disks of Hyper-V and for VHD images.",
        "DRV MSFT_Disk",
        "no disk for tests is known to be such a one, and users of Azure report texts: ListDiskLocations leaves out a disk \
         without a location and one whose text names no adapter",
    ),
    Fact::unchecked(
        "WMI-DISK-14",
        "MSFT_Disk.UniqueId is taken from page 83, from an identifier of type 8 before 3 before 2.",
        "DRV MSFT_Disk",
        "no operation reads it: ListDiskIDs returns the first identifier of page 83",
    ),
    Fact::unchecked(
        "WMI-DISK-28",
        "MSFT_Disk.BusType is one of 0 to 17, of which 15 is a file-backed virtual disk, and MSFT_Disk.Number may differ \
         after a restart.",
        "DRV MSFT_Disk",
        "no operation reads the bus type or keeps a number across requests",
    ),
];

fn only_a_gpt_disk_has_a_guid(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    assert_eq!(disk(node, raw).get("Guid"), None);
    let mbr = node.disk(DiskKind::Mbr)?;
    assert_eq!(disk(node, mbr).get("Guid"), None);
    initialized(node, raw, 2);
    assert!(disk(node, raw).text("Guid").is_some_and(|guid| guid.len() == 38));
    Ok(())
}

fn the_partition_style_is_numbered(node: &dyn TestNode) -> Verdict {
    let (raw, mbr) = (node.disk(DiskKind::Raw)?, node.disk(DiskKind::Mbr)?);
    let style = |number| disk(node, number).u32("PartitionStyle");
    assert_eq!((style(raw), style(mbr)), (Some(0), Some(1)));
    initialized(node, raw, 2);
    assert_eq!(style(raw), Some(2));
    Ok(())
}

fn the_path_leads_to_the_disk(node: &dyn TestNode) -> Verdict {
    let wanted = node.disk(DiskKind::Raw)?;
    let instance = disk(node, wanted);
    let path = NtPath::from_win32(&U16String::from_str(instance.text("Path").expect("a path")));
    let device = node.os().open(&path, &Open::existing(Access::empty(), Options::empty())).expect("the path opens");
    let number: StorageDeviceNumber = ask(&*device, ControlCode::STORAGE_GET_DEVICE_NUMBER).expect("its number");
    assert_eq!(number.device_number, wanted.number);
    Ok(())
}

fn the_size_is_that_of_the_device(node: &dyn TestNode) -> Verdict {
    let wanted = node.disk(DiskKind::Raw)?;
    let instance = disk(node, wanted);
    let device = open_disk(node, wanted, Access::GENERIC_READ);
    let length: LengthInformation = ask(&*device, ControlCode::DISK_GET_LENGTH_INFO).expect("its length");
    assert_eq!(instance.u64("Size"), u64::try_from(length.length).ok());
    Ok(())
}

fn the_attributes_are_shown(node: &dyn TestNode) -> Verdict {
    let wanted = node.disk(DiskKind::Raw)?;
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
    Ok(())
}
