//! Which packages of this tree depend on which.
//!
//! The folder of a package decides. Shipped packages (`crates/`) depend neither on the simulator
//! (`sim/`) nor on the test machinery (`verify/`), the simulator does not depend on `verify/`, and
//! nothing depends on `xtask`. Only tests of `crates/` may use `sim/`, and only tests may use
//! csi-proxyctl as a library. In addition, a library of `crates/` or `sim/` depends only on the
//! packages that [`LIBRARIES`] lists for it.
//!
//! cargo-deny has a similar rule, `wrappers`, but does not distinguish dependencies of tests from
//! those of programs.

use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Package};

use crate::{Error, workspace};

/// A dependency between two packages of this tree, by the folders of their manifests. A package
/// without dependencies appears as a dependency on itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dependency {
    from: PathBuf,
    to: PathBuf,
    for_tests: bool,
    from_program: bool,
}

/// The top folders, each with those that packages in it depend on.
const FOLDERS: [(&str, &[&str]); 4] = [
    ("crates", &["crates"]),
    ("sim", &["crates", "sim"]),
    ("verify", &["crates", "sim", "verify"]),
    ("xtask", &[]),
];

/// The libraries of the first two folders, each with the packages it depends on. Packages with a
/// program are not listed: they choose among all libraries.
const LIBRARIES: [(&str, &[&str]); 16] = [
    ("crates/api", &[]),
    ("crates/client", &["crates/api", "crates/transport"]),
    (
        "crates/command-line",
        &["crates/api", "crates/client", "crates/terminal-text"],
    ),
    (
        "crates/doctor",
        &["crates/os", "crates/storage-ops", "crates/terminal-text"],
    ),
    ("crates/dynamic-client", &["crates/api"]),
    ("crates/header-filter", &[]),
    ("crates/os", &[]),
    ("crates/os-win32", &["crates/os"]),
    (
        "crates/server",
        &[
            "crates/api",
            "crates/header-filter",
            "crates/storage-ops",
            "crates/transport",
        ],
    ),
    ("crates/storage-ops", &["crates/os", "crates/terminal-text"]),
    ("crates/terminal-text", &[]),
    ("crates/transport", &[]),
    ("sim/faults", &["crates/os"]),
    ("sim/os-sim", &["crates/os"]),
    ("sim/simtest", &["crates/client", "crates/transport"]),
    ("sim/texts", &["crates/terminal-text"]),
];

/// Returns the dependencies between these packages.
pub(super) fn dependencies(packages: &[&Package]) -> Result<Vec<Dependency>, Error> {
    let root = workspace::root();
    let mut found = Vec::new();
    for package in packages {
        let manifest = package.manifest_path.as_std_path();
        let from = manifest
            .parent()
            .unwrap_or(manifest)
            .strip_prefix(&root)?
            .to_path_buf();
        let from_program = package.targets.iter().any(cargo_metadata::Target::is_bin);
        found.push(Dependency {
            from: from.clone(),
            to: from.clone(),
            for_tests: false,
            from_program,
        });
        for dependency in &package.dependencies {
            // Only a package of this tree has a path.
            let Some(path) = &dependency.path else {
                continue;
            };
            let to = path.as_std_path().strip_prefix(&root)?.to_path_buf();
            let for_tests = dependency.kind == DependencyKind::Development;
            found.push(Dependency {
                from: from.clone(),
                to,
                for_tests,
                from_program,
            });
        }
    }
    Ok(found)
}

/// Returns a sentence for each dependency that breaks the rules.
pub(super) fn breaches(dependencies: &[Dependency]) -> Vec<String> {
    dependencies.iter().filter_map(breach).collect()
}

fn breach(
    Dependency {
        from,
        to,
        for_tests,
        from_program,
    }: &Dependency,
) -> Option<String> {
    let table = "xtask/src/lint/crate_deps.rs";
    let Some((folder, may)) = FOLDERS.iter().find(|(folder, _)| from.starts_with(folder)) else {
        return Some(format!(
            "{}: its top folder is not in the table of {table}",
            from.display()
        ));
    };
    let is_in =
        |folders: &[&str], path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let is_library = ["crates", "sim"].contains(folder) && !from_program;
    let library = LIBRARIES
        .iter()
        .find(|(library, _)| from == Path::new(library));
    if is_library && library.is_none() {
        return Some(format!(
            "{}: this library is not in the table of {table}",
            from.display()
        ));
    }
    let allowed = match library {
        _ if from == to => true,
        _ if !*for_tests && to == Path::new("crates/csi-proxyctl") => false,
        _ if *for_tests => is_in(may, to) || (*folder == "crates" && to.starts_with("sim")),
        Some((_, may)) => may.iter().any(|library| to == Path::new(library)),
        None => is_in(may, to),
    };
    let even = if *for_tests {
        ", not even for tests"
    } else {
        ""
    };
    (!allowed).then(|| {
        format!(
            "{}: must not depend on {}{even}",
            from.display(),
            to.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breach_of(from: &str, to: &str, for_tests: bool) -> Option<String> {
        let from_program = [
            "crates/csi-proxy",
            "crates/csi-proxyctl",
            "sim/csi-proxy-sim",
            "xtask",
        ]
        .contains(&from);
        breach(&Dependency {
            from: from.into(),
            to: to.into(),
            for_tests,
            from_program,
        })
    }

    #[test]
    fn the_storage_operations_depend_on_no_implementation_of_the_os() {
        for implementation in ["crates/os-win32", "sim/os-sim"] {
            assert_eq!(
                breach_of("crates/storage-ops", implementation, false),
                Some(format!(
                    "crates/storage-ops: must not depend on {implementation}"
                ))
            );
        }
        assert!(breach_of("crates/server", "crates/os", false).is_some());
    }

    #[test]
    fn tests_of_shipped_packages_may_use_the_simulator_but_not_verify() {
        assert_eq!(breach_of("crates/storage-ops", "sim/os-sim", true), None);
        assert_eq!(
            breach_of("crates/storage-ops", "verify/fault-injection", true).as_deref(),
            Some(
                "crates/storage-ops: must not depend on verify/fault-injection, not even for tests"
            )
        );
    }

    #[test]
    fn each_folder_depends_on_those_before_it() {
        assert!(breach_of("crates/csi-proxy", "sim/os-sim", false).is_some());
        assert!(breach_of("crates/csi-proxyctl", "sim/os-sim", false).is_some());
        assert_eq!(
            breach_of("sim/csi-proxy-sim", "crates/csi-proxy", false),
            None
        );
        assert!(breach_of("sim/csi-proxy-sim", "crates/csi-proxyctl", false).is_some());
        assert!(breach_of("sim/csi-proxy-sim", "verify/soak", false).is_some());
        assert!(breach_of("sim/os-sim", "verify/fault-injection", true).is_some());
        assert_eq!(
            breach_of("verify/fault-injection", "sim/os-sim", false),
            None
        );
        assert!(breach_of("verify/fault-injection", "xtask", false).is_some());
        assert!(breach_of("xtask", "crates/os", false).is_some());
    }

    #[test]
    fn no_two_libraries_depend_on_each_other() {
        for (library, may) in LIBRARIES {
            for other in may {
                assert!(
                    breach_of(other, library, false).is_some(),
                    "{other} and {library} depend on each other"
                );
            }
        }
    }

    #[test]
    fn a_new_library_is_reported_until_it_is_in_the_table() {
        assert!(breach_of("crates/new", "crates/new", false).is_some());
        assert!(breach_of("tools/new", "tools/new", false).is_some());
    }
}
