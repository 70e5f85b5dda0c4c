//! Compares public names with the lists in the folder `interface`: the public items of the
//! libraries, and the flags, commands, exit codes, metrics, labels and log keys of the programs.
//!
//! `BLESS=1 cargo test -p xtask --test interface` writes the public items, and adds new names to
//! `names.txt`. A name is removed from that file by hand, under the rules of CONTRIBUTING.md. A
//! test of csi-proxyctl writes `csi-proxyctl.txt`.

#[path = "interface/names.rs"]
mod names;
#[path = "interface/public_items.rs"]
mod public_items;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use cargo_metadata::MetadataCommand;

/// Returns a path in this tree.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn read(file: &Path) -> String {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.replace("\r\n", "\n")
}

fn parsed(file: &Path) -> syn::File {
    syn::parse_file(&read(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Returns whether the attributes are those of a module or item for tests.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|what| what.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

#[test]
fn the_public_items_of_the_published_libraries_are_those_listed() {
    let metadata = MetadataCommand::new()
        .no_deps()
        .exec()
        .expect("cargo metadata");
    for package in metadata
        .packages
        .iter()
        .filter(|package| package.publish != Some(Vec::new()))
    {
        let library = package
            .targets
            .iter()
            .find(|target| target.is_lib())
            .expect("a library");
        let root = library.src_path.as_std_path();
        let items = public_items::of(parsed(root), root);
        let text = format!(
            "library {} with features {:?}\n{items}",
            library.name,
            package.features.keys()
        );
        let file = path(&format!("xtask/tests/interface/{}.txt", package.name));
        if env::var_os("BLESS").is_some() {
            fs::write(&file, &text).expect("the list is written");
        }
        let listed = read(&file);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        let (gone, new) = (
            &lines(&listed) - &lines(&text),
            &lines(&text) - &lines(&listed),
        );
        let rules = "see CONTRIBUTING.md, `Compatibility`";
        assert!(
            listed == text,
            "{}: {rules}\ngone: {gone:#?}\nnew: {new:#?}",
            package.name
        );
    }
}

#[test]
fn a_renamed_item_changes_the_list() {
    let of = |source: &str| public_items::of(syn::parse_file(source).expect("Rust"), Path::new(""));
    let source = "
        /// Documented.
        #[derive(Clone)] pub struct A { pub a: u32, b: u32 }
        impl A { pub fn f(&self) -> u32 { 1 } fn g() {} }
        impl Clone for A { fn clone(&self) -> A { A { a: self.a, b: self.b } } }
        struct B; impl B { fn h() {} } impl Clone for B {}
        pub(crate) enum C { D }
        #[doc(hidden)] pub trait T { #[cfg(miri)] fn t(&self) -> bool { true } }
        pub use x::{Y, Z as W};
        #[cfg(test)] pub mod tests { pub fn i() {} }
        #[cfg(shuttle)] mod inner { pub fn j() {} fn k() {} }
        pub mod outer { mod private { pub fn l() {} } }";
    let text = of(source);
    let kept = "pub a, fn f, Clone for A, fn t, fn j, Z as W, derive(Clone, doc(hidden, cfg(miri, \
                cfg(shuttle, mod outer, fn l";
    for name in kept.split(", ") {
        assert!(text.contains(name), "{name} in {text}");
        assert_ne!(
            of(&source.replace(name, &format!("{name}2"))),
            text,
            "{name}"
        );
    }
    for left_out in [
        "b: u32",
        "Documented",
        "fn g",
        "fn h",
        "for B",
        "enum C",
        "fn i",
        "fn k",
        "mod private",
    ] {
        assert!(!text.contains(left_out), "{left_out} in {text}");
    }
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
