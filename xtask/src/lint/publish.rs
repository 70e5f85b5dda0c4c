//! Packages that can be published on crates.io.
//!
//! A package without `publish = false` is shown there and on docs.rs, so it must describe itself,
//! and all packages of this tree that it needs must be published too. `cargo xtask ci` packages and
//! compiles them in addition.

use std::path::Path;

use cargo_metadata::{Dependency, DependencyKind, Package};

/// Returns a sentence for each published package that is not described or depends on a package that
/// is not published.
pub(super) fn breaches(packages: &[&Package]) -> Vec<String> {
    let published: Vec<_> = packages
        .iter()
        .copied()
        .filter(|package| is_published(package))
        .collect();
    let mut breaches = Vec::new();
    for package in &published {
        let mut breach = |what: &str| {
            breaches.push(format!(
                "{}: {what}, but not `publish = false`",
                package.name
            ));
        };
        for missing in missing_metadata(package) {
            breach(&format!("has no {missing}"));
        }
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| is_needed(dependency))
        {
            if !published
                .iter()
                .any(|other| other.name.as_str() == dependency.name)
            {
                breach(&format!(
                    "depends on {}, which is not published",
                    dependency.name
                ));
            } else if dependency.req.comparators.is_empty() {
                breach(&format!("depends on {} without a version", dependency.name));
            }
        }
    }
    breaches
}

/// Returns whether the manifest allows the publication of the package.
pub(crate) fn is_published(package: &Package) -> bool {
    package
        .publish
        .as_ref()
        .is_none_or(|registries| !registries.is_empty())
}

/// Returns whether a dependency is a package of this tree, and is needed by more than tests.
fn is_needed(dependency: &Dependency) -> bool {
    dependency.path.is_some() && dependency.kind != DependencyKind::Development
}

/// Returns the keys of a published package's manifest that are missing or name a file that does not
/// exist.
fn missing_metadata(package: &Package) -> impl Iterator<Item = &'static str> {
    let folder = package
        .manifest_path
        .as_std_path()
        .parent()
        .unwrap_or(Path::new(""));
    let keys = [
        ("description", package.description.is_some()),
        ("license", package.license.is_some()),
        ("LICENSE", folder.join("LICENSE").is_file()),
        ("repository", package.repository.is_some()),
        ("documentation", package.documentation.is_some()),
        (
            "readme",
            package
                .readme
                .as_ref()
                .is_some_and(|readme| folder.join(readme).is_file()),
        ),
        ("keywords", !package.keywords.is_empty()),
        ("categories", !package.categories.is_empty()),
        ("rust-version", package.rust_version.is_some()),
        (
            "package.metadata.docs.rs",
            package.metadata.pointer("/docs/rs/targets").is_some(),
        ),
    ];
    keys.into_iter()
        .filter_map(|(key, is_there)| (!is_there).then_some(key))
}

#[cfg(test)]
mod tests {
    use cargo_metadata::Package;

    use super::breaches;
    use crate::workspace;

    /// Returns the breaches after `change` has changed the packages of this tree.
    fn after(change: impl Fn(&mut Package)) -> Vec<String> {
        let mut packages = workspace::metadata().expect("cargo metadata").packages;
        packages.iter_mut().for_each(change);
        breaches(&packages.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_published_package_describes_itself() {
        let breaches = after(|package| {
            if package.name == "csi-proxy-client" {
                package.keywords.clear();
                package.readme = Some("MISSING.md".into());
            }
        });
        let no = |key: &str| format!("csi-proxy-client: has no {key}, but not `publish = false`");
        assert_eq!(breaches, [no("readme"), no("keywords")]);
    }

    #[test]
    fn a_published_package_needs_only_published_packages_with_a_version() {
        let breaches = after(|package| {
            if package.name == "csi-proxy-api" {
                package.publish = Some(Vec::new());
            }
            for dependency in &mut package.dependencies {
                if dependency.name == "csi-proxy-transport" {
                    dependency.req = "*".parse().expect("a requirement");
                }
            }
        });
        let depends = |package: &str, on: &str| {
            format!("{package}: depends on {on}, but not `publish = false`")
        };
        let [unpublished, unversioned] = [
            "csi-proxy-api, which is not published",
            "csi-proxy-transport without a version",
        ];
        assert_eq!(
            breaches,
            [
                depends("csi-proxy-client", unpublished),
                depends("csi-proxy-client", unversioned),
                depends("csi-proxy-simtest", unversioned)
            ]
        );
    }
}
