//! `MSFT_Volume`: `WMI-VOL`.

use std::time::Duration;

use os::abi::{ENTRY_INHERIT_ONLY, FILE_APPEND_DATA, FILE_WRITE_DATA};
use os::{
    Access, CallStatus, MethodCall, Namespace, NtPath, Open, Options, OsError, U16String, Value,
};

use super::calls::id;
use super::devices::{file_system, full_size, spare_system_disk};
use super::network::{select, text};
use super::provider::{
    MIB, call, disk, initialized, one, partition, partition_near, settle, volume, volume_query,
};
use crate::fact::Fact;
use crate::node::{DiskKind, TestDisk, TestNode, TestVolume, VolumeKind, missing};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("WMI-VOL-01", |node| {
        let raw = node.volume(VolumeKind::Raw);
        let path = volume(node, raw).path;
        let unknown = [("FileSystem", text("ext4")), ("Force", Value::Bool(true))];
        assert_eq!(call(node, &path, "Format", &unknown).0, 43001);
        let disk = disk(node, TestDisk { number: raw.disk }).path;
        let read_only = |set| {
            call(
                node,
                &disk,
                "SetAttributes",
                &[("IsReadOnly", Value::Bool(set))],
            )
            .0
        };
        assert_eq!(read_only(true), 0);
        settle(node);
        let refused = call(node, &path, "Format", &ntfs()).0;
        assert_eq!(read_only(false), 0);
        assert_eq!(refused, 43006);
    }),
    Fact::new("WMI-VOL-02", |node| {
        let raw = node.volume(VolumeKind::SmallRaw);
        begin_format(node, raw);
        let path = one(node, &volume_query(raw)).path;
        assert_eq!(call(node, &path, "Format", &ntfs()).0, 40001);
    }),
    Fact::new("WMI-VOL-04", |node| {
        let path = volume(node, node.volume(VolumeKind::Ntfs)).path;
        assert_eq!(call(node, &path, "Flush", &[]).0, 0);
    }),
    Fact::new("WMI-VOL-05", |node| {
        let raw = node.volume(VolumeKind::Raw);
        let before = volume(node, raw);
        assert_ne!(before.text("FileSystem"), Some("NTFS"));
        assert_eq!(call(node, &before.path, "Format", &ntfs()).0, 0);
        assert_eq!(volume(node, raw).text("FileSystem"), Some("NTFS"));
    }),
    Fact::new("WMI-VOL-06", |node| {
        let system = spare_system_disk(node);
        settle(node);
        let wql = format!(
            "SELECT * FROM MSFT_Partition WHERE DiskNumber = {} AND IsBoot = TRUE",
            system.number
        );
        let partitions = select(node, Namespace::Storage, &wql);
        let boot = partitions
            .into_iter()
            .max_by_key(|partition| partition.u64("Size"))
            .expect("the boot partition");
        let wql = format!(
            "ASSOCIATORS OF {{{}}} WHERE AssocClass = MSFT_PartitionToVolume",
            boot.path
        );
        assert_eq!(
            call(node, &one(node, &wql).path, "Format", &ntfs()).0,
            42010
        );
    }),
    Fact::new("WMI-VOL-09", |node| {
        let raw = node.disk(DiskKind::Raw);
        let path = initialized(node, raw);
        partition(node, &path, 64 * MIB, 256 * MIB);
        let created = partition_near(node, raw, 64 * MIB).path;
        node.os().clock().sleep(Duration::from_secs(10));
        let wql = format!("ASSOCIATORS OF {{{created}}} WHERE AssocClass = MSFT_PartitionToVolume");
        assert_eq!(call(node, &one(node, &wql).path, "Format", &ntfs()).0, 0);
    }),
    Fact::new("WMI-VOL-10", |node| {
        let raw = node.volume(VolumeKind::SmallRaw);
        begin_format(node, raw);
        let mut refusals = 0;
        let opened = loop {
            match raw.open(node.os(), Access::GENERIC_READ) {
                Ok(opened) => break opened,
                Err(code) => assert!(
                    [OsError::ACCESS_DENIED, OsError::NOT_READY].contains(&code),
                    "{code}"
                ),
            }
            refusals += 1;
            assert!(refusals < 1000, "the format does not end");
            node.os().clock().sleep(Duration::from_millis(100));
        };
        assert!(refusals > 0, "the volume was open to others");
        assert_eq!(
            file_system(&*opened).as_deref(),
            Ok("NTFS"),
            "the format had ended"
        );
    }),
    Fact::new("WMI-VOL-11", |node| {
        let raw = node.volume(VolumeKind::Raw);
        let path = volume(node, raw)
            .text("Path")
            .map(str::to_owned)
            .expect("the path");
        let volumes = node.os().volumes().expect("the volumes");
        assert!(
            volumes
                .iter()
                .any(|volume| volume.to_string_lossy() == path),
            "{path}"
        );
    }),
    Fact::new("WMI-VOL-12", |node| {
        let raw = node.volume(VolumeKind::Raw);
        let path = volume(node, raw).path;
        let format = |kind: &str, unit| {
            let arguments = [
                ("FileSystem", text(kind)),
                ("AllocationUnitSize", Value::U32(unit)),
                ("Force", Value::Bool(true)),
            ];
            call(node, &path, "Format", &arguments).0
        };
        for (kind, unit) in [
            ("NTFS", 65536),
            ("NTFS", 2 << 20),
            ("ReFS", 65536),
            ("ReFS", 4096),
        ] {
            assert_eq!(format(kind, unit), 0, "{kind} {unit}");
            let opened = raw
                .open(node.os(), Access::GENERIC_READ)
                .expect("the volume opens");
            assert_eq!(file_system(&*opened).as_deref(), Ok(kind));
            let size = full_size(&*opened).expect("the size");
            assert_eq!(
                size.sectors_per_unit * size.bytes_per_sector,
                unit,
                "{kind}"
            );
        }
        assert_eq!(format("ReFS", 8192), 43000);
    }),
    Fact::new("WMI-VOL-13", |node| {
        let raw = node.volume(VolumeKind::Raw);
        assert_eq!(call(node, &volume(node, raw).path, "Format", &ntfs()).0, 0);
        let how = Open::existing(
            Access::READ_CONTROL | Access::WRITE_DAC,
            Options::DIRECTORY | Options::REPARSE_POINT,
        );
        let root = node
            .os()
            .open(&NtPath::volume_root(raw.id), &how)
            .expect("the root opens");
        let entries = root
            .security_descriptor()
            .expect("the descriptor")
            .entries
            .expect("a list");
        let granted = |right: u32| {
            let on_root = entries
                .iter()
                .filter(|entry| entry.flags & ENTRY_INHERIT_ONLY == 0);
            on_root
                .filter(|entry| entry.rights & right != 0)
                .map(|entry| entry.sid.to_string())
                .collect::<Vec<_>>()
        };
        let mut writers = granted(FILE_WRITE_DATA);
        writers.sort_unstable();
        assert_eq!(
            writers,
            ["S-1-5-18", "S-1-5-32-544"],
            "LocalSystem and Administrators"
        );
        assert!(
            granted(FILE_APPEND_DATA).contains(&"S-1-5-32-545".to_owned()),
            "Users may create directories"
        );
        assert_eq!(root.set_access_list(&entries), Ok(()));
    }),
    Fact::new("WMI-VOL-14", |node| {
        let formatted = node.volume(VolumeKind::Ntfs);
        let file = format!("{}file", formatted.guid_path().display());
        node.write_file(&file, b"content");
        let path = volume(node, formatted).path;
        let arguments = [
            ("FileSystem", text("NTFS")),
            ("Full", Value::Bool(false)),
            ("Force", Value::Bool(false)),
        ];
        let how = Open::existing(Access::READ_DATA, Options::empty());
        let nt = NtPath::volume_root(formatted.id).join(&U16String::from_str("file"));
        let opened = node.os().open(&nt, &how).expect("the file opens");
        assert_eq!(call(node, &path, "Format", &arguments).0, 40001);
        assert_eq!(opened.read(0, &mut [0; 16]), Ok(7), "the file is unharmed");
        drop(opened);
        assert_eq!(call(node, &path, "Format", &arguments).0, 0);
        assert_eq!(
            node.os().open(&nt, &how).err(),
            Some(OsError::FILE_NOT_FOUND)
        );
    }),
    Fact::new("WMI-VOL-15", |node| {
        let formatted = node.volume(VolumeKind::Ntfs);
        let serial = || {
            let root = formatted
                .open_root(node.os(), Access::READ_ATTRIBUTES)
                .expect("the root opens");
            id(&*root).volume_serial_number
        };
        let before = serial();
        assert_eq!(serial(), before);
        let path = volume(node, formatted).path;
        assert_eq!(call(node, &path, "Format", &ntfs()).0, 0);
        assert_ne!(serial(), before);
    }),
];

fn ntfs() -> [(&'static str, Value); 3] {
    [
        ("FileSystem", text("NTFS")),
        ("Full", Value::Bool(false)),
        ("Force", Value::Bool(true)),
    ]
}

/// Begins to format a volume and returns without waiting for the end.
fn begin_format(node: &dyn TestNode, wanted: TestVolume) {
    let path = volume(node, wanted).path;
    let arguments = [
        ("FileSystem", text("NTFS")),
        ("Full", Value::Bool(true)),
        ("Force", Value::Bool(true)),
    ];
    let call = MethodCall::new(Namespace::Storage, &path, "Format", &arguments);
    let soon = node.os().clock().now() + Duration::from_millis(500);
    if let CallStatus::Done(returned) = node
        .os()
        .wmi()
        .call(&call, soon)
        .expect("the format begins")
    {
        assert_eq!(returned.code, 0);
        missing("a volume whose format takes longer than half a second");
    }
}
