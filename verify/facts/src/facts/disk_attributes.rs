//! Disks as devices, offline and read-only: `DISK`.

use os::abi::{ControlCode, DiskAttributes, StorageDeviceNumber};
use os::{Access, NtPath, Open, OsError};

use super::devices::{
    READ_WRITE, ask, attributes, is_listed, open_disk, set_attributes, set_offline, spare_system_disk, wait_until,
};
use crate::fact::{Fact, Verdict};
use crate::node::{DiskKind, TestDisk, TestNode, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "DISK-09",
        "IOCTL_DISK_SET_DISK_ATTRIBUTES takes the size of GET_DISK_ATTRIBUTES, which is 16, as version.",
        "SDK SET_DISK_ATTRIBUTES",
        the_documented_version_is_taken,
    ),
    Fact::published(
        "DISK-10",
        "IOCTL_DISK_SET_DISK_ATTRIBUTES changes only the attributes in AttributesMask.",
        "SDK SET_DISK_ATTRIBUTES",
        only_attributes_in_the_mask_change,
    ),
    Fact::unchecked(
        "DISK-17",
        "By MSFT_StorageSetting.NewDiskPolicy a new disk is brought online (1), stays offline if it is shared (2), stays \
         offline (3) or stays offline if it is not shared (4), and one that stays offline is read-only too.",
        "DRV MSFT_StorageSetting",
        "no operation reads or changes the policy: SetDiskState clears both attributes, whatever has set them",
    ),
    Fact::published(
        "DISK-32",
        "IOCTL_DISK_SET_DISK_ATTRIBUTES also takes the size of SET_DISK_ATTRIBUTES, which is 40, as version.",
        "cloudbase/wnbd tests/libwnbd_tests/utils.cpp SetDiskWritable",
        the_version_of_shipped_programs_is_taken,
    ),
    Fact::unchecked(
        "DISK-33",
        "Attributes that IOCTL_DISK_SET_DISK_ATTRIBUTES sets without Persist are lost when Windows restarts.",
        "SDK SET_DISK_ATTRIBUTES",
        "not reachable by any operation: they always set Persist",
    ),
    Fact::assumed(
        "DISK-34",
        "Setting the attribute offline or read-only of the system disk fails with BUSY (170).",
        "No source was found for the code. SetDiskState refuses the disks that the node itself uses before it asks, and \
         every error of the control code makes it ask the storage provider, whose answer it returns.",
        the_system_disk_stays_online,
    ),
    Fact::assumed(
        "DISK-35",
        "After a disk has come online, Windows lists its volumes within 20 seconds, not necessarily at once, and then they have \
         a number as devices.",
        "No page gives a time. SetDiskState, PartitionDisk and ListVolumesOnDisk wait for the volumes for 20 seconds. \
         Later volumes are found by the caller's next request.",
        volumes_arrive_after_their_disk_came_online,
    ),
    Fact::assumed(
        "DISK-36",
        "An online disk that is no longer read-only has writable volumes after it was taken offline and online.",
        "No source was found, nor whether its volumes become writable at once. Where they do not, the first write fails \
         with WRITE_PROTECT (19) and loses nothing, and the offline and online of a driver's next stage helps.",
        volumes_are_writable_after_their_disk_became_writable,
    ),
];

fn the_documented_version_is_taken(node: &dyn TestNode) -> Verdict {
    attributes_are_set_with(node, 16)
}

fn the_version_of_shipped_programs_is_taken(node: &dyn TestNode) -> Verdict {
    attributes_are_set_with(node, 40)
}

fn attributes_are_set_with(node: &dyn TestNode, version: u32) -> Verdict {
    let disk = open_disk(node, node.disk(DiskKind::Raw)?, READ_WRITE);
    for wanted in [DiskAttributes::OFFLINE, 0] {
        assert_eq!(set_attributes(&*disk, version, wanted, DiskAttributes::OFFLINE), Ok(()));
        assert_eq!(attributes(&*disk) & DiskAttributes::OFFLINE, wanted);
    }
    Ok(())
}

fn only_attributes_in_the_mask_change(node: &dyn TestNode) -> Verdict {
    const BOTH: u64 = DiskAttributes::OFFLINE | DiskAttributes::READ_ONLY;
    let disk = open_disk(node, node.disk(DiskKind::Raw)?, READ_WRITE);
    for (wanted, mask, expected) in [
        (BOTH, BOTH, BOTH),
        (0, DiskAttributes::READ_ONLY, DiskAttributes::OFFLINE),
        (BOTH, DiskAttributes::READ_ONLY, BOTH),
        (0, DiskAttributes::OFFLINE, DiskAttributes::READ_ONLY),
        (0, BOTH, 0),
    ] {
        assert_eq!(set_attributes(&*disk, 40, wanted, mask), Ok(()));
        assert_eq!(attributes(&*disk) & BOTH, expected);
    }
    Ok(())
}

fn the_system_disk_stays_online(node: &dyn TestNode) -> Verdict {
    let disk = open_disk(node, spare_system_disk(node)?, READ_WRITE);
    for attribute in [DiskAttributes::OFFLINE, DiskAttributes::READ_ONLY] {
        assert_eq!(set_attributes(&*disk, 40, attribute, attribute), Err(OsError::BUSY));
        assert_eq!(attributes(&*disk) & attribute, 0);
    }
    Ok(())
}

fn volumes_arrive_after_their_disk_came_online(node: &dyn TestNode) -> Verdict {
    let volume = node.volume(VolumeKind::Ntfs)?;
    let disk = open_disk(node, TestDisk { number: volume.disk }, READ_WRITE);
    set_offline(&*disk, true);
    assert!(wait_until(node, || !is_listed(node, volume.id)));
    set_offline(&*disk, false);
    assert!(wait_until(node, || is_listed(node, volume.id)));
    let device = volume.open(node.os(), Access::empty()).expect("the volume opens");
    let number: StorageDeviceNumber = ask(&*device, ControlCode::STORAGE_GET_DEVICE_NUMBER).expect("the number");
    assert_eq!(number.device_number, volume.disk);
    Ok(())
}

fn volumes_are_writable_after_their_disk_became_writable(node: &dyn TestNode) -> Verdict {
    let volume = node.volume(VolumeKind::Ntfs)?;
    let disk = open_disk(node, TestDisk { number: volume.disk }, READ_WRITE);
    let read_only = DiskAttributes::READ_ONLY;
    set_attributes(&*disk, 40, read_only, read_only).expect("the disk is made read-only");
    set_attributes(&*disk, 40, 0, read_only).expect("the disk is made writable");
    set_offline(&*disk, true);
    set_offline(&*disk, false);
    assert!(wait_until(node, || is_listed(node, volume.id)));
    let created = Open::new_directory(Access::READ_ATTRIBUTES);
    let name = NtPath::volume_root(volume.id).join(&os::U16String::from_str("created"));
    assert!(node.os().open(&name, &created).is_ok());
    Ok(())
}
