//! Disks as devices, their number, size and partition table: `DISK`.

use os::abi::{
    ControlCode, DEVICE_TYPE_DISK, DISK_INTERFACE, DiskGeometryEx, DriveLayout, LengthInformation, PartitionStyle,
    STORAGE_PORT_INTERFACE, StorageDeviceNumber,
};
use os::{Access, FileInfo, NtPath, Open, Options, OsError, U16String};

use super::calls::query;
use super::devices::{
    ENOUGH, READ_WRITE, REMOVED, ask, is_listed, open_disk, partition_table, set_offline, wait_until,
};
use crate::fact::Fact;
use crate::node::{DiskKind, System, TestDisk, TestNode, VolumeKind, missing};

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "DISK-01",
        "IOCTL_STORAGE_GET_DEVICE_NUMBER with a short buffer fails with INSUFFICIENT_BUFFER (122).",
        "CL class.c",
        |node| {
            let disk = open_disk(node, node.disk(DiskKind::System), Access::empty());
            let size = size_of::<StorageDeviceNumber>();
            let mut output = vec![0; size];
            let short = disk.control(ControlCode::STORAGE_GET_DEVICE_NUMBER, &[], &mut output[..size - 1]);
            assert_eq!(short, Err(OsError::INSUFFICIENT_BUFFER));
            assert_eq!(disk.control(ControlCode::STORAGE_GET_DEVICE_NUMBER, &[], &mut output), Ok(size));
        },
    )
    .wine("it truncates the answer"),
    Fact::published(
        "DISK-02",
        "The device number of a disk is that of its name PhysicalDriveN, and stays the same when the disk goes \
         offline and online.",
        "SDK STORAGE_DEVICE_NUMBER",
        |node| {
            let disk = node.disk(DiskKind::Raw);
            let handle = open_disk(node, disk, READ_WRITE);
            let number = || {
                let number: StorageDeviceNumber =
                    ask(&*handle, ControlCode::STORAGE_GET_DEVICE_NUMBER).expect("the number");
                (number.device_type, number.device_number)
            };
            assert_eq!(number(), (DEVICE_TYPE_DISK, disk.number));
            for offline in [true, false] {
                set_offline(&*handle, offline);
                assert_eq!(number(), (DEVICE_TYPE_DISK, disk.number));
            }
        },
    ),
    Fact::published(
        "DISK-03",
        "IOCTL_DISK_GET_LENGTH_INFO reads the capacity from the disk at each call, so it returns the new size of a \
         disk that has grown.",
        "CL disk.c DiskIoctlGetLengthInfo",
        |node| {
            let [before, after] = sizes_of_a_growing_disk(node, length);
            assert_eq!(after, before + (1 << 30));
        },
    ),
    Fact::published(
        "DISK-04",
        "IOCTL_DISK_GET_LENGTH_INFO with a short buffer fails with INSUFFICIENT_BUFFER (122).",
        "CL disk.c; DDI IOCTL_DISK_GET_LENGTH_INFO",
        |node| {
            let disk = open_disk(node, node.disk(DiskKind::Raw), Access::GENERIC_READ);
            let mut output = [0; size_of::<LengthInformation>()];
            assert_eq!(disk.control(ControlCode::DISK_GET_LENGTH_INFO, &[], &mut output), Ok(output.len()));
            let short = disk.control(ControlCode::DISK_GET_LENGTH_INFO, &[], &mut output[..7]);
            assert_eq!(short, Err(OsError::INSUFFICIENT_BUFFER));
        },
    ),
    Fact::published(
        "DISK-05",
        "IOCTL_DISK_GET_DRIVE_GEOMETRY_EX takes a buffer of 32 bytes, without room for partition and detection data, \
         and fails with INSUFFICIENT_BUFFER (122) with a shorter buffer.",
        "DDI IOCTL_DISK_GET_DRIVE_GEOMETRY_EX; CL disk.c DiskIoctlGetDriveGeometryEx",
        |node| {
            let disk = open_disk(node, node.disk(DiskKind::Raw), Access::empty());
            let mut output = [0; 32];
            assert_eq!(disk.control(ControlCode::DISK_GET_DRIVE_GEOMETRY_EX, &[], &mut output), Ok(32));
            let short = disk.control(ControlCode::DISK_GET_DRIVE_GEOMETRY_EX, &[], &mut output[..31]);
            assert_eq!(short, Err(OsError::INSUFFICIENT_BUFFER));
        },
    ),
    Fact::published(
        "DISK-06",
        "IOCTL_DISK_GET_DRIVE_LAYOUT_EX with a short buffer fails with INSUFFICIENT_BUFFER (122) or BAD_LENGTH (24).",
        "DDI IOCTL_DISK_GET_DRIVE_LAYOUT_EX",
        |node| {
            let volume = node.volume(VolumeKind::Ntfs);
            let disk = open_disk(node, TestDisk { number: volume.disk }, Access::GENERIC_READ);
            for size in [0, size_of::<DriveLayout>(), size_of::<DriveLayout>() + 144] {
                let short = disk.control(ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[], &mut vec![0; size]);
                assert!(
                    [Err(OsError::INSUFFICIENT_BUFFER), Err(OsError::BAD_LENGTH)].contains(&short),
                    "{size}: {short:?}"
                );
            }
        },
    ),
    Fact::published(
        "DISK-07",
        "The number of entries in the layout of an MBR disk is a multiple of four, and unused entries have the type \
         0.",
        "SDK DRIVE_LAYOUT_INFORMATION_EX",
        |node| {
            let disk = open_disk(node, node.disk(DiskKind::Mbr), Access::GENERIC_READ);
            let (head, entries) = partition_table(&*disk);
            assert_eq!(head.style, PartitionStyle::MBR.0);
            assert!(!entries.is_empty() && entries.len().is_multiple_of(4), "{} entries", entries.len());
            let used: Vec<_> = entries.iter().filter(|entry| entry.mbr_type() != 0).collect();
            assert!(matches!(used[..], [entry] if entry.length > 0), "one entry is in use");
        },
    ),
    Fact::published(
        "DISK-08",
        "The partition table of an offline disk can be read, and Windows lists no volume of it.",
        "DRV MSFT_StorageSetting NewDiskPolicy",
        |node| {
            let volume = node.volume(VolumeKind::Ntfs);
            let disk = open_disk(node, TestDisk { number: volume.disk }, READ_WRITE);
            let online = partition_table(&*disk).1;
            assert!(is_listed(node, volume.id));
            set_offline(&*disk, true);
            let offline = partition_table(&*disk).1;
            let gone = wait_until(node, || !is_listed(node, volume.id));
            set_offline(&*disk, false);
            let key = |entries: &[os::abi::PartitionEntry]| -> Vec<_> {
                entries.iter().map(|entry| (entry.gpt_type(), entry.offset, entry.length)).collect()
            };
            assert_eq!(key(&offline), key(&online));
            assert!(gone, "the volume is still listed");
        },
    ),
    Fact::published(
        "DISK-11",
        "IOCTL_DISK_UPDATE_PROPERTIES needs no lock: it succeeds while a directory on a volume of the disk is open, \
         and the directory stays usable.",
        "SDK IOCTL_DISK_UPDATE_PROPERTIES",
        |node| {
            let volume = node.volume(VolumeKind::Ntfs);
            let how = Open::existing(Access::READ_DATA | Access::READ_ATTRIBUTES, Options::DIRECTORY);
            let root = node.os().open(&NtPath::volume_root(volume.id), &how).expect("the root directory");
            let disk = open_disk(node, TestDisk { number: volume.disk }, Access::empty());
            assert_eq!(disk.control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut []), Ok(0));
            assert!(query::<os::abi::FileBasicInfo>(&*root, FileInfo::Basic).is_ok());
            assert!(is_listed(node, volume.id));
        },
    ),
    Fact::published(
        "DISK-19",
        "IOCTL_DISK_GET_DRIVE_GEOMETRY_EX of a fixed disk returns the size that was last read from the disk: the new \
         size of a disk that has grown only after IOCTL_DISK_GET_LENGTH_INFO.",
        "CL disk.c DiskIoctlGetDriveGeometryEx",
        |node| {
            let [before, after] = sizes_of_a_growing_disk(node, |disk| geometry(disk).disk_size);
            assert_eq!(after, before);
            let read = |disk: &dyn os::Handle| {
                length(disk);
                geometry(disk).disk_size
            };
            let [before, after] = sizes_of_a_growing_disk(node, read);
            assert_eq!(after, before + (1 << 30));
        },
    ),
    Fact::published(
        "DISK-20",
        "IOCTL_DISK_GET_DRIVE_GEOMETRY_EX returns the size of a logical sector, which is 4096 bytes on a 4Kn disk.",
        "DDI IOCTL_DISK_GET_DRIVE_GEOMETRY_EX",
        |node| {
            let disk = open_disk(node, node.disk(DiskKind::Raw), Access::empty());
            assert_eq!(geometry(&*disk).bytes_per_sector, 512);
            let disk = open_disk(node, node.disk(DiskKind::FourKn), Access::empty());
            assert_eq!(geometry(&*disk).bytes_per_sector, 4096);
        },
    ),
    Fact::published(
        "DISK-21",
        "Every disk has one device interface of the class GUID_DEVINTERFACE_DISK, which opens as a device of type 7 \
         with the number of the disk.",
        "DRV guid-devinterface-disk",
        |node| {
            let disk = node.disk(DiskKind::System);
            let how = Open::existing(Access::empty(), Options::empty());
            let interfaces = node.os().device_interfaces(DISK_INTERFACE).expect("the interfaces");
            let numbers = interfaces.iter().map(|interface| {
                let device = node.os().open(&NtPath::from_win32(interface), &how).expect("the interface opens");
                let number: StorageDeviceNumber =
                    ask(&*device, ControlCode::STORAGE_GET_DEVICE_NUMBER).expect("the number");
                assert_eq!(number.device_type, DEVICE_TYPE_DISK);
                number.device_number
            });
            assert_eq!(numbers.filter(|number| *number == disk.number).count(), 1);
        },
    )
    .wine("it does not list device interfaces"),
    Fact::assumed(
        "DISK-22",
        "The layout of a disk without a partition table has the style 2 and no entries.",
        "The page gives the style only. Operations ignore the entries of a raw disk.",
        |node| {
            let (head, entries) = partition_table(&*open_disk(node, node.disk(DiskKind::Raw), Access::GENERIC_READ));
            assert_eq!((head.style, entries.len()), (PartitionStyle::RAW.0, 0));
        },
    ),
    Fact::assumed(
        "DISK-23",
        "The layout of a disk with a file system from its first sector on has the style 0 and one used entry, which \
         begins at 0.",
        "No source was found. With another style or without an entry PartitionDisk would count the disk as raw, and \
         then refuse it for the signature in its first sectors.",
        |node| {
            let (head, entries) =
                partition_table(&*open_disk(node, node.disk(DiskKind::Superfloppy), Access::GENERIC_READ));
            assert_eq!(head.style, PartitionStyle::MBR.0);
            let used: Vec<_> = entries.iter().filter(|entry| entry.mbr_type() != 0).map(|entry| entry.offset).collect();
            assert_eq!(used, [0]);
        },
    ),
    Fact::assumed(
        "DISK-24",
        "A control code that is sent to a disk after its removal fails with FILE_NOT_FOUND (2), DEV_NOT_EXIST (55), \
         NO_SUCH_DEVICE (433) or DEVICE_NOT_CONNECTED (1167).",
        "The disk class driver (CL class.c) returns the last three, depending on the progress of the removal; the \
         drivers above it are not public. Operations treat all four codes alike.",
        |node| {
            let disk = node.disk(DiskKind::Raw);
            let handle = open_disk(node, disk, READ_WRITE);
            node.remove_disk(disk);
            for code in [
                ControlCode::STORAGE_GET_DEVICE_NUMBER,
                ControlCode::STORAGE_QUERY_PROPERTY,
                ControlCode::DISK_GET_DRIVE_GEOMETRY_EX,
                ControlCode::DISK_GET_LENGTH_INFO,
                ControlCode::DISK_GET_DISK_ATTRIBUTES,
                ControlCode::DISK_GET_DRIVE_LAYOUT_EX,
                ControlCode::DISK_UPDATE_PROPERTIES,
                ControlCode::DISK_SET_DISK_ATTRIBUTES,
            ] {
                let refused = handle.control(code, &[0; 40], &mut vec![0; ENOUGH]);
                assert!(refused.is_err_and(|error| REMOVED.contains(&error)), "{code:?}: {refused:?}");
            }
        },
    ),
    Fact::published(
        "DISK-25",
        "Opening a PhysicalDriveN that does not exist fails with FILE_NOT_FOUND (2) or NO_SUCH_DEVICE (433).",
        "cloudbase/wnbd tests/libwnbd_tests/utils.cpp GetDiskPath",
        |node| {
            let check = |number| {
                let how = Open::existing(Access::empty(), Options::empty());
                let refused = node.os().open(&NtPath::disk(number), &how).err();
                assert!(
                    [Some(OsError::FILE_NOT_FOUND), Some(OsError::NO_SUCH_DEVICE)].contains(&refused),
                    "{refused:?}"
                );
            };
            check(4_000_000);
            // Only the simulated node can remove a disk.
            if node.system() == System::Simulator {
                let disk = node.disk(DiskKind::Raw);
                drop(node.remove_disk(disk));
                check(disk.number);
            }
        },
    ),
    Fact::assumed(
        "DISK-26",
        "IOCTL_DISK_GET_LENGTH_INFO, IOCTL_DISK_GET_DRIVE_GEOMETRY_EX and IOCTL_DISK_UPDATE_PROPERTIES work on an \
         offline disk.",
        "No source was found. GetDiskStats returns the size as long as one of the first two works, and PartitionDisk \
         brings an offline disk online if its layout cannot be read.",
        |node| {
            let disk = open_disk(node, node.disk(DiskKind::Raw), READ_WRITE);
            let online = length(&*disk);
            set_offline(&*disk, true);
            let updated = disk.control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut []);
            let offline: Result<LengthInformation, _> = ask(&*disk, ControlCode::DISK_GET_LENGTH_INFO);
            let geometry: Result<DiskGeometryEx, _> = ask(&*disk, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX);
            set_offline(&*disk, false);
            assert_eq!(updated, Ok(0));
            assert_eq!(offline.map(|info| info.length), Ok(online));
            assert_eq!(geometry.map(|geometry| geometry.disk_size), Ok(online));
        },
    ),
    Fact::published(
        "DISK-27",
        "A control code that asks for read or write access fails with ACCESS_DENIED (5) on a handle without that \
         right.",
        "DRV defining-i-o-control-codes",
        |node| {
            let disk = node.disk(DiskKind::System);
            let mut output = vec![0; ENOUGH];
            let codes =
                || ControlCode::ALL.iter().map(|(_, code)| *code).filter(|code| (code.0 >> 16) == DEVICE_TYPE_DISK);
            for (access, read, write) in [(Access::empty(), false, false), (Access::GENERIC_READ, true, false)] {
                let handle = open_disk(node, disk, access);
                for code in codes() {
                    let denied = code.needs_read() && !read || code.needs_write() && !write;
                    let outcome = handle.control(code, &[0; 40], &mut output);
                    assert_eq!(outcome == Err(OsError::ACCESS_DENIED), denied, "{code:?} with {access:?}: {outcome:?}");
                }
            }
        },
    ),
    Fact::assumed(
        "DISK-28",
        "The children of a storage port can be enumerated again by its device interface, which fails with \
         FILE_NOT_FOUND (2) for an interface that does not exist.",
        "The pages of the configuration manager name no code for each case. Rescan logs every code and goes on with \
         the next port.",
        |node| {
            let ports = node.os().device_interfaces(STORAGE_PORT_INTERFACE).expect("the interfaces");
            let port = ports.first().unwrap_or_else(|| missing("a storage port"));
            assert_eq!(node.os().reenumerate(port), Ok(()));
            let unknown = U16String::from_str(&format!(r"\\?\nothing#0#0#{{{STORAGE_PORT_INTERFACE}}}"));
            assert_eq!(node.os().reenumerate(&unknown), Err(OsError::FILE_NOT_FOUND));
        },
    )
    .wine("it does not list device interfaces"),
    Fact::assumed(
        "DISK-40",
        "A disk that was attached has a device interface, and opens by its number, within 20 seconds after its \
         storage port was enumerated again.",
        "No page gives a time. Rescan also makes the storage provider refresh its cache, and callers list the disks \
         again until they find theirs.",
        |node| {
            let disk = node.attach_disk();
            let interfaces = || node.os().device_interfaces(DISK_INTERFACE).expect("the interfaces");
            let how = Open::existing(Access::empty(), Options::empty());
            let (before, opened) = (interfaces(), node.os().open(&NtPath::disk(disk.number), &how).err());
            assert_eq!(opened, Some(OsError::FILE_NOT_FOUND));
            for port in node.os().device_interfaces(STORAGE_PORT_INTERFACE).expect("the interfaces") {
                assert_eq!(node.os().reenumerate(&port), Ok(()));
            }
            assert!(wait_until(node, || node.os().open(&NtPath::disk(disk.number), &how).is_ok()));
            let new: Vec<_> = interfaces().into_iter().filter(|interface| !before.contains(interface)).collect();
            assert_eq!(new.len(), 1);
            let device = node.os().open(&NtPath::from_win32(&new[0]), &how).expect("the interface opens");
            let number: StorageDeviceNumber =
                ask(&*device, ControlCode::STORAGE_GET_DEVICE_NUMBER).expect("the number");
            assert_eq!(number.device_number, disk.number);
        },
    ),
    Fact::assumed(
        "DISK-41",
        "After IOCTL_DISK_UPDATE_PROPERTIES the geometry of a disk has the size that the disk has grown to.",
        "The page promises that Windows reads the disk again, not when. The size is queried before and after the \
         update, and the larger one counts.",
        |node| {
            let updated = |disk: &dyn os::Handle| {
                assert_eq!(disk.control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut []), Ok(0));
                geometry(disk).disk_size
            };
            let [before, after] = sizes_of_a_growing_disk(node, updated);
            assert_eq!(after, before + (1 << 30));
        },
    ),
    Fact::published(
        "DISK-39",
        "Reading a disk fails with INVALID_PARAMETER (87) unless offset and length are multiples of the size of a \
         sector.",
        "CL disk.c DiskReadWriteVerification",
        |node| {
            for (kind, sector) in [(DiskKind::Raw, 512), (DiskKind::FourKn, 4096)] {
                let disk = open_disk(node, node.disk(kind), Access::GENERIC_READ);
                let half = u64::try_from(sector / 2).expect("it fits");
                for offset in [0, 2 * half] {
                    assert_eq!(disk.read(offset, &mut vec![0; sector]), Ok(sector));
                }
                for (offset, length) in [(0, sector / 2), (half, sector), (0, sector + 1)] {
                    let refused = disk.read(offset, &mut vec![0; length]);
                    assert_eq!(refused, Err(OsError::INVALID_PARAMETER), "{length} bytes at {offset}");
                }
            }
        },
    ),
];

/// Returns the size of a disk before and after it grows by a gibibyte, read with `size`.
fn sizes_of_a_growing_disk(node: &dyn TestNode, size: impl Fn(&dyn os::Handle) -> i64) -> [i64; 2] {
    let disk = node.disk(DiskKind::Raw);
    let handle = open_disk(node, disk, Access::GENERIC_READ);
    let before = size(&*handle);
    node.grow_disk(disk, 1 << 30);
    [before, size(&*handle)]
}

fn length(disk: &dyn os::Handle) -> i64 {
    ask::<LengthInformation>(disk, ControlCode::DISK_GET_LENGTH_INFO).expect("the length").length
}

fn geometry(disk: &dyn os::Handle) -> DiskGeometryEx {
    ask(disk, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX).expect("the geometry")
}
