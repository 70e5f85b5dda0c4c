//! The working directories: whether they exist, and whether their file systems can hold links.

use os::OsError;

use crate::Examination;
use crate::checks::quoted;

const CHECK: &str = "Working directories";

/// The file systems that have reparse points, and so links and mount points.
const WITH_LINKS: [&str; 2] = ["NTFS", "ReFS"];

pub(super) fn check(examination: &mut Examination<'_>) {
    let Examination { settings, inspector, report, .. } = examination;
    let node = &settings.node;
    let all = std::iter::once(&node.kubelet_dir).chain(&node.working_dirs).chain(&node.plugin_dir).chain(&node.pod_dir);
    for path in all {
        let directory = quoted(&path.to_string());
        match inspector.file_system_of_directory(path) {
            Ok(Some(name)) if WITH_LINKS.contains(&name.as_str()) => {
                report.ok(CHECK, format!("{directory} exists, on {name}, which can hold links and mount points"));
            }
            Ok(name) => {
                let name = name.map_or_else(|| "a file system without a name".to_owned(), |name| quoted(&name));
                report.problem(
                    CHECK,
                    format!("{directory} is on {name}, which cannot hold links and mount points"),
                    "use a directory on NTFS (-kubelet-path, -working-dir)",
                );
            }
            Err(error) if matches!(error.code(), Some(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND)) => {
                report.problem(
                    CHECK,
                    format!("{directory} does not exist"),
                    "start kubelet, which creates its directory, or correct -kubelet-path and -working-dir",
                );
            }
            Err(error) => report.unchecked(CHECK, directory, &error, error.code()),
        }
    }
}
