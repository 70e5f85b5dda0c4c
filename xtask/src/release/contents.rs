//! Compares the contents of a release and of its archives with `contents.txt`.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::{folder, number, staging};
use crate::summary::Summary;
use crate::{Error, process, workspace};

/// Lists the files of the release and what is in them. Of a crate, the folders.
const LIST: &str = r#"ls
for archive in *.gz *.tgz *.crate "$0"/*.tar; do
    case $archive in *.crate) depth=2 ;; *) depth=9 ;; esac
    tar -tf "$archive" | grep -v '/$' | cut -d / -f "-$depth" | sed "s|^|${archive##*/}: |"
done"#;

/// Compares with the list. To change the list, copy the one that was found.
pub(super) fn check() -> Result<Summary, Error> {
    let list = process::output(
        Command::new("sh")
            .current_dir(folder())
            .args(["-c", LIST])
            .arg(staging()),
    );
    // Without versions.
    let list = list.ok_or("tar failed")?.replace(&number()?, "VERSION");
    let [listed, found] = [workspace::root().join("xtask/src/release"), staging()]
        .map(|folder| folder.join("contents.txt"));
    fs::write(
        &found,
        Vec::from_iter(list.lines().collect::<BTreeSet<_>>()).join("\n") + "\n",
    )?;
    Ok(Summary::of_check(
        "contents",
        Command::new("diff").arg(listed).arg(found),
    ))
}
