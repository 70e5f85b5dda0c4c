//! Calls of WMI and of the storage provider that the checks of several subjects make.

use std::time::Duration;

use os::{Access, Instance, Namespace, NtPath, Open, Options, U16String, Value};

use super::network::{invoke, object_path, quoted, select};
use crate::node::{TestDisk, TestNode, TestVolume};

/// How long Windows and the provider may take to show what has changed.
const SETTLING: Duration = Duration::from_secs(5);

/// A mebibyte.
pub(crate) const MIB: u64 = 1 << 20;

/// Runs a query of the provider that finds one object.
pub(crate) fn one(node: &dyn TestNode, wql: &str) -> Instance {
    let mut found = select(node, Namespace::Storage, wql);
    assert_eq!(found.len(), 1, "{wql}");
    found.remove(0)
}

/// Calls a method of the provider and returns its return value and its output.
pub(crate) fn call(
    node: &dyn TestNode,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
) -> (u32, Instance) {
    let returned =
        invoke(node, Namespace::Storage, path, method, arguments).expect("the method is called");
    (returned.code, returned.out)
}

/// Waits until Windows and the provider show what has changed.
pub(crate) fn settle(node: &dyn TestNode) {
    node.os().clock().sleep(SETTLING);
    let (code, _) = call(node, "MSFT_StorageSetting", "UpdateHostStorageCache", &[]);
    assert_eq!(code, 0, "the cache is updated");
}

/// Returns the provider's instance of a disk for tests, whose data is up to date. Its path never
/// means another disk.
pub(crate) fn disk(node: &dyn TestNode, disk: TestDisk) -> Instance {
    settle(node);
    let found = one(
        node,
        &format!("SELECT * FROM MSFT_Disk WHERE Number = {}", disk.number),
    );
    let path = NtPath::from_win32(&U16String::from_str(found.text("Path").expect("a path")));
    let device = node.os().open(
        &path,
        &Open::existing(Access::GENERIC_READ, Options::empty()),
    );
    assert!(
        node.is_own(&*device.expect("the path opens")),
        "the disk for tests has gone"
    );
    found
}

/// Returns the path of a disk that is initialized here with a GPT.
pub(crate) fn initialized(node: &dyn TestNode, raw: TestDisk) -> String {
    let path = disk(node, raw).path;
    assert_eq!(
        call(
            node,
            &path,
            "Initialize",
            &[("PartitionStyle", Value::U32(2))]
        )
        .0,
        0
    );
    path
}

/// Creates a partition of `size` bytes at `offset` and returns the path of its instance.
pub(crate) fn partition(node: &dyn TestNode, disk: &str, offset: u64, size: u64) -> String {
    let arguments = [("Offset", number(offset)), ("Size", number(size))];
    let (code, out) = call(node, disk, "CreatePartition", &arguments);
    assert_eq!(code, 0, "the partition is created");
    created(&out)
}

/// Returns the path of the partition that `CreatePartition` returned.
pub(crate) fn created(out: &Instance) -> String {
    let Some(Value::Object(partition)) = out.get("CreatedPartition") else {
        panic!("no created partition: {out:?}")
    };
    object_path(
        "MSFT_Partition",
        "ObjectId",
        partition.text("ObjectId").expect("an identifier"),
    )
}

/// Returns the provider's instance of the partition that begins nearest to `offset` on a disk.
pub(crate) fn partition_near(node: &dyn TestNode, disk: TestDisk, offset: u64) -> Instance {
    self::disk(node, disk);
    let wql = format!(
        "SELECT * FROM MSFT_Partition WHERE DiskNumber = {}",
        disk.number
    );
    let found = select(node, Namespace::Storage, &wql);
    let distance = |partition: &Instance| {
        partition
            .u64("Offset")
            .expect("the offset")
            .abs_diff(offset)
    };
    found.into_iter().min_by_key(distance).expect("a partition")
}

/// Returns the provider's instance of a volume, whose data is up to date.
pub(crate) fn volume(node: &dyn TestNode, volume: TestVolume) -> Instance {
    settle(node);
    one(node, &volume_query(volume))
}

/// Returns the query for a volume.
pub(crate) fn volume_query(volume: TestVolume) -> String {
    format!(
        "SELECT * FROM MSFT_Volume WHERE Path = {}",
        quoted(&volume.guid_path().to_string_lossy())
    )
}

/// Returns the provider's instance of the partition that a volume for tests is on: the last one of
/// its disk.
pub(crate) fn partition_of(node: &dyn TestNode, volume: TestVolume) -> Instance {
    partition_near(
        node,
        TestDisk {
            number: volume.disk,
        },
        u64::MAX,
    )
}

/// Returns a 64-bit integer as an argument, which is text.
pub(crate) fn number(number: u64) -> Value {
    Value::Text(number.to_string())
}
