//! What the methods of `MSFT_Disk` return: `WMI-DISK`.

use os::Value;

use super::devices::spare_system_disk;
use super::provider::{MIB, WINE, call, created, disk, initialized, number, partition, partition_near, text};
use crate::fact::{Fact, Verdict};
use crate::node::{DiskKind, TestNode};

const BASIC_DATA: &str = "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}";

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "WMI-DISK-01",
        "Initialize without a style makes a GPT, and returns 41001 for a disk that has a partition table.",
        "DRV Initialize",
        a_disk_is_initialized_once,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-02",
        "CreatePartition with both or neither of Size and UseMaximumSize returns 40005.",
        "DRV CreatePartition",
        a_partition_needs_one_size,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-03",
        "CreatePartition returns 41000 for a disk without a partition table, 41003 for one that is offline, 41002 for one \
         that is read-only, and 40000 if there is not enough free space.",
        "DRV CreatePartition",
        a_partition_is_refused_by_the_state_of_the_disk,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-04",
        "CreatePartition with a drive letter that is taken creates the partition and returns 42002.",
        "DRV CreatePartition; kubernetes-csi/csi-proxy pkg/os/disk/api.go",
        a_taken_letter_does_not_prevent_the_partition,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-05",
        "CreatePartition with both DriveLetter and AssignDriveLetter returns 5.",
        "DRV CreatePartition",
        a_letter_is_given_in_one_way,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-06",
        "CreatePartition without Alignment rounds an Offset that is not aligned.",
        "DRV CreatePartition",
        an_offset_is_rounded,
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-DISK-07",
        "CreatePartition with GptType on a disk with an MBR returns 41006.",
        "DRV CreatePartition lists the code without saying when it is returned. PartitionDisk creates no partition on a disk \
         with an MBR, and reports any code.",
        an_mbr_has_no_gpt_types,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-08",
        "Offline and SetAttributes of a critical disk return 41009.",
        "DRV Offline; DRV SetAttributes",
        a_critical_disk_is_left_alone,
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-DISK-09",
        "SetAttributes returns 41003 for IsReadOnly of a disk that is offline.",
        "The page wants a disk online for most attributes and does not name them. If the provider refuses, the disk is \
         brought online first and made writable then.",
        an_offline_disk_is_not_made_writable,
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-DISK-10",
        "Refresh returns 41000 for a disk without a partition table and 41003 for one that is offline.",
        "The page lists both codes and does not say when they come. If Refresh fails with one of them, the operations call \
         UpdateHostStorageCache instead.",
        only_an_initialized_online_disk_is_refreshed,
    )
    .wine(WINE),
    Fact::unchecked(
        "WMI-DISK-11",
        "Online has no return value of its own beside 6 (in use), 40001, 40002, 40003 and 41018 (cluster).",
        "DRV Online",
        "no check can make each of them come: SetDiskState returns every code as an error, except that it updates the \
         cache of the provider on 40003 and tries again",
    ),
    Fact::published(
        "WMI-DISK-16",
        "CreatePartition with UseMaximumSize and without GptType makes a basic data partition in the largest free range.",
        "DRV CreatePartition",
        a_partition_takes_the_largest_range,
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-DISK-21",
        "Online of a disk that is online returns 0.",
        "No page says so. The provider is asked only after the disk was found offline, and its answer is returned.",
        an_online_disk_is_brought_online,
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-DISK-22",
        "Initialize returns 41003 for a disk that is offline and 41002 for one that is read-only.",
        "The page lists neither code, and reports say that the cmdlet brings a disk online. PartitionDisk brings the disk \
         online and makes it writable before, and again whenever the provider refuses while the disk is offline.",
        only_an_online_writable_disk_is_initialized,
    )
    .wine(WINE),
    Fact::published(
        "WMI-DISK-23",
        "Clear returns 41000 for a disk without a partition table and 41008 for a data partition without RemoveData, with \
         which it removes the partition table.",
        "DRV Clear",
        a_disk_is_cleared_on_request,
    )
    .wine(WINE),
    Fact::unchecked(
        "WMI-DISK-24",
        "Initialize returns 41014 for a disk too small for a GPT, 41010 for another style, and 40003 if its cache is out of \
         date.",
        "DRV Initialize",
        "no page names the smallest size or what makes the cache out of date: PartitionDisk returns 41014 as an error and \
         updates the cache on 40003",
    ),
    Fact::unchecked(
        "WMI-DISK-25",
        "CreatePartition can return 4097 for a size that is not supported.",
        "DRV CreatePartition",
        "no operation passes a size: PartitionDisk asks for the maximum",
    ),
    Fact::published(
        "WMI-DISK-26",
        "SetAttributes makes a disk without a partition table writable.",
        "https://github.com/PowerShell/PowerShell/issues/7771",
        a_raw_disk_is_made_writable,
    )
    .wine(WINE),
    Fact::unchecked(
        "WMI-DISK-27",
        "A disk that was brought online may be taken offline again a moment later, by a policy or because another disk has \
         the same signature.",
        "https://github.com/kubernetes-csi/csi-proxy/issues/287",
        "no check can make it happen: SetDiskState and PartitionDisk bring the disk online again while they wait for its \
         volumes",
    ),
];

fn gpt() -> (&'static str, Value) {
    ("GptType", text(BASIC_DATA))
}

fn maximum() -> (&'static str, Value) {
    ("UseMaximumSize", Value::Bool(true))
}

fn a_disk_is_initialized_once(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = disk(node, raw).path;
    assert_eq!(call(node, &path, "Initialize", &[]).0, 0);
    assert_eq!(disk(node, raw).u32("PartitionStyle"), Some(2));
    assert_eq!(call(node, &path, "Initialize", &[]).0, 41001);
    Ok(())
}

fn a_partition_needs_one_size(node: &dyn TestNode) -> Verdict {
    let path = initialized(node, node.disk(DiskKind::Raw)?, 2);
    assert_eq!(call(node, &path, "CreatePartition", &[gpt()]).0, 40005);
    assert_eq!(call(node, &path, "CreatePartition", &[maximum(), ("Size", number(MIB))]).0, 40005);
    Ok(())
}

fn a_partition_is_refused_by_the_state_of_the_disk(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = disk(node, raw).path;
    let create = |argument| {
        disk(node, raw);
        call(node, &path, "CreatePartition", &[argument]).0
    };
    assert_eq!(create(maximum()), 41000);
    initialized(node, raw, 2);
    assert_eq!(call(node, &path, "SetAttributes", &[("IsReadOnly", Value::Bool(true))]).0, 0);
    assert_eq!(create(maximum()), 41002);
    assert_eq!(call(node, &path, "SetAttributes", &[("IsReadOnly", Value::Bool(false))]).0, 0);
    assert_eq!(call(node, &path, "Offline", &[]).0, 0);
    assert_eq!(create(maximum()), 41003);
    assert_eq!(call(node, &path, "Online", &[]).0, 0);
    let size = disk(node, raw).u64("Size").expect("the size");
    assert_eq!(create(("Size", number(size))), 40000);
    Ok(())
}

fn a_taken_letter_does_not_prevent_the_partition(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = initialized(node, raw, 2);
    let arguments =
        [("DriveLetter", Value::U32(u32::from(b'C'))), ("Offset", number(64 * MIB)), ("Size", number(64 * MIB))];
    assert_eq!(call(node, &path, "CreatePartition", &arguments).0, 42002);
    assert_eq!(partition_near(node, raw, 64 * MIB).u64("Size"), Some(64 * MIB));
    Ok(())
}

fn a_letter_is_given_in_one_way(node: &dyn TestNode) -> Verdict {
    let path = initialized(node, node.disk(DiskKind::Raw)?, 2);
    let arguments = [maximum(), ("DriveLetter", Value::U32(u32::from(b'Z'))), ("AssignDriveLetter", Value::Bool(true))];
    assert_eq!(call(node, &path, "CreatePartition", &arguments).0, 5);
    Ok(())
}

fn an_offset_is_rounded(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = initialized(node, raw, 2);
    let asked = 100 * MIB + 3 * 512;
    partition(node, &path, asked, 64 * MIB);
    let offset = partition_near(node, raw, asked).u64("Offset").expect("the offset");
    assert!(offset != asked && offset.abs_diff(asked) <= MIB && offset.is_multiple_of(64 << 10), "{offset}");
    Ok(())
}

fn an_mbr_has_no_gpt_types(node: &dyn TestNode) -> Verdict {
    let path = initialized(node, node.disk(DiskKind::Raw)?, 1);
    assert_eq!(call(node, &path, "CreatePartition", &[maximum(), gpt()]).0, 41006);
    Ok(())
}

fn a_critical_disk_is_left_alone(node: &dyn TestNode) -> Verdict {
    let path = disk(node, spare_system_disk(node)?).path;
    assert_eq!(call(node, &path, "SetAttributes", &[("IsReadOnly", Value::Bool(true))]).0, 41009);
    assert_eq!(call(node, &path, "Offline", &[]).0, 41009);
    Ok(())
}

fn an_offline_disk_is_not_made_writable(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = initialized(node, raw, 2);
    assert_eq!(call(node, &path, "Offline", &[]).0, 0);
    disk(node, raw);
    let set = call(node, &path, "SetAttributes", &[("IsReadOnly", Value::Bool(true))]).0;
    assert_eq!(call(node, &path, "Online", &[]).0, 0);
    assert_eq!(set, 41003);
    Ok(())
}

fn only_an_initialized_online_disk_is_refreshed(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = disk(node, raw).path;
    let refresh = || call(node, &path, "Refresh", &[]).0;
    assert_eq!(refresh(), 41000);
    initialized(node, raw, 2);
    assert_eq!(refresh(), 0);
    assert_eq!(call(node, &path, "Offline", &[]).0, 0);
    let offline = refresh();
    assert_eq!(call(node, &path, "Online", &[]).0, 0);
    assert_eq!(offline, 41003);
    Ok(())
}

fn a_partition_takes_the_largest_range(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = initialized(node, raw, 2);
    partition(node, &path, 64 * MIB, 64 * MIB);
    let largest = disk(node, raw).u64("LargestFreeExtent").expect("the largest free range");
    let (code, out) = call(node, &path, "CreatePartition", &[maximum()]);
    assert_eq!(code, 0);
    assert!(!created(&out).is_empty());
    let last = partition_near(node, raw, u64::MAX);
    assert!(last.u64("Offset") >= Some(128 * MIB));
    assert!(last.u64("Size").is_some_and(|size| size <= largest && size + 2 * MIB > largest), "{largest}");
    assert!(last.text("GptType").is_some_and(|kind| kind.eq_ignore_ascii_case(BASIC_DATA)));
    Ok(())
}

fn an_online_disk_is_brought_online(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let instance = disk(node, raw);
    assert_eq!(instance.bool("IsOffline"), Some(false));
    assert_eq!(call(node, &instance.path, "Online", &[]).0, 0);
    Ok(())
}

fn only_an_online_writable_disk_is_initialized(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = disk(node, raw).path;
    let initialize = || {
        disk(node, raw);
        call(node, &path, "Initialize", &[]).0
    };
    assert_eq!(call(node, &path, "SetAttributes", &[("IsReadOnly", Value::Bool(true))]).0, 0);
    assert_eq!(initialize(), 41002);
    assert_eq!(call(node, &path, "SetAttributes", &[("IsReadOnly", Value::Bool(false))]).0, 0);
    assert_eq!(call(node, &path, "Offline", &[]).0, 0);
    assert_eq!(initialize(), 41003);
    assert_eq!(call(node, &path, "Online", &[]).0, 0);
    assert_eq!(initialize(), 0);
    Ok(())
}

fn a_disk_is_cleared_on_request(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = disk(node, raw).path;
    let clear = |data: bool| call(node, &path, "Clear", &[("RemoveData", Value::Bool(data))]).0;
    assert_eq!(clear(true), 41000);
    initialized(node, raw, 2);
    partition(node, &path, 64 * MIB, 64 * MIB);
    disk(node, raw);
    assert_eq!(clear(false), 41008);
    assert_eq!(clear(true), 0);
    assert_eq!(disk(node, raw).u32("PartitionStyle"), Some(0));
    Ok(())
}

fn a_raw_disk_is_made_writable(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let path = disk(node, raw).path;
    for read_only in [true, false] {
        assert_eq!(call(node, &path, "SetAttributes", &[("IsReadOnly", Value::Bool(read_only))]).0, 0);
        assert_eq!(disk(node, raw).bool("IsReadOnly"), Some(read_only));
    }
    Ok(())
}
