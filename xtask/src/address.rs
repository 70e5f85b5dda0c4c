//! The address of the repository. `repository` in Cargo.toml has it; the task replaces it there and
//! in every other file that names it.
//!
//! A file names the owner and the name of the repository, as in its URL, or the registry on ghcr.io
//! where `release.yml` publishes the images of the owner.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::summary::Summary;
use crate::{Error, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// The new address on GitHub, such as `https://github.com/NAME/csi-proxy`
    address: String,
}

/// How GitHub, git and browsers write the beginning of an address.
const STARTS: [&str; 4] = [
    "https://github.com/",
    "github.com/",
    "git@github.com:",
    "ssh://git@github.com/",
];

/// The address of a repository on GitHub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The owner, a slash and the name.
    pub(crate) slug: String,
    /// The registry for the images of the owner. Names of images are in lower case.
    pub(crate) registry: String,
}

impl Address {
    pub(crate) fn parse(address: &str) -> Result<Self, Error> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| is_of_name(c) || c == '.') && name != "."
        };
        let (address, lower) = (address.trim_end_matches('/'), address.to_ascii_lowercase());
        let slug = STARTS
            .iter()
            .find_map(|start| lower.starts_with(start).then(|| &address[start.len()..]))
            .map(|slug| slug.strip_suffix(".git").unwrap_or(slug));
        match slug.and_then(|slug| slug.split_once('/')) {
            Some((owner, name)) if is_name(owner) && is_name(name) => Ok(Self {
                slug: format!("{owner}/{name}"),
                registry: format!("ghcr.io/{}", owner.to_lowercase()),
            }),
            _ => Err(format!(
                "{address} is not an address such as https://github.com/NAME/csi-proxy: the \
                 workflows of this project need GitHub"
            )
            .into()),
        }
    }

    /// Reads the address that this tree has.
    pub(crate) fn of_tree() -> Result<Self, Error> {
        Self::parse(&workspace::repository()?)
    }

    /// Returns the text with the address in place of `old`.
    fn replace(&self, old: &Self, text: &str) -> String {
        let (mut replaced, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((at, found, new)) = old.first_in(rest, replaced.chars().last(), self) {
            replaced += &rest[..at];
            replaced += new;
            rest = &rest[at + found..];
        }
        replaced + rest
    }

    /// Returns whether a text has the address.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.first_in(text, None, self).is_some()
    }

    /// Finds the first part of the address in a text that follows `before`: where it begins, its
    /// length, and that part of `new`.
    fn first_in<'a>(
        &self,
        text: &str,
        before: Option<char>,
        new: &'a Self,
    ) -> Option<(usize, usize, &'a str)> {
        // A registry begins before the owner in it.
        let parts = [(&self.registry, &new.registry), (&self.slug, &new.slug)];
        let first = |(old, new): (&String, &'a String)| {
            let mut found = text.match_indices(old.as_str());
            let (at, _) = found.find(|(at, _)| {
                let left = text[..*at].chars().last().or(before);
                let right = text[at + old.len()..].chars().next();
                !left.is_some_and(is_of_name) && !right.is_some_and(is_of_name)
            })?;
            Some((at, old.len(), new.as_str()))
        };
        parts
            .into_iter()
            .filter_map(first)
            .min_by_key(|(at, _, _)| *at)
    }
}

/// Returns whether a character can be in the name of an owner. Names of repositories may have dots,
/// which also end sentences.
fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || ['-', '_'].contains(&c)
}

pub(crate) fn run(options: &Options) -> Result<Summary, Error> {
    let (old, new) = (Address::of_tree()?, Address::parse(&options.address)?);
    if old == new {
        println!("the tree has this address already");
        return Ok(Summary::passed());
    }
    let files = workspace::files().ok_or("the tree is not a git checkout")?;
    let changed = rewrite(&workspace::root(), &files, &old, &new)?;
    println!(
        "replaced https://github.com/{} by https://github.com/{} in {changed} files. Look at them \
         with git diff, and commit them",
        old.slug, new.slug
    );
    Ok(Summary::passed())
}

/// Replaces an address in files below `root`, and returns the number of files that have changed.
fn rewrite(root: &Path, files: &[PathBuf], old: &Address, new: &Address) -> Result<usize, Error> {
    let mut changed = Vec::new();
    for file in files {
        // A file that is not text has no address, and one that was removed is still listed.
        let Ok(text) = fs::read_to_string(root.join(file)) else {
            continue;
        };
        // Another case of the same name is in all files that have the old one.
        let is_other = !old.slug.eq_ignore_ascii_case(&new.slug);
        if is_other && new.is_in(&text) {
            return Err(format!(
                "{} already names {}: this address could not be replaced by another one later",
                file.display(),
                new.slug
            )
            .into());
        }
        let replaced = new.replace(old, &text);
        if replaced != text {
            changed.push((root.join(file), replaced));
        }
    }
    for (file, text) in &changed {
        fs::write(file, text)?;
    }
    Ok(changed.len())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use cargo_metadata::MetadataCommand;
    use yaml_rust2::YamlLoader;

    use super::{Address, rewrite};
    use crate::workspace;

    fn address(slug: &str) -> Address {
        Address::parse(&format!("https://github.com/{slug}")).expect("an address")
    }

    #[test]
    fn an_address_is_one_of_github() {
        for text in ["a-b/c.d", "a-b/c.d/", "a-b/c.d.git"] {
            assert_eq!(address(text), address("a-b/c.d"), "{text}");
        }
        for same in [
            "git@github.com:a-b/c.d.git",
            "ssh://git@github.com/a-b/c.d.git",
            "github.com/a-b/c.d",
            "HTTPS://GitHub.com/a-b/c.d/",
        ] {
            let parsed = Address::parse(same).expect("an address");
            assert_eq!(parsed, address("a-b/c.d"), "{same}");
        }
        assert_eq!(address("Big-Co/x").registry, "ghcr.io/big-co");
        for wrong in [
            "big-co/x",
            "http://github.com/big-co/x",
            "https://gitlab.com/big-co/x",
            "https://github.com/big-co",
            "https://github.com/big-co/",
            "https://github.com/big-co/x/y",
            "https://github.com/big co/x",
            "https://github.com//x",
            "https://github.com",
            "git@gitlab.com:big-co/x.git",
        ] {
            Address::parse(wrong).unwrap_err();
        }
    }

    #[test]
    fn only_the_address_is_replaced() {
        let (old, new) = (address("Big-Co/proxy"), address("small/name"));
        let text = "https://github.com/Big-Co/proxy.git Big-Co/proxy, ghcr.io/big-co/csi-proxy:1 \
                    --repo Big-Co/proxy. Big-Co/proxy/.github";
        let replaced = new.replace(&old, text);
        assert_eq!(
            replaced,
            "https://github.com/small/name.git small/name, ghcr.io/small/csi-proxy:1 --repo \
             small/name. small/name/.github"
        );
        assert_eq!(old.replace(&new, &replaced), text);
        for other in [
            "ghcr.io/big-company",
            "Very-Big-Co/proxy",
            "Big-Co/proxy-2",
            "big-co/csi-proxy",
            "my.ghcr.io-big-co",
        ] {
            assert_eq!(new.replace(&old, other), other);
        }
        // The image of an owner whose repository has the name of the image.
        let same = address("small/csi-proxy");
        let image = "small/csi-proxy ghcr.io/small/csi-proxy";
        let of_old = old.replace(&same, image);
        assert_eq!(of_old, "Big-Co/proxy ghcr.io/big-co/csi-proxy");
        assert_eq!(same.replace(&old, &of_old), image);
    }

    /// Copies the files of this tree, and returns the folder.
    fn copy_of_tree(files: &[PathBuf]) -> PathBuf {
        let copy = workspace::target().join("xtask-address");
        let _ = fs::remove_dir_all(&copy);
        for file in files {
            let to = copy.join(file);
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            fs::copy(workspace::root().join(file), to).expect("a file");
        }
        copy
    }

    fn parses(file: &Path, text: &str) -> bool {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("yml" | "yaml") if !file.to_string_lossy().contains("templates") => {
                YamlLoader::load_from_str(text).is_ok()
            }
            _ => true,
        }
    }

    #[test]
    fn one_command_replaces_the_address_in_the_whole_tree_and_back() {
        let Some(mut files) = workspace::files() else {
            println!(
                "skipped: one_command_replaces_the_address_in_the_whole_tree_and_back: no git"
            );
            return;
        };
        files.retain(|file| workspace::root().join(file).is_file());
        let copy = copy_of_tree(&files);
        let old = Address::of_tree().expect("the address");
        // Not the owner of the tree, whoever that is.
        let owner: String = old.slug.split('/').next().expect("an owner").to_owned();
        let other: String = owner.chars().rev().collect();
        let (upper, lower) = (other.to_uppercase(), other.to_lowercase());
        let invented = [
            format!("{upper}-Works/csi-proxy"),
            format!("{upper}-9/storage.proxy"),
            format!("{lower}-9/storage.proxy"),
        ]
        .map(|slug| address(&slug));
        let mut now = &old;
        for new in &invented {
            let changed = rewrite(&copy, &files, now, new).expect("the address is replaced");
            assert!(changed >= 9, "{changed} files");
            for file in &files {
                let Ok(text) = fs::read_to_string(copy.join(file)) else {
                    continue;
                };
                let has = |part: &str| text.contains(part);
                let is_old = has(&now.slug) || (now.registry != new.registry && has(&now.registry));
                assert!(!is_old, "{}", file.display());
                assert!(
                    !new.is_in(&text) || parses(file, &text),
                    "{}",
                    file.display()
                );
            }
            now = new;
        }
        let metadata = MetadataCommand::new()
            .current_dir(&copy)
            .no_deps()
            .exec()
            .expect("the manifests are valid");
        let url = format!("https://github.com/{}", now.slug);
        assert!(
            metadata
                .packages
                .iter()
                .any(|package| package.repository.as_ref() == Some(&url))
        );
        rewrite(&copy, &files, now, &old).expect("the address is replaced");
        for file in &files {
            let read = |folder: &Path| fs::read(folder.join(file)).expect("a file");
            assert!(
                read(&copy) == read(&workspace::root()),
                "{}",
                file.display()
            );
        }
        fs::remove_dir_all(&copy).expect("the copy is removed");
    }

    #[test]
    fn an_address_that_other_texts_have_is_refused() {
        let files = [PathBuf::from("README.md")];
        let of_go = address("kubernetes-csi/csi-proxy");
        let old = address("Big-Co/proxy");
        let refused = rewrite(&workspace::root(), &files, &old, &of_go);
        assert!(refused.unwrap_err().to_string().contains("already names"));
    }
}
