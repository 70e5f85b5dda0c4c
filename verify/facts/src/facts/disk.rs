//! Disks as devices, their number, size and partition table: `DISK`.

use os::abi::{
    ControlCode, DEVICE_TYPE_DISK, DISK_INTERFACE, DiskGeometryEx, DriveLayout, LengthInformation,
    PartitionStyle, STORAGE_PORT_INTERFACE, StorageDeviceNumber,
};
use os::{Access, FileInfo, NtPath, Open, Options, OsError, U16String};

use super::calls::{assert_fails, query};
use super::devices::{
    ENOUGH, READ_WRITE, REMOVED, ask, device_number, is_listed, length, open_disk, partition_table,
    set_offline, wait_until,
};
use crate::fact::Fact;
use crate::node::{DiskKind, System, TestDisk, TestNode, VolumeKind, missing};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("DISK-01", |node| {
        let disk = open_disk(node, node.disk(DiskKind::System), Access::empty());
        assert_needs(
            &*disk,
            ControlCode::STORAGE_GET_DEVICE_NUMBER,
            size_of::<StorageDeviceNumber>(),
        );
    }),
    Fact::new("DISK-02", |node| {
        let disk = node.disk(DiskKind::Raw);
        let handle = open_disk(node, disk, READ_WRITE);
        let number = || {
            let number = device_number(&*handle);
            (number.device_type, number.device_number)
        };
        assert_eq!(number(), (DEVICE_TYPE_DISK, disk.number));
        for offline in [true, false] {
            set_offline(&*handle, offline);
            assert_eq!(number(), (DEVICE_TYPE_DISK, disk.number));
        }
    }),
    Fact::new("DISK-03", |node| {
        let [before, after] = sizes_of_a_growing_disk(node, length);
        assert_eq!(after, before + (1 << 30));
    }),
    Fact::new("DISK-04", |node| {
        let disk = open_disk(node, node.disk(DiskKind::Raw), Access::GENERIC_READ);
        assert_needs(
            &*disk,
            ControlCode::DISK_GET_LENGTH_INFO,
            size_of::<LengthInformation>(),
        );
    }),
    Fact::new("DISK-05", |node| {
        let disk = open_disk(node, node.disk(DiskKind::Raw), Access::empty());
        assert_needs(&*disk, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX, 32);
    }),
    Fact::new("DISK-06", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let disk = open_disk(
            node,
            TestDisk {
                number: volume.disk,
            },
            Access::GENERIC_READ,
        );
        for size in [0, size_of::<DriveLayout>(), size_of::<DriveLayout>() + 144] {
            let short = disk.control(
                ControlCode::DISK_GET_DRIVE_LAYOUT_EX,
                &[],
                &mut vec![0; size],
            );
            assert_fails(short, &[OsError::INSUFFICIENT_BUFFER, OsError::BAD_LENGTH]);
        }
    }),
    Fact::new("DISK-07", |node| {
        let disk = open_disk(node, node.disk(DiskKind::Mbr), Access::GENERIC_READ);
        let (head, entries) = partition_table(&*disk);
        assert_eq!(head.style, PartitionStyle::MBR.0);
        assert!(
            !entries.is_empty() && entries.len().is_multiple_of(4),
            "{} entries",
            entries.len()
        );
        let used: Vec<_> = entries
            .iter()
            .filter(|entry| entry.mbr_type() != 0)
            .collect();
        assert!(
            matches!(used[..], [entry] if entry.length > 0),
            "one entry is in use"
        );
    }),
    Fact::new("DISK-08", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let disk = open_disk(
            node,
            TestDisk {
                number: volume.disk,
            },
            READ_WRITE,
        );
        let online = partition_table(&*disk).1;
        assert!(is_listed(node, volume.id));
        set_offline(&*disk, true);
        let offline = partition_table(&*disk).1;
        let gone = wait_until(node, || !is_listed(node, volume.id));
        set_offline(&*disk, false);
        let key = |entries: &[os::abi::PartitionEntry]| -> Vec<_> {
            entries
                .iter()
                .map(|entry| (entry.gpt_type(), entry.offset, entry.length))
                .collect()
        };
        assert_eq!(key(&offline), key(&online));
        assert!(gone, "the volume is still listed");
    }),
    Fact::new("DISK-11", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let root = volume
            .open_root(node.os(), Access::READ_DATA | Access::READ_ATTRIBUTES)
            .expect("the root directory");
        let disk = open_disk(
            node,
            TestDisk {
                number: volume.disk,
            },
            Access::empty(),
        );
        assert_eq!(
            disk.control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut []),
            Ok(0)
        );
        assert!(query::<os::abi::FileBasicInfo>(&*root, FileInfo::Basic).is_ok());
        assert!(is_listed(node, volume.id));
    }),
    Fact::new("DISK-19", |node| {
        let [before, after] = sizes_of_a_growing_disk(node, |disk| geometry(disk).disk_size);
        assert_eq!(after, before);
        let read = |disk: &dyn os::Handle| {
            length(disk);
            geometry(disk).disk_size
        };
        let [before, after] = sizes_of_a_growing_disk(node, read);
        assert_eq!(after, before + (1 << 30));
    }),
    Fact::new("DISK-20", |node| {
        let disk = open_disk(node, node.disk(DiskKind::Raw), Access::empty());
        assert_eq!(geometry(&*disk).bytes_per_sector, 512);
        let disk = open_disk(node, node.disk(DiskKind::FourKn), Access::empty());
        assert_eq!(geometry(&*disk).bytes_per_sector, 4096);
    }),
    Fact::new("DISK-21", |node| {
        let disk = node.disk(DiskKind::System);
        let how = Open::existing(Access::empty(), Options::empty());
        let interfaces = node
            .os()
            .device_interfaces(DISK_INTERFACE)
            .expect("the interfaces");
        let numbers = interfaces.iter().map(|interface| {
            let device = node
                .os()
                .open(&NtPath::from_win32(interface), &how)
                .expect("the interface opens");
            let number = device_number(&*device);
            assert_eq!(number.device_type, DEVICE_TYPE_DISK);
            number.device_number
        });
        assert_eq!(numbers.filter(|number| *number == disk.number).count(), 1);
    }),
    Fact::new("DISK-22", |node| {
        let (head, entries) = partition_table(&*open_disk(
            node,
            node.disk(DiskKind::Raw),
            Access::GENERIC_READ,
        ));
        assert_eq!((head.style, entries.len()), (PartitionStyle::RAW.0, 0));
    }),
    Fact::new("DISK-23", |node| {
        let (head, entries) = partition_table(&*open_disk(
            node,
            node.disk(DiskKind::Superfloppy),
            Access::GENERIC_READ,
        ));
        assert_eq!(head.style, PartitionStyle::MBR.0);
        let used: Vec<_> = entries
            .iter()
            .filter(|entry| entry.mbr_type() != 0)
            .map(|entry| entry.offset)
            .collect();
        assert_eq!(used, [0]);
    }),
    Fact::new("DISK-24", |node| {
        let disk = node.disk(DiskKind::Raw);
        let handle = open_disk(node, disk, READ_WRITE);
        drop(node.remove_disk(disk));
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
            assert_fails(
                handle.control(code, &[0; 40], &mut vec![0; ENOUGH]),
                &REMOVED,
            );
        }
    }),
    Fact::new("DISK-25", |node| {
        let check = |number| {
            let how = Open::existing(Access::empty(), Options::empty());
            let refused = node.os().open(&NtPath::disk(number), &how);
            assert_fails(refused, &[OsError::FILE_NOT_FOUND, OsError::NO_SUCH_DEVICE]);
        };
        check(4_000_000);
        // Only the simulated node can remove a disk.
        if node.system() == System::Simulator {
            let disk = node.disk(DiskKind::Raw);
            drop(node.remove_disk(disk));
            check(disk.number);
        }
    }),
    Fact::new("DISK-26", |node| {
        let disk = open_disk(node, node.disk(DiskKind::Raw), READ_WRITE);
        let online = length(&*disk);
        set_offline(&*disk, true);
        let updated = disk.control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut []);
        let offline: Result<LengthInformation, _> = ask(&*disk, ControlCode::DISK_GET_LENGTH_INFO);
        let geometry: Result<DiskGeometryEx, _> =
            ask(&*disk, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX);
        set_offline(&*disk, false);
        assert_eq!(updated, Ok(0));
        assert_eq!(offline.map(|info| info.length), Ok(online));
        assert_eq!(geometry.map(|geometry| geometry.disk_size), Ok(online));
    }),
    Fact::new("DISK-27", |node| {
        let disk = node.disk(DiskKind::System);
        let mut output = vec![0; ENOUGH];
        let codes = || {
            ControlCode::ALL
                .iter()
                .map(|(_, code)| *code)
                .filter(|code| (code.0 >> 16) == DEVICE_TYPE_DISK)
        };
        for (access, read, write) in [
            (Access::empty(), false, false),
            (Access::GENERIC_READ, true, false),
        ] {
            let handle = open_disk(node, disk, access);
            for code in codes() {
                let denied = code.needs_read() && !read || code.needs_write() && !write;
                let outcome = handle.control(code, &[0; 40], &mut output);
                assert_eq!(
                    outcome == Err(OsError::ACCESS_DENIED),
                    denied,
                    "{code:?} with {access:?}: {outcome:?}"
                );
            }
        }
    }),
    Fact::new("DISK-28", |node| {
        let ports = node
            .os()
            .device_interfaces(STORAGE_PORT_INTERFACE)
            .expect("the interfaces");
        let port = ports.first().unwrap_or_else(|| missing("a storage port"));
        assert_eq!(node.os().reenumerate(port), Ok(()));
        let unknown =
            U16String::from_str(&format!(r"\\?\nothing#0#0#{{{STORAGE_PORT_INTERFACE}}}"));
        assert_eq!(
            node.os().reenumerate(&unknown),
            Err(OsError::FILE_NOT_FOUND)
        );
    }),
    Fact::new("DISK-40", |node| {
        let disk = node.attach_disk();
        let interfaces = || {
            node.os()
                .device_interfaces(DISK_INTERFACE)
                .expect("the interfaces")
        };
        let how = Open::existing(Access::empty(), Options::empty());
        let (before, opened) = (
            interfaces(),
            node.os().open(&NtPath::disk(disk.number), &how).err(),
        );
        assert_eq!(opened, Some(OsError::FILE_NOT_FOUND));
        for port in node
            .os()
            .device_interfaces(STORAGE_PORT_INTERFACE)
            .expect("the interfaces")
        {
            assert_eq!(node.os().reenumerate(&port), Ok(()));
        }
        assert!(wait_until(node, || node
            .os()
            .open(&NtPath::disk(disk.number), &how)
            .is_ok()));
        let new: Vec<_> = interfaces()
            .into_iter()
            .filter(|interface| !before.contains(interface))
            .collect();
        assert_eq!(new.len(), 1);
        let device = node
            .os()
            .open(&NtPath::from_win32(&new[0]), &how)
            .expect("the interface opens");
        let number = device_number(&*device);
        assert_eq!(number.device_number, disk.number);
    }),
    Fact::new("DISK-41", |node| {
        let updated = |disk: &dyn os::Handle| {
            assert_eq!(
                disk.control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut []),
                Ok(0)
            );
            geometry(disk).disk_size
        };
        let [before, after] = sizes_of_a_growing_disk(node, updated);
        assert_eq!(after, before + (1 << 30));
    }),
    Fact::new("DISK-39", |node| {
        for (kind, sector) in [(DiskKind::Raw, 512), (DiskKind::FourKn, 4096)] {
            let disk = open_disk(node, node.disk(kind), Access::GENERIC_READ);
            let half = u64::try_from(sector / 2).expect("it fits");
            for offset in [0, 2 * half] {
                assert_eq!(disk.read(offset, &mut vec![0; sector]), Ok(sector));
            }
            for (offset, length) in [(0, sector / 2), (half, sector), (0, sector + 1)] {
                let refused = disk.read(offset, &mut vec![0; length]);
                assert_eq!(
                    refused,
                    Err(OsError::INVALID_PARAMETER),
                    "{length} bytes at {offset}"
                );
            }
        }
    }),
];

/// Checks that the answer to a request has this size, and that the request fails with a shorter
/// buffer.
#[track_caller]
fn assert_needs(disk: &dyn os::Handle, code: ControlCode, size: usize) {
    let mut output = vec![0; size];
    assert_eq!(
        disk.control(code, &[], &mut output[..size - 1]),
        Err(OsError::INSUFFICIENT_BUFFER)
    );
    assert_eq!(disk.control(code, &[], &mut output), Ok(size));
}

/// Returns the size of a disk before and after it grows by a gibibyte, read with `size`.
fn sizes_of_a_growing_disk(node: &dyn TestNode, size: impl Fn(&dyn os::Handle) -> i64) -> [i64; 2] {
    let disk = node.disk(DiskKind::Raw);
    let handle = open_disk(node, disk, Access::GENERIC_READ);
    let before = size(&*handle);
    node.grow_disk(disk, 1 << 30);
    [before, size(&*handle)]
}

fn geometry(disk: &dyn os::Handle) -> DiskGeometryEx {
    ask(disk, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX).expect("the geometry")
}
