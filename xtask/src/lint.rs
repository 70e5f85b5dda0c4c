//! Rules of this source tree that neither rustc nor clippy nor cargo-deny can check.
//!
//! They run as `cargo xtask lint` and as a test of this package, so that `cargo test` checks them
//! as well.

use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::Package;

use crate::{Error, workspace};

mod cfg;
mod crate_deps;
mod external_deps;
mod file_size;
mod layers;
mod names;
pub(crate) mod publish;
mod texts;
mod unsafe_code;
mod windows_programs;

/// The packages that are not in the workspace: the fuzz programs need libFuzzer, the executor's
/// model many packages, and the example Go.
const OUTSIDE_WORKSPACE: [&str; 3] = [
    "verify/fuzz/Cargo.toml",
    "verify/executor-model/Cargo.toml",
    "examples/node-plugin-rust/Cargo.toml",
];

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
    breaches.extend(external_deps::breaches(
        &packages,
        &packages_outside()?,
        &fs::read_to_string(root.join(external_deps::PAGE))?,
    ));
    let sources = sources()?;
    breaches.extend(layers::breaches(&sources));
    breaches.extend(texts::breaches(&sources));
    breaches.extend(names::breaches(&sources, |path| root.join(path).exists()));
    breaches.extend(untested(&packages, &sources));
    for source in &sources {
        let is_crate_root = roots.contains(&root.join(&source.path).as_path());
        breaches.extend(file_size::breach(source));
        breaches.extend(unsafe_code::breach(source));
        breaches.extend(cfg::breaches(source, is_crate_root));
        breaches.extend(windows_programs::breaches(source));
    }
    Ok(breaches)
}

/// Returns a breach for each file with a test that cargo does not run, because its target has
/// `test = false` or `doctest = false`, which saves the time to link it.
fn untested(packages: &[&Package], sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    let targets = packages.iter().flat_map(|package| &package.targets);
    for target in targets.filter(|target| !target.test || (target.is_lib() && !target.doctest)) {
        let folder = target.src_path.with_file_name("");
        for source in sources.iter().filter(|source| source.is_rust()) {
            let path = workspace::root().join(&source.path);
            let is_of_target =
                path == target.src_path || (target.is_lib() && path.starts_with(&folder));
            if !is_of_target {
                continue;
            }
            // Each second fence ends an example. One that is not Rust names its language.
            let fences = source
                .text
                .lines()
                .filter(|line| line.contains("/// ```") || line.contains("//! ```"));
            let has_example = fences.step_by(2).any(|line| line.ends_with("```"));
            if !target.test && source.text.contains("#[test]") {
                breaches.push(source.breach(1, "a test in a target with `test = false`"));
            }
            if !target.doctest && target.is_lib() && has_example {
                breaches.push(source.breach(1, "an example in a target with `doctest = false`"));
            }
        }
    }
    breaches
}

/// Returns the packages of the tree that are not in its workspace.
fn packages_outside() -> Result<Vec<Package>, Error> {
    let mut found = Vec::new();
    for manifest in OUTSIDE_WORKSPACE {
        let metadata = cargo_metadata::MetadataCommand::new()
            .manifest_path(workspace::root().join(manifest))
            .no_deps()
            .exec()?;
        found.extend(metadata.packages);
    }
    Ok(found)
}

/// Reads the tree's sources, manifests and documents.
fn sources() -> Result<Vec<Source>, Error> {
    let files = workspace::files()
        .ok_or("`git ls-files` failed: the rules are checked in a git checkout only")?;
    let mut sources = Vec::new();
    for path in files {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !["rs", "toml", "md", "go", "txt", "yaml", "yml"].contains(&extension.unwrap_or("")) {
            continue;
        }
        // A file that was removed without `git rm` is still listed.
        if let Ok(text) = fs::read_to_string(workspace::root().join(&path)) {
            // On Windows, git may have changed the ends of lines.
            let text = text.replace("\r\n", "\n");
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
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

    pub(super) fn source(path: &str, text: &str) -> Source {
        Source {
            path: Path::new(path).to_path_buf(),
            text: text.to_owned(),
        }
    }
}
