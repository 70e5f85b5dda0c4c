//! The working directories: whether they exist, whether their file systems can hold links, and
//! whether csi-proxy can reach a working directory that lies in another working directory.

use os::OsError;
use storage_ops::HostPath;

use crate::examination::Examination;
use crate::words::quoted;

const CHECK: &str = "Working directories";

/// The file systems that have reparse points, and so links and mount points.
const WITH_LINKS: [&str; 2] = ["NTFS", "ReFS"];

pub(super) fn check(examination: &mut Examination<'_>) {
    let Examination {
        settings,
        inspector,
        report,
        ..
    } = examination;
    let node = &settings.node;
    let all = std::iter::once(&node.kubelet_dir)
        .chain(&node.working_dirs)
        .chain(&node.plugin_dir)
        .chain(&node.pod_dir);
    let all: Vec<_> = all.collect();
    let is_inside =
        |inner: &HostPath, outer: &HostPath| inner.is_in(outer) && !inner.is_same(outer);
    let is_outermost = |path: &HostPath| !all.iter().any(|other| is_inside(path, other));
    for inner in &all {
        let Some(outer) = all
            .iter()
            .find(|outer| is_inside(inner, outer) && is_outermost(outer))
        else {
            continue;
        };
        // A directory that cannot be read is reported below.
        let Ok(Some((link, target))) = inspector.link_between(outer, inner) else {
            continue;
        };
        let target_path = HostPath::parse(&target);
        let is_target = |path: &HostPath| {
            target_path
                .as_ref()
                .is_ok_and(|target| target.is_same(path))
                && is_outermost(path)
        };
        let is_named = all.iter().any(|path| path.is_same(&link));
        if !(is_named && all.iter().any(|path| is_target(path))) {
            let [inner, outer, link] =
                [*inner, *outer, &link].map(|path| quoted(&path.to_string()));
            let target = quoted(&target);
            report.problem(
                CHECK,
                format!(
                    "{inner} is in {outer}, and {link} is a link to {target}: csi-proxy does not \
                     follow it"
                ),
                "if an administrator moved the working directory, name the target of its link with \
                 -working-dir too; otherwise remove the link",
            );
        }
    }
    if let Some((inner, outer)) = inspector.working_directories_nested_by_links(node) {
        let [inner, outer] = [&inner, &outer].map(|path| quoted(&path.to_string()));
        report.problem(
            CHECK,
            format!("{inner} or a link on its path lies in {outer}: csi-proxy does not start"),
            "name the inner working directory by its path below the other one",
        );
    }
    for path in all {
        let directory = quoted(&path.to_string());
        match inspector.file_system_of_directory(path) {
            Ok(Some(name)) if WITH_LINKS.contains(&name.as_str()) => {
                report.ok(
                    CHECK,
                    format!("{directory} exists, on {name}, which can hold links and mount points"),
                );
            }
            Ok(name) => {
                let name = name.map_or_else(
                    || "a file system without a name".to_owned(),
                    |name| quoted(&name),
                );
                report.problem(
                    CHECK,
                    format!("{directory} is on {name}, which cannot hold links and mount points"),
                    "use a directory on NTFS (-kubelet-path, -working-dir)",
                );
            }
            Err(error)
                if matches!(
                    error.code(),
                    Some(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND)
                ) =>
            {
                report.problem(
                    CHECK,
                    format!("{directory} does not exist"),
                    "start kubelet, which creates its directory, or correct -kubelet-path and \
                     -working-dir",
                );
            }
            Err(error) if error.code() == Some(OsError::DIRECTORY) => report.problem(
                CHECK,
                format!("{directory} is not a directory"),
                "correct -kubelet-path and -working-dir, or remove the file",
            ),
            Err(error) => report.unchecked(CHECK, directory, &error, error.code()),
        }
    }
}
