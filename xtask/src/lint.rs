//! Rules of this source tree that neither rustc nor clippy nor cargo-deny can check.
//!
//! They run as `cargo xtask lint` and as a test of this package, so that `cargo test` checks them
//! as well.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::Package;

use crate::{Error, workspace};

mod cfg;
mod crate_deps;
mod file_size;
mod layers;
mod names;
pub(crate) mod publish;
mod unsafe_code;

/// A text file of the tree.
struct Source {
    /// Relative to the root of the tree.
    path: PathBuf,
    text: String,
}

/// Prints each breach of a rule. Returns whether there were no breaches.
pub(crate) fn run() -> Result<bool, Error> {
    let breaches = breaches()?;
    for breach in &breaches {
        println!("{breach}");
    }
    println!("lint: {} breaches", breaches.len());
    Ok(breaches.is_empty())
}

/// Returns all breaches of the rules, one line each.
fn breaches() -> Result<Vec<String>, Error> {
    let packages = workspace::metadata()?;
    let packages = packages.workspace_packages();
    let roots: Vec<&Path> = packages
        .iter()
        .flat_map(|package| &package.targets)
        .map(|target| target.src_path.as_std_path())
        .collect();
    let root = workspace::root();
    let mut breaches = crate_deps::breaches(&crate_deps::dependencies(&packages)?);
    breaches.extend(publish::breaches(&packages));
    breaches.extend(undescribed(
        &packages,
        &fs::read_to_string(root.join(DEPENDENCIES))?,
    ));
    let sources = sources()?;
    breaches.extend(layers::breaches(&sources));
    breaches.extend(names::breaches(&sources, |path| root.join(path).exists()));
    for source in &sources {
        let is_crate_root = roots.contains(&root.join(&source.path).as_path());
        breaches.extend(file_size::breach(source));
        breaches.extend(unsafe_code::breach(source));
        breaches.extend(cfg::breaches(source, is_crate_root));
    }
    Ok(breaches)
}

/// The page that says why each dependency on another project is there.
const DEPENDENCIES: &str = "docs/dependencies.md";

/// Returns a breach for each dependency on another project that its page does not name.
fn undescribed(packages: &[&Package], page: &str) -> BTreeSet<String> {
    let theirs = packages
        .iter()
        .flat_map(|package| &package.dependencies)
        .filter(|found| found.path.is_none());
    let missing = theirs.filter(|found| !page.contains(&format!("`{}`", found.name)));
    missing
        .map(|found| format!("{DEPENDENCIES}: does not say why {} is there", found.name))
        .collect()
}

/// Reads the tree's sources, manifests and documents.
fn sources() -> Result<Vec<Source>, Error> {
    let files = workspace::files()
        .ok_or("`git ls-files` failed: the rules are checked in a git checkout only")?;
    let checked = |file: &PathBuf| {
        let extension = file.extension().and_then(|extension| extension.to_str());
        ["rs", "toml", "md", "go"]
            .iter()
            .any(|known| extension == Some(known))
    };
    let read = |path: PathBuf| {
        // A file that was removed without `git rm` is still listed.
        let text = fs::read_to_string(workspace::root().join(&path)).ok()?;
        // On Windows, git may have changed the ends of lines.
        Some(Source {
            path,
            text: text.replace("\r\n", "\n"),
        })
    };
    Ok(files.into_iter().filter(checked).filter_map(read).collect())
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path
            .extension()
            .is_some_and(|extension| extension == "rs")
    }

    /// Formats a breach on a line, counted from 1.
    fn breach(&self, line: usize, sentence: &str) -> String {
        format!("{}:{line}: {sentence}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Source;

    #[test]
    fn this_tree_keeps_its_rules() {
        if crate::workspace::files().is_none() {
            println!("skipped: this_tree_keeps_its_rules: the tree is not a git checkout");
            return;
        }
        let breaches = super::breaches().expect("cargo metadata and git ls-files");
        assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    }

    #[test]
    fn a_dependency_without_a_reason_is_detected() {
        let metadata = crate::workspace::metadata().expect("cargo metadata");
        let page = std::fs::read_to_string(crate::workspace::root().join(super::DEPENDENCIES))
            .expect("the page");
        let breaches =
            super::undescribed(&metadata.workspace_packages(), &page.replace("`tokio`", ""));
        assert_eq!(
            breaches.into_iter().collect::<Vec<_>>(),
            ["docs/dependencies.md: does not say why tokio is there"]
        );
    }

    pub(super) fn source(path: &str, text: &str) -> Source {
        Source {
            path: Path::new(path).to_path_buf(),
            text: text.to_owned(),
        }
    }
}
