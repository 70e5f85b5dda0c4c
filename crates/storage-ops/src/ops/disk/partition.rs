//! Partitioning a disk.

use os::abi::DiskAttributes;
use os::{Access, Instance, Returned};

use crate::devices::{Disk, PartitionTable, TableStyle, file_system};
use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition};
use crate::executor::operation::{Coalesce, Operation};
use crate::node::run::Run;
use crate::ops::disk::online::{
    bring_volumes_online, set_state, wait_for_volumes_online, was_taken_offline,
};
use crate::ops::disk::partitioned::{Outcome, make_usable};
use crate::provider::instances::refresh_all;
use crate::provider::msft_storage;
use crate::readings;
use crate::readings::volume::DataVolumes;
use crate::scheduling::{LockKey, PoolKind, Resource};
use crate::types::DiskNumber;

/// Makes sure that a disk has a partition: creates a GUID partition table if the disk has no
/// partition table, and a basic data partition if it has no partition. The partitions of a
/// partitioned disk are left unchanged; the disk is brought online and made writable, unless that
/// could endanger data (`ops/disk/partitioned.rs`) or
/// [`Config::leave_partitioned_disks`](crate::Config::leave_partitioned_disks) is set.
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
        Some(Resource::Disk(self.disk))
    }

    fn describe(&self) -> String {
        format!("partition {}", self.disk)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Disk(self.disk)]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let disk = Disk::hold(run.os(), self.disk)?;
        let table = Self::known_table(run, &disk).await?;
        if !table.is_partitioned() {
            refuse_mbr(&table)?;
            let created = Self::make_partition(run, &disk, table.style).await?;
            let brought = match created {
                Some(created) => Self::bring_new_volumes_online(run, &disk, &created).await,
                None => Ok(()),
            };
            match brought {
                Err(error) if error.kind != ErrorKind::StillRunning => {
                    tracing::warn!(
                        disk = self.disk.0, %error,
                        "the new volume could not be brought online"
                    );
                }
                outcome => outcome?,
            }
            let volumes = wait_for_volumes_online(run, &disk).await?;
            return bring_volumes_online(run, &disk, &volumes).await;
        }
        // Drivers list the volumes next, without a retry. The volumes of an offline disk arrive
        // when it is brought online. A policy may take it offline again.
        let mut pauses = run.pauses(run.timeouts().arrival);
        let mut known_table = Some(table);
        let volumes = loop {
            if Self::is_left_offline(run, &disk).await? {
                break DataVolumes::new();
            }
            let volumes = match known_table.take() {
                Some(table) => readings::volume::volumes_of(run, disk.number, &table).await?,
                None => readings::volume::data_volumes(run, &disk).await?,
            };
            if readings::volume::have_arrived(&volumes) || !pauses.again().await {
                break volumes;
            }
        };
        bring_volumes_online(run, &disk, &volumes).await
    }
}

/// Refuses a disk with an MBR partition table, on which no GPT partition can be created.
fn refuse_mbr(table: &PartitionTable) -> OperationResult<()> {
    if !matches!(table.style, TableStyle::BlankMbr | TableStyle::Mbr) {
        return Ok(());
    }
    Err(OperationError::precondition(
        "the disk has an MBR partition table without partitions, which csi-proxy does not replace; \
         clear the disk or convert it to GPT",
    ))
}

/// Queries the partition table of a disk that may have no table. An MBR without partitions and
/// signature counts as no table if the first sectors are blank. The storage provider, too, must
/// report no partition table.
fn table_or_none(disk: &Disk) -> OperationResult<PartitionTable> {
    let mut table = disk.partition_table()?;
    if table.style == TableStyle::BlankMbr && file_system::is_blank(&*disk.handle)? {
        table.style = TableStyle::Raw;
    }
    Ok(table)
}

/// Returns whether a disk needs a partition table. Refuses a disk that has no partition table but
/// other content.
async fn needs_table(run: Run<'_>, held: &Disk) -> OperationResult<bool> {
    // Its content must be read, so the error of opening it counts.
    let disk = Disk::open(run.os(), held.number, Access::GENERIC_READ)?;
    held.check_number()?;
    // Windows may not have read the table while the disk was offline.
    disk.update()?;
    if table_or_none(&disk)?.style != TableStyle::Raw {
        return Ok(false);
    }
    refuse_content(run, &disk).await.map(|()| true)
}

/// Refuses a disk without a partition table that has the signature of a file system or container in
/// its first sectors, or that of a container or backup partition table in its last ones: a
/// partition table would overwrite it.
async fn refuse_content(run: Run<'_>, disk: &Disk) -> OperationResult<()> {
    let mut found = file_system::signature_on(&*disk.handle)
        .map_err(|code| OperationError::of(code, "the first sectors of the disk cannot be read"))?;
    if found.is_none() {
        let size = readings::disk::size(run, disk).await?;
        found = file_system::signature_at_end_of(&*disk.handle, size).map_err(|code| {
            OperationError::of(code, "the last sectors of the disk cannot be read")
        })?;
    }
    match found {
        None => Ok(()),
        Some(name) => failed_precondition(format!(
            "the disk has no partition table but the signature of {name}, which csi-proxy does not \
             overwrite; clear the disk"
        )),
    }
}

impl PartitionDisk {
    /// Returns the partition table. If Windows does not return it and the disk is offline, brings
    /// the disk online as a partitioned one and tries again: Windows may not read the table of an
    /// offline disk.
    async fn known_table(run: Run<'_>, disk: &Disk) -> OperationResult<PartitionTable> {
        let read = || table_or_none(&disk.reader(run.os())?);
        // A single error may be transient.
        let first = read().or_else(|_| read());
        let known = readings::disk::known_partition_table(run, disk.number, first).await;
        match known {
            Err(error)
                if error.kind != ErrorKind::NotFound && disk.is_offline().unwrap_or(false) =>
            {
                let attributes = readings::disk::attributes(run, disk).await?;
                match make_usable(run, disk, attributes).await? {
                    Outcome::Usable => Ok(read()?),
                    Outcome::Left(why) | Outcome::Undone(why) => {
                        let reason = format!(
                            "{}; the disk is offline and may be partitioned, and it stays offline, \
                             because {}",
                            error.reason, why.reason
                        );
                        Err(OperationError { reason, ..error })
                    }
                }
            }
            known => known,
        }
    }

    /// Brings a partitioned disk online and makes it writable, if that endangers no data. Returns
    /// whether it stays offline.
    async fn is_left_offline(run: Run<'_>, disk: &Disk) -> OperationResult<bool> {
        let mut pauses = run.pauses(run.timeouts().arrival);
        loop {
            let attributes = readings::disk::attributes(run, disk).await?;
            if attributes & (DiskAttributes::OFFLINE | DiskAttributes::READ_ONLY) == 0 {
                return Ok(false);
            }
            if !run.node().config().leave_partitioned_disks {
                match make_usable(run, disk, attributes).await? {
                    Outcome::Usable => return Ok(false),
                    Outcome::Undone(_) if pauses.again().await => continue,
                    Outcome::Undone(reason) | Outcome::Left(reason) => tracing::warn!(
                        disk = disk.number.0,
                        %reason,
                        "left a partitioned disk offline or read-only"
                    ),
                }
            }
            return readings::disk::is_offline(run, disk).await;
        }
    }

    /// Creates the partition and, on a raw disk, the partition table before. Returns what the
    /// provider returned for the partition, unless another program has created one. If a policy
    /// takes the disk offline meanwhile, brings it online and goes on.
    async fn make_partition(
        run: Run<'_>,
        disk: &Disk,
        style: TableStyle,
    ) -> OperationResult<Option<Returned>> {
        // Without WMI no change begins.
        run.enter(PoolKind::Wmi).await;
        let (mut is_raw, mut instance, mut created) = (style == TableStyle::Raw, None, None);
        let mut pauses = run.pauses(run.timeouts().arrival);
        loop {
            let attempt = async {
                if is_raw {
                    instance = Some(Self::initialize(run, disk).await?);
                    is_raw = false;
                    pauses = run.pauses(run.timeouts().arrival);
                }
                Self::add_partition(run, disk, instance.take(), &mut created).await
            };
            match attempt.await {
                Err(error) if was_taken_offline(disk, &error) => {
                    if !pauses.again().await {
                        return Err(error);
                    }
                }
                outcome => return outcome.map(|()| created),
            }
        }
    }

    /// Brings the disk online, and creates a partition table on it if it needs one. Returns the
    /// provider's instance of the disk.
    async fn initialize(run: Run<'_>, disk: &Disk) -> OperationResult<Instance> {
        set_state(run, disk, true).await?;
        run.enter(PoolKind::Wmi).await;
        match Self::initialize_once(run, disk).await {
            Err(error) if msft_storage::may_be_stale(&error) => {
                refresh_all(run)?;
                Self::initialize_once(run, disk).await
            }
            outcome => outcome,
        }
    }

    async fn initialize_once(run: Run<'_>, disk: &Disk) -> OperationResult<Instance> {
        let instance = msft_storage::instance_of(run, disk)?;
        if needs_table(run, disk).await? {
            msft_storage::initialize(run, disk, &instance)?;
        }
        Ok(instance)
    }

    /// Brings the disk online, and creates the partition unless the disk has one. Stores what the
    /// provider returned in `created`.
    async fn add_partition(
        run: Run<'_>,
        disk: &Disk,
        known: Option<Instance>,
        created: &mut Option<Returned>,
    ) -> OperationResult<()> {
        set_state(run, disk, true).await?;
        let table_now = || {
            let reader = disk.reader(run.os())?;
            reader.update()?;
            reader.partition_table()
        };
        // Another program, which our lock does not exclude, may have partitioned the disk.
        let table = table_now()?;
        if table.is_partitioned() {
            return Ok(());
        }
        refuse_mbr(&table)?;
        *created = Some(msft_storage::create_partition(run, disk, known).await?);
        let mut pauses = run.pauses(run.timeouts().arrival);
        while !table_now()?.is_partitioned() {
            if !pauses.again().await {
                return failed_precondition(
                    "Windows reported success, but no partition was found on the disk",
                );
            }
        }
        Ok(())
    }

    /// Brings the volumes of a disk that has just been partitioned online, as the Go program does,
    /// whether Windows has done that already or not.
    async fn bring_new_volumes_online(
        run: Run<'_>,
        disk: &Disk,
        created: &Returned,
    ) -> OperationResult<()> {
        let table = readings::disk::partition_table(run, &disk.reader(run.os())?).await?;
        for partition in table.data() {
            msft_storage::bring_new_volume_online(run, disk, partition, created).await?;
        }
        Ok(())
    }
}
