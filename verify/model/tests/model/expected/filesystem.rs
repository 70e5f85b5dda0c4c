//! The filesystem group.

use tonic::Code;

use super::{BEHIND_FILE, Checked, Expected, Faults, NOT_THERE, PRECONDITION, TAKEN, loose, strict, working};
use crate::directory_tree::{Directory, Entry, Found, Location, Names, Target, inside_mut};
use crate::reference_model::{KUBELET, Model};

impl Model {
    pub(super) fn path_exists(&self, path: &str) -> Checked<Expected> {
        let path = strict(path)?;
        if path == KUBELET {
            return Ok(Expected::yes(true));
        }
        let path = working(path)?;
        Ok(match self.place(&path) {
            Location::Entry(_) => Expected::yes(true),
            Location::Absent | Location::NoParent | Location::BehindFile => Expected::yes(false),
            Location::BehindLink => Expected::fails(PRECONDITION),
        })
    }

    pub(super) fn mkdir(&mut self, path: &str) -> Checked<Expected> {
        let path = strict(path)?;
        if path == KUBELET {
            return Ok(Expected::nothing());
        }
        let path = working(path)?;
        match self.place(&path) {
            // A link is not looked through.
            Location::Entry(Entry::Directory(_) | Entry::Link(_) | Entry::Mount(_)) => Ok(Expected::nothing()),
            Location::Entry(Entry::File | Entry::FileLink(_)) => Ok(Expected::fails(TAKEN)),
            Location::BehindLink => Ok(Expected::fails(PRECONDITION)),
            Location::BehindFile => Ok(Expected::fails(BEHIND_FILE)),
            Location::Absent | Location::NoParent => {
                self.make_directories(&path);
                Ok(Expected::nothing())
            }
        }
    }

    pub(super) fn rmdir(&mut self, path: &str, force: bool) -> Checked<Expected> {
        let path = working(strict(path)?)?;
        match self.place(&path) {
            Location::Entry(Entry::Directory(inner)) if !force && !inner.is_empty() => {
                return Ok(Expected::fails(PRECONDITION));
            }
            Location::Entry(_) => {}
            Location::Absent | Location::NoParent if force => return Ok(Expected::nothing()),
            Location::Absent | Location::NoParent => return Ok(Expected::fails(NOT_THERE)),
            Location::BehindFile => return Ok(Expected::Anything),
            Location::BehindLink => return Ok(Expected::fails(PRECONDITION)),
        }
        self.take(&path);
        Ok(Expected::nothing())
    }

    pub(super) fn rmdir_contents(&mut self, path: &str) -> Checked<Expected> {
        let path = working(strict(path)?)?;
        match self.place(&path) {
            Location::Entry(Entry::Directory(_)) => {
                inside_mut(&mut self.files, &path).expect("it is there").clear();
            }
            Location::Entry(Entry::Mount(key)) => {
                let key = *key;
                let volume = self.volume_mut(key).and_then(|volume| volume.file_system.as_mut());
                match volume {
                    Some(system) if system.name == "NTFS" => system.files.clear(),
                    _ => return Ok(Expected::Anything),
                }
            }
            Location::Entry(_) | Location::BehindLink => return Ok(Expected::fails(PRECONDITION)),
            Location::Absent | Location::NoParent => return Ok(Expected::fails(NOT_THERE)),
            Location::BehindFile => return Ok(Expected::fails(BEHIND_FILE)),
        }
        Ok(Expected::nothing())
    }

    pub(super) fn create_symlink(&mut self, source: &str, link: &str) -> Checked<Expected> {
        let mut faults = Faults::default();
        let whole = |names: Names| if names == KUBELET { Ok(names) } else { working(names) };
        let source = faults.note(strict(source).and_then(whole));
        let link = faults.note(strict(link).and_then(working));
        let target = source.map(Target::Path);
        if let Some(link) = &link {
            faults.note(self.room_for_link(link, target.as_ref()));
        }
        faults.none()?;
        if let (Some(Target::Path(source)), Some(link)) = (target, link)
            && !matches!(self.place(&link), Location::Entry(_))
        {
            let of_file = match self.walk(&source, false) {
                Found::At(root, names) => {
                    matches!(self.entry(&root, &names), Some(Entry::File | Entry::FileLink(_)))
                }
                Found::Missing | Found::Gone => false,
                // It is not known to be missing, and so not what kind the link has to be.
                Found::Refused => return Err(Faults::of(&[Code::PermissionDenied])),
            };
            let target = Target::Path(source);
            self.put(&link, if of_file { Entry::FileLink(target) } else { Entry::Link(target) });
        }
        Ok(Expected::nothing())
    }

    /// Checks that a link can be made, or is the very one that is there.
    pub(super) fn room_for_link(&self, link: &[String], target: Option<&Target>) -> Checked<()> {
        match self.place(link) {
            Location::Absent => Ok(()),
            Location::Entry(Entry::Link(there) | Entry::FileLink(there)) if Some(there) == target => Ok(()),
            Location::Entry(_) => Err(Faults::of(TAKEN)),
            Location::NoParent => Err(Faults::of(NOT_THERE)),
            Location::BehindLink => Err(Faults::of(PRECONDITION)),
            Location::BehindFile => Err(Faults::of(BEHIND_FILE)),
        }
    }

    pub(super) fn is_symlink(&self, path: &str) -> Checked<Expected> {
        let path = loose(path)?;
        Ok(match self.walk(&path, false) {
            Found::Missing => Expected::fails(&[Code::NotFound]),
            Found::Gone | Found::Refused => Expected::Anything,
            Found::At(root, names) => match self.entry(&root, &names) {
                None | Some(Entry::Directory(_) | Entry::File) => Expected::yes(false),
                Some(Entry::Mount(key)) => Expected::yes(self.is_present(*key)),
                // What it leads to may be a link again, which is there whatever that one leads to.
                Some(Entry::Link(Target::Path(target)) | Entry::FileLink(Target::Path(target))) => {
                    match self.walk(target, false) {
                        Found::At(..) => Expected::yes(true),
                        Found::Missing => Expected::yes(false),
                        Found::Gone | Found::Refused => Expected::Anything,
                    }
                }
                Some(Entry::Link(Target::Share(..)) | Entry::FileLink(Target::Share(..))) => {
                    match self.walk(&path, true) {
                        Found::At(..) => Expected::yes(true),
                        Found::Missing => Expected::yes(false),
                        Found::Gone | Found::Refused => Expected::Anything,
                    }
                }
            },
        })
    }

    pub(super) fn make_directories(&mut self, path: &[String]) {
        let mut directory = &mut self.files;
        for name in path {
            let entry = directory.entry(name.clone()).or_insert_with(|| Entry::Directory(Directory::new()));
            let Entry::Directory(inner) = entry else { return };
            directory = inner;
        }
    }

    fn take(&mut self, path: &Names) {
        let (name, above) = path.split_last().expect("a path has a name");
        inside_mut(&mut self.files, above).expect("its parent is there").remove(name);
    }
}
