//! The names that scripts, dashboards and log queries use, found in the sources and in generated pages.

use std::collections::BTreeSet;
use std::fs;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ItemMod, Macro};

use super::{is_test, parsed, path, read, sources};

/// The first line of names.txt.
pub(crate) const HEAD: &str = "# Names that others use. CONTRIBUTING.md says when one may be removed.";

/// The crates whose code a shipped program runs.
const CRATES: [&str; 6] = ["csi-proxy", "csi-proxyctl", "doctor", "server", "storage-ops", "os-win32"];
/// The macros of the log.
const LOG: [&str; 7] = ["debug", "error", "event", "info", "info_span", "trace", "warn"];

/// Returns all names, each after its kind.
pub(crate) fn all() -> BTreeSet<String> {
    let [daemon, tool] = ["csi-proxy", "csi-proxyctl"].map(code);
    let mut log = LogKeys::default();
    for name in CRATES {
        parsed(&format!("crates/{name}/src")).iter().for_each(|file| log.visit_file(file));
    }
    let mut all = BTreeSet::new();
    let mut add = |kind: &str, names: Vec<String>| all.extend(names.into_iter().map(|name| format!("{kind}{name}")));
    // The rows of a table of flags, and flags without effect.
    for before in ["Flag { name: \"", "ignored_value(\"", "ignored_switch(\""] {
        add("flag csi-proxy -", between(&daemon, before, "\""));
    }
    add("flag csi-proxyctl --", flags_in_help_texts());
    // Flags whose names are constants.
    for constant in between(&tool, ".long(", ")") {
        add("flag csi-proxyctl --", between(&tool, &format!("const {constant}: &str = \""), "\""));
    }
    for (command, code) in [("csi-proxy", "USAGE"), ("csi-proxy doctor", "FOUND"), ("csi-proxy doctor", "NOT_RUN")] {
        add(&format!("exit code {command} {code} "), between(&daemon, &format!("const {code}: u8 = "), ";"));
    }
    // Each variant is `Name = number`.
    for variant in between(&tool, "pub enum Code {", "}").iter().flat_map(|code| code.split(',')) {
        let words: Vec<_> = variant.split(' ').collect();
        if let [.., name, "=", number] = words[..] {
            add("exit code csi-proxyctl ", vec![format!("{name} {number}")]);
        }
    }
    add("metric ", between(&read(&path("docs/metrics.md")), "\n| `", "`"));
    add("log key ", log.0);
    all
}

/// Returns the code of a crate with single blanks.
fn code(name: &str) -> String {
    let text = sources(&format!("crates/{name}/src")).concat();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns each part of a text that stands between two others.
fn between(text: &str, before: &str, after: &str) -> Vec<String> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).map(str::to_owned).collect()
}

/// Returns the flags in the golden files of csi-proxyctl's help texts. Those of a command that makes a call come from the
/// fields of its request, which `crates/api/tests/wire.json` freezes.
fn flags_in_help_texts() -> Vec<String> {
    let files = fs::read_dir(path("crates/csi-proxyctl/tests/golden")).expect("the golden files");
    let files = files.map(|entry| entry.expect("an entry").path());
    let helps = files.filter(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("help")));
    let text = helps.map(|file| read(&file)).collect::<String>();
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter_map(|word| word.strip_prefix("--")).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[derive(Default)]
struct LogKeys(Vec<String>);

impl<'a> Visit<'a> for LogKeys {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_macro(&mut self, line: &'a Macro) {
        let path: Vec<String> = line.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path[0] == "tracing" && path.last().is_some_and(|name| LOG.contains(&&name[..])) {
            self.0.extend(keys(line.tokens.clone()));
        }
    }
}

/// Returns the keys in the input of a macro of the log: `key = value`, `%key` or `?key`, or a name alone, up to the text.
fn keys(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |token: &TokenTree, c: char| matches!(token, TokenTree::Punct(punct) if punct.as_char() == c);
    let key = |argument: &[TokenTree]| match argument {
        [TokenTree::Ident(key)] | [TokenTree::Punct(_), TokenTree::Ident(key)] => Some(key.to_string()),
        [TokenTree::Ident(key), equals, ..] if is(equals, '=') => Some(key.to_string()),
        _ => None,
    };
    tokens.split(|token| is(token, ',')).filter_map(key).collect()
}
