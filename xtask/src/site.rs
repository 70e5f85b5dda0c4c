//! `cargo xtask site`: the documentation as a site, which mdBook makes from the pages that
//! verify/site writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Error, process, setup, workspace};

/// Makes the site in `target/site/book`.
pub(crate) fn run() -> Result<bool, Error> {
    make(&setup::cargo_tool("mdbook")?)
}

/// Makes the site with this mdBook.
pub(crate) fn make(mdbook: &Path) -> Result<bool, Error> {
    let folder = workspace::target().join("site");
    let mut write = workspace::cargo();
    write
        .args(["run", "--quiet", "--bin", "site", "--"])
        .arg(&folder);
    if !(process::succeeds(&mut write)?
        && process::succeeds(Command::new(mdbook).arg("build").arg(&folder))?)
    {
        return Ok(false);
    }
    let mut files = fs::read_dir(folder.join("book"))?.flatten();
    let has_search = files.any(|file| {
        file.file_name()
            .to_string_lossy()
            .starts_with("searchindex")
    });
    if has_search {
        Ok(true)
    } else {
        Err(format!("{} was built without its search", mdbook.display()).into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser as _;

    use crate::tasks::Arguments;
    use crate::workspace;

    #[test]
    fn every_command_of_this_program_in_a_block_of_code_can_be_parsed() {
        let Some(files) = workspace::files() else {
            println!(
                "skipped: every_command_of_this_program_in_a_block_of_code_can_be_parsed: there is \
                 no git checkout"
            );
            return;
        };
        let mut commands = 0;
        for file in files
            .iter()
            .filter(|file| file.extension().is_some_and(|extension| extension == "md"))
        {
            let text = fs::read_to_string(workspace::root().join(file)).expect("a page");
            for line in text
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix("cargo xtask "))
            {
                let line = line
                    .split(" #")
                    .next()
                    .unwrap_or_default()
                    .replace(" N", " 1")
                    .replace('\'', "");
                let words = ["cargo xtask"].into_iter().chain(line.split_whitespace());
                assert!(
                    Arguments::try_parse_from(words).is_ok(),
                    "{}: cargo xtask {line}",
                    file.display()
                );
                commands += 1;
            }
        }
        assert!(commands > 10, "{commands} commands");
    }
}
