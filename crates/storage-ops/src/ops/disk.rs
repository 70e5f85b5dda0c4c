//! Operations on disks.

mod online;
mod partition;
pub(crate) mod partitioned;

use std::collections::BTreeMap;
use std::time::Duration;

use os::abi::STORAGE_PORT_INTERFACE;
use os::{Namespace, OsError};

use crate::devices::{Disk, disk_identifiers};
use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition, quoted};
use crate::error_class::{ErrorClass, HRESULT_FAILURE};
use crate::executor::operation::{Coalesce, Operation};
use crate::node::run::Run;
use crate::provider::instances::refresh_all;
use crate::provider::{report, wmi};
use crate::readings::all_disks::UnreadDisk;
use crate::readings::{self, all_disks, node_volumes};
use crate::scheduling::{LockKey, PoolKind, Resource};
use crate::sync::lock;
use crate::types::{DiskIds, DiskLocation, DiskNumber, check_text};
use crate::windows::{Device, Fallback};

use online::{bring_volumes_online, set_state, wait_for_volumes_online};
pub use partition::PartitionDisk;

/// How long a storage port may take to be scanned. One that hangs must not stop all scans.
const PORT_PATIENCE: Duration = Duration::from_secs(30);

/// Lists the locations of the disks. Leaves out disks that are not attached to an adapter, such as
/// a mounted VHDX.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListDiskLocations;

impl Operation for ListDiskLocations {
    type Output = BTreeMap<DiskNumber, DiskLocation>;
    const NAME: &'static str = "ListDiskLocations";
    const POOL: PoolKind = PoolKind::Wmi;

    fn describe(&self) -> String {
        "list the locations of the disks".into()
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<Self::Output> {
        // Drivers compare locations in the format of the storage provider, so they are not read
        // from the devices.
        let disks = wmi::query(
            run,
            Namespace::Storage,
            "SELECT Number, Location FROM MSFT_Disk",
        )?;
        let found: Self::Output = disks
            .iter()
            .filter_map(|disk| {
                Some((
                    DiskNumber(disk.u32("Number")?),
                    DiskLocation::parse(disk.text("Location")?)?,
                ))
            })
            .collect();
        let mut named = lock(&run.node().named_without_lun);
        let without_lun: Vec<u32> = found
            .iter()
            .filter(|(disk, location)| location.lun.is_empty() && named.insert(**disk))
            .map(|(disk, _)| disk.0)
            .collect();
        if !without_lun.is_empty() {
            tracing::warn!(
                disks = ?without_lun,
                "Windows shows no LUN for disks, as on NVMe: a driver that looks for its disk by \
                 LUN does not find it; in Azure, azuredisk does as a HostProcess container"
            );
        }
        Ok(found)
    }
}

/// Lists the identifiers of all disks. Leaves out a disk that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListDiskIds;

impl Operation for ListDiskIds {
    type Output = BTreeMap<DiskNumber, DiskIds>;
    const NAME: &'static str = "ListDiskIDs";
    const POOL: PoolKind = PoolKind::Disks;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::AllDisks)
    }

    fn describe(&self) -> String {
        "list the identifiers of the disks".into()
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<Self::Output> {
        let mut found = read_ids(run).await?;
        for (number, code) in found.without_serial {
            let serial = run
                .or_fallback(Fallback::SerialNumber, Err(code.into()), || {
                    report::serial_number(run, number)
                })
                .await;
            // The disk may lack a page 83 identifier too, and then has no entry yet.
            if let Ok(serial) = serial {
                found.ids.entry(number).or_default().serial = serial;
            }
        }
        Ok(found.ids)
    }
}

/// The identifiers of disks.
#[derive(Default)]
struct ReadIds {
    /// The identifiers that could be read.
    ids: BTreeMap<DiskNumber, DiskIds>,
    /// The disks whose devices did not return a serial number, and why.
    without_serial: Vec<(DiskNumber, OsError)>,
    /// The disks that could not be opened, or whose page 83 identifier could not be read.
    without_page83: Vec<UnreadDisk>,
    /// The code of a disk that was removed meanwhile.
    removed: Option<OsError>,
}

/// Reads the identifiers of all disks. If only one identifier of a disk can be read, the result has
/// that one: some drivers need only one. Leaves out removed disks.
async fn read_ids(run: Run<'_>) -> OperationResult<ReadIds> {
    let (disks, unread) = all_disks::read(run, |_, disk| {
        (
            disk_identifiers::page83(&*disk.handle),
            disk_identifiers::serial(&*disk.handle),
        )
    })
    .await?;
    let mut found = ReadIds {
        without_page83: unread,
        ..ReadIds::default()
    };
    for (number, (page83, serial)) in disks {
        let no_serial = serial.as_ref().err().copied();
        let serial = serial.or_else(disk_identifiers::none_if_unsupported);
        let errors = [
            page83.as_ref().err().copied(),
            serial.as_ref().err().copied(),
        ];
        let mut errors = errors.into_iter().flatten().peekable();
        if let Some(code) = errors.next_if(|code| ErrorClass::DeviceRemoved.contains(*code)) {
            found.removed = found.removed.or(Some(code));
            continue;
        }
        if let Some(code) = errors.next() {
            tracing::warn!(disk = number.0, %code, "not all identifiers of a disk could be read");
        }
        found
            .without_page83
            .extend(page83.as_ref().err().map(|code| UnreadDisk {
                device: Device::Disk(number),
                code: *code,
            }));
        found
            .without_serial
            .extend(no_serial.map(|code| (number, code)));
        if page83.is_ok() || serial.is_ok() {
            let ids = DiskIds {
                page83: page83.unwrap_or_default(),
                serial: serial.unwrap_or_default(),
            };
            found.ids.insert(number, ids);
        }
    }
    Ok(found)
}

/// Returns whether a disk that could not be read is known to be one of the node itself. The number
/// of a disk that was never opened is not known.
fn is_of_node(run: Run<'_>, disk: &UnreadDisk) -> bool {
    match disk.device {
        Device::Disk(number) => node_volumes::has_volume_of_node(run.node(), number) == Ok(true),
        _ => false,
    }
}

/// Finds another disk with the page 83 identifier of a disk or, if that has none, with its serial
/// number. An error says why that cannot be determined.
async fn with_same_identifier(
    run: Run<'_>,
    number: DiskNumber,
) -> OperationResult<Option<DiskNumber>> {
    let found = read_ids(run)
        .await
        .map_err(|error| error.in_context("the identifiers of the disks cannot be read"))?;
    let own = found.ids.get(&number).cloned().unwrap_or_default();
    let is_serial = own.page83.trim().is_empty();
    let identifier = |ids: &DiskIds| {
        let text = if is_serial { &ids.serial } else { &ids.page83 };
        text.trim().to_owned()
    };
    let wanted = identifier(&own);
    let mut others = found.ids.iter().filter(|(other, _)| **other != number);
    let same = others.find(|(_, ids)| !wanted.is_empty() && identifier(ids) == wanted);
    if let Some((other, _)) = same {
        return Ok(Some(*other));
    }
    let without_page83 = found
        .without_page83
        .iter()
        .find(|disk| !is_of_node(run, disk))
        .map(|disk| (disk.device.to_string(), disk.code));
    let without_serial = found
        .without_serial
        .iter()
        .find(|(_, code)| is_serial && !ErrorClass::Unsupported.contains(*code))
        .map(|(disk, code)| (disk.to_string(), *code));
    match without_page83.or(without_serial) {
        Some((disk, code)) => Err(OperationError::of(
            code,
            format!("the identifier of {disk} cannot be read"),
        )),
        None if wanted.is_empty() => {
            let reason = "the disk has no identifier that would show a second path to it";
            Err(match found.removed {
                Some(code) => OperationError::of(code, reason),
                None => OperationError::precondition(reason),
            })
        }
        None => Ok(None),
    }
}

/// Finds the disk whose page 83 identifier, or the last word of the identifier, equals a name.
/// Fails while any disk cannot be read, except the disks of the node itself and removed disks: the
/// unreadable disk may be the requested one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetDiskNumberByName {
    /// The name, without spaces.
    pub name: String,
}

impl Operation for GetDiskNumberByName {
    type Output = DiskNumber;
    const NAME: &'static str = "GetDiskNumberByName";
    const POOL: PoolKind = PoolKind::Disks;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::AllDisks)
    }

    fn describe(&self) -> String {
        format!("find the disk named {}", quoted(&self.name))
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<DiskNumber> {
        check_text(&self.name, "the name")?;
        if self.name.trim().is_empty() {
            return Err(OperationError::invalid("the name is empty"));
        }
        let ReadIds {
            ids,
            without_page83,
            removed,
            ..
        } = read_ids(run).await?;
        // No driver asks for a disk of the node itself.
        let unread = without_page83
            .into_iter()
            .find(|disk| !is_of_node(run, disk));
        let found: Vec<_> = ids
            .iter()
            .filter(|(_, ids)| {
                ids.page83 == self.name || ids.page83.split_whitespace().last() == Some(&self.name)
            })
            .map(|(number, _)| *number)
            .collect();
        match (&found[..], unread) {
            ([number], None) => Ok(*number),
            ([], None) => Err(match removed {
                Some(code) => {
                    OperationError::of(code, "no disk has that name, and one was removed")
                }
                None => OperationError::not_found("no disk has that name"),
            }),
            ([] | [_], Some(disk)) => {
                let reason = format!("{} may have that name, but cannot be read", disk.device);
                // A disk that is slow may answer the next request.
                let is_late = disk.code == OsError::SEM_TIMEOUT;
                let kind = if is_late {
                    ErrorKind::Unavailable
                } else {
                    ErrorKind::FailedPrecondition
                };
                Err(OperationError::of(disk.code, reason).with_kind(kind))
            }
            ([..], _) => {
                let list: Vec<_> = found.iter().map(|number| number.0.to_string()).collect();
                failed_precondition(format!(
                    "the disks {} have that name; it must be unique",
                    list.join(", ")
                ))
            }
        }
    }
}

/// Queries the size of a disk in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetDiskStats {
    /// The disk, which may be offline.
    pub disk: DiskNumber,
}

impl Operation for GetDiskStats {
    type Output = u64;
    const NAME: &'static str = "GetDiskStats";
    const POOL: PoolKind = PoolKind::Disks;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Disk(self.disk))
    }

    fn describe(&self) -> String {
        format!("query the size of {}", self.disk)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<u64> {
        readings::disk::size_by_number(run, self.disk).await
    }
}

/// Queries whether a disk is online.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetDiskState {
    /// The disk.
    pub disk: DiskNumber,
}

impl Operation for GetDiskState {
    type Output = bool;
    const NAME: &'static str = "GetDiskState";
    const POOL: PoolKind = PoolKind::Disks;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Disk(self.disk))
    }

    fn describe(&self) -> String {
        format!("query the state of {}", self.disk)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<bool> {
        Ok(!readings::disk::is_offline_by_number(run, self.disk).await?)
    }
}

/// Brings a disk online and makes it writable, or takes it offline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetDiskState {
    /// The disk.
    pub disk: DiskNumber,
    /// Whether to bring the disk online and make it writable, or to take it offline.
    pub online: bool,
}

impl Operation for SetDiskState {
    type Output = ();
    const NAME: &'static str = "SetDiskState";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Disk(self.disk))
    }

    fn describe(&self) -> String {
        if self.online {
            format!("bring {} online", self.disk)
        } else {
            format!("take {} offline", self.disk)
        }
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Disk(self.disk)]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let disk = Disk::hold(run.os(), self.disk)?;
        if !self.online {
            node_volumes::refuse_disk(run.node(), self.disk)?;
            return set_state(run, &disk, false).await;
        }
        let volumes = wait_for_volumes_online(run, &disk).await?;
        match bring_volumes_online(run, &disk, &volumes).await {
            // The disk is online, and the provider has answered that a missing volume cannot be.
            // Drivers list the volumes next, which reports those that are missing. What WMI itself
            // cannot do may succeed later.
            Err(error)
                if error.kind != ErrorKind::StillRunning
                    && error.code.is_none_or(|code| code.0 < HRESULT_FAILURE)
                    && !readings::volume::have_arrived(&volumes) =>
            {
                tracing::warn!(
                    disk = self.disk.0, %error,
                    "the volumes of the disk could not be brought online"
                );
                Ok(())
            }
            outcome => outcome,
        }
    }
}

/// Scans for disks that were attached, removed or resized.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rescan;

impl Operation for Rescan {
    type Output = ();
    const NAME: &'static str = "Rescan";
    const POOL: PoolKind = PoolKind::Wmi;
    // A scan that is running may have missed the disk of this caller.
    const COALESCE: Coalesce = Coalesce::Queued;

    fn describe(&self) -> String {
        "rescan for disks".into()
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Rescan]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        run.begin_mutation()?;
        // A single error may be transient. A port that cannot be scanned may always fail, and has
        // no disk for this caller.
        let listed = run
            .os()
            .device_interfaces(STORAGE_PORT_INTERFACE)
            .or_else(|_| run.os().device_interfaces(STORAGE_PORT_INTERFACE));
        let mut scanned = 0;
        let mut first_error = listed.as_ref().err().copied();
        let ports = listed
            .unwrap_or_default()
            .into_iter()
            .map(|port| (Device::Port(port.clone()), port));
        let answers = run
            .windows()
            .query_each_for(PORT_PATIENCE, ports, |os, port, _| {
                os.reenumerate(&port).or_else(|_| os.reenumerate(&port))
            });
        for (port, answer) in answers {
            match answer.unwrap_or(Err(OsError::SEM_TIMEOUT)) {
                Ok(()) => scanned += 1,
                Err(code) => {
                    tracing::warn!(%port, %code, "a storage port could not be scanned");
                    first_error = first_error.or(Some(code));
                }
            }
        }
        // A mounted file, such as the scratch space of a container, does not grow.
        let (updated, _) = all_disks::read(run, |_, disk| {
            if disk_identifiers::is_file_backed(&*disk.handle) {
                Ok(())
            } else {
                disk.update()
            }
        })
        .await?;
        for (number, updated) in updated {
            match updated {
                Err(code) if !ErrorClass::DeviceRemoved.contains(code) => {
                    tracing::warn!(
                        disk = number.0, %code,
                        "the properties of a disk could not be updated"
                    );
                }
                _ => {}
            }
        }
        // The storage provider and the PowerShell cmdlets use a cache, which must be refreshed
        // after the change.
        refresh_all(run)?;
        match first_error {
            Some(code) if scanned == 0 => {
                let error = OperationError::of(code, "no storage port could be scanned");
                // A port that is late may answer the next request.
                let kind = if code == OsError::SEM_TIMEOUT {
                    ErrorKind::Unavailable
                } else {
                    error.kind
                };
                Err(error.with_kind(kind))
            }
            _ => Ok(()),
        }
    }
}
