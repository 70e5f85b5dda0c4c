//! The folders of the program and of its log: creating them, and finding those in which ordinary
//! users may replace files.

use std::io;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use ::doctor::access::{Role, who_may_replace};
use os_win32::file_security::{self, ADMINISTRATORS_ONLY};
use os_win32::system;

use crate::flags::LogFlags;

/// The error for an access control list with an entry of an unknown kind.
const ERROR_INVALID_SECURITY_DESCR: i32 = 1338;

/// Creates a folder and those above it that do not exist, with access for LocalSystem and
/// Administrators only. Does not change a folder that exists.
fn create(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|path| !path.exists())
        .collect();
    for path in missing.into_iter().rev() {
        match file_security::create_folder(path, ADMINISTRATORS_ONLY) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("cannot create {}: {error}", path.display()),
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the path of the file that the service writes its log to, and creates its folder.
pub(super) fn create_for_log(flags: &LogFlags) -> io::Result<Option<PathBuf>> {
    // Windows starts a service in the system directory.
    let directory = system::directory()?;
    let log = flags.file.as_deref().map(|file| directory.join(file));
    if let Some(folder) = log.as_deref().and_then(Path::parent) {
        create(folder)?;
    }
    Ok(log)
}

/// Returns `file` and the folders above it that an account other than administrators may replace.
///
/// Omits a file that does not exist. Resolves links first.
pub(super) fn unsafe_objects(file: &Path) -> io::Result<Vec<Unsafe>> {
    let cannot = |path: &Path, error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("cannot read who may write to {}: {error}", path.display()),
        )
    };
    let folder = file.parent().unwrap_or(file);
    let folder = fs::canonicalize(folder).map_err(|error| cannot(folder, error))?;
    let program = file
        .file_name()
        .map(|name| folder.join(name))
        .filter(|path| path.exists());
    let above = folder.ancestors().skip(1).map(|path| (path, Role::Above));
    let all = program
        .iter()
        .map(|path| (path.as_path(), Role::File))
        .chain([(folder.as_path(), Role::Folder)]);
    let mut found = Vec::new();
    for (path, role) in all.chain(above) {
        let descriptor = file_security::security_descriptor(path).map_err(|error| {
            match error.raw_os_error() {
                Some(ERROR_INVALID_SECURITY_DESCR) => cannot(
                    path,
                    io::Error::other("its access control list has an unknown form"),
                ),
                _ => cannot(path, error),
            }
        })?;
        let accounts = who_may_replace(role, &descriptor);
        if !accounts.is_empty() {
            found.push(Unsafe {
                path: path.to_owned(),
                role,
                accounts,
            });
        }
    }
    Ok(found)
}

/// A file or folder that accounts other than administrators may replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unsafe {
    path: PathBuf,
    role: Role,
    /// The SIDs of the accounts.
    accounts: Vec<String>,
}

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |sid: &String| {
            file_security::account(sid)
                .map_or_else(|_| sid.clone(), |name| format!("{name} ({sid})"))
        };
        let accounts: Vec<_> = self.accounts.iter().map(named).collect();
        // An administrator does not write the prefix of a canonical path.
        let path = self.path.to_string_lossy();
        let path = path
            .strip_prefix(r"\\?\")
            .filter(|rest| !rest.starts_with("UNC"))
            .unwrap_or(&path);
        write!(f, "{} may ", accounts.join(", "))?;
        match self.role {
            Role::File => write!(f, "change or replace {path}"),
            Role::Folder => write!(f, "change what is in {path}"),
            Role::Above | Role::Empty => write!(f, "rename or replace {path} or a folder in it"),
        }
    }
}
