//! Events that change the node from outside.

use super::strict;
use crate::directory_tree::{Directory, DiskKey, Entry, Resolved, Root, inside_mut};
use crate::reference_model::{GIB, Model, another};
use crate::transition::Event;

impl Model {
    /// Applies an event. Returns false if it has no effect.
    pub(super) fn apply_event(&mut self, event: &Event) -> bool {
        match event {
            Event::Grow(number) => {
                let Some(disk) = self.disks.get_mut(number).filter(|disk| disk.enumerated) else {
                    return false;
                };
                disk.size += GIB;
            }
            Event::Detach(number) => {
                // Also a disk that Windows has not enumerated can be detached.
                let Some(disk) = self.disks.remove(number) else {
                    return false;
                };
                self.detached.push(disk);
            }
            Event::Attach { enumerated } => {
                if !self.detached.is_empty() {
                    let disk = self.detached.remove(0);
                    self.attach(crate::reference_model::Disk {
                        enumerated: *enumerated,
                        ..disk
                    });
                }
            }
            Event::AttachNew { enumerated } => {
                let (disk, _) = another(self.next_key());
                self.attach(crate::reference_model::Disk {
                    enumerated: *enumerated,
                    ..disk
                });
            }
            // The record of mappings survives.
            Event::RestartDaemon => {}
            Event::SmbReachable(up) => self.smb_reachable = *up,
            Event::ChangePassword(user) => {
                *self.passwords.get_mut(user).expect("a user of the server") += 1;
            }
            Event::MakeDirectory(path) => {
                return self.write(path, &Entry::Directory(Directory::new()));
            }
            Event::WriteFile(path) => return self.write(path, &Entry::File),
        }
        true
    }

    /// Returns the key of the next new disk.
    pub(crate) fn next_key(&self) -> DiskKey {
        let used = self
            .disks
            .values()
            .chain(&self.detached)
            .map(|disk| disk.key);
        used.filter(|key| *key >= 30)
            .max()
            .map_or(30, |last| last + 1)
    }

    /// Creates an entry, if its parent is on `C:` or a volume and the name is free.
    fn write(&mut self, path: &str, entry: &Entry) -> bool {
        let Some((root, mut names)) = self.free(path) else {
            return false;
        };
        let name = names.pop().expect("a name");
        let directory = match root {
            Root::System => Some(&mut self.files),
            Root::Volume(key) => {
                let system = self
                    .volume_mut(key)
                    .and_then(|volume| volume.file_system.as_mut());
                system.map(|system| &mut system.files)
            }
            Root::Share(_) => None,
        };
        if let Some(directory) = directory.and_then(|files| inside_mut(files, &names)) {
            directory.insert(name, entry.clone());
        }
        true
    }

    /// Resolves a path that does not exist but has a parent on `C:` or a volume.
    fn free(&self, path: &str) -> Option<(Root, Vec<String>)> {
        let path = strict(path).ok()?;
        let (name, above) = path.split_last()?;
        let Resolved::At(root, mut names) = self.resolve(above, true) else {
            return None;
        };
        let exists = self
            .root(&root)
            .and_then(|files| crate::directory_tree::inside(files, &names))?
            .contains_key(name);
        names.push(name.clone());
        (!exists && !matches!(root, Root::Share(_))).then_some((root, names))
    }
}
