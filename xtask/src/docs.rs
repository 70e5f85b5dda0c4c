//! The documentation as a site, made by mdBook.

use std::path::PathBuf;
use std::process::Command;

use crate::{Error, process, tools, workspace};

/// Makes the site in `target/site/book`. Installs mdBook if it is missing.
pub(crate) fn run() -> Result<bool, Error> {
    let made = make(&tools::find_or_install("mdbook")?)?;
    if made {
        println!("{}", folder().join("book").join("index.html").display());
    }
    Ok(made)
}

/// Makes the site with a program that is installed. Returns `None` if it is not.
pub(crate) fn run_if_installed() -> Option<Result<bool, Error>> {
    tools::find("mdbook").map(|mdbook| make(&mdbook))
}

fn folder() -> PathBuf {
    workspace::target().join("site")
}

fn make(mdbook: &PathBuf) -> Result<bool, Error> {
    let mut write = workspace::cargo();
    write.args(["run", "--quiet", "--package", "csi-proxy-site", "--"]).arg(folder());
    Ok(process::succeeds(&mut write)? && process::succeeds(Command::new(mdbook).arg("build").arg(folder()))?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser as _;

    use crate::{Arguments, workspace};

    #[test]
    fn every_command_of_this_program_in_a_block_of_code_can_be_parsed() {
        let mut commands = 0;
        for file in workspace::files().expect("a checkout") {
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
