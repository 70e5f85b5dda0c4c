//! What others depend on keeps its name: the public items of the libraries, and the flags, metrics, exit codes and log
//! keys of the programs.
//!
//! The folder `interface` has the names that are in use. `BLESS=1 cargo test -p xtask --test interface` writes the public
//! items, and adds new names to `names.txt`. A name is removed from that file by hand, under the rules of CONTRIBUTING.md.

#[path = "interface/names.rs"]
mod names;
#[path = "interface/public_items.rs"]
mod public_items;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Returns a path in this tree.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn read(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.replace("\r\n", "\n")
}

/// Returns the sources below a folder, without tests.
fn sources(folder: &str) -> Vec<String> {
    let mut sources = Vec::new();
    let mut folders = vec![path(folder)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries.map(|entry| entry.expect("an entry").path()) {
            if entry.file_stem().is_some_and(|name| name == "tests") {
                continue;
            }
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                sources.push(read(&entry));
            }
        }
    }
    sources
}

fn parsed(folder: &str) -> Vec<syn::File> {
    sources(folder).iter().map(|text| syn::parse_file(text).expect("Rust")).collect()
}

/// Returns whether the attributes are those of a module or item for tests.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|what| what.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

#[test]
fn the_public_items_of_the_libraries_are_those_listed() {
    for (folder, package) in [
        ("crates/client", "csi-proxy-client"),
        ("crates/transport", "csi-proxy-transport"),
        ("crates/storage-ops", "csi-proxy-storage-ops"),
        ("crates/os", "csi-proxy-os"),
        ("crates/os-win32", "csi-proxy-os-win32"),
        ("crates/terminal-text", "csi-proxy-terminal-text"),
        ("sim/simtest", "csi-proxy-sim-client"),
    ] {
        let items = public_items::of(&parsed(&format!("{folder}/src")));
        let text = items.into_iter().collect::<Vec<_>>().join("\n");
        let file = path(&format!("xtask/tests/interface/{package}.txt"));
        if env::var_os("BLESS").is_some() {
            fs::write(&file, &text).expect("the list is written");
        }
        let listed = read(&file);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        let (gone, new) = (&lines(&listed) - &lines(&text), &lines(&text) - &lines(&listed));
        assert!(listed == text, "{package}: see CONTRIBUTING.md, `Compatibility`\ngone: {gone:#?}\nnew: {new:#?}");
    }
}

#[test]
fn a_renamed_item_changes_the_list() {
    let of = |source: &str| public_items::of(&[syn::parse_file(source).expect("Rust")]);
    let source = "
        /// Documented.
        #[derive(Clone)] pub struct A { pub a: u32, b: u32 }
        impl A { pub fn f(&self) -> u32 { 1 } fn g() {} }
        impl Clone for A { fn clone(&self) -> A { todo!() } }
        struct B; impl B { fn h() {} } impl Clone for B {}
        pub(crate) enum C { D }
        pub trait T { fn t(&self) -> bool { true } }
        pub use x::{Y, Z as W};
        #[cfg(test)] pub mod tests { pub fn i() {} }
        #[cfg(shuttle)] pub mod inner { pub fn j() {} fn k() {} }";
    let items: Vec<String> = of(source).into_iter().collect();
    let text = items.join("\n");
    for kept in ["pub a: u32", "fn f(", "impl Clone for A", "fn t(", "fn j(", "Z as W", "derive(Clone)"] {
        assert!(text.contains(kept), "{kept} in {text}");
        let renamed = source.replace(kept, &kept.replace(kept.trim_end_matches('('), "changed"));
        assert!(!syn::parse_file(&renamed).is_ok_and(|file| public_items::of(&[file]).into_iter().eq(items.clone())));
    }
    for left_out in ["b: u32", "Documented", "fn g", "fn h", "for B", "enum C", "fn i", "fn k"] {
        assert!(!text.contains(left_out), "{left_out} in {text}");
    }
}

/// A name that is no longer found breaks whoever uses it. The list has names of each kind, so each kind is found.
#[test]
fn flags_metrics_exit_codes_and_log_keys_are_those_listed() {
    let file = path("xtask/tests/interface/names.txt");
    let found = names::all();
    let text = read(&file);
    let listed: BTreeSet<String> = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    if env::var_os("BLESS").is_some() {
        let all: Vec<String> = listed.union(&found).cloned().collect();
        fs::write(&file, format!("{}\n{}\n", names::HEAD, all.join("\n"))).expect("the list is written");
    }
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "see CONTRIBUTING.md, `Compatibility`: removed or renamed: {gone:#?}");
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(new.is_empty() || env::var_os("BLESS").is_some(), "BLESS=1 adds these to the list: {new:#?}");
}

/// docs/compatibility.md names the versions of the drivers whose calls are tested.
#[test]
fn each_driver_of_the_simulated_node_has_a_row_in_the_table_of_versions() {
    let page = read(&path("docs/compatibility.md"));
    let (_, table) = page.split_once("\n## Drivers\n").expect("the heading");
    for entry in fs::read_dir(path("sim/csi-proxy-sim/drivers")).expect("the drivers") {
        let file = entry.expect("an entry").path();
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = read(&file);
        let driver =
            text.split("\"driver\": \"").nth(1).and_then(|rest| rest.split(['"', ' ']).next()).expect("a name");
        assert!(table.contains(&format!("\n| {driver} |")), "{driver} has no row");
    }
}
