//! Looking up a whole path in one call, which fails if it would have to follow a link.
//!
//! Two calls do so. A query returns the attributes of the object at an absolute path without a
//! handle. An open opens a path below a directory. Both have the flag `OBJ_DONT_REPARSE`. A system
//! that does not know the flag, such as Windows before 10 1507, may ignore it or refuse the call.
//! Therefore Windows must prove for each call first that it honours the flag: when the daemon
//! starts, it makes the call for paths through two links, a junction and a symbolic link. The answer
//! `REPARSE_POINT_ENCOUNTERED` for both is the proof: a system that ignores the flag does not return
//! it, and a system may honour the flag for one kind of link only. After every other answer, such as
//! that one of the links does not exist, the daemon does not use the call, and opens all paths
//! component by component. Wine accepts the flag, but has no such links and therefore proves nothing.
//!
//! The query names the system volume by its device, as Windows names the root directory of that
//! volume: a drive letter is a link of the object manager. The query needs no proof if there can be
//! no link on the system volume, because its file system has no reparse points. Wine reports such a
//! file system. Under Wine, the query works only for paths with a drive letter, not for paths of a
//! device.
//!
//! One proof is enough for all volumes. A file system does not follow a link itself but returns
//! `STATUS_REPARSE` to the I/O manager of the kernel, which parses the rest of the path, and which
//! refuses instead if the flag is set. On a share the client does the same for symbolic links.
//! Junctions on the server are followed by the server in any case, and lead to what it shares.
//!
//! Two answers of such a call are used: success, which means that no link is above the object; and
//! `FILE_NOT_FOUND` or `PATH_NOT_FOUND`, which means that no link is above the missing component.
//! After every other answer, and if the query finds a link, the path is opened: in one call if that
//! suffices, else component by component, so that the error names the component.

use std::sync::OnceLock;

use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT};
use os::{Handle, NtPath, OsError, OsResult, PathForm, U16Str, U16String};

use crate::devices::file_system;
use crate::error_class::ErrorClass;
use crate::paths::opening::{OPEN_NOFOLLOW, open_directory};
use crate::types::{HostPath, components};
use crate::windows::{Fallback, Windows};

/// Paths on the system drive through links that Windows makes: a junction to `C:\Users`, whose name
/// depends on the language of Windows, and a symbolic link to `C:\ProgramData`.
const THROUGH_LINKS: [&str; 2] = [
    r"Documents and Settings\All Users",
    r"Users\All Users\Microsoft",
];

/// The code of success, under which a call is counted that followed a link and found its target.
const LINK_FOLLOWED: OsError = OsError(0);

/// What a call has answered for the paths through links.
enum Proof {
    /// It refused both because of the link.
    Refuses,
    /// It followed a link.
    Follows,
    /// It gave this other answer for one of them.
    Unknown(OsError),
}

impl Proof {
    fn of(look_up: impl Fn(&U16Str) -> OsResult<()>) -> Self {
        const REFUSED: OsError = OsError::REPARSE_POINT_ENCOUNTERED;
        match THROUGH_LINKS.map(|path| look_up(&U16String::from_str(path))) {
            [Err(REFUSED), Err(REFUSED)] => Self::Refuses,
            [Ok(()), _] | [_, Ok(())] => Self::Follows,
            [Err(REFUSED), Err(code)] | [Err(code), Err(_)] => Self::Unknown(code),
        }
    }

    /// Returns the answer that is no proof, unless the call refuses links.
    fn result(self) -> OsResult<()> {
        match self {
            Self::Refuses => Ok(()),
            Self::Follows => Err(LINK_FOLLOWED),
            Self::Unknown(code) => Err(code),
        }
    }
}

/// Looks up whole paths, if Windows has proved that it can do so without following links.
pub(crate) struct PathLookup {
    system_drive: char,
    /// Not set before the test.
    tested: OnceLock<Tested>,
}

/// What Windows has proved for each call, or the answer that is no proof.
///
/// Both concern the system volume, which Windows refuses to dismount, so that its root directory
/// and its name stay what they are (`VOL-34` in docs/facts.md).
struct Tested {
    /// The root directory of the system drive, below which paths are opened.
    open: OsResult<Box<dyn Handle>>,
    /// The path of that directory, below which paths are queried.
    query: OsResult<NtPath>,
}

impl PathLookup {
    pub(crate) fn new(system_drive: char) -> Self {
        Self {
            system_drive,
            tested: OnceLock::new(),
        }
    }

    /// Tests which calls refuse links. Reads nothing but whether paths exist. Does not block other
    /// calls.
    pub(crate) fn test(&self, windows: &Windows) {
        let root = open_directory(windows.os(), &NtPath::drive_root(self.system_drive));
        let query = root
            .as_ref()
            .map_err(|code| *code)
            .and_then(|root| self.query_root(windows, &**root));
        let open = root.and_then(|root| {
            let proof = Proof::of(|path| root.open_below(path, &OPEN_NOFOLLOW).map(drop));
            proof.result().map(|()| root)
        });
        // A second test changes nothing.
        let _ = self.tested.set(Tested { open, query });
    }

    /// Returns the path of `root`, the root directory of the system drive, below which a query
    /// follows no link.
    fn query_root(&self, windows: &Windows, root: &dyn Handle) -> OsResult<NtPath> {
        let paths = [
            root.final_path(PathForm::Device).map(NtPath::from_nt),
            Ok(NtPath::drive_root(self.system_drive)),
        ];
        let known = paths
            .into_iter()
            .flatten()
            .find(|path| {
                windows
                    .os()
                    .attributes(path)
                    .is_ok_and(|found| found & FILE_ATTRIBUTE_DIRECTORY != 0)
            })
            .ok_or(OsError::PATH_NOT_FOUND)?;
        match Proof::of(|path| windows.os().attributes(&known.join(path)).map(drop)) {
            Proof::Unknown(_) if has_no_links(root) => Ok(known),
            proof => proof.result().map(|()| known),
        }
    }

    /// Returns the number of handles that stay open.
    pub(crate) fn held_handles(&self) -> usize {
        self.tested
            .get()
            .map_or(0, |tested| tested.open.iter().count())
    }

    /// Queries whether the object at `path` exists, in one call without a handle.
    ///
    /// Returns success if it exists, and neither it nor a component above it is a link; `DIRECTORY`
    /// if the path asks for a directory and names a file; or `FILE_NOT_FOUND` or `PATH_NOT_FOUND`.
    /// Returns `None` if the object must be opened.
    pub(crate) fn query(&self, windows: &Windows, path: &HostPath) -> Option<OsResult<()>> {
        let tested = self
            .tested
            .get()
            .filter(|_| path.drive().eq_ignore_ascii_case(&self.system_drive))?;
        let root = proved(windows, &tested.query)?;
        let attributes =
            found_or_missing(windows, windows.os().attributes(&root.join(path.names())))?;
        match attributes {
            Ok(found) if found & FILE_ATTRIBUTE_REPARSE_POINT != 0 => None,
            Ok(found) if found & FILE_ATTRIBUTE_DIRECTORY == 0 && path.asks_for_directory() => {
                Some(Err(OsError::DIRECTORY))
            }
            outcome => Some(outcome.map(drop)),
        }
    }

    /// Opens the object at `path` below `directory` to query it, in one call. No link is followed,
    /// not even in the last component.
    ///
    /// Returns the object, or `FILE_NOT_FOUND` or `PATH_NOT_FOUND`. Returns `None` if the
    /// components must be opened one by one.
    pub(crate) fn open_below(
        &self,
        windows: &Windows,
        directory: &dyn Handle,
        path: &U16Str,
    ) -> Option<OsResult<Box<dyn Handle>>> {
        proved(windows, &self.tested.get()?.open)?;
        found_or_missing(windows, directory.open_below(path, &OPEN_NOFOLLOW))
    }

    /// Opens the object at `path` as [`Self::open_below`] does.
    pub(crate) fn open(
        &self,
        windows: &Windows,
        path: &HostPath,
    ) -> Option<OsResult<Box<dyn Handle>>> {
        // A single component has no links above it.
        let names = Some(path.names()).filter(|names| components(names).nth(1).is_some())?;
        let root = proved(windows, &self.tested.get()?.open)?;
        if path.drive().eq_ignore_ascii_case(&self.system_drive) {
            return self.open_below(windows, &**root, names);
        }
        // Another volume may be dismounted at any time, or get another letter.
        let root = open_directory(windows.os(), &path.drive_root()).ok()?;
        self.open_below(windows, &*root, names)
    }
}

/// Returns whether no link can be on the volume of `root`: the volume is on this node, where it has
/// a GUID, and its file system has no reparse points. What a share reports says nothing about the
/// links that its server follows.
fn has_no_links(root: &dyn Handle) -> bool {
    root.final_path(PathForm::VolumeGuid).is_ok()
        && file_system::has_reparse_points(root) == Ok(false)
}

/// Returns what was proved. If nothing was, counts that the fallback is used.
fn proved<'a, T>(windows: &Windows, proof: &'a OsResult<T>) -> Option<&'a T> {
    match proof {
        Ok(proved) => Some(proved),
        Err(code) => {
            windows.fallbacks.record(Fallback::PathLookup, *code);
            None
        }
    }
}

/// Returns `outcome` if the object was found or is missing.
fn found_or_missing<T>(windows: &Windows, outcome: OsResult<T>) -> Option<OsResult<T>> {
    match outcome {
        Ok(_) | Err(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND) => return Some(outcome),
        // The flag, and not an object on the path, may be what was refused.
        Err(code) if ErrorClass::UnsupportedOrInvalid.contains(code) => {
            windows.fallbacks.record(Fallback::PathLookup, code);
        }
        Err(_) => {}
    }
    None
}
