//! Whether Windows mounts and unmounts a volume at a directory that csi-proxy holds open.
//!
//! csi-proxy holds the directory of a mount so that no process can replace it. No document says how
//! Windows opens the directory meanwhile (`MOUNT-23` in docs/facts.md). If Windows needs the
//! directory for itself, its answer is `SHARING_VIOLATION`. A container that has the directory open
//! gets the same answer. The answer for a directory of a driver therefore does not say which of the
//! two is the cause. The answer for a new directory in `C:\Windows` does, because only administrators
//! may write there.

use std::sync::OnceLock;

use os::{Disposition, Open, Options, OsError, OsResult, PathForm, U16String};

use crate::paths::opening::{OPEN_NO_DELETE_SHARE, open_directory, win32_path};
use crate::paths::remove_tree;
use crate::types::{HostPath, VolumeId};
use crate::windows::Windows;

/// The name of the tested directory, in `C:\Windows`.
const NAME: &str = "csi-proxy mount test";

const CREATE: Open = Open {
    disposition: Disposition::Create,
    options: OPEN_NO_DELETE_SHARE.options.union(Options::DIRECTORY),
    ..OPEN_NO_DELETE_SHARE
};

/// What Windows refuses for every directory that is held. Tested once, after the first
/// `SHARING_VIOLATION`.
pub(crate) struct HeldDirectory {
    system_drive: char,
    refused: OnceLock<Refused>,
}

#[derive(Clone, Copy, Default)]
struct Refused {
    mount: bool,
    unmount: bool,
}

impl HeldDirectory {
    pub(crate) fn new(system_drive: char) -> Self {
        Self {
            system_drive,
            refused: OnceLock::new(),
        }
    }

    /// Returns whether Windows mounts a volume only at a directory that is not held; false if the
    /// test fails.
    pub(crate) fn prevents_mount(&self, windows: &Windows) -> bool {
        self.refused(windows).mount
    }

    /// Returns whether Windows unmounts a volume only from a directory that is not held; false if
    /// the test fails.
    pub(crate) fn prevents_unmount(&self, windows: &Windows) -> bool {
        self.refused(windows).unmount
    }

    fn refused(&self, windows: &Windows) -> Refused {
        *self
            .refused
            .get_or_init(|| self.test(windows).unwrap_or_default())
    }

    /// Mounts the system volume at a new directory in `C:\Windows`, unmounts it, and removes the
    /// directory. A daemon that was ended in between has left the directory, so it is removed before
    /// too.
    fn test(&self, windows: &Windows) -> OsResult<Refused> {
        let os = windows.os();
        let windows_directory = format!(r"{}:\Windows", self.system_drive);
        let windows_directory =
            HostPath::parse(&windows_directory).map_err(|_| OsError::INVALID_NAME)?;
        let parent = open_directory(os, &windows_directory.to_nt())?;
        let name = U16String::from_str(NAME);
        let remove = || {
            let parent = remove_tree::Parent {
                handle: &*parent,
                path_is_stable: true,
            };
            let directory = remove_tree::open(windows, parent, &name)?;
            remove_tree::delete(&directory)
        };
        let _ = remove();
        let path = win32_path(&*parent, &name)?;
        let volume = parent.final_path(PathForm::VolumeGuid)?;
        let (volume, _) = VolumeId::of_final_path(&volume).ok_or(OsError::INVALID_NAME)?;
        let volume = volume.to_windows();
        let refused = (|| {
            let held = parent.open_child(&name, &CREATE)?;
            let mounted = os.set_volume_mount_point(&path, &volume);
            drop(held);
            if mounted.is_err() {
                os.set_volume_mount_point(&path, &volume)?;
            }
            let held = parent.open_child(&name, &OPEN_NO_DELETE_SHARE)?;
            let unmounted = os.delete_volume_mount_point(&path);
            drop(held);
            let refused = Err(OsError::SHARING_VIOLATION);
            Ok(Refused {
                mount: mounted == refused,
                unmount: unmounted == refused,
            })
        })();
        let _ = remove();
        refused
    }
}
