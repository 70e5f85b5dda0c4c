//! Opening a whole path below a directory in one call, which fails if it would have to follow a link.
//!
//! The flag `OBJ_DONT_REPARSE` requests this. A system that does not know the flag, such as Windows before 10 1507, may
//! ignore it or refuse the call. Therefore Windows must prove first that it honours the flag: when the daemon starts,
//! it opens paths through links that every installation of Windows has, for their attributes only. The answer
//! `REPARSE_POINT_ENCOUNTERED` is the proof: a system that ignores the flag does not return it. After every other
//! answer, or if Windows follows one of the links, the daemon opens all paths component by component. Wine accepts the
//! flag, but has no such links and therefore proves nothing.
//!
//! One proof is enough for all volumes. A file system does not follow a link itself but returns `STATUS_REPARSE` to the I/O
//! manager of the kernel, which parses the rest of the path, and which refuses instead if the flag is set. On a share the
//! client does the same for symbolic links. Junctions on the server are followed by the server in any case, and lead to
//! what it shares.
//!
//! Two answers of such a call are used: success, which means that no link is above the object; and `FILE_NOT_FOUND` or
//! `PATH_NOT_FOUND`, which means that no link is above the missing component. After every other answer, the path is
//! opened component by component, so that the error names the component.

use std::sync::OnceLock;

use os::{Access, Handle, NtPath, Open, Options, OsError, OsResult, U16Str, U16String};

use crate::error_class::ErrorClass;
use crate::host::{Fallback, Host};
use crate::paths::opening::OPEN_NOFOLLOW;
use crate::types::{HostPath, components};

/// Paths on the system drive through links that every installation of Windows has: a junction to `C:\Users`, whose name
/// depends on the language of Windows, and a symbolic link to `C:\ProgramData`.
const THROUGH_LINKS: [&str; 2] = [r"Documents and Settings\All Users", r"Users\All Users\Microsoft"];

/// Stands for a call that succeeded where it had to fail.
const SUCCESS: OsError = OsError(0);

/// Opens whole paths, if Windows has proved that it can do so without following links.
pub(crate) struct PathLookup {
    system_drive: char,
    /// Not set before the test.
    tested: OnceLock<Tested>,
}

enum Tested {
    /// The flag is honoured. The root directory of the system drive stays open: its volume is never dismounted while
    /// Windows runs, so the handle is as good as a new one.
    Honoured(Box<dyn Handle>),
    /// The flag is not known to be honoured, because of this answer.
    Unproved(OsError),
}

impl PathLookup {
    pub(crate) fn new(system_drive: char) -> Self {
        Self { system_drive, tested: OnceLock::new() }
    }

    /// Tests whether Windows honours the flag. Reads nothing but whether paths exist. Does not block other calls.
    pub(crate) fn test(&self, host: &Host) {
        let tested = self.find_proof(host).map_or_else(Tested::Unproved, Tested::Honoured);
        if let Tested::Unproved(code) = tested {
            tracing::info!(%code, "single-call path lookup is disabled: Windows did not prove that it refuses links");
        }
        // A second test changes nothing.
        let _ = self.tested.set(tested);
    }

    fn find_proof(&self, host: &Host) -> OsResult<Box<dyn Handle>> {
        let root = open_root(host, &NtPath::drive_root(self.system_drive))?;
        let answers = THROUGH_LINKS.map(|path| match root.open_below(&U16String::from_str(path), &OPEN_NOFOLLOW) {
            Ok(_) => SUCCESS,
            Err(code) => code,
        });
        // If one of the links was followed, the answer for the other one is no proof.
        if answers.contains(&SUCCESS) {
            return Err(SUCCESS);
        }
        if answers.contains(&OsError::REPARSE_POINT_ENCOUNTERED) { Ok(root) } else { Err(answers[0]) }
    }

    /// Returns the number of handles that stay open.
    pub(crate) fn held_handles(&self) -> usize {
        usize::from(matches!(self.tested.get(), Some(Tested::Honoured(_))))
    }

    /// Opens the object at `path` below `directory` to query it, in one call. No link is followed, not even in the last
    /// component.
    ///
    /// Returns the object, or `FILE_NOT_FOUND` or `PATH_NOT_FOUND`. Returns `None` if the components must be opened one by
    /// one.
    pub(crate) fn open_below(
        &self,
        host: &Host,
        directory: &dyn Handle,
        path: &U16Str,
    ) -> Option<OsResult<Box<dyn Handle>>> {
        self.honoured(host)?;
        found_or_missing(host, directory.open_below(path, &OPEN_NOFOLLOW))
    }

    /// Opens the object at `path` as [`Self::open_below`] does.
    pub(crate) fn open(&self, host: &Host, path: &HostPath) -> Option<OsResult<Box<dyn Handle>>> {
        // A single component has no links above it.
        let names = Some(path.names()).filter(|names| components(names).nth(1).is_some())?;
        let root = self.honoured(host)?;
        if path.drive().eq_ignore_ascii_case(&self.system_drive) {
            return self.open_below(host, root, names);
        }
        // Another volume may be dismounted at any time, or get another letter.
        let root = open_root(host, &path.drive_root()).ok()?;
        self.open_below(host, &*root, names)
    }

    /// Returns the root directory of the system drive if the flag is honoured; counts the fallback if it is not.
    fn honoured(&self, host: &Host) -> Option<&dyn Handle> {
        match self.tested.get()? {
            Tested::Honoured(root) => Some(&**root),
            Tested::Unproved(code) => {
                host.fallbacks.record(Fallback::PathLookup, *code);
                None
            }
        }
    }
}

fn open_root(host: &Host, path: &NtPath) -> OsResult<Box<dyn Handle>> {
    host.os().open(path, &Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY))
}

/// Returns `outcome` if the object was opened or is missing.
fn found_or_missing(host: &Host, outcome: OsResult<Box<dyn Handle>>) -> Option<OsResult<Box<dyn Handle>>> {
    match outcome {
        Ok(_) | Err(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND) => return Some(outcome),
        // The flag, and not an object on the path, may be what was refused.
        Err(code) if ErrorClass::UnsupportedOrInvalid.contains(code) => {
            host.fallbacks.record(Fallback::PathLookup, code);
        }
        Err(_) => {}
    }
    None
}
