//! Locked and dismounted volumes: `FSCTL_LOCK_VOLUME`, `FSCTL_DISMOUNT_VOLUME`, and the lock of a
//! running format.

use os::abi::ControlCode;
use os::{OsError, OsResult, Uuid};

use crate::files::handles::Object;
use crate::state::{FsId, State};

/// `FSCTL_DISMOUNT_VOLUME`. csi-proxy does not send this code; format programs do.
pub(crate) const FSCTL_DISMOUNT_VOLUME: ControlCode = ControlCode(0x0009_0020);

/// How a volume is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VolumeLock {
    /// Its file system is mounted.
    Mounted,
    /// The holder of the lock has dismounted its file system.
    Dismounted,
}

impl VolumeLock {
    /// Returns the error of opening the volume or a file on it.
    fn refusal(self) -> OsError {
        match self {
            Self::Mounted => OsError::ACCESS_DENIED,
            Self::Dismounted => OsError::NOT_READY,
        }
    }
}

impl State {
    /// Fails if the volume is locked by a handle or by a format: with `ACCESS_DENIED`, or with
    /// `NOT_READY` once the holder of the lock has dismounted the file system.
    pub(crate) fn check_unlocked(&self, volume: Uuid) -> OsResult<()> {
        match self.volume_lock(volume) {
            Some(lock) => Err(lock.refusal()),
            None => Ok(()),
        }
    }

    fn volume_lock(&self, volume: Uuid) -> Option<VolumeLock> {
        let on = |object: &Object| matches!(object, Object::Volume { id, .. } if *id == volume);
        let held = self
            .handles
            .values()
            .filter(|opened| on(&opened.object))
            .find_map(|opened| opened.lock);
        held.or_else(|| {
            self.jobs
                .values()
                .find_map(|job| job.volume_lock(volume, self.now))
        })
    }

    /// Returns whether any handle but `own` is open on a file of a volume, or on the volume itself
    /// with access to its data.
    pub(crate) fn is_volume_in_use(&self, volume: Uuid, own: Option<u64>) -> bool {
        let mounted = self.file_system(FsId::Volume(volume));
        let mounting = mounted.map(|file_system| file_system.mounting).ok();
        let is_on = |object: &Object| match object {
            Object::Volume { id, direct: false } => *id == volume,
            // A handle from before a dismount counts no longer.
            Object::File {
                fs, mounting: at, ..
            } => *fs == FsId::Volume(volume) && Some(*at) == mounting,
            _ => false,
        };
        let mut handles = self.handles.iter();
        handles.any(|(handle, opened)| Some(*handle) != own && is_on(&opened.object))
    }

    /// Performs the control codes of this module. Returns `None` for any other code.
    pub(crate) fn control_lock(
        &mut self,
        handle: u64,
        volume: Uuid,
        code: ControlCode,
    ) -> Option<OsResult<usize>> {
        let done = match code {
            ControlCode::FSCTL_LOCK_VOLUME => self.lock_volume(handle, volume),
            FSCTL_DISMOUNT_VOLUME => self.dismount_volume(handle, volume),
            _ => return None,
        };
        Some(done.map(|()| 0))
    }

    fn lock_volume(&mut self, handle: u64, volume: Uuid) -> OsResult<()> {
        let (disk, _) = self.volume(volume)?;
        let is_in_use = self.is_volume_in_use(volume, Some(handle));
        if disk.system || is_in_use || self.volume_lock(volume).is_some() {
            return Err(OsError::ACCESS_DENIED);
        }
        self.opened_mut(handle)?.lock = Some(VolumeLock::Mounted);
        Ok(())
    }

    fn dismount_volume(&mut self, handle: u64, volume: Uuid) -> OsResult<()> {
        let (disk, _) = self.volume(volume)?;
        let locks = self.opened(handle)?.lock.is_some();
        if disk.system || !locks && self.volume_lock(volume).is_some() {
            return Err(OsError::ACCESS_DENIED);
        }
        self.dismount_file_system(volume);
        if locks {
            self.opened_mut(handle)?.lock = Some(VolumeLock::Dismounted);
        }
        Ok(())
    }

    /// Dismounts the file system of a volume. Calls on handles of its files fail from then on; the
    /// next open mounts it again.
    pub(crate) fn dismount_file_system(&mut self, volume: Uuid) {
        let mounting = self.fresh();
        if let Ok(file_system) = self.file_system_mut(FsId::Volume(volume)) {
            file_system.dismount(mounting);
        }
    }
}
