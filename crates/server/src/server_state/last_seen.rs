//! What the calls have last seen of the node: identities of disks, where volumes and shares are
//! mounted, and mappings of shares. The status shows it with its age, so that a person can name a
//! disk that does not answer. No operation reads it, and nothing is asked of Windows for it.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use storage_ops::{
    CreateSymlink, DiskIds, DiskLocation, DiskNumber, GetDiskNumberFromVolumeId,
    GetVolumeIdFromTargetPath, HostPath, ListVolumesOnDisk, MountVolume, NewSmbGlobalMapping,
    RemoveSmbGlobalMapping, Rmdir, UnmountVolume, VolumeId,
};
use tokio::time::Instant;

use crate::seconds::seconds;

/// Maximum objects of each kind. At the limit a new object replaces the one that was seen first.
const MAX_SEEN: usize = 1000;

/// What was last seen of the node.
#[derive(Clone, Debug, Serialize)]
pub struct LastSeen {
    /// The disks, by number.
    pub disks: Vec<SeenDisk>,
    /// The mount points, and the links to volumes and shares, by path.
    pub mounts: Vec<SeenMount>,
    /// The SMB global mappings that csi-proxy has made or used, by share.
    pub mappings: Vec<SeenMapping>,
}

/// A disk that was seen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SeenDisk {
    /// Its number.
    pub disk: u32,
    /// Its serial number.
    pub serial_number: String,
    /// Its page 83 identifier.
    pub page83: String,
    /// The number of its adapter.
    pub adapter: String,
    /// The bus of its adapter.
    pub bus: String,
    /// Its SCSI target.
    pub target: String,
    /// Its SCSI logical unit.
    pub lun: String,
    /// How long ago a call saw one of these.
    pub seconds_ago: f64,
}

/// A path that led to a volume or a share.
#[derive(Clone, Debug, Serialize)]
pub struct SeenMount {
    /// The path.
    pub path: String,
    /// The volume, such as `\\?\Volume{...}\`, or the share, such as `\\server\share`.
    pub source: String,
    /// The disk of the volume, if a call has found it.
    pub disk: Option<u32>,
    /// How long ago a call saw this.
    pub seconds_ago: f64,
}

/// A mapping of a share.
#[derive(Clone, Debug, Serialize)]
pub struct SeenMapping {
    /// The share, such as `\\server\share`, in lower case.
    pub remote: String,
    /// How long ago a call mapped it or found it mapped.
    pub seconds_ago: f64,
}

/// Values by key, and when each was seen.
#[derive(Debug)]
struct Seen<K, V>(BTreeMap<K, (Instant, V)>);

impl<K: Clone + Ord, V: Clone> Seen<K, V> {
    fn note(&mut self, key: K, value: V) {
        self.0.insert(key, (Instant::now(), value));
        if self.0.len() > MAX_SEEN
            && let Some(oldest) = self.0.iter().min_by_key(|(_, (when, _))| *when)
        {
            let key = oldest.0.clone();
            self.0.remove(&key);
        }
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key).map(|(_, value)| value)
    }

    fn list<T>(&self, row: impl Fn(&K, &V, f64) -> T) -> Vec<T> {
        let rows = self.0.iter();
        rows.map(|(key, (when, value))| row(key, value, seconds(when.elapsed())))
            .collect()
    }
}

impl<K, V> Default for Seen<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

#[derive(Debug, Default)]
struct Node {
    disks: Seen<DiskNumber, SeenDisk>,
    /// By the path in lower case: the path as a call named it, and its source.
    mounts: Seen<String, (HostPath, String)>,
    volumes: Seen<String, DiskNumber>,
    mappings: Seen<String, ()>,
}

impl Node {
    fn mounted(&mut self, path: &HostPath, source: String) {
        let key = path.to_string().to_lowercase();
        self.mounts.note(key, (path.clone(), source));
    }

    fn unmounted(&mut self, path: &HostPath) {
        self.mounts
            .0
            .retain(|_, (_, (mounted, _))| !mounted.is_in(path));
    }

    fn disk(&mut self, disk: DiskNumber, change: impl FnOnce(&mut SeenDisk)) {
        if let Some((when, seen)) = self.disks.0.get_mut(&disk) {
            *when = Instant::now();
            return change(seen);
        }
        let mut seen = SeenDisk::default();
        change(&mut seen);
        self.disks.note(disk, seen);
    }
}

/// What the calls of a server have last seen.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<Node>);

impl Memory {
    /// Returns whether [`note`](Self::note) reads this operation.
    pub(crate) fn reads(operation: &dyn Any) -> bool {
        operation.is::<GetVolumeIdFromTargetPath>()
            || operation.is::<MountVolume>()
            || operation.is::<CreateSymlink>()
            || operation.is::<UnmountVolume>()
            || operation.is::<Rmdir>()
            || operation.is::<GetDiskNumberFromVolumeId>()
            || operation.is::<ListVolumesOnDisk>()
            || operation.is::<NewSmbGlobalMapping>()
            || operation.is::<RemoveSmbGlobalMapping>()
    }

    /// Notes what a call that succeeded has seen.
    pub(crate) fn note(&self, operation: &dyn Any, output: &dyn Any) {
        let node = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = output.downcast_ref::<BTreeMap<DiskNumber, DiskIds>>() {
            // A disk that is not listed may not have answered.
            for (disk, ids) in found {
                node().disk(*disk, |seen| {
                    seen.serial_number.clone_from(&ids.serial);
                    seen.page83.clone_from(&ids.page83);
                });
            }
        } else if let Some(found) = output.downcast_ref::<BTreeMap<DiskNumber, DiskLocation>>() {
            let mut node = node();
            node.disks.0.retain(|disk, _| found.contains_key(disk));
            for (disk, location) in found {
                node.disk(*disk, |seen| {
                    seen.adapter.clone_from(&location.adapter);
                    seen.bus.clone_from(&location.bus);
                    seen.target.clone_from(&location.target);
                    seen.lun.clone_from(&location.lun);
                });
            }
        } else if let Some(GetVolumeIdFromTargetPath { target }) = operation.downcast_ref() {
            if let Some(volume) = output.downcast_ref::<VolumeId>() {
                node().mounted(target, volume.to_string());
            }
        } else if let Some(MountVolume { volume, target }) = operation.downcast_ref() {
            node().mounted(target, volume.to_string());
        } else if let Some(CreateSymlink { source, target }) = operation.downcast_ref() {
            let mut node = node();
            let source = node.mounts.get(&source.to_string().to_lowercase());
            if let Some((_, source)) = source.cloned() {
                node.mounted(target, source);
            }
        } else if let Some(UnmountVolume { target, .. }) = operation.downcast_ref() {
            node().unmounted(target);
        } else if let Some(Rmdir { path, .. }) = operation.downcast_ref() {
            node().unmounted(path);
        } else if let Some(GetDiskNumberFromVolumeId { volume }) = operation.downcast_ref() {
            if let Some(disk) = output.downcast_ref::<DiskNumber>() {
                node().volumes.note(volume.to_string(), *disk);
            }
        } else if let Some(ListVolumesOnDisk { disk, .. }) = operation.downcast_ref() {
            for volume in output.downcast_ref::<Vec<VolumeId>>().into_iter().flatten() {
                node().volumes.note(volume.to_string(), *disk);
            }
        } else if let Some(NewSmbGlobalMapping { remote, local, .. }) = operation.downcast_ref() {
            let mut node = node();
            if let Some(path) = local {
                node.mounted(path, remote.share());
            }
            node.mappings.note(remote.share(), ());
        } else if let Some(RemoveSmbGlobalMapping { remote }) = operation.downcast_ref() {
            node().mappings.0.remove(&remote.share());
        }
    }

    /// Returns what was seen.
    pub(crate) fn list(&self) -> LastSeen {
        let node = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        LastSeen {
            disks: node.disks.list(|disk, seen, seconds_ago| SeenDisk {
                disk: disk.0,
                seconds_ago,
                ..seen.clone()
            }),
            mounts: node
                .mounts
                .list(|_, (path, source), seconds_ago| SeenMount {
                    path: path.to_string(),
                    source: source.clone(),
                    disk: node.volumes.get(source).map(|disk| disk.0),
                    seconds_ago,
                }),
            mappings: node.mappings.list(|remote, (), seconds_ago| SeenMapping {
                remote: remote.clone(),
                seconds_ago,
            }),
        }
    }
}
