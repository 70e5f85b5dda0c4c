//! Formatting a volume.

use std::time::Duration;

use crate::devices::{FileSystem, volume};
use crate::error::OperationError;
use crate::error_class::ErrorClass;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::run::Run;
use crate::provider::msft_storage;
use crate::readings::{self, node_volumes};
use crate::scheduling::{LockKey, PoolKind, Resource, RunResult, caught, failed_precondition};
use crate::types::VolumeId;

/// Formats a volume with NTFS. Succeeds without a change if the volume already has NTFS; another file system is an
/// error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
        Some(Resource::Volume(self.volume.to_string()))
    }

    fn describe(&self) -> String {
        format!("format volume {}", self.volume)
    }

    fn lock_keys(&self, node: &Node) -> RunResult<Vec<LockKey>> {
        // Only devices decide what is formatted.
        Ok(vec![LockKey::Disk(volume::disk_of(node.host.os(), self.volume)?)])
    }

    fn run(&self, run: Run<'_>) -> RunResult<()> {
        if !self.needs_format(run)? {
            return Ok(());
        }
        match caught(msft_storage::format_ntfs(run, self.volume, || self.needs_format(run)))? {
            // Formatting may still be running, so the disk stays locked for as long as formatting may take.
            Err(error) if error.is_of(ErrorClass::OutcomeUnknown) => {
                self.wait_until_formatted(run, run.timeouts().format)?.ok_or(error.into())
            }
            outcome => {
                outcome?;
                let formatted = self.wait_until_formatted(run, run.timeouts().arrival)?;
                Ok(formatted.ok_or_else(|| {
                    OperationError::precondition("Windows reported success, but the volume has no NTFS file system")
                })?)
            }
        }
    }
}

impl FormatVolume {
    /// Returns whether the volume is raw, determined under the lock of its disk. Called again right before formatting,
    /// because another program may have formatted the volume.
    fn needs_format(&self, run: Run<'_>) -> RunResult<bool> {
        // Only devices decide what is formatted. The provider may add that the volume has a file system.
        let disk = volume::disk_of(run.os(), self.volume)?;
        run.ensure_locked(&LockKey::Disk(disk))?;
        let detected = readings::file_system::detect(run.host(), self.volume);
        match readings::file_system::or_reported(run, self.volume, detected)? {
            FileSystem::Raw => node_volumes::refuse_volume(run.without_provider(), self.volume).map(|()| true),
            FileSystem::Ntfs => Ok(false),
            FileSystem::Other(name) => failed_precondition(format!(
                "the volume has the file system {name}, which csi-proxy does not overwrite"
            )),
        }
    }

    /// Waits until the volume has NTFS. Returns `None` if that takes too long.
    fn wait_until_formatted(&self, run: Run<'_>, timeout: Duration) -> RunResult<Option<()>> {
        let mut unreadable = None;
        let formatted = run.host().poll(timeout, || -> RunResult<_> {
            // While a volume is formatted it is locked and then dismounted.
            let found = match readings::file_system::detect(run.host(), self.volume) {
                Err(error) if error.is_of(ErrorClass::VolumeChanging) => Err(error),
                detected => caught(readings::file_system::or_reported(run, self.volume, detected))?,
            };
            match found {
                Ok(found) => {
                    unreadable = None;
                    Ok((found == FileSystem::Ntfs).then_some(()))
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
