//! The calls of the volume group.

use tonic::Code;

use super::{
    BEHIND_FILE, Checked, Expected, INVALID, NOT_FOUND, NOT_MOUNTED, PRECONDITION, TAKEN,
    Violations, changeable, loose,
};
use crate::directory_tree::{Directory, DiskKey, Entry, Lookup, Names, Resolved, Root, inside_mut};
use crate::messages::Payload;
use crate::reference_model::{FileSystem, MIB, Model};
use crate::transition::VolumeName;

impl Model {
    pub(super) fn is_volume_formatted(&self, id: &VolumeName) -> Checked<Expected> {
        let key = self.named(id)?;
        Ok(Expected::bool(
            self.volume(key)
                .is_some_and(|volume| volume.file_system.is_some()),
        ))
    }

    pub(super) fn format_volume(&mut self, id: &VolumeName) -> Checked<Expected> {
        let key = self.named(id)?;
        let size_generation = self.next_size_generation();
        let volume = self.volume_mut(key).expect("it is present");
        match &volume.file_system {
            None => {
                volume.file_system = Some(FileSystem {
                    name: "NTFS",
                    files: Directory::new(),
                });
                volume.size_generation = size_generation;
                Ok(Expected::nothing())
            }
            // The volume of Windows, whose files the model does not know.
            Some(_) if key == 0 => Ok(Expected::fails(PRECONDITION)),
            Some(system) if system.name == "NTFS" && system.files.is_empty() => {
                Ok(Expected::nothing())
            }
            // Another file system, or content.
            Some(_) => Ok(Expected::fails(PRECONDITION)),
        }
    }

    pub(super) fn mount_volume(&mut self, id: &VolumeName, at: &str) -> Checked<Expected> {
        let mut violations = Violations::default();
        let key = violations.collect(self.named(id));
        let path = violations.collect(loose(at).and_then(changeable));
        if key == Some(0) {
            violations
                .0
                .extend([Code::PermissionDenied, Code::FailedPrecondition]);
        }
        let mut is_mounted = false;
        if let Some(path) = &path {
            match self.look_up(path) {
                Lookup::Entry(Entry::Directory(inner)) if inner.is_empty() => {}
                Lookup::Entry(Entry::Mount(mounted)) if Some(*mounted) == key => is_mounted = true,
                Lookup::Entry(Entry::Mount(mounted)) if !self.is_present(*mounted) => {}
                Lookup::Entry(_) => violations.0.extend(TAKEN),
                Lookup::Absent | Lookup::NoParent => violations.0.extend(NOT_FOUND),
                Lookup::BehindLink => violations.0.extend(PRECONDITION),
                Lookup::BehindFile => violations.0.extend(BEHIND_FILE),
            }
        }
        violations.into_result()?;
        if let (Some(key), Some(path), false) = (key, path, is_mounted) {
            self.insert(&path, Entry::Mount(key));
        }
        Ok(Expected::nothing())
    }

    pub(super) fn unmount_volume(&mut self, id: &VolumeName, at: &str) -> Checked<Expected> {
        let mut violations = Violations::default();
        let path = violations.collect(loose(at).and_then(changeable));
        if matches!(id, VolumeName::Malformed(_)) {
            violations.0.extend(INVALID);
        }
        let mut is_unmounted = false;
        if let Some(path) = &path {
            let own = |mounted: &DiskKey| *id == VolumeName::Known(*mounted);
            match self.look_up(path) {
                Lookup::Entry(Entry::Mount(mounted)) if own(mounted) => {}
                Lookup::Entry(Entry::Directory(inner)) if inner.is_empty() => is_unmounted = true,
                Lookup::Entry(_) | Lookup::BehindLink => violations.0.extend(PRECONDITION),
                Lookup::Absent | Lookup::NoParent => violations.0.extend(NOT_FOUND),
                Lookup::BehindFile => violations.0.extend(BEHIND_FILE),
            }
        }
        if is_unmounted {
            violations.into_result()?;
            return Ok(Expected::nothing());
        }
        // If the mount point is valid, the volume is looked up too.
        if let (VolumeName::Known(_) | VolumeName::Unknown, Err(_), false) =
            (id, self.named(id), violations.0.is_empty())
        {
            violations.0.extend(NOT_FOUND);
        }
        violations.into_result()?;
        if let Some(path) = path {
            self.insert(&path, Entry::Directory(Directory::new()));
        }
        Ok(Expected::nothing())
    }

    pub(super) fn resize_disk(&mut self, number: u32, size: i64) -> Checked<Expected> {
        let disk = self
            .disk(number)
            .ok_or_else(|| Violations::of(&[Code::NotFound, Code::InvalidArgument]))?;
        if disk.volume.is_none() || !disk.online {
            let codes: &[Code] = if size < 0 {
                &[Code::InvalidArgument]
            } else {
                &[]
            };
            return Ok(Expected::Fails(
                [codes, &[Code::NotFound, Code::FailedPrecondition]].concat(),
            ));
        }
        let id = VolumeName::Known(disk.key);
        self.resize_volume(&id, size)
    }

    pub(super) fn resize_volume(&mut self, id: &VolumeName, size: i64) -> Checked<Expected> {
        let mut violations = Violations::default();
        let size = u64::try_from(size).map_err(|_| Violations::of(INVALID));
        let (key, size) = (violations.collect(self.named(id)), violations.collect(size));
        let (Some(key), Some(size)) = (key, size) else {
            return Err(violations);
        };
        let size_generation = self.next_size_generation();
        let capacity = self.disk_of(key).expect("it is present").1.size;
        let volume = self.volume_mut(key).expect("it is present");
        let wanted = if size == 0 { capacity } else { size };
        if wanted > capacity {
            return Ok(Expected::fails(&[
                Code::FailedPrecondition,
                Code::InvalidArgument,
                Code::OutOfRange,
            ]));
        }
        if wanted > volume.extent {
            // The contract promises nothing about ReFS except that it stays intact.
            if volume
                .file_system
                .as_ref()
                .is_some_and(|system| system.name == "ReFS")
            {
                return Ok(Expected::Unspecified);
            }
            (volume.extent, volume.size_generation) = (wanted, size_generation);
        }
        Ok(Expected::nothing())
    }

    pub(super) fn get_volume_stats(&self, id: &VolumeName) -> Checked<Expected> {
        let key = self.named(id)?;
        let volume = self.volume(key).expect("it is present");
        if volume.file_system.is_none() {
            return Ok(Expected::fails(PRECONDITION));
        }
        Ok(Expected::Stats {
            extent: volume.extent,
            size_generation: volume.size_generation,
        })
    }

    pub(super) fn get_disk_number_from_volume_id(&self, id: &VolumeName) -> Checked<Expected> {
        let key = self.named(id)?;
        let (number, _) = self.disk_of(key).expect("it is present");
        Ok(Expected::Returns(Payload::Number(number.into())))
    }

    pub(super) fn write_volume_cache(&self, id: &VolumeName) -> Checked<Expected> {
        self.named(id)?;
        Ok(Expected::nothing())
    }

    pub(super) fn get_volume_id_from_target_path(&self, at: &str) -> Checked<Expected> {
        let path = loose(at)?;
        let nothing = Expected::FailsWith(Code::NotFound, NOT_MOUNTED);
        Ok(match self.mounted(&path) {
            Mounted::Volume(key) => Expected::Volumes(vec![key]),
            Mounted::Nothing => nothing,
            Mounted::Elsewhere => Expected::Unspecified,
        })
    }

    pub(super) fn get_closest_volume_id_from_target_path(&self, at: &str) -> Checked<Expected> {
        let path = loose(at)?;
        Ok(match self.resolve(&path, true) {
            Resolved::At(Root::System, _) => Expected::Volumes(vec![0]),
            Resolved::At(Root::Volume(key), _) => Expected::Volumes(vec![key]),
            _ => Expected::Unspecified,
        })
    }

    fn mounted(&self, path: &[String]) -> Mounted {
        match self.resolve(path, true) {
            Resolved::At(Root::Volume(key), names) if names.is_empty() => Mounted::Volume(key),
            Resolved::At(Root::System, _) | Resolved::Missing => Mounted::Nothing,
            Resolved::At(..) | Resolved::Unreachable | Resolved::AccessDenied => Mounted::Elsewhere,
        }
    }

    /// Inserts an entry into its parent, which must exist.
    pub(super) fn insert(&mut self, path: &[String], entry: Entry) {
        let (name, above): (&String, Names) = {
            let (name, above) = path.split_last().expect("a path has a name");
            (name, above.to_vec())
        };
        inside_mut(&mut self.files, &above)
            .expect("the parent exists")
            .insert(name.clone(), entry);
    }
}

enum Mounted {
    Volume(DiskKey),
    Nothing,
    /// On a share, or on a volume that is not available.
    Elsewhere,
}

/// Maximum part of the requested size that a partition table and a file system use themselves.
pub(crate) const OVERHEAD: u64 = 20 * MIB;
