//! What happens without csi-proxy.

use super::strict;
use crate::directory_tree::{Directory, Entry, Found, Key, Root, inside_mut};
use crate::reference_model::{GIB, Model, another};
use crate::transition::Event;

impl Model {
    /// Says whether there was a place for it.
    pub(super) fn happen(&mut self, event: &Event) -> bool {
        match event {
            Event::Grow(number) => {
                let Some(disk) = self.disks.get_mut(number).filter(|disk| disk.noticed) else { return false };
                disk.size += GIB;
            }
            Event::Detach(number) => {
                if self.disk(*number).is_none() {
                    return false;
                }
                self.drawer.extend(self.disks.remove(number));
            }
            Event::Attach { noticed } => {
                if !self.drawer.is_empty() {
                    let disk = self.drawer.remove(0);
                    self.plug(crate::reference_model::Disk { noticed: *noticed, ..disk });
                }
            }
            Event::Another { noticed } => {
                let (disk, _) = another(self.next_key());
                self.plug(crate::reference_model::Disk { noticed: *noticed, ..disk });
            }
            Event::Restart => self.mappings.values_mut().for_each(|mapping| mapping.known = false),
            Event::Network(up) => self.network = *up,
            Event::Rotate(user) => *self.passwords.get_mut(user).expect("a user of the server") += 1,
            Event::Directory(path) => return self.write(path, &Entry::Directory(Directory::new())),
            Event::File(path) => return self.write(path, &Entry::File),
        }
        true
    }

    /// The name of a disk that comes new.
    pub(crate) fn next_key(&self) -> Key {
        let used = self.disks.values().chain(&self.drawer).map(|disk| disk.key);
        used.filter(|key| *key >= 30).max().map_or(30, |last| last + 1)
    }

    /// Makes something of a name that is free, in a directory of `C:` or a volume.
    fn write(&mut self, path: &str, entry: &Entry) -> bool {
        let Some((root, mut names)) = self.free(path) else { return false };
        let name = names.pop().expect("a name");
        let directory = match root {
            Root::System => Some(&mut self.files),
            Root::Volume(key) => {
                let system = self.volume_mut(key).and_then(|volume| volume.file_system.as_mut());
                system.map(|system| &mut system.files)
            }
            Root::Share(_) => None,
        };
        if let Some(directory) = directory.and_then(|files| inside_mut(files, &names)) {
            directory.insert(name, entry.clone());
        }
        true
    }

    /// Where a path leads that has a parent, on `C:` or a volume, but is not there itself.
    fn free(&self, path: &str) -> Option<(Root, Vec<String>)> {
        let path = strict(path).ok()?;
        let (name, above) = path.split_last()?;
        let Found::At(root, mut names) = self.walk(above, true) else { return None };
        let is_there =
            self.root(&root).and_then(|files| crate::directory_tree::inside(files, &names))?.contains_key(name);
        names.push(name.clone());
        (!is_there && !matches!(root, Root::Share(_))).then_some((root, names))
    }
}
