//! Opening a path without leaving the node: no link to a server is followed, not even through other
//! links.
//!
//! Windows follows no link here. Each component is opened relative to the handle of its parent, and
//! the target of a link is opened in the same way, so that a link that another process creates
//! meanwhile is not followed either. The functions of `links` only tell which links a path has at
//! the moment; Windows then opens it.

use os::abi::FILE_ATTRIBUTE_DIRECTORY;
use os::{Handle, NtPath, Open, Os, OsError, PathForm, U16Str, U16String};

use crate::devices::{Link, buffer};
use crate::error::{OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::paths::opening::{MAX_LINKS, NOFOLLOW_NOWAIT, OPEN_NOFOLLOW};
use crate::paths::refused_links;
use crate::types::{HostPath, VolumeId, components, upper_case};

/// Opens the object at `path`; links to other places on the node are followed.
///
/// `is_of_volume` tells whether a drive is a volume. Other drives, such as network drives, are not
/// opened.
///
/// Errors: those of the opens; `REPARSE_POINT_ENCOUNTERED` if the path leads off the node, or to a
/// target that only Windows can resolve; `INVALID_REPARSE_DATA` at a link that climbs above the
/// root directory; `CANT_ACCESS_FILE` at a reparse point that is not a link;
/// `CANT_RESOLVE_FILENAME` if there are too many links.
pub(crate) fn open(
    os: &dyn Os,
    path: &HostPath,
    how: &Open,
    is_of_volume: &dyn Fn(char) -> OperationResult<bool>,
) -> OperationResult<Box<dyn Handle>> {
    let how = Open {
        options: how.options | NOFOLLOW_NOWAIT,
        ..*how
    };
    let mut path = RootedPath {
        root: Root::Drive(path.drive()),
        names: names_of(path),
    };
    for _ in 0..=MAX_LINKS {
        if let Root::Drive(letter) = path.root
            && !is_of_volume(letter)?
        {
            return Err(off_node());
        }
        path = match path.open(os, &how)? {
            Found::Object(object) => return Ok(object),
            Found::Link(link, at) => path.behind(&link, at)?,
        };
    }
    Err(OsError::CANT_RESOLVE_FILENAME.into())
}

/// Opens the root directories on the way to `path`, which must exist: the root of its drive, and
/// the root of each drive or volume that a link leads to. Does not follow a link to a server.
///
/// Adds those that it has opened to `roots` even if it fails.
///
/// Errors: as those of [`open`].
pub(crate) fn roots(
    os: &dyn Os,
    path: &HostPath,
    roots: &mut Vec<Box<dyn Handle>>,
) -> OperationResult<()> {
    let mut path = RootedPath {
        root: Root::Drive(path.drive()),
        names: names_of(path),
    };
    for _ in 0..=MAX_LINKS {
        roots.push(os.open(&path.root(), &OPEN_NOFOLLOW)?);
        if path.names.is_empty() {
            return Ok(());
        }
        path = match path.open(os, &OPEN_NOFOLLOW)? {
            Found::Object(_) => return Ok(()),
            Found::Link(link, _) if link.server().is_some() => return Ok(()),
            Found::Link(link, at) => path.behind(&link, at)?,
        };
    }
    Err(OsError::CANT_RESOLVE_FILENAME.into())
}

/// Returns the volumes on the way to `path`: that of its drive, and those of each drive and volume
/// that a link leads to. The way ends at a link to a server, at a drive that is no volume (see
/// [`open`]), and where nothing exists. A volume at its end is not opened.
///
/// Errors: as those of [`open`], except those of the ends of the way.
pub(crate) fn volumes(
    os: &dyn Os,
    path: &HostPath,
    is_of_volume: &dyn Fn(char) -> OperationResult<bool>,
) -> OperationResult<Vec<VolumeId>> {
    let mut path = RootedPath {
        root: Root::Drive(path.drive()),
        names: names_of(path),
    };
    let mut volumes = Vec::new();
    for _ in 0..=MAX_LINKS {
        match path.root {
            Root::Volume(volume) => {
                volumes.push(volume);
                if path.names.is_empty() {
                    return Ok(volumes);
                }
            }
            Root::Drive(letter) if !is_of_volume(letter)? => return Ok(volumes),
            Root::Drive(_) => {
                let root = os.open(&path.root(), &OPEN_NOFOLLOW)?;
                let place = root.final_path(PathForm::VolumeGuid)?;
                let (volume, _) = VolumeId::of_final_path(&place).ok_or(OsError::PATH_NOT_FOUND)?;
                volumes.push(volume);
            }
        }
        path = match path.open(os, &OPEN_NOFOLLOW) {
            Ok(Found::Object(_)) => return Ok(volumes),
            Ok(Found::Link(link, _)) if link.server().is_some() => return Ok(volumes),
            Ok(Found::Link(link, at)) => path.behind(&link, at)?,
            Err(error) if error.is_of(ErrorClass::TargetMissing) => return Ok(volumes),
            Err(error) => return Err(error),
        };
    }
    Err(OsError::CANT_RESOLVE_FILENAME.into())
}

/// Returns the places of the links on the way to `path`, and the place of the object that `path`
/// leads to: final paths, in upper case and without a final backslash. Ends at the first component
/// that cannot be opened.
pub(crate) fn places(os: &dyn Os, path: &HostPath) -> Vec<U16String> {
    let mut path = RootedPath {
        root: Root::Drive(path.drive()),
        names: names_of(path),
    };
    let mut places = Vec::new();
    for _ in 0..=MAX_LINKS {
        match path.open(os, &OPEN_NOFOLLOW) {
            Ok(Found::Object(object)) => {
                places.extend(place_of(&*object));
                break;
            }
            Ok(Found::Link(link, at)) => {
                let root = os
                    .open(&path.root(), &OPEN_NOFOLLOW)
                    .ok()
                    .and_then(|root| place_of(&*root));
                places.extend(root.map(|mut place| {
                    for name in &path.names[..=at] {
                        place.push_char('\\');
                        place.push(upper_case(name));
                    }
                    place
                }));
                let Ok(next) = path.behind(&link, at) else {
                    break;
                };
                path = next;
            }
            Err(_) => break,
        }
    }
    places
}

fn place_of(object: &dyn Handle) -> Option<U16String> {
    let path = object
        .final_path(PathForm::VolumeGuid)
        .or_else(|_| object.final_path(PathForm::Dos))
        .ok()?;
    let path = path
        .as_slice()
        .strip_suffix(&[u16::from(b'\\')])
        .unwrap_or(path.as_slice());
    Some(upper_case(U16Str::from_slice(path)))
}

/// A path, from a root directory.
struct RootedPath {
    root: Root,
    names: Vec<U16String>,
}

#[derive(Clone, Copy)]
enum Root {
    Drive(char),
    Volume(VolumeId),
}

enum Found {
    Object(Box<dyn Handle>),
    /// The component with this index is a link.
    Link(Link, usize),
}

impl RootedPath {
    fn root(&self) -> NtPath {
        match self.root {
            Root::Drive(letter) => NtPath::drive_root(letter),
            Root::Volume(volume) => volume.root(),
        }
    }

    /// Opens the components up to the first link.
    fn open(&self, os: &dyn Os, how: &Open) -> OperationResult<Found> {
        let root = self.root();
        let Some((last, above)) = self.names.split_last() else {
            return Ok(Found::Object(os.open(&root, how)?));
        };
        let mut directory = os.open(&root, &OPEN_NOFOLLOW)?;
        for (at, name) in above.iter().enumerate() {
            let child = directory.open_child(name, &OPEN_NOFOLLOW)?;
            if let Some(link) = Link::of(&*child)? {
                return Ok(Found::Link(link, at));
            }
            if buffer::attributes(&*child)?.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 {
                return Err(OsError::PATH_NOT_FOUND.into());
            }
            directory = child;
        }
        if let Some(link) = Link::of(&*directory.open_child(last, &OPEN_NOFOLLOW)?)? {
            return Ok(Found::Link(link, above.len()));
        }
        Ok(Found::Object(directory.open_child(last, how)?))
    }

    /// Returns where the path leads if its component `at` is `link`.
    fn behind(&self, link: &Link, at: usize) -> OperationResult<Self> {
        let (root, mut names) = match (link, link.path_on_volume(), link.host_path()) {
            (_, Some((volume, below)), _) => (
                Root::Volume(volume),
                components(&below).map(ToOwned::to_owned).collect(),
            ),
            (_, _, Some(target)) => (Root::Drive(target.drive()), names_of(&target)),
            (Link::Relative(target), ..) => (
                self.root,
                relative(&self.names[..at], target).ok_or(OsError::INVALID_REPARSE_DATA)?,
            ),
            (Link::Other, ..) => {
                let what = format!(
                    "{} is a reparse point that is not a link",
                    self.names[at].display()
                );
                return Err(OperationError::of(OsError::CANT_ACCESS_FILE, what));
            }
            _ => return Err(off_node()),
        };
        names.extend_from_slice(&self.names[at + 1..]);
        Ok(Self { root, names })
    }
}

fn off_node() -> OperationError {
    refused_links::refusal(
        "the path leads off the node (by a link, or because the drive is no volume) and was not \
         followed",
    )
}

fn names_of(path: &HostPath) -> Vec<U16String> {
    components(path.names()).map(ToOwned::to_owned).collect()
}

/// Returns the path that the target of a link names in the directory `above`; `None` if it is above
/// the root.
fn relative(above: &[U16String], target: &U16Str) -> Option<Vec<U16String>> {
    const SEPARATOR: u16 = b'\\' as u16;
    let is_from_root = target.as_slice().first() == Some(&SEPARATOR);
    let mut names = if is_from_root {
        Vec::new()
    } else {
        above.to_vec()
    };
    for part in target.as_slice().split(|unit| *unit == SEPARATOR) {
        match U16Str::from_slice(part).to_string_lossy().as_str() {
            "" | "." => {}
            ".." => drop(names.pop()?),
            _ => names.push(U16String::from_vec(part)),
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use os::U16String;

    use super::relative;

    fn names(text: &str) -> Vec<U16String> {
        text.split_whitespace()
            .map(U16String::from_str)
            .collect::<Vec<_>>()
    }

    #[test]
    fn a_relative_target_is_resolved_from_the_directory_of_the_link() {
        for (above, target, expected) in [
            ("a b", r"c\d", Some("a b c d")),
            ("a b", r"..\c\.\d\", Some("a c d")),
            ("a b", r"..\..\", Some("")),
            ("a b", r"..\..\..\c", None),
            ("a b", r"\c", Some("c")),
        ] {
            let found = relative(&names(above), &U16String::from_str(target));
            assert_eq!(found, expected.map(names), "{target} in {above}");
        }
    }
}
