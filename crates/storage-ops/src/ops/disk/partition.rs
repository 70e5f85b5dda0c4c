//! Partitioning a disk.

use os::abi::DiskAttributes;
use os::{Access, Instance};

use crate::devices::disk::{Disk, PartitionTable, TableStyle};
use crate::devices::file_system;
use crate::devices::volume as volume_device;
use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::operation::{Coalesce, Operation};
use crate::host::fallback::{Fallback, SecondWay};
use crate::node::Node;
use crate::ops::disk::{bring_volumes_online, set_state, wait_for_volumes_online, while_online};
use crate::provider::msft_storage;
use crate::provider::msft_storage::report;
use crate::scheduling::context::OperationContext;
use crate::scheduling::locks::LockKey;
use crate::scheduling::pool_kind::{PoolKind, Resource};
use crate::scheduling::stop::{RunResult, Stop};
use crate::types::DiskNumber;

/// Makes sure that a disk has a partition: creates a GUID partition table if the disk has no partition table, and a
/// basic data partition if it has no partition. A partitioned disk is left unchanged.
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

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Disk(self.disk.0))
    }

    fn describe(&self) -> String {
        format!("partition {}", self.disk)
    }

    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![LockKey::Disk(self.disk.0)])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> RunResult<()> {
        let disk = Disk::hold(&node.host, self.disk)?;
        let table = self.known_table(node, ctx, &disk)?;
        if !table.is_partitioned() {
            refuse_mbr(&table)?;
            ctx.require_pool(PoolKind::Wmi)?;
            let mut instance = None;
            if table.style == TableStyle::Raw {
                while_online(node, ctx, &disk, || {
                    instance =
                        Some(msft_storage::initialize(&node.host, ctx, &disk, || needs_table(node, ctx, &disk))?);
                    Ok(())
                })?;
            }
            let mut is_new = false;
            while_online(node, ctx, &disk, || {
                is_new |= Self::add_partition(node, ctx, &disk, instance.take())?;
                Ok(())
            })?;
            let online = if is_new { Self::bring_new_volumes_online(node, ctx, &disk) } else { Ok(()) };
            match online {
                Err(Stop::Failed(error)) if error.kind != Kind::StillRunning => {
                    tracing::warn!(disk = self.disk.0, %error, "the new volume could not be brought online");
                }
                outcome => outcome?,
            }
            let volumes = wait_for_volumes_online(node, ctx, &disk)?;
            return bring_volumes_online(node, ctx, &disk, &volumes);
        }
        // Drivers list the volumes next, without a retry. The volumes of an offline disk arrive when it is brought
        // online.
        if disk.reported_attributes(&node.host, ctx)? & DiskAttributes::OFFLINE != 0 {
            return Ok(());
        }
        let mut volumes = volume_device::data_volumes(&node.host, ctx, &disk)?;
        if !volume_device::have_arrived(&volumes) {
            ctx.require_pool(PoolKind::Arrivals)?;
            volumes = volume_device::wait_for_volumes(&node.host, ctx, &disk)?;
        }
        bring_volumes_online(node, ctx, &disk, &volumes)
    }
}

/// Refuses a disk with an MBR partition table, on which no GPT partition can be created.
fn refuse_mbr(table: &PartitionTable) -> OperationResult<()> {
    if !matches!(table.style, TableStyle::BlankMbr | TableStyle::Mbr) {
        return Ok(());
    }
    Err(OperationError::precondition(
        "the disk has an MBR partition table without partitions, which csi-proxy does not replace; clear the disk or \
         convert it to GPT",
    ))
}

/// Queries the partition table of a disk that may have none. An MBR without partitions and signature counts as none if the
/// first sectors are blank. The storage provider, too, must report no partition table.
fn table_or_none(disk: &Disk) -> OperationResult<PartitionTable> {
    let mut table = disk.partition_table()?;
    if table.style == TableStyle::BlankMbr && file_system::is_blank(&*disk.handle)? {
        table.style = TableStyle::Raw;
    }
    Ok(table)
}

/// Returns whether a disk needs a partition table: it has none, and no other content either, which is refused.
fn needs_table(node: &Node, ctx: &OperationContext, held: &Disk) -> RunResult<bool> {
    // Its content must be read, so the error of opening it counts.
    let disk = Disk::open(&node.host, held.number, Access::GENERIC_READ)?;
    held.check_number()?;
    // Windows may not have read the table while the disk was offline.
    disk.update()?;
    if table_or_none(&disk)?.style != TableStyle::Raw {
        return Ok(false);
    }
    refuse_content(node, ctx, &disk).map(|()| true)
}

/// Refuses a disk without a partition table that has the signature of a file system or container in its first sectors, or that
/// of a container or backup partition table in its last ones: a partition table would overwrite it.
fn refuse_content(node: &Node, ctx: &OperationContext, disk: &Disk) -> RunResult<()> {
    let mut found = file_system::signature_on(&*disk.handle)
        .map_err(|code| OperationError::of(code, "the first sectors of the disk cannot be read"))?;
    if found.is_none() {
        let size = disk.reported_size(&node.host, ctx)?;
        found = file_system::signature_at_end_of(&*disk.handle, size)
            .map_err(|code| OperationError::of(code, "the last sectors of the disk cannot be read"))?;
    }
    match found {
        None => Ok(()),
        Some(name) => Err(OperationError::precondition(format!(
            "the disk has no partition table but the signature of {name}, which csi-proxy does not overwrite; clear the disk"
        )).into()),
    }
}

impl PartitionDisk {
    /// Returns the partition table. If Windows does not return it, partitions that the storage provider reports exist; that
    /// it reports none is no evidence. Windows may not read the table of an offline disk, which is then brought online.
    fn known_table(&self, node: &Node, ctx: &OperationContext, disk: &Disk) -> RunResult<PartitionTable> {
        let read = || table_or_none(&disk.reader(&node.host)?);
        // A single error may be transient.
        let first = read().or_else(|_| read());
        let known = node.host.or_second(SecondWay::Provider(ctx), Fallback::PartitionTable, first, || {
            let table = report::partition_table(&node.host, ctx, self.disk)?;
            if table.is_partitioned() {
                return Ok(table);
            }
            Err(OperationError::precondition("the storage provider reports no partition, which is no evidence").into())
        });
        match known {
            Err(Stop::Failed(error)) if error.kind != Kind::NotFound && disk.is_offline().unwrap_or(false) => {
                set_state(node, ctx, disk, true)?;
                Ok(read()?)
            }
            known => known,
        }
    }

    /// Creates the partition, and returns true, unless another program has partitioned the disk.
    fn add_partition(node: &Node, ctx: &OperationContext, disk: &Disk, known: Option<Instance>) -> RunResult<bool> {
        let table_now = || {
            let reader = disk.reader(&node.host)?;
            reader.update()?;
            reader.partition_table()
        };
        // Another program, which our lock does not exclude, may have partitioned the disk.
        let table = table_now()?;
        if table.is_partitioned() {
            return Ok(false);
        }
        refuse_mbr(&table)?;
        msft_storage::create_partition(&node.host, ctx, disk, known)?;
        let created = node.host.poll(node.host.timeouts().arrival, || -> OperationResult<_> {
            Ok(table_now()?.is_partitioned().then_some(()))
        })?;
        Ok(created.map(|()| true).ok_or_else(|| {
            OperationError::precondition("Windows reported success, but no partition was found on the disk")
        })?)
    }

    /// Brings the volumes of a disk that has just been partitioned online, as the Go program does, whether Windows has done
    /// that already or not.
    fn bring_new_volumes_online(node: &Node, ctx: &OperationContext, disk: &Disk) -> RunResult<()> {
        let table = disk.reader(&node.host)?.reported_table(&node.host, ctx)?;
        for partition in table.data() {
            msft_storage::bring_new_volume_online(&node.host, ctx, disk, partition)?;
        }
        Ok(())
    }
}
