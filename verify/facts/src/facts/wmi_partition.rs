//! `MSFT_Partition`: `WMI-PART`.

use os::abi::MSFT_RESERVED;
use os::{Access, Instance, OsError, PathForm};

use super::devices::{self, READ_WRITE, file_system, is_listed, open_disk, partition_table};
use super::network::text;
use super::provider::{
    self, MIB, call, initialized, number, one, partition, partition_near, partition_of, settle,
};
use crate::fact::Fact;
use crate::node::{DiskKind, TestNode, TestVolume, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("WMI-PART-01", |node| {
        let partition = partition_of(node, node.volume(VolumeKind::Ntfs)).path;
        let (smallest, largest) = supported(node, &partition);
        assert_eq!(resize(node, &partition, largest + 64 * MIB), 4097);
        assert!(smallest > 0, "a file system needs space");
        assert_eq!(resize(node, &partition, 512), 4097);
    }),
    Fact::new("WMI-PART-02", |node| {
        for kind in [VolumeKind::Ntfs, VolumeKind::Raw] {
            let volume = node.volume(kind);
            let before = partition_of(node, volume);
            for to in [size(&before) - 64 * MIB, size(&before)] {
                assert_eq!(resize(node, &before.path, to), 0, "{kind:?}");
                assert_eq!(size(&partition_of(node, volume)), to, "{kind:?}");
            }
        }
    }),
    Fact::new("WMI-PART-04", |node| {
        let raw = node.disk(DiskKind::Raw);
        initialized(node, raw);
        let reserved = partition_near(node, raw, 0);
        assert_eq!(
            reserved.text("GptType").map(str::to_lowercase),
            Some(format!("{{{MSFT_RESERVED}}}"))
        );
        assert_eq!(call(node, &reserved.path, "Online", &[]).0, 42011);
    }),
    Fact::new("WMI-PART-05", |node| {
        let raw = node.disk(DiskKind::Raw);
        let disk = initialized(node, raw);
        partition(node, &disk, 64 * MIB, 64 * MIB);
        partition(node, &disk, 192 * MIB, 64 * MIB);
        settle(node);
        assert_eq!(
            supported(node, &partition_near(node, raw, 64 * MIB).path).1,
            128 * MIB
        );
    }),
    Fact::new("WMI-PART-06", |node| {
        let partition = partition_of(node, node.volume(VolumeKind::Fat32));
        assert_eq!(
            call(node, &partition.path, "GetSupportedSize", &[]).0,
            42009
        );
        assert_eq!(
            resize(node, &partition.path, size(&partition) - 64 * MIB),
            42009
        );
    }),
    Fact::new("WMI-PART-08", |node| {
        let raw = node.disk(DiskKind::Raw);
        let disk = initialized(node, raw);
        let size = provider::disk(node, raw).u64("Size").expect("the size");
        // The entries of the table have another order than the partitions on the disk.
        partition(node, &disk, size / MIB * 3 / 4 * MIB, 64 * MIB);
        partition(node, &disk, 64 * MIB, 64 * MIB);
        settle(node);
        let (_, entries) = partition_table(&*open_disk(node, raw, Access::GENERIC_READ));
        let mut offsets: Vec<_> = entries.iter().map(|entry| entry.offset).collect();
        offsets.sort_unstable();
        assert!(offsets.len() >= 2);
        for (offset, number) in offsets.into_iter().zip(1..) {
            let wql = format!(
                "SELECT * FROM MSFT_Partition WHERE DiskNumber = {} AND PartitionNumber = {number}",
                raw.number
            );
            assert_eq!(one(node, &wql).u64("Offset"), u64::try_from(offset).ok());
        }
    }),
    Fact::new("WMI-PART-09", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let partition = partition_of(node, volume).path;
        directory.mkdir("m");
        let path = directory.win32("m");
        assert_eq!(change(node, &partition, "AddAccessPath", &path), 0);
        let root = directory
            .followed("m")
            .expect("the root directory")
            .final_path(PathForm::VolumeGuid);
        assert_eq!(change(node, &partition, "RemoveAccessPath", &path), 0);
        assert_eq!(root, Ok(volume.guid_path()));
        let after = directory
            .followed("m")
            .expect("the directory")
            .final_path(PathForm::VolumeGuid);
        assert_ne!(after, root);
    }),
    Fact::new("WMI-PART-10", |node| {
        let directory = node.directory();
        let partition = partition_of(node, node.volume(VolumeKind::Ntfs)).path;
        for method in ["AddAccessPath", "RemoveAccessPath"] {
            assert_eq!(
                change(node, &partition, method, &directory.win32("missing")),
                42007,
                "{method}"
            );
        }
    }),
    Fact::new("WMI-PART-20", |node| {
        let partition = partition_of(node, node.volume(VolumeKind::Ntfs));
        assert_eq!(partition.bool("IsOffline"), Some(false));
        assert_eq!(call(node, &partition.path, "Online", &[]).0, 0);
    }),
    Fact::new("WMI-PART-21", |node| {
        for kind in [VolumeKind::Ntfs, VolumeKind::Raw] {
            let volume = node.volume(kind);
            let read = || {
                volume
                    .open(node.os(), Access::GENERIC_READ)
                    .map(|volume| volume.read(0, &mut [0; 4096]))
            };
            let (is_offline, listed, offline) = while_offline(node, volume, |partition| {
                (
                    partition.bool("IsOffline"),
                    is_listed(node, volume.id),
                    read(),
                )
            });
            assert_eq!(
                (is_offline, listed, offline),
                (Some(true), true, Ok(Err(OsError::NOT_READY))),
                "{kind:?}"
            );
            assert_eq!(read(), Ok(Ok(4096)), "{kind:?}");
        }
    }),
    Fact::new("WMI-PART-22", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let extents = || {
            let volume = volume
                .open(node.os(), Access::empty())
                .expect("the volume opens");
            devices::extents(&*volume).map(drop)
        };
        assert_eq!(
            while_offline(node, volume, |_| extents()),
            Err(OsError::NOT_READY)
        );
        assert_eq!(extents(), Ok(()));
    }),
    Fact::new("WMI-PART-24", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let ask = || {
            let volume = volume
                .open(node.os(), READ_WRITE)
                .expect("the volume opens");
            (file_system(&*volume), volume.flush())
        };
        let not_ready = OsError::NOT_READY;
        assert_eq!(
            while_offline(node, volume, |_| ask()),
            (Err(not_ready), Err(not_ready))
        );
        assert_eq!(ask(), (Ok("NTFS".to_owned()), Ok(())));
    }),
    Fact::new("WMI-PART-25", |node| {
        let raw = node.disk(DiskKind::Raw);
        let disk = initialized(node, raw);
        assert_eq!(
            partition(node, &disk, 64 * MIB, 64 * MIB),
            partition_near(node, raw, 64 * MIB).path
        );
    }),
];

/// Returns the smallest and the largest size of a partition.
fn supported(node: &dyn TestNode, partition: &str) -> (u64, u64) {
    let (code, out) = call(node, partition, "GetSupportedSize", &[]);
    assert_eq!(code, 0);
    (
        out.u64("SizeMin").expect("SizeMin"),
        out.u64("SizeMax").expect("SizeMax"),
    )
}

fn resize(node: &dyn TestNode, partition: &str, size: u64) -> u32 {
    call(node, partition, "Resize", &[("Size", number(size))]).0
}

fn size(partition: &Instance) -> u64 {
    partition.u64("Size").expect("the size")
}

/// Calls `check` while the volume is offline.
fn while_offline<R>(
    node: &dyn TestNode,
    volume: TestVolume,
    check: impl FnOnce(&Instance) -> R,
) -> R {
    let path = partition_of(node, volume).path;
    assert_eq!(call(node, &path, "Offline", &[]).0, 0);
    let checked = check(&partition_of(node, volume));
    assert_eq!(call(node, &path, "Online", &[]).0, 0);
    checked
}

fn change(node: &dyn TestNode, partition: &str, method: &str, path: &str) -> u32 {
    call(node, partition, method, &[("AccessPath", text(path))]).0
}
