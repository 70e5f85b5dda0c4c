//! The operations on disks.

use std::collections::BTreeMap;

use os::abi::{DiskAttributes, STORAGE_PORT_INTERFACE};
use os::{Access, Namespace, OsError};

use crate::error::{OperationError, OperationResult};
use crate::executor::context::{OperationContext, PoolKind};
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::types::{DiskIds, DiskLocation, DiskNumber};
use crate::windows::disk_device::{self, Disk};
use crate::windows::disk_identifiers;
use crate::windows::error_class::ErrorClass;
use crate::windows::partition_table::PartitionTable;
use crate::windows::{msft_storage, volume_device, wmi};

/// Where the disks are attached. What is attached to no adapter, such as a mounted VHDX, is left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListDiskLocations;

impl Operation for ListDiskLocations {
    type Output = BTreeMap<DiskNumber, DiskLocation>;
    const NAME: &'static str = "ListDiskLocations";
    const POOL: PoolKind = PoolKind::Wmi;

    fn describe(&self) -> String {
        "list the locations of disks".into()
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<Self::Output> {
        // Only the provider's words for a location are known to be what drivers compare with.
        let disks = wmi::query(&node.host, Namespace::Storage, "SELECT Number, Location FROM MSFT_Disk")?;
        let located =
            |disk: &os::Instance| Some((DiskNumber(disk.u32("Number")?), DiskLocation::parse(disk.text("Location")?)?));
        Ok(disks.iter().filter_map(located).collect())
    }
}

/// The identifiers of all disks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListDiskIds;

impl Operation for ListDiskIds {
    type Output = BTreeMap<DiskNumber, DiskIds>;
    const NAME: &'static str = "ListDiskIDs";
    const POOL: PoolKind = PoolKind::Disks;

    fn describe(&self) -> String {
        "list the identifiers of disks".into()
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<Self::Output> {
        Ok(identified(disk_device::all(&node.host)?.0).0)
    }
}

/// The identifiers of disks, and the first error with which one of them did not tell its own.
fn identified(disks: Vec<Disk>) -> (BTreeMap<DiskNumber, DiskIds>, Option<OsError>) {
    let (mut ids, mut failed) = (BTreeMap::new(), None);
    for disk in disks {
        let page83 = disk_identifiers::page83(&*disk.handle);
        match page83.and_then(|page83| Ok(DiskIds { page83, serial: disk_identifiers::serial(&*disk.handle)? })) {
            Ok(found) => drop(ids.insert(disk.number, found)),
            Err(code) => {
                tracing::warn!(disk = disk.number.0, %code, "a disk without identifiers is left out");
                failed = failed.or(Some(code));
            }
        }
    }
    (ids, failed)
}

/// The number of the disk whose page-83 identifier is a name, or ends with it as its last word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetDiskNumberByName {
    /// The name, without blanks.
    pub name: String,
}

impl Operation for GetDiskNumberByName {
    type Output = DiskNumber;
    const NAME: &'static str = "GetDiskNumberByName";
    const POOL: PoolKind = PoolKind::Disks;

    fn describe(&self) -> String {
        format!("find the disk {:?}", crate::excerpt(&self.name))
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<DiskNumber> {
        if self.name.trim().is_empty() {
            return Err(OperationError::invalid("the name is empty"));
        }
        let named = |ids: &DiskIds| ids.page83 == self.name || ids.page83.split_whitespace().last() == Some(&self.name);
        let (disks, unopened) = disk_device::all(&node.host)?;
        let (ids, unread) = identified(disks);
        let found: Vec<_> = ids.iter().filter(|(_, ids)| named(ids)).map(|(number, _)| *number).collect();
        match found[..] {
            [number] => Ok(number),
            [] => Err(match unopened.or(unread) {
                // It may be the one.
                Some(code) => OperationError::of(code, "no disk is known to have that name, and one could not be read"),
                None => OperationError::not_found("no disk has that name"),
            }),
            [..] => {
                let list: Vec<_> = found.iter().map(|number| number.0.to_string()).collect();
                Err(OperationError::precondition(format!("the disks {} all have that name", list.join(", "))))
            }
        }
    }
}

/// The size of a disk in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetDiskStats {
    /// The disk, which may be offline.
    pub disk: DiskNumber,
}

impl Operation for GetDiskStats {
    type Output = u64;
    const NAME: &'static str = "GetDiskStats";
    const POOL: PoolKind = PoolKind::Disks;

    fn describe(&self) -> String {
        format!("read the size of {}", self.disk)
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<u64> {
        // Whoever may not read the disk may still ask the device.
        let disk = Disk::open(&node.host, self.disk, Access::GENERIC_READ)
            .or_else(|_| Disk::open(&node.host, self.disk, Access::empty()))?;
        Ok(disk.size()?)
    }
}

/// Whether a disk is online.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetDiskState {
    /// The disk.
    pub disk: DiskNumber,
}

impl Operation for GetDiskState {
    type Output = bool;
    const NAME: &'static str = "GetDiskState";
    const POOL: PoolKind = PoolKind::Disks;

    fn describe(&self) -> String {
        format!("read the state of {}", self.disk)
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<bool> {
        Ok(!Disk::open(&node.host, self.disk, Access::empty())?.is_offline()?)
    }
}

/// Brings a disk online and makes it writable, or takes it offline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetDiskState {
    /// The disk.
    pub disk: DiskNumber,
    /// Online and writable, or offline.
    pub online: bool,
}

impl Operation for SetDiskState {
    type Output = ();
    const NAME: &'static str = "SetDiskState";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        let state = if self.online { "bring online" } else { "take offline" };
        format!("{state} {}", self.disk)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![LockKey::Disk(self.disk.0)])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let disk = Disk::open(&node.host, self.disk, Access::GENERIC_READ | Access::GENERIC_WRITE)?;
        if !self.online {
            refuse_own_disk(node, self.disk)?;
        }
        set_state(node, ctx, &disk, self.online)?;
        if self.online && !volume_device::wait_for_all(&node.host, &disk)? {
            tracing::warn!(disk = self.disk.0, "its volumes have not arrived");
        }
        Ok(())
    }
}

/// Refuses the disk that the node itself lives on, whose number is also what a request without one has.
fn refuse_own_disk(node: &Node, disk: DiskNumber) -> OperationResult<()> {
    for volume in node.directories.volumes(node.host.os())? {
        // One that lies on several disks is on none that a driver could have attached.
        if volume_device::disk_of(&node.host, volume).is_ok_and(|own| own == disk) {
            return Err(OperationError::new(crate::Kind::PermissionDenied, "it holds a volume of the node itself"));
        }
    }
    Ok(())
}

/// Gives a disk the state asked for, if it has another.
fn set_state(node: &Node, ctx: &OperationContext, disk: &Disk, online: bool) -> OperationResult<()> {
    use DiskAttributes as Bits;
    let reached = |attributes: u64| {
        if online { attributes & (Bits::OFFLINE | Bits::READ_ONLY) == 0 } else { attributes & Bits::OFFLINE != 0 }
    };
    let attributes = disk.attributes()?;
    if reached(attributes) {
        return Ok(());
    }
    ctx.begin_mutation()?;
    let changed = if online {
        // Writable first: an online disk that is still read-only would mount its volumes read-only.
        let writable = attributes & Bits::READ_ONLY == 0;
        let cleared = if writable { Ok(()) } else { disk.set_attributes(0, Bits::READ_ONLY) };
        cleared.and_then(|()| disk.set_attributes(0, Bits::OFFLINE))
    } else {
        disk.set_attributes(Bits::OFFLINE, Bits::OFFLINE)
    };
    if changed.is_ok() && reached(disk.attributes()?) {
        return Ok(());
    }
    if let Err(code) = changed
        && ErrorClass::DeviceRemoved.contains(code)
    {
        return Err(code.into());
    }
    // The driver does not do it, or a cluster or a disk with the same id stands against it: the provider knows.
    msft_storage::set_online(&node.host, ctx, disk, online)?;
    if reached(disk.attributes()?) {
        return Ok(());
    }
    Err(OperationError::precondition("Windows says that it is done, but the disk has not changed"))
}

/// Makes sure that a disk has a partition for data: a GUID partition table on a disk without any table, one basic
/// data partition where there is none. A disk that is partitioned is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionDisk {
    /// The disk.
    pub disk: DiskNumber,
}

impl Operation for PartitionDisk {
    type Output = ();
    const NAME: &'static str = "PartitionDisk";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("partition {}", self.disk)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![LockKey::Disk(self.disk.0)])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let disk = Disk::open(&node.host, self.disk, Access::GENERIC_READ | Access::GENERIC_WRITE)?;
        match disk.partition_table()? {
            layout if layout.is_partitioned() => {}
            PartitionTable::Mbr(_) => {
                return Err(OperationError::precondition(
                    "it has an MBR without partitions, and no table is ever replaced",
                ));
            }
            PartitionTable::Raw => {
                ctx.require_pool(PoolKind::Wmi)?;
                set_state(node, ctx, &disk, true)?;
                msft_storage::initialize(&node.host, ctx, &disk)?;
                Self::add_partition(node, ctx, &disk)?;
            }
            PartitionTable::Gpt(_) => {
                ctx.require_pool(PoolKind::Wmi)?;
                set_state(node, ctx, &disk, true)?;
                Self::add_partition(node, ctx, &disk)?;
            }
        }
        // The caller lists the volumes next, and does not ask twice. Those of an offline disk come with its state.
        if disk.is_offline()? || volume_device::wait_for_all(&node.host, &disk)? {
            return Ok(());
        }
        bring_volumes(node, ctx, &disk)
    }
}

/// Brings those volumes online that have not come by themselves. One that does not come then either is not this
/// operation's to judge: the disk is partitioned.
fn bring_volumes(node: &Node, ctx: &OperationContext, disk: &Disk) -> OperationResult<()> {
    let layout = disk.partition_table()?;
    let volumes = volume_device::on_disk(&node.host, disk.number, layout.partitions())?;
    for partition in layout.data().filter(|part| !volumes.iter().any(|(offset, _)| *offset == part.offset)) {
        msft_storage::bring_volume_online(&node.host, ctx, disk, partition)?;
    }
    if !volume_device::wait_for_all(&node.host, disk)? {
        tracing::warn!(disk = disk.number.0, "not all of its partitions have a volume");
    }
    Ok(())
}

impl PartitionDisk {
    fn add_partition(node: &Node, ctx: &OperationContext, disk: &Disk) -> OperationResult<()> {
        disk.update()?;
        // Somebody else may have been faster, whom our lock does not hold.
        if disk.partition_table()?.is_partitioned() {
            return Ok(());
        }
        msft_storage::create_partition(&node.host, ctx, disk)?;
        disk.update()?;
        let made = node
            .host
            .poll(node.host.timeouts().arrival, || Ok(disk.partition_table()?.is_partitioned().then_some(())))?;
        made.ok_or_else(|| OperationError::precondition("Windows says that the partition is made, but there is none"))
    }
}

/// Looks for disks that have come, gone or grown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rescan;

impl Operation for Rescan {
    type Output = ();
    const NAME: &'static str = "Rescan";
    const POOL: PoolKind = PoolKind::Wmi;
    // A search under way may have passed by already where the caller's disk has come.
    const COALESCE: Coalesce = Coalesce::Queued;

    fn describe(&self) -> String {
        "look for new disks".into()
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![LockKey::Devices])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        ctx.begin_mutation()?;
        for port in node.host.os().device_interfaces(STORAGE_PORT_INTERFACE)? {
            if let Err(code) = node.host.os().reenumerate(&port) {
                tracing::warn!(port = %port.display(), %code, "a storage port cannot be searched");
            }
        }
        for disk in disk_device::all(&node.host)?.0 {
            match disk.update() {
                Err(code) if !ErrorClass::DeviceRemoved.contains(code) => {
                    tracing::warn!(disk = disk.number.0, %code, "a disk cannot be looked at again");
                }
                _ => {}
            }
        }
        // Our own changes and an administrator's PowerShell go by the provider's cache.
        msft_storage::refresh_all(&node.host, ctx)
    }
}
