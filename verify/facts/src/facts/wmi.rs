//! WMI and the storage provider as a whole: `WMI-JOB`, `WMI-CACHE`, `WMI-CODE` and `WMI-QUERY`.

use std::sync::mpsc;
use std::time::Duration;

use os::{CallStatus, MethodCall, Namespace, OsError, Value};

use super::devices::{READ_WRITE, open_disk, set_offline};
use super::network::{invoke, query_in, select, text};
use super::provider::{
    MIB, call, disk, initialized, one, partition, partition_near, settle, volume, volume_query,
};
use crate::fact::Fact;
use crate::node::{DiskKind, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("WMI-JOB-02", |node| {
        let raw = node.volume(VolumeKind::Raw);
        let path = volume(node, raw).path;
        let arguments = [("FileSystem", text("NTFS")), ("Force", Value::Bool(true))];
        let format = MethodCall::new(Namespace::Storage, &path, "Format", &arguments);
        let soon = node.os().clock().now() + Duration::from_millis(100);
        let CallStatus::StillRunning(pending) = node
            .os()
            .wmi()
            .call(&format, soon)
            .expect("the format begins")
        else {
            panic!("the format has ended within 100 ms");
        };
        let (sender, ended) = mpsc::channel();
        pending.when_ended(Box::new(move || sender.send(()).expect("the check waits")));
        node.os().clock().sleep(Duration::from_mins(1));
        ended.try_recv().expect("the method has ended");
        assert_eq!(volume(node, raw).text("FileSystem"), Some("NTFS"));
    }),
    Fact::new("WMI-CACHE-01", |node| {
        let raw = node.disk(DiskKind::Raw);
        assert_eq!(disk(node, raw).u32("Number"), Some(raw.number));
        let path = initialized(node, raw);
        partition(node, &path, 64 * MIB, 64 * MIB);
        let created = partition_near(node, raw, 64 * MIB);
        assert_eq!(created.u64("Size"), Some(64 * MIB));
        let wql = format!(
            "ASSOCIATORS OF {{{}}} WHERE AssocClass = MSFT_PartitionToVolume",
            created.path
        );
        assert!(
            one(node, &wql)
                .text("Path")
                .is_some_and(|path| path.starts_with(r"\\?\Volume{"))
        );
    }),
    Fact::new("WMI-CACHE-02", |node| {
        let raw = node.disk(DiskKind::Raw);
        let device = open_disk(node, raw, READ_WRITE);
        set_offline(&*device, true);
        let path = disk(node, raw).path;
        set_offline(&*device, false);
        settle(node);
        assert_eq!(call(node, &path, "Initialize", &[]).0, 0);
    }),
    Fact::new("WMI-CODE-01", |node| {
        let path = disk(node, node.disk(DiskKind::Raw)).path;
        let code =
            |path: &str, method: &str| invoke(node, Namespace::Storage, path, method, &[]).err();
        assert_eq!(
            code(r#"MSFT_Disk.ObjectId="none""#, "Refresh"),
            Some(OsError::WBEM_NOT_FOUND)
        );
        assert_eq!(code(&path, "Wipe"), Some(OsError::WBEM_NOT_FOUND));
    }),
    Fact::new("WMI-CODE-02", |node| {
        let code = |wql: &str| query_in(node, Namespace::CimV2, wql).err();
        assert_eq!(
            code("SELECT * FROM Win32_Nothing"),
            Some(OsError::WBEM_INVALID_CLASS)
        );
        assert_eq!(code("SELECT * FROM"), Some(OsError::WBEM_INVALID_QUERY));
    }),
    Fact::new("WMI-CODE-06", |node| {
        let raw = node.volume(VolumeKind::Raw);
        let path = volume(node, raw).path;
        let arguments = [
            ("FileSystem", text("NTFS")),
            ("FileSystemLabel", text("")),
            ("Force", Value::Bool(true)),
        ];
        let refused = invoke(node, Namespace::Storage, &path, "Format", &arguments);
        assert_eq!(refused.err(), Some(OsError::WBEM_INVALID_PARAMETER));
    }),
    Fact::new("WMI-QUERY-01", |node| {
        let find = |condition: &str| {
            let wql = format!("SELECT * FROM Win32_BIOS WHERE {condition}");
            select(node, Namespace::CimV2, &wql).len()
        };
        assert_eq!(
            (
                find("Manufacturer = 'nobody'"),
                find("Manufacturer <> 'nobody'")
            ),
            (0, 1)
        );
    }),
    Fact::new("WMI-QUERY-02", |node| {
        let raw = node.volume(VolumeKind::Raw);
        settle(node);
        let escaped = volume_query(raw);
        assert!(escaped.contains(r"\\\\?\\Volume{"));
        assert_eq!(
            one(node, &escaped).text("Path"),
            Some(&*raw.guid_path().to_string_lossy())
        );
    }),
    Fact::new("WMI-QUERY-03", |node| {
        let number = node.disk(DiskKind::Raw).number;
        settle(node);
        let find = |properties: &str| {
            one(
                node,
                &format!("SELECT {properties} FROM MSFT_Disk WHERE Number = {number}"),
            )
        };
        let without = find("Number");
        assert_eq!(
            (without.path.as_str(), without.u32("Number")),
            ("", Some(number))
        );
        assert!(
            find("Number, ObjectId")
                .path
                .starts_with("MSFT_Disk.ObjectId=")
        );
    }),
];
