//! `MSFT_Partition`: `WMI-PART`.

use os::abi::{ControlCode, MSFT_RESERVED};
use os::{Access, Instance, OsError, PathForm};

use super::devices::{READ_WRITE, file_system, is_listed, open_disk, partition_table};
use super::provider::{
    MIB, WINE, call, initialized, number, one, partition, partition_near, partition_of, settle, text,
};
use crate::fact::{Fact, Verdict};
use crate::node::{DiskKind, TestNode, TestVolume, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "WMI-PART-01",
        "MSFT_Partition.Resize to a size outside the range of GetSupportedSize returns 4097.",
        "DRV Resize",
        a_size_outside_the_range_is_refused,
    )
    .wine(WINE),
    Fact::published(
        "WMI-PART-02",
        "MSFT_Partition.Resize works for NTFS and for a volume without a file system.",
        "DRV Resize",
        ntfs_and_raw_volumes_are_resized,
    )
    .wine(WINE),
    Fact::unchecked(
        "WMI-PART-03",
        "GetSupportedSize determines SizeMin by the analysis of the service Optimize Drives, so that it may return another \
         SizeMin each time and takes minutes on a large volume.",
        "DRV GetSupportedSize; https://github.com/Azure/AgentBaker/pull/3804; \
         https://github.com/MicrosoftDocs/windows-powershell-docs/issues/2351",
        "no operation calls the method: ResizeVolume computes the largest size from the partition table",
    ),
    Fact::published(
        "WMI-PART-04",
        "MSFT_Partition.Online of a partition that is no data partition returns 42011.",
        "DRV Online",
        only_a_data_partition_is_brought_online,
    )
    .wine(WINE),
    Fact::published(
        "WMI-PART-05",
        "SizeMax of GetSupportedSize is the size of the partition and of the free space right after it.",
        "DRV GetSupportedSize",
        the_free_space_after_the_partition_can_be_added,
    )
    .wine(WINE),
    Fact::published(
        "WMI-PART-06",
        "MSFT_Partition.Resize and GetSupportedSize return 42009 for an unknown file system, which FAT32 is.",
        "DRV Resize; DRV GetSupportedSize",
        an_unknown_file_system_is_not_resized,
    )
    .wine(WINE),
    Fact::unchecked(
        "WMI-PART-07",
        "MSFT_Partition.Resize to a smaller size returns 42008 for a volume with errors.",
        "DRV Resize",
        "ResizeVolume never shrinks",
    ),
    Fact::assumed(
        "WMI-PART-08",
        "MSFT_Partition.Offset is that in the answer of IOCTL_DISK_GET_DRIVE_LAYOUT_EX, and PartitionNumber counts the \
         partitions in the order of their offsets.",
        "DRV MSFT_Partition gives the order of the numbers; the class of Microsoft's MOF has Offset, and no page says that the \
         control code returns the same. An operation that finds no partition with the offset changes nothing and fails.",
        a_partition_has_the_offset_of_the_device_and_a_number_in_its_order,
    )
    .wine(WINE),
    Fact::published(
        "WMI-PART-09",
        "MSFT_Partition.AddAccessPath mounts the volume at an empty directory, whose path needs no final backslash, and \
         RemoveAccessPath removes the mount point.",
        "DRV AddAccessPath; DRV RemoveAccessPath",
        a_volume_is_mounted_and_unmounted,
    )
    .wine(WINE),
    Fact::published(
        "WMI-PART-10",
        "MSFT_Partition.AddAccessPath and RemoveAccessPath return 42007 for a path that is no directory.",
        "DRV AddAccessPath; DRV RemoveAccessPath",
        an_access_path_is_a_directory,
    )
    .wine(WINE),
    Fact::published(
        "WMI-PART-20",
        "MSFT_Partition.Online of a partition that is online returns 0.",
        "kubernetes-csi/csi-proxy pkg/os/disk/api.go CreateBasicPartition, which accepts only 0 for a new partition",
        a_partition_is_brought_online_again,
    )
    .wine(WINE),
    Fact::published(
        "WMI-PART-21",
        "MSFT_Partition.Offline takes the volume offline until Online: IsOffline is true, Windows lists the volume, opening \
         it succeeds, and reading it fails with NOT_READY (21).",
        "DRV Offline; DRV Online; SDK IOCTL_VOLUME_ONLINE; DDI IOCTL_VOLUME_OFFLINE",
        an_offline_volume_is_opened_but_not_read,
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-PART-22",
        "IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS of a volume that is offline fails with NOT_READY (21).",
        "SDK IOCTL_VOLUME_ONLINE says that all control codes fail, DDI IOCTL_VOLUME_OFFLINE that I/O fails. PartitionDisk and \
         SetDiskState bring the volume online in both cases.",
        an_offline_volume_has_no_extents,
    )
    .wine(WINE),
    Fact::unchecked(
        "WMI-PART-23",
        "MSFT_Volume.Format of a volume that is offline returns 5.",
        "timminator/Enhanced-GPU-PV/issues/15, with automatic mounting disabled",
        "FormatVolume reads the volume first, and fails with NOT_READY",
    ),
    Fact::assumed(
        "WMI-PART-24",
        "FileFsAttributeInformation of a volume that is offline and flushing it fail with NOT_READY (21).",
        "The pages name reads, writes and control codes. If Windows answered that no file system is mounted, \
         IsVolumeFormatted and FormatVolume would fail because the volume cannot be read.",
        an_offline_volume_has_no_file_system_and_no_cache,
    )
    .wine(WINE),
];

/// Returns the smallest and the largest size of a partition.
fn supported(node: &dyn TestNode, partition: &str) -> (u64, u64) {
    let (code, out) = call(node, partition, "GetSupportedSize", &[]);
    assert_eq!(code, 0);
    (out.u64("SizeMin").expect("SizeMin"), out.u64("SizeMax").expect("SizeMax"))
}

fn resize(node: &dyn TestNode, partition: &str, size: u64) -> u32 {
    call(node, partition, "Resize", &[("Size", number(size))]).0
}

fn size(partition: &Instance) -> u64 {
    partition.u64("Size").expect("the size")
}

fn a_size_outside_the_range_is_refused(node: &dyn TestNode) -> Verdict {
    let partition = partition_of(node, node.volume(VolumeKind::Ntfs)?).path;
    let (smallest, largest) = supported(node, &partition);
    assert_eq!(resize(node, &partition, largest + 64 * MIB), 4097);
    assert!(smallest > 0, "a file system needs space");
    assert_eq!(resize(node, &partition, 512), 4097);
    Ok(())
}

fn ntfs_and_raw_volumes_are_resized(node: &dyn TestNode) -> Verdict {
    for kind in [VolumeKind::Ntfs, VolumeKind::Raw] {
        let volume = node.volume(kind)?;
        let before = partition_of(node, volume);
        for to in [size(&before) - 64 * MIB, size(&before)] {
            assert_eq!(resize(node, &before.path, to), 0, "{kind:?}");
            assert_eq!(size(&partition_of(node, volume)), to, "{kind:?}");
        }
    }
    Ok(())
}

fn only_a_data_partition_is_brought_online(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    initialized(node, raw, 2);
    let reserved = partition_near(node, raw, 0);
    assert_eq!(reserved.text("GptType").map(str::to_lowercase), Some(format!("{{{MSFT_RESERVED}}}")));
    assert_eq!(call(node, &reserved.path, "Online", &[]).0, 42011);
    Ok(())
}

fn a_partition_is_brought_online_again(node: &dyn TestNode) -> Verdict {
    let partition = partition_of(node, node.volume(VolumeKind::Ntfs)?);
    assert_eq!(partition.bool("IsOffline"), Some(false));
    assert_eq!(call(node, &partition.path, "Online", &[]).0, 0);
    Ok(())
}

/// Calls `check` while the volume is offline.
fn while_offline<R>(node: &dyn TestNode, volume: TestVolume, check: impl FnOnce(&Instance) -> R) -> R {
    let path = partition_of(node, volume).path;
    assert_eq!(call(node, &path, "Offline", &[]).0, 0);
    let checked = check(&partition_of(node, volume));
    assert_eq!(call(node, &path, "Online", &[]).0, 0);
    checked
}

fn an_offline_volume_is_opened_but_not_read(node: &dyn TestNode) -> Verdict {
    for kind in [VolumeKind::Ntfs, VolumeKind::Raw] {
        let volume = node.volume(kind)?;
        let read = || volume.open(node.os(), Access::GENERIC_READ).map(|volume| volume.read(0, &mut [0; 4096]));
        let (is_offline, listed, offline) =
            while_offline(node, volume, |partition| (partition.bool("IsOffline"), is_listed(node, volume.id), read()));
        assert_eq!((is_offline, listed, offline), (Some(true), true, Ok(Err(OsError::NOT_READY))), "{kind:?}");
        assert_eq!(read(), Ok(Ok(4096)), "{kind:?}");
    }
    Ok(())
}

fn an_offline_volume_has_no_extents(node: &dyn TestNode) -> Verdict {
    let volume = node.volume(VolumeKind::Ntfs)?;
    let extents = || {
        let volume = volume.open(node.os(), Access::empty()).expect("the volume opens");
        volume.control(ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS, &[], &mut [0; 256]).map(drop)
    };
    assert_eq!(while_offline(node, volume, |_| extents()), Err(OsError::NOT_READY));
    assert_eq!(extents(), Ok(()));
    Ok(())
}

fn an_offline_volume_has_no_file_system_and_no_cache(node: &dyn TestNode) -> Verdict {
    let volume = node.volume(VolumeKind::Ntfs)?;
    let ask = || {
        let volume = volume.open(node.os(), READ_WRITE).expect("the volume opens");
        (file_system(&*volume), volume.flush())
    };
    let not_ready = OsError::NOT_READY;
    assert_eq!(while_offline(node, volume, |_| ask()), (Err(not_ready), Err(not_ready)));
    assert_eq!(ask(), (Ok("NTFS".to_owned()), Ok(())));
    Ok(())
}

fn the_free_space_after_the_partition_can_be_added(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let disk = initialized(node, raw, 2);
    partition(node, &disk, 64 * MIB, 64 * MIB);
    partition(node, &disk, 192 * MIB, 64 * MIB);
    settle(node);
    assert_eq!(supported(node, &partition_near(node, raw, 64 * MIB).path).1, 128 * MIB);
    Ok(())
}

fn an_unknown_file_system_is_not_resized(node: &dyn TestNode) -> Verdict {
    let partition = partition_of(node, node.volume(VolumeKind::Fat32)?);
    assert_eq!(call(node, &partition.path, "GetSupportedSize", &[]).0, 42009);
    assert_eq!(resize(node, &partition.path, size(&partition) - 64 * MIB), 42009);
    Ok(())
}

fn a_partition_has_the_offset_of_the_device_and_a_number_in_its_order(node: &dyn TestNode) -> Verdict {
    let raw = node.disk(DiskKind::Raw)?;
    let disk = initialized(node, raw, 2);
    let size =
        one(node, &format!("SELECT * FROM MSFT_Disk WHERE Number = {}", raw.number)).u64("Size").expect("the size");
    // The entries of the table have another order than the partitions on the disk.
    partition(node, &disk, size / MIB * 3 / 4 * MIB, 64 * MIB);
    partition(node, &disk, 64 * MIB, 64 * MIB);
    settle(node);
    let (_, entries) = partition_table(&*open_disk(node, raw, Access::GENERIC_READ));
    let mut offsets: Vec<_> = entries.iter().map(|entry| entry.offset).collect();
    offsets.sort_unstable();
    assert!(offsets.len() >= 2);
    for (offset, number) in offsets.into_iter().zip(1..) {
        let wql =
            format!("SELECT * FROM MSFT_Partition WHERE DiskNumber = {} AND PartitionNumber = {number}", raw.number);
        assert_eq!(one(node, &wql).u64("Offset"), u64::try_from(offset).ok());
    }
    Ok(())
}

fn change(node: &dyn TestNode, partition: &str, method: &str, path: &str) -> u32 {
    call(node, partition, method, &[("AccessPath", text(path))]).0
}

fn a_volume_is_mounted_and_unmounted(node: &dyn TestNode) -> Verdict {
    let (directory, volume) = (node.directory()?, node.volume(VolumeKind::Ntfs)?);
    let partition = partition_of(node, volume).path;
    directory.mkdir("m");
    let path = directory.win32("m");
    assert_eq!(change(node, &partition, "AddAccessPath", &path), 0);
    let root = directory.followed("m").expect("the root directory").final_path(PathForm::VolumeGuid);
    assert_eq!(change(node, &partition, "RemoveAccessPath", &path), 0);
    assert_eq!(root, Ok(volume.guid_path()));
    let after = directory.followed("m").expect("the directory").final_path(PathForm::VolumeGuid);
    assert_ne!(after, root);
    Ok(())
}

fn an_access_path_is_a_directory(node: &dyn TestNode) -> Verdict {
    let directory = node.directory()?;
    let partition = partition_of(node, node.volume(VolumeKind::Ntfs)?).path;
    for method in ["AddAccessPath", "RemoveAccessPath"] {
        assert_eq!(change(node, &partition, method, &directory.win32("missing")), 42007, "{method}");
    }
    Ok(())
}
