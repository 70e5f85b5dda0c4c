//! The documentation as a site.
//!
//! `docs/SUMMARY.md` is the table of contents. It links files of this tree, so that the links also
//! work where the tree is browsed: pages, which are copied, and the drivers' call sequences, for which
//! a page is made. A link from one page to another leads to the page of the site. A link to a file
//! without a page, such as an `api.proto`, becomes plain text.

mod driver_calls;
mod links;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

use links::Pages;

/// The table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The sources of the drivers' call sequences, and their page.
const DRIVERS: &str = "sim/csi-proxy-sim/drivers/";
const DRIVERS_PAGE: &str = "driver-calls.md";

/// Returns the root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the pages of the site, by the names of their files, with the table of contents.
pub fn pages() -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let root = root();
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
    };
    let summary = read(SUMMARY)?;
    let known = Pages::of(&summary);
    let mut pages = BTreeMap::new();
    for (source, page) in &known.0 {
        if pages
            .insert(page.clone(), known.rewritten(source, &read(source)?))
            .is_some()
        {
            return Err(format!("{source} and another source are both {page}").into());
        }
    }
    pages.insert(
        DRIVERS_PAGE.to_owned(),
        driver_calls::page(&root.join(DRIVERS))?,
    );
    pages.insert("SUMMARY.md".to_owned(), known.rewritten(SUMMARY, &summary));
    Ok(pages)
}

/// Writes the sources of the site to `folder`: `book.toml`, and the pages and pictures in `src`.
pub fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    let source = folder.join("src");
    match fs::remove_dir_all(&source) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(&source)?,
    }
    for (name, text) in pages()? {
        fs::write(source.join(name), text)?;
    }
    for entry in fs::read_dir(root().join("docs"))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "svg" || extension == "css")
        {
            fs::copy(&path, source.join(path.file_name().unwrap_or_default()))?;
        }
    }
    fs::copy(root().join("docs/book.toml"), folder.join("book.toml"))?;
    Ok(())
}
