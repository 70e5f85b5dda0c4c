//! Checks the invariants of the state, which hold between any two calls.

use std::collections::BTreeSet;

use crate::disks::mount_manager::MountPoint;
use crate::disks::{Disk, Layout};
use crate::files::file_system::FileSystem;
use crate::sim::Sim;
use crate::state::{FsId, State};

impl Sim {
    /// Checks that the state of the node is consistent. The error names the first violation.
    pub fn invariants(&self) -> Result<(), String> {
        self.with(|state| state.check())
    }
}

impl State {
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut numbers = BTreeSet::new();
        let mut volumes = BTreeSet::new();
        for disk in self.disks.values() {
            ensure(numbers.insert(disk.number), || {
                format!("two disks have the number {}", disk.number)
            })?;
            check_partitions(disk)?;
            for volume in disk.volumes() {
                ensure(volumes.insert(volume.id), || {
                    format!("two volumes have the GUID {}", volume.id)
                })?;
                let shown = disk.visible && !disk.is_offline();
                ensure(shown || !volume.arrived, || {
                    format!(
                        "volume {} has arrived, but its disk is not visible and online",
                        volume.id
                    )
                })?;
                if let Some(file_system) = &volume.file_system {
                    self.check_tree(FsId::Volume(volume.id), file_system)?;
                }
            }
            for part in &disk.partitions {
                let length = part
                    .volume
                    .as_ref()
                    .and_then(|volume| volume.file_system.as_ref())
                    .map(|fs| fs.length);
                ensure(length.is_none_or(|length| length <= part.length), || {
                    format!(
                        "disk {} partition {}: the file system is larger than the partition",
                        disk.number, part.number
                    )
                })?;
            }
        }
        for (id, tree) in &self.trees {
            self.check_tree(FsId::Share(*id), tree)?;
        }
        self.check_mounts()?;
        self.check_jobs()
    }

    /// Every file is an entry of its parent, or is unlinked and open.
    fn check_tree(&self, fs: FsId, file_system: &FileSystem) -> Result<(), String> {
        for (id, file) in file_system.records() {
            let is_linked = match file.parent {
                None => id == file_system.root || self.is_open(fs, id),
                Some(parent) => {
                    file_system.child(parent, &file.name) == Some(id)
                        && file_system.path(id).is_some()
                }
            };
            ensure(is_linked, || {
                format!("{fs:?}: {:?} is neither in a directory nor open", file.name)
            })?;
            let linked =
                file.reparse.is_none() || !file.is_directory() || file.is_empty_directory();
            ensure(linked, || {
                format!("{fs:?}: {:?} is a link and has children", file.name)
            })?;
            let pending = file.pending.is_none() || self.is_open(fs, id);
            ensure(pending, || {
                format!(
                    "{fs:?}: {:?} is to be deleted, but no handle is open on it",
                    file.name
                )
            })?;
        }
        Ok(())
    }

    /// No two volumes are mounted at the same path.
    fn check_mounts(&self) -> Result<(), String> {
        for (index, mount) in self.mounts.iter().enumerate() {
            let twice = self.mounts[..index]
                .iter()
                .any(|other| other.point == mount.point);
            ensure(!twice, || {
                format!("two volumes are mounted at {:?}", mount.point)
            })?;
            if let MountPoint::Letter(letter) = mount.point {
                ensure(letter.is_ascii_uppercase(), || {
                    format!("the drive letter {letter} is not an upper-case letter")
                })?;
            }
        }
        Ok(())
    }

    /// No two jobs run on the same disk.
    fn check_jobs(&self) -> Result<(), String> {
        let mut busy = BTreeSet::new();
        let mut devices = self.jobs.values().filter_map(|job| job.device);
        let twice = devices.find(|device| !busy.insert(*device));
        ensure(twice.is_none(), || {
            format!("two jobs run on device {twice:?}")
        })
    }
}

fn check_partitions(disk: &Disk) -> Result<(), String> {
    let mut end = 0;
    for part in &disk.partitions {
        ensure(part.offset >= end, || {
            format!(
                "disk {}: partition {} overlaps the one before it",
                disk.number, part.number
            )
        })?;
        end = part.end();
    }
    ensure(end <= disk.usable_end(), || {
        format!(
            "disk {}: a partition ends outside of the usable range",
            disk.number
        )
    })?;
    let bare = disk.layout == Layout::Raw && !disk.partitions.is_empty();
    ensure(!bare, || {
        format!("disk {}: the disk is raw but has partitions", disk.number)
    })
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
