//! The layers of storage-ops: a module uses only itself and the modules above it in the table of
//! the crate's `lib.rs`.

use std::path::Path;

use super::Source;

/// The sources of the crate.
const CRATE: &str = "crates/storage-ops/src";

/// Returns a line for each use of a module that is not above the module of the file.
pub(super) fn breaches(sources: &[Source]) -> Vec<String> {
    let in_crate = |source: &Source| {
        source
            .path
            .strip_prefix(CRATE)
            .ok()
            .map(|path| path.to_string_lossy().into_owned())
    };
    let lib = sources
        .iter()
        .find(|source| source.path == Path::new(CRATE).join("lib.rs"));
    let layers = lib.map(|lib| layers(&lib.text)).unwrap_or_default();
    let position = |module: &str| layers.iter().position(|layer| *layer == module);
    let mut found = Vec::new();
    for source in sources {
        let Some(path) = in_crate(source).filter(|path| path != "lib.rs") else {
            continue;
        };
        let own = path.split(['/', '.']).next().unwrap_or_default();
        for used in modules_used(&source.text) {
            if position(used).is_none() || position(used) > position(own) {
                found.push(format!(
                    "{}: {own} may not use crate::{used}; see the table in lib.rs",
                    source.path.display()
                ));
            }
        }
    }
    found
}

/// Returns the modules in the first column of the table, from top to bottom.
fn layers(lib: &str) -> Vec<&str> {
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | "));
    rows.filter_map(|row| {
        row.trim_start_matches('[')
            .strip_prefix('`')?
            .split('`')
            .next()
    })
    .collect()
}

/// Returns the modules that the code outside of tests and comments names after `crate::`.
fn modules_used(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    lines
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.split(|c| !is_of_name(c)).next().unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{CRATE, breaches};
    use crate::lint::Source;

    #[test]
    fn a_use_of_a_lower_row_is_reported() {
        let source = |path: &str, text: &str| Source {
            path: format!("{CRATE}/{path}").into(),
            text: text.into(),
        };
        let lib = source(
            "lib.rs",
            "//! | module | contents |\n//! |---|---|\n//! | `devices` | x |\n//! | [`ops`] | x |\n",
        );
        let down = source(
            "ops/disk.rs",
            "use crate::devices::Disk;\nuse crate::ops::volume;\n// crate::inspect\n",
        );
        let up = source(
            "devices/disk.rs",
            "use crate::ops::disk;\n#[cfg(test)]\nuse crate::Node;\n",
        );
        assert!(breaches(&[lib, down]).is_empty());
        let lib = source("lib.rs", "//! | `devices` | x |\n//! | `ops` | x |\n");
        let unknown = source("ops.rs", "use crate::{devices, ops};\n");
        let found = breaches(&[lib, up, unknown]);
        assert!(
            found.len() == 2 && found[0].contains("devices may not use crate::ops"),
            "{found:?}"
        );
    }
}
