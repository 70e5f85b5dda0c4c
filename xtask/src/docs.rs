//! The documentation as a site, made by mdBook, and the links of its pages to other sites.

mod links;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, process, tools, workspace};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Make nothing, but look with curl whether the linked pages of other sites exist
    #[arg(long)]
    check_links: bool,
}

/// Makes the site in `target/site/book`, or checks links.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    if options.check_links { links::check() } else { make(&mdbook()?) }
}

/// Returns the program mdBook, after installing it if it is missing.
pub(crate) fn mdbook() -> Result<PathBuf, Error> {
    tools::find_or_install("mdbook")
}

/// Makes the site with this mdBook.
pub(crate) fn make(mdbook: &Path) -> Result<bool, Error> {
    let folder = workspace::target().join("site");
    let mut write = workspace::cargo();
    write.args(["run", "--quiet", "--package", "csi-proxy-site", "--"]).arg(&folder);
    Ok(process::succeeds(&mut write)? && process::succeeds(Command::new(mdbook).arg("build").arg(&folder))?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser as _;

    use crate::{Arguments, workspace};

    #[test]
    fn every_command_of_this_program_in_a_block_of_code_can_be_parsed() {
        let Some(files) = workspace::files() else {
            println!(
                "skipped: every_command_of_this_program_in_a_block_of_code_can_be_parsed: the tree is not a git checkout"
            );
            return;
        };
        let mut commands = 0;
        for file in files {
            if file.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(workspace::root().join(&file)).expect("a page");
            for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("cargo xtask ")) {
                let line = line.split(" #").next().unwrap_or_default().replace(" N", " 1").replace('\'', "");
                let words = ["cargo xtask"].into_iter().chain(line.split_whitespace());
                let parsed = Arguments::try_parse_from(words);
                assert!(parsed.is_ok(), "{}: cargo xtask {line}", file.display());
                commands += 1;
            }
        }
        assert!(commands > 10, "{commands} commands");
    }
}
