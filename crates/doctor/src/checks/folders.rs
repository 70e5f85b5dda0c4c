//! The program, its log, the working directories, and the folders above them: whether accounts
//! other than administrators can replace any of these. LocalSystem runs the program, writes the log
//! and follows the paths of the working directories.

use os::OsError;
use storage_ops::HostPath;

use crate::access::{Role, is_ordinary, who_may_replace};
use crate::checks::pipes::words;
use crate::examination::Examination;
use crate::words::{counted, listed, quoted};

const CHECK: &str = "Folders";

/// `programs`: the program that the service starts and the program that serves the pipes, if they
/// are known.
pub(super) fn check(examination: &mut Examination<'_>, programs: [Option<String>; 2]) {
    let mut programs: Vec<_> = programs
        .into_iter()
        .flatten()
        .filter(|path| !path.is_empty())
        .collect();
    programs.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
    for program in programs {
        let mut objects = folders_of(&program);
        objects.insert(0, (program.clone(), Role::File));
        objects.dedup_by(|one, other| one.0 == other.0);
        check_objects(
            examination,
            &format!("program {}", quoted(&program)),
            objects,
            "LocalSystem would run a program that they put there",
        );
    }
    if let Some(file) = examination.settings.log_file.clone() {
        let consequence = "LocalSystem would write to a file of their choice";
        check_objects(
            examination,
            &format!("log {}", quoted(&file)),
            folders_of(&file),
            consequence,
        );
    }
    let node = &examination.settings.node;
    let directories: Vec<_> = std::iter::once(&node.kubelet_dir)
        .chain(&node.working_dirs)
        .cloned()
        .collect();
    for directory in directories {
        let consequence = "they could redirect csi-proxy to another directory";
        let mut objects = with_folders_above(&directory);
        // A directory that cannot be listed is reported with the links.
        if examination.inspector.is_empty(&directory) == Ok(true) {
            objects[0].1 = Role::Empty;
        }
        let what = format!("working directory {}", quoted(&directory.to_string()));
        check_objects(examination, &what, objects, consequence);
    }
}

/// Returns the folder of a file and those above it; the file itself if its path cannot be parsed.
fn folders_of(file: &str) -> Vec<(String, Role)> {
    let Ok(path) = HostPath::parse(file) else {
        return vec![(file.to_owned(), Role::Folder)];
    };
    let mut objects = with_folders_above(&path.parent());
    if let Some((_, role)) = objects.first_mut() {
        *role = Role::Folder;
    }
    objects
}

/// Returns a directory and those above it, up to the root of the drive.
fn with_folders_above(directory: &HostPath) -> Vec<(String, Role)> {
    let mut objects = vec![(directory.to_string(), Role::Above)];
    let mut path = directory.clone();
    while !path.is_drive_root() {
        path = path.parent();
        objects.push((path.to_string(), Role::Above));
    }
    objects
}

/// Checks the objects on the path of `what`.
fn check_objects(
    examination: &mut Examination<'_>,
    what: &str,
    objects: Vec<(String, Role)>,
    consequence: &str,
) {
    let Examination {
        inspector,
        names,
        report,
        ..
    } = examination;
    let (mut ordinary, mut others, mut safe) = (Vec::new(), Vec::new(), 0);
    let count = objects.len();
    for (path, role) in objects {
        let name = quoted(&path);
        let Ok(host_path) = HostPath::parse(&path) else {
            let seen = format!(
                "who may replace {name} could not be checked: it is not a path on a drive of the \
                 node"
            );
            report.skipped(
                CHECK,
                seen,
                "check its access list by hand; if it is on a server, use a path on a drive \
                 instead",
            );
            continue;
        };
        let access = match inspector.access(&host_path) {
            Ok(access) => access,
            // A missing working directory is reported as one, and the folders above it tell who may
            // create it.
            Err(error)
                if role == Role::Above
                    && matches!(
                        error.code(),
                        Some(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND)
                    ) =>
            {
                continue;
            }
            Err(error) => {
                report.unchecked(
                    CHECK,
                    format!("who may replace {name}"),
                    &error,
                    error.code(),
                );
                continue;
            }
        };
        let accounts = who_may_replace(role, &access);
        let found = format!("{name} ({})", words(&accounts, names));
        if accounts.is_empty() {
            safe += 1;
        } else if accounts.iter().any(|account| is_ordinary(account)) {
            ordinary.push(found);
        } else {
            others.push(found);
        }
    }
    if !ordinary.is_empty() {
        report.problem(
            CHECK,
            format!(
                "ordinary users can replace files or folders on the path of the {what}: {}",
                listed(&ordinary)
            ),
            format!("{consequence}; let only administrators write there (icacls)"),
        );
    }
    if !others.is_empty() {
        report.warning(
            CHECK,
            format!(
                "accounts other than administrators can replace files or folders on the path of \
                 the {what}: {}",
                listed(&others)
            ),
            format!(
                "{consequence}; make sure that you trust these accounts as much as administrators"
            ),
        );
    }
    if safe == count {
        report.ok(
            CHECK,
            format!(
                "only administrators can replace the {what} ({} checked)",
                counted(safe, "object")
            ),
        );
    }
}
