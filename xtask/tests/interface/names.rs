//! The names that scripts, dashboards and log queries use, found in the sources and in a generated
//! page. A test of csi-proxyctl lists its commands and flags, most of which are derived from RPCs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::Macro;
use syn::visit::Visit;

use super::{path, read};

/// The first line of names.txt.
pub(crate) const HEAD: &str =
    "# Names that others use. CONTRIBUTING.md says when one may be removed.";

/// The crates whose code a shipped program runs.
const CRATES: [&str; 6] = [
    "csi-proxy",
    "csi-proxyctl",
    "doctor",
    "server",
    "storage-ops",
    "os-win32",
];
/// The macros of the log.
const LOG: [&str; 7] = [
    "debug",
    "error",
    "event",
    "info",
    "info_span",
    "trace",
    "warn",
];

/// Returns all names, each after its kind.
pub(crate) fn all() -> BTreeSet<String> {
    let [daemon, tool, server] = ["csi-proxy", "command-line", "server"].map(code);
    let mut log = LogKeys::default();
    for text in CRATES
        .iter()
        .flat_map(|name| sources(&path(&format!("crates/{name}/src"))))
    {
        log.visit_file(&syn::parse_file(&text).expect("Rust"));
    }
    let mut all = BTreeSet::new();
    let mut add = |kind: &str, names: Vec<String>| {
        all.extend(names.into_iter().map(|name| format!("{kind}{name}")));
    };
    // The rows of the tables of flags. A name is a literal or a constant.
    for name in between(&daemon, " Flag { name: ", ",") {
        let constant = between(&daemon, &format!("const {name}: &str = "), ";").pop();
        add(
            "flag csi-proxy -",
            vec![constant.unwrap_or(name).replace('"', "")],
        );
    }
    for without_effect in ["ignored_value(\"", "ignored_switch(\""] {
        add("flag csi-proxy -", between(&daemon, without_effect, "\""));
    }
    for list in between(&daemon, "commands: &[", "],") {
        add("command csi-proxy ", between(&list, "(\"", "\""));
    }
    let constants = between(&daemon, "const ", ";").into_iter();
    add(
        "exit code csi-proxy ",
        constants
            .filter(|constant| constant.contains(": u8 = "))
            .collect(),
    );
    // Each variant follows a sentence.
    let variants = between(&tool, "pub enum Code { ", ", }").concat();
    let codes = variants
        .split(',')
        .filter_map(|variant| variant.rsplit_once(". "));
    add(
        "exit code csi-proxyctl ",
        codes.map(|(_, code)| code.to_owned()).collect(),
    );
    add(
        "metric ",
        between(&read(&path("docs/metrics.md")), "\n| `", "`"),
    );
    for call in between(&server, "write_labelled(text, ", "&") {
        let words: Vec<_> = call.split('"').collect();
        add("label ", vec![format!("{} of {}", words[7], words[1])]);
    }
    // In texts such as `name{{label=\"{value}\"`.
    let labels = [daemon, server].concat();
    let labels = labels
        .split(['{', ',', '"'])
        .filter_map(|part| part.strip_suffix("=\\"));
    add(
        "label ",
        labels
            .filter(|label| !label.contains([' ', '}']))
            .map(str::to_owned)
            .collect(),
    );
    add("log key ", log.0);
    all
}

/// Returns the sources in a folder, without tests.
fn sources(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let text = |file: &Path| {
        read(file)
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .map(str::to_owned)
    };
    paths
        .filter(|path| path.file_stem().is_some_and(|name| name != "tests"))
        .flat_map(|path| {
            if path.is_dir() {
                sources(&path)
            } else {
                text(&path).into_iter().collect()
            }
        })
        .collect()
}

/// Returns the code of a crate with single blanks, and without blanks after a parenthesis.
fn code(name: &str) -> String {
    let text = sources(&path(&format!("crates/{name}/src"))).concat();
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace("( ", "(")
}

/// Returns each part of a text that stands between two others.
fn between(text: &str, before: &str, after: &str) -> Vec<String> {
    text.split(before)
        .skip(1)
        .filter_map(|rest| rest.split(after).next())
        .map(str::to_owned)
        .collect()
}

#[derive(Default)]
struct LogKeys(Vec<String>);

impl<'a> Visit<'a> for LogKeys {
    fn visit_macro(&mut self, line: &'a Macro) {
        let path: Vec<String> = line
            .path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if path[0] == "tracing" && path.last().is_some_and(|name| LOG.contains(&&name[..])) {
            self.0.extend(keys(line.tokens.clone()));
        }
    }
}

/// Returns the keys in the input of a macro of the log: `key = value`, `%key` or `?key`, or a name
/// alone, up to the text.
fn keys(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |token: &TokenTree, c: char| matches!(token, TokenTree::Punct(punct) if punct.as_char() == c);
    let key = |argument: &[TokenTree]| match argument {
        [TokenTree::Ident(key)] | [TokenTree::Punct(_), TokenTree::Ident(key)] => {
            Some(key.to_string())
        }
        [TokenTree::Ident(key), equals, ..] if is(equals, '=') => Some(key.to_string()),
        _ => None,
    };
    tokens
        .split(|token| is(token, ','))
        .filter_map(key)
        .collect()
}
