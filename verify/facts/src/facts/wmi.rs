//! WMI and the storage provider as a whole: `WMI-JOB`, `WMI-CACHE`, `WMI-CODE` and `WMI-QUERY`.

use std::sync::mpsc;
use std::time::Duration;

use os::{CallStatus, MethodCall, Namespace, OsError, Value};

use super::devices::{READ_WRITE, open_disk, set_offline};
use super::provider::{
    MIB, WINE, call, disk, initialized, one, partition, partition_near, query_in, settle, text, try_call, volume,
    volume_query,
};
use crate::fact::Fact;
use crate::node::{DiskKind, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::assumed(
        "WMI-JOB-02",
        "A method continues after its caller has stopped waiting.",
        "No page says so, but nothing cancels a synchronous call. The locks of the operation are kept until the call \
         ends, and the state is read again before the next change.",
        |node| {
            let raw = node.volume(VolumeKind::Raw);
            let path = volume(node, raw).path;
            let arguments = [("FileSystem", text("NTFS")), ("Force", Value::Bool(true))];
            let format = MethodCall::new(Namespace::Storage, &path, "Format", &arguments);
            let soon = node.os().clock().now() + Duration::from_millis(100);
            let CallStatus::StillRunning(pending) = node.os().wmi().call(&format, soon).expect("the format begins")
            else {
                panic!("the format has ended within 100 ms");
            };
            let (sender, ended) = mpsc::channel();
            pending.when_ended(Box::new(move || sender.send(()).expect("the check waits")));
            node.os().clock().sleep(Duration::from_mins(1));
            ended.try_recv().expect("the method has ended");
            assert_eq!(volume(node, raw).text("FileSystem"), Some("NTFS"));
        },
    )
    .wine(WINE),
    Fact::published(
        "WMI-CACHE-01",
        "UpdateHostStorageCache, whose page lists no return value, returns 0; MSFT_Disk, MSFT_Partition and \
         MSFT_Volume then show the state of the devices.",
        "DRV UpdateHostStorageCache",
        |node| {
            let raw = node.disk(DiskKind::Raw);
            assert_eq!(disk(node, raw).u32("Number"), Some(raw.number));
            let path = initialized(node, raw, 2);
            partition(node, &path, 64 * MIB, 64 * MIB);
            let created = partition_near(node, raw, 64 * MIB);
            assert_eq!(created.u64("Size"), Some(64 * MIB));
            let wql = format!("ASSOCIATORS OF {{{}}} WHERE AssocClass = MSFT_PartitionToVolume", created.path);
            assert!(one(node, &wql).text("Path").is_some_and(|path| path.starts_with(r"\\?\Volume{")));
        },
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-CACHE-02",
        "After a change by a control code, methods of MSFT_Disk do not return 40003 once UpdateHostStorageCache was \
         called.",
        "No page says what makes the cache out of date. On 40003 the operations call UpdateHostStorageCache and try \
         once more, and return an error if it comes again.",
        |node| {
            let raw = node.disk(DiskKind::Raw);
            let device = open_disk(node, raw, READ_WRITE);
            set_offline(&*device, true);
            let path = disk(node, raw).path;
            set_offline(&*device, false);
            settle(node);
            assert_eq!(call(node, &path, "Initialize", &[]).0, 0);
        },
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-CODE-01",
        "A method of an object that does not exist, and a method that the class does not have, fail with \
         WBEM_NOT_FOUND (0x80041002).",
        "The page lists the code for objects, and that of IWbemClassObject::GetMethod for methods. No operation \
         calls a method that its class lacks; a disk or volume that was removed meanwhile is reported as not found.",
        |node| {
            let path = disk(node, node.disk(DiskKind::Raw)).path;
            let code = |path: &str, method: &str| try_call(node, path, method, &[]).err();
            assert_eq!(code(r#"MSFT_Disk.ObjectId="none""#, "Refresh"), Some(OsError::WBEM_NOT_FOUND));
            assert_eq!(code(&path, "Wipe"), Some(OsError::WBEM_NOT_FOUND));
        },
    )
    .wine(WINE),
    Fact::published(
        "WMI-CODE-02",
        "A query of a class that does not exist fails with WBEM_INVALID_CLASS (0x80041010), and one that cannot be \
         parsed with WBEM_INVALID_QUERY (0x80041017).",
        "W32 wmi-error-constants",
        |node| {
            let code = |wql: &str| query_in(node, Namespace::CimV2, wql).err();
            assert_eq!(code("SELECT * FROM Win32_Nothing"), Some(OsError::WBEM_INVALID_CLASS));
            assert_eq!(code("SELECT * FROM"), Some(OsError::WBEM_INVALID_QUERY));
        },
    ),
    Fact::assumed(
        "WMI-CODE-06",
        "A method argument that is an empty text fails with WBEM_INVALID_PARAMETER (0x80041008).",
        "The text reaches WMI as a null BSTR, and no page says what a provider makes of it. Operations leave such an \
         argument out.",
        |node| {
            let raw = node.volume(VolumeKind::Raw);
            let path = volume(node, raw).path;
            let arguments = [("FileSystem", text("NTFS")), ("FileSystemLabel", text("")), ("Force", Value::Bool(true))];
            assert_eq!(try_call(node, &path, "Format", &arguments).err(), Some(OsError::WBEM_INVALID_PARAMETER));
        },
    )
    .wine(WINE),
    Fact::published(
        "WMI-QUERY-01",
        "A query whose condition no object meets returns no object and no error.",
        "W32 querying-with-wql",
        |node| {
            let find = |condition: &str| {
                let wql = format!("SELECT * FROM Win32_BIOS WHERE {condition}");
                query_in(node, Namespace::CimV2, &wql).expect("the query is answered").len()
            };
            assert_eq!((find("Manufacturer = 'nobody'"), find("Manufacturer <> 'nobody'")), (0, 1));
        },
    ),
    Fact::published(
        "WMI-QUERY-02",
        "In a string of a query, each backslash must be doubled.",
        "W32 where-clause",
        |node| {
            let raw = node.volume(VolumeKind::Raw);
            settle(node);
            let escaped = volume_query(raw);
            assert!(escaped.contains(r"\\\\?\\Volume{"));
            assert_eq!(one(node, &escaped).text("Path"), Some(&*raw.guid_path().to_string_lossy()));
        },
    )
    .wine(WINE),
    Fact::assumed(
        "WMI-QUERY-03",
        "A query for some properties that does not name the key returns objects without a path.",
        "The page on system properties does not say when they are null. Operations name properties only in queries \
         whose paths they do not use.",
        |node| {
            let number = node.disk(DiskKind::Raw).number;
            settle(node);
            let find =
                |properties: &str| one(node, &format!("SELECT {properties} FROM MSFT_Disk WHERE Number = {number}"));
            let without = find("Number");
            assert_eq!((without.path.as_str(), without.u32("Number")), ("", Some(number)));
            assert!(find("Number, ObjectId").path.starts_with("MSFT_Disk.ObjectId="));
        },
    )
    .wine(WINE),
];
