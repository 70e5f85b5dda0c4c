//! Formatting a volume.

use std::time::Duration;

use os::abi::{AccessEntry, EntryKind};
use os::{Access, Open, Options, OsError};

use crate::devices::{FileSystem, volume};
use crate::error::{ErrorKind, OperationError};
use crate::error_class::ErrorClass;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::run::Run;
use crate::provider::msft_storage;
use crate::readings::{self, node_volumes};
use crate::scheduling::{LockKey, PoolKind, Resource, RunResult, caught, failed_precondition};
use crate::types::VolumeId;

/// The rights to read, create, change and delete ("modify").
const MODIFY: u32 = 0x13_01bf;

/// Files and directories inherit the entry: `OBJECT_INHERIT_ACE` and `CONTAINER_INHERIT_ACE`.
const INHERITED: u8 = 0x1 | 0x2;

/// Opens a root directory to change its access control list.
const OPEN_FOR_ACCESS_LIST: Open = Open::existing(
    Access::READ_CONTROL.union(Access::WRITE_DAC),
    Options::DIRECTORY.union(Options::REPARSE_POINT),
);

/// Formats a volume with NTFS, or as [`Config`](crate::Config) says. Succeeds without a change if
/// the volume already has NTFS or the file system of the configuration; another file system is an
/// error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FormatVolume {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for FormatVolume {
    type Output = ();
    const NAME: &'static str = "FormatVolume";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const RESOLVES_LOCKS: bool = true;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Volume(self.volume))
    }

    fn describe(&self) -> String {
        format!("format volume {}", self.volume)
    }

    fn lock_keys(&self, node: &Node) -> RunResult<Vec<LockKey>> {
        // Only devices decide what is formatted.
        Ok(vec![LockKey::Disk(volume::disk_of(
            node.windows.os(),
            self.volume,
        )?)])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        if self.needs_format(run)? {
            self.format(run)?;
        }
        grant_access(run, self.volume)
    }
}

impl FormatVolume {
    /// Creates the operation.
    pub fn new(volume: VolumeId) -> Self {
        Self { volume }
    }

    fn format(&self, run: Run<'_>) -> RunResult<()> {
        match caught(msft_storage::format(run, self.volume, || {
            self.needs_format(run)
        }))? {
            // Formatting may still be running, so the disk stays locked for as long as formatting
            // may take.
            Err(error) if error.is_of(ErrorClass::OutcomeUnknown) => self
                .wait_until_formatted(run, run.timeouts().format)?
                .ok_or(error.into()),
            Err(error) => {
                let may_be_recorded = !run.node().config().format_writers.is_empty();
                // An administrator may format the volume later, with another access list.
                if may_be_recorded
                    && error.kind != ErrorKind::StillRunning
                    && matches!(self.needs_format(run), Ok(true))
                {
                    run.begin_mutation()?;
                    let (key, name) = msft_storage::record_of(self.volume);
                    let _ = run.os().delete_registry_value(&key, &name);
                }
                Err(error.into())
            }
            Ok(()) => {
                let formatted = self.wait_until_formatted(run, run.timeouts().arrival)?;
                Ok(formatted.ok_or_else(|| {
                    let name = run.node().config().new_file_system();
                    let reason = format!(
                        "Windows reported success, but the volume has no {name} file system"
                    );
                    OperationError::precondition(reason)
                })?)
            }
        }
    }

    /// Returns whether the volume is raw, determined under the lock of its disk. Called again right
    /// before formatting, because another program may have formatted the volume.
    fn needs_format(&self, run: Run<'_>) -> RunResult<bool> {
        // Only devices decide what is formatted. The provider may add that the volume has a file
        // system.
        let disk = volume::disk_of(run.os(), self.volume)?;
        run.ensure_locked(&LockKey::Disk(disk))?;
        let detected = readings::file_system::detect(run.windows(), self.volume);
        match readings::file_system::or_reported(run, self.volume, detected)? {
            FileSystem::Raw => {
                node_volumes::refuse_volume(run.without_provider(), self.volume).map(|()| true)
            }
            FileSystem::Named(name)
                if ["NTFS", run.node().config().new_file_system()].contains(&&*name) =>
            {
                Ok(false)
            }
            FileSystem::Named(name) => failed_precondition(format!(
                "the volume has the file system {name}, which csi-proxy does not overwrite"
            )),
        }
    }

    /// Waits until the volume has the new file system. Returns `None` if that takes too long.
    fn wait_until_formatted(&self, run: Run<'_>, timeout: Duration) -> RunResult<Option<()>> {
        let mut unreadable = None;
        let formatted = run.windows().poll(timeout, || -> RunResult<_> {
            // While a volume is formatted it is locked and then dismounted.
            let found = match readings::file_system::detect(run.windows(), self.volume) {
                Err(error) if error.is_of(ErrorClass::VolumeChanging) => Err(error),
                detected => caught(readings::file_system::or_reported(
                    run,
                    self.volume,
                    detected,
                ))?,
            };
            match found {
                Ok(found) => {
                    unreadable = None;
                    Ok((found
                        == FileSystem::Named(run.node().config().new_file_system().to_owned()))
                    .then_some(()))
                }
                // The new file system may be on the medium before it is mounted.
                Err(error) if error.inconclusive().is_some() || error.code.is_none() => {
                    unreadable = Some(error);
                    Ok(None)
                }
                Err(error) => Err(error.into()),
            }
        })?;
        match (formatted, unreadable) {
            (None, Some(error)) => Err(error.into()),
            (formatted, _) => Ok(formatted),
        }
    }
}

/// Grants the accounts of the configuration the right to change everything on a volume whose
/// formatting was recorded, and removes the record. Leaves every other volume as it is. The disk is
/// locked.
pub(crate) fn grant_access(run: Run<'_>, volume: VolumeId) -> RunResult<()> {
    let (os, writers) = (run.os(), &run.node().config().format_writers);
    let (key, name) = msft_storage::record_of(volume);
    if writers.is_empty() {
        return Ok(());
    }
    match os.registry_text(&key, &name) {
        Err(OsError::FILE_NOT_FOUND) => return Ok(()),
        recorded => recorded?,
    };
    run.begin_mutation()?;
    let grant = || {
        let root = os.open(&volume.root(), &OPEN_FOR_ACCESS_LIST)?;
        // Without a list, everyone has all rights.
        let Some(mut entries) = root.security_descriptor()?.entries else {
            return Ok(());
        };
        let entry = |sid| AccessEntry {
            kind: EntryKind::Allow,
            flags: INHERITED,
            rights: MODIFY,
            sid,
        };
        let granted: Vec<_> = writers.iter().cloned().map(entry).collect();
        // Present already if this is a repetition.
        entries.retain(|entry| !granted.contains(entry));
        entries.extend(granted);
        root.set_access_list(&entries)
    };
    let reason = "csi-proxy began to format the volume, and the access list of its root directory \
                  cannot be changed";
    grant().map_err(|code| OperationError::of(code, reason))?;
    Ok(os.delete_registry_value(&key, &name)?)
}
