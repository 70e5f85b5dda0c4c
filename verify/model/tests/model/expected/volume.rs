//! The volume group.

use tonic::Code;

use super::{
    BEHIND_FILE, Checked, Expected, Faults, INVALID, NOT_MOUNTED, NOT_THERE, PRECONDITION, TAKEN, loose, working,
};
use crate::directory_tree::{Directory, Entry, Found, Key, Location, Names, Root, inside_mut};
use crate::messages::Payload;
use crate::reference_model::{FileSystem, MIB, Model};
use crate::transition::Id;

impl Model {
    pub(super) fn is_volume_formatted(&self, id: &Id) -> Checked<Expected> {
        let key = self.named(id)?;
        Ok(Expected::yes(self.volume(key).is_some_and(|volume| volume.file_system.is_some())))
    }

    pub(super) fn format_volume(&mut self, id: &Id) -> Checked<Expected> {
        let key = self.named(id)?;
        let sizing = self.next_sizing();
        let volume = self.volume_mut(key).expect("it is present");
        match &volume.file_system {
            None => {
                volume.file_system = Some(FileSystem { name: "NTFS", files: Directory::new() });
                volume.sizing = sizing;
                Ok(Expected::nothing())
            }
            Some(system) if system.name == "NTFS" => Ok(Expected::nothing()),
            Some(_) => Ok(Expected::fails(PRECONDITION)),
        }
    }

    pub(super) fn mount_volume(&mut self, id: &Id, at: &str) -> Checked<Expected> {
        let mut faults = Faults::default();
        let key = faults.note(self.named(id));
        let path = faults.note(loose(at).and_then(working));
        if key == Some(0) {
            faults.0.extend([Code::PermissionDenied, Code::FailedPrecondition]);
        }
        let mut there = false;
        if let Some(path) = &path {
            match self.place(path) {
                Location::Entry(Entry::Directory(inner)) if inner.is_empty() => {}
                Location::Entry(Entry::Mount(mounted)) if Some(*mounted) == key => there = true,
                Location::Entry(Entry::Mount(mounted)) if !self.is_present(*mounted) => {}
                Location::Entry(_) => faults.0.extend(TAKEN),
                Location::Absent | Location::NoParent => faults.0.extend(NOT_THERE),
                Location::BehindLink => faults.0.extend(PRECONDITION),
                Location::BehindFile => faults.0.extend(BEHIND_FILE),
            }
        }
        faults.none()?;
        if let (Some(key), Some(path), false) = (key, path, there) {
            self.put(&path, Entry::Mount(key));
        }
        Ok(Expected::nothing())
    }

    pub(super) fn unmount_volume(&mut self, id: &Id, at: &str) -> Checked<Expected> {
        let mut faults = Faults::default();
        let path = faults.note(loose(at).and_then(working));
        if matches!(id, Id::Text(_)) {
            faults.0.extend(INVALID);
        }
        if let Some(path) = &path {
            let own = |mounted: &Key| *id == Id::Of(*mounted);
            match self.place(path) {
                Location::Entry(Entry::Mount(mounted)) if own(mounted) => {}
                Location::Entry(_) | Location::BehindLink => faults.0.extend(PRECONDITION),
                Location::Absent | Location::NoParent => faults.0.extend(NOT_THERE),
                Location::BehindFile => faults.0.extend(BEHIND_FILE),
            }
        }
        // What is asked for does not exist in either sense.
        if let (Id::Of(_) | Id::Nobody, Err(_), false) = (id, self.named(id), faults.0.is_empty()) {
            faults.0.extend(NOT_THERE);
        }
        faults.none()?;
        if let Some(path) = path {
            self.put(&path, Entry::Directory(Directory::new()));
        }
        Ok(Expected::nothing())
    }

    pub(super) fn resize_disk(&mut self, number: u32, size: i64) -> Checked<Expected> {
        let disk = self.disk(number).ok_or_else(|| Faults::of(&[Code::NotFound, Code::InvalidArgument]))?;
        if disk.volume.is_none() || !disk.online {
            let codes: &[Code] = if size < 0 { &[Code::InvalidArgument] } else { &[] };
            return Ok(Expected::Fails([codes, &[Code::NotFound, Code::FailedPrecondition]].concat()));
        }
        let id = Id::Of(disk.key);
        self.resize_volume(&id, size)
    }

    pub(super) fn resize_volume(&mut self, id: &Id, size: i64) -> Checked<Expected> {
        let mut faults = Faults::default();
        let size = u64::try_from(size).map_err(|_| Faults::of(INVALID));
        let (key, size) = (faults.note(self.named(id)), faults.note(size));
        let (Some(key), Some(size)) = (key, size) else { return Err(faults) };
        let sizing = self.next_sizing();
        let room = self.disk_of(key).expect("it is present").1.size;
        let volume = self.volume_mut(key).expect("it is present");
        let wanted = if size == 0 { room } else { size };
        if wanted > room {
            return Ok(Expected::fails(&[Code::FailedPrecondition, Code::InvalidArgument, Code::OutOfRange]));
        }
        if wanted > volume.extent {
            // ReFS is not this project's to promise anything about, but that it stays whole.
            (volume.extent, volume.sizing) = (wanted, sizing);
        }
        Ok(Expected::nothing())
    }

    pub(super) fn get_volume_stats(&self, id: &Id) -> Checked<Expected> {
        let key = self.named(id)?;
        let volume = self.volume(key).expect("it is present");
        if volume.file_system.is_none() {
            return Ok(Expected::fails(PRECONDITION));
        }
        Ok(Expected::Stats { extent: volume.extent, sizing: volume.sizing })
    }

    pub(super) fn get_disk_number_from_volume_id(&self, id: &Id) -> Checked<Expected> {
        let key = self.named(id)?;
        let (number, _) = self.disk_of(key).expect("it is present");
        Ok(Expected::Says(Payload::Number(number.into())))
    }

    pub(super) fn write_volume_cache(&self, id: &Id) -> Checked<Expected> {
        self.named(id)?;
        Ok(Expected::nothing())
    }

    pub(super) fn get_volume_id_from_target_path(&self, at: &str) -> Checked<Expected> {
        let path = loose(at)?;
        let nothing = Expected::FailsSaying(Code::NotFound, NOT_MOUNTED);
        Ok(match self.mounted(&path) {
            Mounted::Volume(key) => Expected::Volumes(vec![key]),
            Mounted::Nothing => nothing,
            Mounted::Elsewhere => Expected::Anything,
        })
    }

    pub(super) fn get_closest_volume_id_from_target_path(&self, at: &str) -> Checked<Expected> {
        let path = loose(at)?;
        Ok(match self.walk(&path, true) {
            Found::At(Root::System, _) => Expected::Volumes(vec![0]),
            Found::At(Root::Volume(key), _) => Expected::Volumes(vec![key]),
            _ => Expected::Anything,
        })
    }

    fn mounted(&self, path: &[String]) -> Mounted {
        match self.walk(path, true) {
            Found::At(Root::Volume(key), names) if names.is_empty() => Mounted::Volume(key),
            Found::At(Root::System, _) | Found::Missing => Mounted::Nothing,
            Found::At(..) | Found::Gone | Found::Refused => Mounted::Elsewhere,
        }
    }

    /// Puts an entry where there is a parent for it.
    pub(super) fn put(&mut self, path: &[String], entry: Entry) {
        let (name, above): (&String, Names) = {
            let (name, above) = path.split_last().expect("a path has a name");
            (name, above.to_vec())
        };
        inside_mut(&mut self.files, &above).expect("its parent is there").insert(name.clone(), entry);
    }
}

enum Mounted {
    Volume(Key),
    Nothing,
    /// On a share, or on a volume that has gone.
    Elsewhere,
}

/// How much of what was asked for a partition table and a file system may keep to themselves.
pub(crate) const OVERHEAD: u64 = 20 * MIB;
