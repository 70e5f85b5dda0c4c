//! What the archives of a release contain: only what `contents.txt` lists. `BLESS=1` adds what is new.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::{files, files_in, folder, number, parts};
use crate::summary::Summary;
use crate::{Error, process, workspace};

/// Compares with the list. A file that could not be made here may be missing.
pub(super) fn check() -> Result<Summary, Error> {
    let list = workspace::root().join("xtask/src/release/contents.txt");
    let (found, text) = (found()?, fs::read_to_string(&list)?);
    let listed: BTreeSet<_> = text.lines().map(str::to_owned).collect();
    if std::env::var_os("BLESS").is_some() {
        let all: Vec<_> = listed.union(&found).map(String::as_str).collect();
        fs::write(&list, all.join("\n") + "\n")?;
        return Ok(Summary::passed());
    }
    let unlisted: Vec<_> = found.difference(&listed).map(String::as_str).collect();
    Ok(Summary::of_result(&format!("{} lists all but {unlisted:?}", list.display()), Ok(unlisted.is_empty())))
}

/// Returns the files of the release and what is in them, without versions. Of a crate, the folders.
fn found() -> Result<BTreeSet<String>, Error> {
    let mut found: BTreeSet<_> = files()?.into_iter().collect();
    let layers = files_in(&parts())?.into_iter().filter(|name| kind(name) == "tar").map(|name| parts().join(name));
    let packed = files()?.into_iter().filter(|name| ["gz", "tgz", "crate"].contains(&kind(name)));
    for archive in packed.map(|name| folder().join(name)).chain(layers) {
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        let depth = if kind(&name) == "crate" { 2 } else { usize::MAX };
        let entries = process::output(Command::new("tar").arg("-tf").arg(&archive)).ok_or("tar failed")?;
        for entry in entries.lines().filter(|entry| !entry.ends_with('/')) {
            found.insert(format!("{name}: {}", entry.split('/').take(depth).collect::<Vec<_>>().join("/")));
        }
    }
    let number = number()?;
    Ok(found.iter().map(|line| line.replace(&number, "VERSION")).collect())
}

/// Returns what is behind the last point of a file name.
fn kind(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, kind)| kind)
}
