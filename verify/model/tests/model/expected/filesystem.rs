//! The calls of the filesystem group.

use tonic::Code;

use super::{
    BEHIND_FILE, Checked, Expected, NOT_FOUND, PRECONDITION, TAKEN, Violations, changeable, loose,
    strict, working,
};
use crate::directory_tree::{Directory, Entry, Lookup, Names, Resolved, Target, all, inside_mut};
use crate::reference_model::{KUBELET, Model};

impl Model {
    pub(super) fn path_exists(&self, path: &str) -> Checked<Expected> {
        let path = strict(path)?;
        if path == KUBELET {
            return Ok(Expected::bool(true));
        }
        let path = working(path)?;
        Ok(match self.look_up(&path) {
            Lookup::Entry(_) => Expected::bool(true),
            Lookup::Absent | Lookup::NoParent | Lookup::BehindFile => Expected::bool(false),
            Lookup::BehindLink => Expected::fails(PRECONDITION),
        })
    }

    pub(super) fn mkdir(&mut self, path: &str) -> Checked<Expected> {
        let path = strict(path)?;
        if path == KUBELET {
            return Ok(Expected::nothing());
        }
        let path = working(path)?;
        match self.look_up(&path) {
            Lookup::Entry(Entry::Directory(_) | Entry::Mount(_)) => Ok(Expected::nothing()),
            Lookup::Entry(Entry::Link(_)) => Ok(match self.resolve(&path, true) {
                Resolved::At(root, names) => match self.entry(&root, &names) {
                    Some(Entry::File) => Expected::fails(TAKEN),
                    _ => Expected::nothing(),
                },
                Resolved::Missing => Expected::fails(TAKEN),
                Resolved::Unreachable | Resolved::AccessDenied => Expected::Unspecified,
            }),
            Lookup::Entry(Entry::File | Entry::FileLink(_)) => Ok(Expected::fails(TAKEN)),
            Lookup::BehindLink => Ok(Expected::fails(PRECONDITION)),
            Lookup::BehindFile => Ok(Expected::fails(BEHIND_FILE)),
            Lookup::Absent | Lookup::NoParent => {
                self.make_directories(&path);
                Ok(Expected::nothing())
            }
        }
    }

    pub(super) fn rmdir(&mut self, path: &str, force: bool) -> Checked<Expected> {
        let path = changeable(strict(path)?)?;
        match self.look_up(&path) {
            Lookup::Entry(Entry::Directory(inner)) if !force && !inner.is_empty() => {
                return Ok(Expected::fails(PRECONDITION));
            }
            Lookup::Entry(_) => {}
            Lookup::Absent | Lookup::NoParent if force => return Ok(Expected::nothing()),
            Lookup::Absent | Lookup::NoParent => return Ok(Expected::fails(NOT_FOUND)),
            Lookup::BehindFile => return Ok(Expected::Unspecified),
            Lookup::BehindLink => return Ok(Expected::fails(PRECONDITION)),
        }
        self.remove(&path);
        Ok(Expected::nothing())
    }

    pub(super) fn rmdir_contents(&mut self, path: &str) -> Checked<Expected> {
        let path = changeable(strict(path)?)?;
        match self.look_up(&path) {
            Lookup::Entry(Entry::Directory(_)) => {
                inside_mut(&mut self.files, &path)
                    .expect("the directory exists")
                    .clear();
            }
            Lookup::Entry(Entry::Mount(key)) => {
                let key = *key;
                let mount_points = all(&self.files)
                    .into_iter()
                    .filter(|(_, entry)| **entry == Entry::Mount(key));
                if mount_points.count() > 1 && self.is_present(key) {
                    return Ok(Expected::fails(PRECONDITION));
                }
                let volume = self
                    .volume_mut(key)
                    .and_then(|volume| volume.file_system.as_mut());
                match volume {
                    Some(system) if system.name == "NTFS" => system.files.clear(),
                    _ => return Ok(Expected::Unspecified),
                }
            }
            Lookup::Entry(_) | Lookup::BehindLink => return Ok(Expected::fails(PRECONDITION)),
            Lookup::Absent | Lookup::NoParent => return Ok(Expected::fails(NOT_FOUND)),
            Lookup::BehindFile => return Ok(Expected::fails(BEHIND_FILE)),
        }
        Ok(Expected::nothing())
    }

    pub(super) fn create_symlink(&mut self, source: &str, link: &str) -> Checked<Expected> {
        let mut violations = Violations::default();
        let whole = |names: Names| {
            if names == KUBELET {
                Ok(names)
            } else {
                working(names)
            }
        };
        let source = violations.collect(strict(source).and_then(whole));
        let link = violations.collect(strict(link).and_then(changeable));
        let target = source.map(Target::Path);
        if let Some(link) = &link {
            violations.collect(self.check_link_path(link, target.as_ref()));
        }
        violations.into_result()?;
        if let (Some(Target::Path(source)), Some(link)) = (target, link) {
            let resolved = self.resolve(&source, false);
            let of_file = match &resolved {
                Resolved::At(root, names) => {
                    matches!(
                        self.entry(root, names),
                        Some(Entry::File | Entry::FileLink(_))
                    )
                }
                _ => false,
            };
            if let Lookup::Entry(existing) = self.look_up(&link) {
                let is_same_kind = matches!(existing, Entry::FileLink(_)) == of_file;
                return if is_same_kind || !matches!(resolved, Resolved::At(..)) {
                    Ok(Expected::nothing())
                } else {
                    Err(Violations::of(TAKEN))
                };
            }
            // The kind of the link depends on the source, which cannot be read.
            if matches!(resolved, Resolved::AccessDenied) {
                return Err(Violations::of(&[Code::PermissionDenied]));
            }
            let target = Target::Path(source);
            self.insert(
                &link,
                if of_file {
                    Entry::FileLink(target)
                } else {
                    Entry::Link(target)
                },
            );
        }
        Ok(Expected::nothing())
    }

    /// Checks that a link can be created, or exists with the same target.
    pub(super) fn check_link_path(&self, link: &[String], target: Option<&Target>) -> Checked<()> {
        match self.look_up(link) {
            Lookup::Absent => Ok(()),
            Lookup::Entry(Entry::Link(existing) | Entry::FileLink(existing))
                if Some(existing) == target =>
            {
                Ok(())
            }
            Lookup::Entry(_) => Err(Violations::of(TAKEN)),
            Lookup::NoParent => Err(Violations::of(NOT_FOUND)),
            Lookup::BehindLink => Err(Violations::of(PRECONDITION)),
            Lookup::BehindFile => Err(Violations::of(BEHIND_FILE)),
        }
    }

    pub(super) fn is_symlink(&self, path: &str) -> Checked<Expected> {
        let path = loose(path)?;
        Ok(match self.resolve(&path, false) {
            Resolved::Missing => Expected::fails(&[Code::NotFound]),
            Resolved::Unreachable | Resolved::AccessDenied => Expected::Unspecified,
            Resolved::At(root, names) => match self.entry(&root, &names) {
                None | Some(Entry::Directory(_) | Entry::File) => Expected::bool(false),
                Some(Entry::Mount(key)) => Expected::bool(self.is_present(*key)),
                // The target may be a link, which exists even if it is dangling.
                Some(Entry::Link(Target::Path(target)) | Entry::FileLink(Target::Path(target))) => {
                    match self.resolve(target, false) {
                        Resolved::At(..) => Expected::bool(true),
                        Resolved::Missing => Expected::bool(false),
                        Resolved::Unreachable | Resolved::AccessDenied => Expected::Unspecified,
                    }
                }
                Some(Entry::Link(Target::Share(..)) | Entry::FileLink(Target::Share(..))) => {
                    match self.resolve(&path, true) {
                        Resolved::At(..) => Expected::bool(true),
                        Resolved::Missing => Expected::bool(false),
                        Resolved::Unreachable | Resolved::AccessDenied => Expected::Unspecified,
                    }
                }
            },
        })
    }

    pub(super) fn make_directories(&mut self, path: &[String]) {
        let mut directory = &mut self.files;
        for name in path {
            let entry = directory
                .entry(name.clone())
                .or_insert_with(|| Entry::Directory(Directory::new()));
            let Entry::Directory(inner) = entry else {
                return;
            };
            directory = inner;
        }
    }

    fn remove(&mut self, path: &Names) {
        let (name, above) = path.split_last().expect("a path has a name");
        inside_mut(&mut self.files, above)
            .expect("the parent exists")
            .remove(name);
    }
}
