//! Compares the flags, commands, exit codes, metrics, labels and log keys of the programs with the
//! lists in the folder `interface`.
//!
//! `BLESS=1 cargo test -p xtask --test interface` adds new names to `names.txt`. A name is removed
//! from that file by hand, under the rules of CONTRIBUTING.md. A test of csi-proxyctl writes
//! `csi-proxyctl.txt`. `cargo xtask release` compares the public items of the libraries with those
//! of the release before.

#[path = "interface/names.rs"]
mod names;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Returns a path in this tree.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn read(file: &Path) -> String {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.replace("\r\n", "\n")
}

/// A name that is no longer found breaks whoever uses it. The list has names of each kind, so each
/// kind is found.
#[test]
fn the_names_of_the_programs_are_those_listed() {
    let file = path("xtask/tests/interface/names.txt");
    let found = names::all();
    let text = read(&file);
    let listed: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    if env::var_os("BLESS").is_some() {
        let all: Vec<String> = listed.union(&found).cloned().collect();
        fs::write(&file, format!("{}\n{}\n", names::HEAD, all.join("\n")))
            .expect("the list is written");
    }
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "see CONTRIBUTING.md, `Compatibility`: removed or renamed: {gone:#?}"
    );
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(
        new.is_empty() || env::var_os("BLESS").is_some(),
        "BLESS=1 adds these to the list: {new:#?}"
    );
}

/// docs/compatibility.md names the drivers whose calls are tested, and the versions of the client
/// that makes the calls.
#[test]
fn the_table_of_drivers_is_that_of_the_tests() {
    let page = read(&path("docs/compatibility.md"));
    let version = |file: &str, module: &str| {
        let modules = read(&path(&format!("verify/go-client/{file}")));
        modules
            .split(&format!("{module} v"))
            .nth(1)
            .and_then(|rest| rest.lines().next())
            .expect(module)
            .to_owned()
    };
    let [old, new] = ["go.mod", "newest.mod"].map(|file| version(file, "google.golang.org/grpc"));
    let client = version("go.mod", "csi-proxy/client");
    assert!(
        page.contains(&format!("client {client} with grpc-go {old} and {new}")),
        "{client}, {old}, {new}"
    );
    let (_, table) = page.split_once("\n## Drivers\n").expect("the heading");
    for entry in fs::read_dir(path("sim/csi-proxy-sim/drivers")).expect("the drivers") {
        let file = entry.expect("an entry").path();
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = read(&file);
        let driver = text
            .split("\"driver\": \"")
            .nth(1)
            .and_then(|rest| rest.split(['"', ' ']).next())
            .expect("a name");
        assert!(
            table.contains(&format!("\n| {driver} |")),
            "{driver} has no row"
        );
    }
}
