//! Formatting a volume.

use std::time::Duration;

use os::abi::{AccessEntry, EntryKind};
use os::{Access, Open, Options, OsError};

use crate::devices::{FileSystem, volume};
use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition};
use crate::error_class::ErrorClass;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::run::Run;
use crate::ops::volume::format_again::{self, Place};
use crate::provider::msft_storage::{self, Formatting};
use crate::readings::{self, node_volumes, root_directory};
use crate::scheduling::{LockKey, PoolKind, Resource};
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
/// the volume already has NTFS or the file system of the configuration, and its root directory is
/// empty. A volume with content is an error, unless [`Config::format_again`] allows to format it
/// again. Another file system is an error.
///
/// [`Config::format_again`]: crate::Config::format_again
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FormatVolume {
    /// The volume.
    pub volume: VolumeId,
}

/// How a volume is to be formatted.
#[derive(Clone, Copy)]
enum Needed {
    /// The volume has no file system.
    First,
    /// The volume has a file system with this serial number, which is lost with its files.
    Again { serial: u64 },
}

impl Operation for FormatVolume {
    type Output = ();
    const NAME: &'static str = "FormatVolume";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const LOOKS_UP_LOCKS: bool = true;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Volume(self.volume))
    }

    fn describe(&self) -> String {
        format!("format volume {}", self.volume)
    }

    async fn look_up_lock_keys(&self, run: Run<'_>) -> OperationResult<Vec<LockKey>> {
        // Only devices decide what is formatted.
        Ok(vec![LockKey::Disk(volume::disk_of(run.os(), self.volume)?)])
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        if self.needed_format(run).await?.is_some() {
            self.format(run).await?;
        }
        run.enter(PoolKind::Disks).await;
        grant_access(run, self.volume)
    }
}

impl FormatVolume {
    /// Creates the operation.
    pub fn new(volume: VolumeId) -> Self {
        Self { volume }
    }

    async fn format(&self, run: Run<'_>) -> OperationResult<()> {
        // What the provider was asked for, if it was asked.
        let mut begun = None;
        match self.ask_provider(run, &mut begun).await {
            // Formatting may still be running, so the disk stays locked for as long as formatting
            // may take.
            Err(error) if error.is_of(ErrorClass::OutcomeUnknown) && begun.is_some() => self
                .wait_until_formatted(run, run.timeouts().format, begun)
                .await?
                .ok_or(error),
            Err(error) => {
                let may_be_recorded = !run.node().config().format_writers.is_empty();
                // An administrator may format the volume later, with another access list.
                if may_be_recorded
                    && error.kind != ErrorKind::StillRunning
                    && self.is_as_before(run, begun).await
                {
                    run.begin_mutation()?;
                    let (key, name) = msft_storage::record_of(self.volume);
                    let _ = run.os().delete_registry_value(&key, &name);
                }
                Err(error)
            }
            Ok(()) => {
                let arrival = run.timeouts().arrival;
                let formatted = self.wait_until_formatted(run, arrival, begun).await?;
                formatted.ok_or_else(|| {
                    let name = run.node().config().new_file_system();
                    let reason = format!(
                        "Windows reported success, but the volume has no new {name} file system"
                    );
                    OperationError::precondition(reason)
                })
            }
        }
    }

    /// Makes the provider format the volume, unless the volume turns out not to need that. Stores in
    /// `begun` what the provider is asked for.
    async fn ask_provider(&self, run: Run<'_>, begun: &mut Option<Needed>) -> OperationResult<()> {
        let mut format = msft_storage::Format::prepare(run, self.volume).await;
        let mut pauses = run.pauses(run.timeouts().arrival);
        loop {
            run.enter(PoolKind::Wmi).await;
            let instance = format.instance()?;
            match self.still_needed_format(run).await {
                Ok(needed) => {
                    if let Some(Needed::Again { .. }) = needed {
                        self.refuse_open_files(run)?;
                    }
                    *begun = needed;
                    let formatting = match needed {
                        None => return Ok(()),
                        Some(Needed::First) => Formatting::First,
                        Some(Needed::Again { .. }) => Formatting::Again,
                    };
                    if format.attempt(&instance, formatting)? {
                        return Ok(());
                    }
                }
                // Another program has just locked the volume, which was readable before.
                Err(error)
                    if format.refused().is_some() && error.is_of(ErrorClass::VolumeChanging) => {}
                Err(error) => return Err(error),
            }
            if !pauses.again().await {
                return match format.refused() {
                    Some(error) => Err(error.clone()),
                    None => Ok(()),
                };
            }
        }
    }

    /// Returns what [`Self::needed_format`] returns, right before the format. Another program may have
    /// changed the volume, and a single error can make a link or an entry look absent: two looks must
    /// agree before content is lost.
    async fn still_needed_format(&self, run: Run<'_>) -> OperationResult<Option<Needed>> {
        let disk = volume::disk_of(run.os(), self.volume)?;
        run.ensure_locked(&LockKey::Disk(disk))?;
        self.needed_format(run).await
    }

    /// Returns how the volume is to be formatted; `None` if it is as if it had just been formatted.
    async fn needed_format(&self, run: Run<'_>) -> OperationResult<Option<Needed>> {
        // Only devices decide what is formatted. The provider may add that the volume has a file
        // system.
        let detected = readings::file_system::detect(run.windows(), self.volume);
        let unread = detected.as_ref().err().cloned();
        match readings::file_system::or_reported(run, self.volume, detected).await? {
            FileSystem::Raw => node_volumes::refuse_volume(run.without_provider(), self.volume)
                .await
                .map(|()| Some(Needed::First)),
            FileSystem::Named(name)
                if ["NTFS", run.node().config().new_file_system()].contains(&&*name) =>
            {
                match format_again::place(run.node(), self.volume)? {
                    Place::Below(_) if let Some(error) = unread => Err(error),
                    Place::Below(directories) => {
                        format_again::check(run, self.volume, &directories).await?;
                        let serial = self.serial(run)?;
                        Ok(Some(Needed::Again { serial }))
                    }
                    Place::Elsewhere(why) => self.refuse_content(run, &why).map(|()| None),
                }
            }
            FileSystem::Named(name) => failed_precondition(format!(
                "the volume has the file system {name}, which csi-proxy does not overwrite"
            )),
        }
    }

    /// Refuses a volume whose root directory has content, or cannot be read. `why` states why the
    /// volume may not be formatted again.
    fn refuse_content(&self, run: Run<'_>, why: &str) -> OperationResult<()> {
        let (found, code) = match root_directory::content(run.os(), self.volume) {
            Ok(None) => return Ok(()),
            Ok(Some(found)) => (found, None),
            Err(error) if error.is_not_found() => return Err(error),
            Err(error) => (
                format!("its root directory cannot be read: {}", error.reason),
                error.code,
            ),
        };
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {why}")
        };
        let reason = format!(
            "{found}; csi-proxy formats a volume again only with its flag -format-again=DIR, and \
             only if each mount point of the volume is below DIR{why}"
        );
        Err(OperationError {
            code,
            ..OperationError::precondition(reason)
        })
    }

    /// Refuses a volume with an open file. What a process writes is lost if Windows formats the
    /// volume under it.
    fn refuse_open_files(&self, run: Run<'_>) -> OperationResult<()> {
        run.begin_mutation()?;
        let unused = volume::ensure_unused(run.os(), self.volume);
        unused.map_err(|error| {
            if error.is_not_found() {
                return error;
            }
            // Without the code, with which the format would be tried again: the volume might be
            // locked by another program for a moment.
            OperationError::precondition(format!(
                "the volume cannot be locked, so a process may have a file on it open: {}",
                error.reason
            ))
        })?;
        tracing::warn!(volume = %self.volume, "formatting a volume that has a file system");
        Ok(())
    }

    /// Returns whether the volume is known to be as before the format that was begun, if any.
    async fn is_as_before(&self, run: Run<'_>, begun: Option<Needed>) -> bool {
        match begun {
            Some(Needed::Again { serial }) => self.serial(run) == Ok(serial),
            _ => matches!(self.needed_format(run).await, Ok(Some(Needed::First))),
        }
    }

    /// Returns the serial number of the file system of the volume.
    fn serial(&self, run: Run<'_>) -> OperationResult<u64> {
        root_directory::serial(run.os(), self.volume)
    }

    /// Waits until the volume has the new file system, which is not the one before the format that
    /// was begun. Returns `None` if that takes too long.
    async fn wait_until_formatted(
        &self,
        run: Run<'_>,
        timeout: Duration,
        begun: Option<Needed>,
    ) -> OperationResult<Option<()>> {
        let new = FileSystem::Named(run.node().config().new_file_system().to_owned());
        let is_new = || match begun {
            Some(Needed::Again { serial }) => self.serial(run).map(|now| now != serial),
            _ => Ok(true),
        };
        let mut pauses = run.pauses(timeout);
        loop {
            // While a volume is formatted it is locked and then dismounted.
            let found = match readings::file_system::detect(run.windows(), self.volume) {
                Err(error) if error.is_of(ErrorClass::VolumeChanging) => Err(error),
                detected => readings::file_system::or_reported(run, self.volume, detected).await,
            };
            let outcome = match found.and_then(|found| Ok(found == new && is_new()?)) {
                Ok(true) => return Ok(Some(())),
                Ok(false) => Ok(None),
                // The new file system may be on the medium before it is mounted.
                Err(error) if error.inconclusive().is_some() || error.code.is_none() => Err(error),
                Err(error) => return Err(error),
            };
            if !pauses.again().await {
                return outcome;
            }
        }
    }
}

/// Grants the accounts of the configuration the right to change everything on a volume whose
/// formatting was recorded, and removes the record. Leaves every other volume as it is. The disk is
/// locked.
pub(crate) fn grant_access(run: Run<'_>, volume: VolumeId) -> OperationResult<()> {
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
        let granted = writers.iter().cloned().map(|sid| AccessEntry {
            kind: EntryKind::Allow,
            flags: INHERITED,
            rights: MODIFY,
            sid,
        });
        let granted: Vec<_> = granted.collect();
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
