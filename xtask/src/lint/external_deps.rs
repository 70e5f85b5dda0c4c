//! The page of the dependencies on other projects: each stands once, in the section that follows
//! from the manifests, with the reason for it, which is written by hand.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{Dependency, DependencyKind, Package};

pub(super) const PAGE: &str = "docs/dependencies.md";

/// The sections of the page. A crate stands in the first one that applies.
const SECTIONS: [&str; 4] = [
    "In the daemon",
    "In the tools and libraries",
    "Only when building",
    "Only in tests and checks",
];

const DAEMON: &str = "csi-proxy";
/// The package outside of `crates` and `sim` whose program is published.
const SELFTEST: &str = "csi-proxy-selftest";

/// Returns a breach for each dependency that does not stand in its section, or stands elsewhere.
///
/// `packages` are those of the workspace; `others` are outside of it, and serve tests or examples.
pub(super) fn breaches(packages: &[&Package], others: &[Package], page: &str) -> Vec<String> {
    let wanted = sections(packages, others);
    let found = sections_of_page(page);
    let all: BTreeSet<_> = wanted.keys().chain(found.keys()).copied().collect();
    all.into_iter()
        .filter_map(|name| {
            let stands = found.get(name).map(Vec::as_slice).unwrap_or_default();
            match wanted.get(name).copied() {
                Some(section) if stands == [section] => None,
                Some(section) => Some(format!(
                    "{PAGE}: {name} must stand once, under \"{section}\"; it stands under {stands:?}"
                )),
                None => Some(format!("{PAGE}: no manifest of this tree names {name}")),
            }
        })
        .collect()
}

/// Returns the section of each dependency on another project.
fn sections<'a>(
    packages: &[&'a Package],
    others: &'a [Package],
) -> BTreeMap<&'a str, &'static str> {
    let is_of_folder = |package: &&&Package, folder: &str| {
        package
            .manifest_path
            .components()
            .rev()
            .nth(2)
            .is_some_and(|component| component.as_str() == folder)
    };
    let published: Vec<&Package> = packages
        .iter()
        .filter(|package| {
            ["crates", "sim"]
                .iter()
                .any(|folder| is_of_folder(package, folder))
                || package.name == SELFTEST
        })
        .copied()
        .collect();
    let daemon: Vec<&Package> = packages
        .iter()
        .filter(|package| package.name == DAEMON)
        .copied()
        .collect();
    let shipped = closure(packages, published);
    let mut sections = BTreeMap::new();
    let mut add = |section, found: &[&'a Package], is: &dyn Fn(&Dependency) -> bool| {
        for dependency in found.iter().flat_map(|package| &package.dependencies) {
            if dependency.path.is_none() && is(dependency) {
                sections.entry(&*dependency.name).or_insert(section);
            }
        }
    };
    let kind = |dependency: &Dependency, kind| dependency.kind == kind;
    add(SECTIONS[0], &closure(packages, daemon), &|dependency| {
        kind(dependency, DependencyKind::Normal) && is_for_windows(dependency)
    });
    add(SECTIONS[1], &shipped, &|dependency| {
        kind(dependency, DependencyKind::Normal)
    });
    add(SECTIONS[2], &shipped, &|dependency| {
        kind(dependency, DependencyKind::Build)
    });
    add(SECTIONS[3], packages, &|_| true);
    add(SECTIONS[3], &others.iter().collect::<Vec<_>>(), &|_| true);
    sections
}

/// The daemon runs on Windows; on Linux, only csi-proxy-sim uses its library.
fn is_for_windows(dependency: &Dependency) -> bool {
    dependency
        .target
        .as_ref()
        .is_none_or(|target| !["cfg(unix)", "cfg(not(windows))"].contains(&&*target.to_string()))
}

/// Returns these packages and those of the workspace that their programs and libraries contain.
fn closure<'a>(packages: &[&'a Package], mut found: Vec<&'a Package>) -> Vec<&'a Package> {
    let mut next = 0;
    while let Some(package) = found.get(next) {
        let used = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind == DependencyKind::Normal);
        let new: Vec<&Package> = used
            .filter_map(|dependency| {
                packages
                    .iter()
                    .find(|package| package.name.as_str() == dependency.name)
            })
            .filter(|package| !found.iter().any(|known| known.name == package.name))
            .copied()
            .collect();
        found.extend(new);
        next += 1;
    }
    found
}

/// Returns the sections in which each crate stands: the code spans in the first cells of tables,
/// and in lines that begin with a code span.
fn sections_of_page(page: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut section = None;
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = SECTIONS.iter().find(|section| **section == title);
        }
        let first = line
            .strip_prefix("| ")
            .and_then(|row| row.split('|').next());
        let names = first.or_else(|| line.starts_with('`').then_some(line));
        for name in names.unwrap_or_default().split('`').skip(1).step_by(2) {
            // The remaining tables repeat crates.
            let sections = found.entry(name).or_default();
            sections.extend(section);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{PAGE, breaches};
    use crate::{lint, workspace};

    #[test]
    fn a_dependency_in_a_wrong_section_is_detected() {
        let metadata = workspace::metadata().expect("cargo metadata");
        let (packages, others) = (
            metadata.workspace_packages(),
            lint::packages_outside().expect("cargo metadata"),
        );
        let page = std::fs::read_to_string(workspace::root().join(PAGE)).expect("the page");
        let of = |page: &str| breaches(&packages, &others, page);
        assert_eq!(of(&page), [] as [&str; 0]);
        assert_eq!(
            of(&page.replace("| `h2` |", "| h2 |")),
            [
                "docs/dependencies.md: h2 must stand once, under \"In the daemon\"; it stands \
                 under []"
            ]
        );
        assert_eq!(
            of(&page.replace(
                "`httlib-hpack`, `libfuzzer",
                "`h2`, `httlib-hpack`, `libfuzzer"
            )),
            [
                "docs/dependencies.md: h2 must stand once, under \"In the daemon\"; it stands \
                 under [\"In the daemon\", \"Only in tests and checks\"]"
            ]
        );
        let old = page.replace("| `h2` |", "| `h2`, `wormhole` |");
        assert_eq!(
            of(&old),
            ["docs/dependencies.md: no manifest of this tree names wormhole"]
        );
    }
}
