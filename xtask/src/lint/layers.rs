//! The layers of the shipped crates: a module uses only itself and the modules that its crate's
//! `lib.rs` names before it, and the parts of a module use each other in no circle. A module and
//! its parts may use each other, except that nothing uses `lib.rs`. Tests may use everything.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Source;

/// The names of the modules follow these words in the comment of `lib.rs`.
const ORDER: &str = "from the lowest";

/// The modules of a crate by their paths without `crate`, and the paths that each one uses.
type Modules = BTreeMap<Vec<String>, Vec<Used>>;

/// A path that begins with `crate`, `self` or `super`, or that `use` imports.
struct Used {
    path: Vec<String>,
    /// The name that `use` gives to it, else empty.
    name: String,
}

/// Returns a breach for each use that the layers forbid, and for each circle.
pub(super) fn breaches(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for lib in sources {
        let path = lib.path.to_string_lossy();
        let Some(folder) = path.strip_suffix("lib.rs") else {
            continue;
        };
        if folder.starts_with("crates/") {
            let found = breaches_of_crate(&modules(sources, folder), &order(&lib.text));
            breaches.extend(found.into_iter().map(|breach| format!("{path}: {breach}")));
        }
    }
    breaches
}

/// Returns the names in backticks after [`ORDER`].
fn order(lib: &str) -> Vec<&str> {
    lib.lines()
        .skip_while(|line| !line.contains(ORDER))
        .take_while(|line| line.starts_with("//"))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect()
}

/// Reads the modules below `folder`, except for tests.
fn modules(sources: &[Source], folder: &str) -> Modules {
    let module = |source: &Source| {
        let file = source.path.to_string_lossy();
        let file = file.strip_prefix(folder)?.strip_suffix(".rs")?;
        let names = file.split('/').map(str::to_owned);
        let names: Vec<String> = names.filter(|name| name != "lib").collect();
        let mut used = Vec::new();
        find(source.text.parse().expect("rustc compiles it"), &mut used);
        (!names.contains(&"tests".to_owned())).then_some((names, used))
    };
    sources.iter().filter_map(module).collect()
}

/// Adds the paths that code outside of tests uses.
fn find(tokens: TokenStream, found: &mut Vec<Used>) {
    let mut is_test = false;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.peek() {
        match token {
            TokenTree::Ident(word) if !is_test && word == "use" => {
                tokens.next();
                add_path(&mut tokens, Vec::new(), found);
                continue;
            }
            TokenTree::Ident(word)
                if !is_test && ["crate", "self", "super"].iter().any(|root| word == root) =>
            {
                add_path(&mut tokens, Vec::new(), found);
                if let Some(used) = found.last_mut() {
                    used.name.clear();
                }
                continue;
            }
            TokenTree::Group(group) => {
                if !is_test {
                    find(group.stream(), found);
                }
                is_test |= group.to_string() == "[cfg (test)]";
                is_test &= group.delimiter() != Delimiter::Brace;
            }
            TokenTree::Punct(punct) => is_test &= punct.as_char() != ';',
            _ => {}
        }
        tokens.next();
    }
}

/// Adds the path that continues `path` with these tokens, or each path if braces follow.
fn add_path(tokens: &mut Peekable<IntoIter>, mut path: Vec<String>, found: &mut Vec<Used>) {
    let is_colon =
        |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    let is_word = |token: &TokenTree| matches!(token, TokenTree::Ident(_));
    loop {
        if let Some(TokenTree::Group(group)) = tokens.peek() {
            let mut parts = group.stream().into_iter().peekable();
            while parts.peek().is_some() {
                add_path(&mut parts, path.clone(), found);
                // The comma.
                parts.next();
            }
            return;
        }
        let Some(word) = tokens.next_if(is_word) else {
            break;
        };
        path.push(word.to_string());
        if tokens.next_if(is_colon).is_none() || tokens.next_if(is_colon).is_none() {
            break;
        }
    }
    let Some(last) = path.last() else { return };
    let renamed = tokens
        .next_if(|token| token.to_string() == "as")
        .and_then(|_| tokens.next());
    let name = renamed.map_or_else(|| last.clone(), |name| name.to_string());
    found.push(Used { path, name });
}

/// Returns the module that contains what `path` names in the module `from`, also through `use`, and
/// `None` for another crate.
fn module_of(modules: &Modules, from: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut module = from.to_vec();
    for (index, name) in path.iter().enumerate() {
        match name.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop();
            }
            _ => {
                module.push(name.clone());
                if modules.contains_key(&module) {
                    continue;
                }
                module.pop();
                if index == 0 {
                    return None;
                }
                let imports = modules.get(&module)?;
                let import = imports
                    .iter()
                    .find(|used| used.name == *name && used.path.len() > 1);
                return import
                    .and_then(|used| module_of(modules, &module, &used.path))
                    .or(Some(module));
            }
        }
    }
    Some(module)
}

fn breaches_of_crate(modules: &Modules, order: &[&str]) -> Vec<String> {
    let position = |name: &str| order.iter().position(|known| *known == name);
    let mut breaches = BTreeSet::new();
    for module in modules.keys() {
        if let [name] = &module[..]
            && position(name).is_none()
            && name != "main"
        {
            breaches.insert(format!("{name} has no place in the order"));
        }
    }
    // The uses between the parts of each module.
    let mut within: BTreeMap<String, BTreeSet<[String; 2]>> = BTreeMap::new();
    for (from, used) in modules {
        for Used { path, .. } in used.iter().filter(|used| used.path.len() > 1) {
            let Some(to) = module_of(modules, from, path) else {
                continue;
            };
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(own), Some(other)) = (from.get(common), to.get(common)) {
                let uses = within.entry(from[..common].join("::")).or_default();
                uses.insert([own.clone(), other.clone()]);
            } else if to.is_empty() && !from.is_empty() {
                breaches.insert(format!("{} may not use an item of lib.rs", from.join("::")));
            }
        }
    }
    for [own, other] in within.remove("").unwrap_or_default() {
        if position(&other) > position(&own) {
            breaches.insert(format!(
                "{own} may not use crate::{other}: see the order in lib.rs"
            ));
        }
    }
    for (module, mut uses) in within {
        // A part that uses no other part, or is used by none, is in no circle.
        loop {
            let all = uses.clone();
            uses.retain(|[own, other]| {
                all.iter().any(|[from, _]| from == other) && all.iter().any(|[_, to]| to == own)
            });
            if uses.len() == all.len() {
                break;
            }
        }
        for [own, other] in uses {
            breaches.insert(format!("{module} has a circle: {own} uses {other}"));
        }
    }
    breaches.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;

    const LIB: &str =
        "//! The layers, from the lowest: `disk`,\n//! `ops`.\n\nmod disk;\nmod ops;\n";

    /// Returns the breaches of a crate with this `lib.rs` and these files.
    fn breaches(lib: &str, files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| source(&format!("crates/os/src/{path}"), text);
        let mut sources: Vec<_> = files.iter().map(file).collect();
        sources.push(source("crates/os/src/lib.rs", lib));
        let breaches = super::breaches(&sources).into_iter();
        let of_crate = |breach: String| breach.replace("crates/os/src/lib.rs: ", "");
        breaches.map(of_crate).collect()
    }

    #[test]
    fn a_module_uses_those_before_it_in_the_order() {
        let ops = "use crate::disk::Disk;\n// crate::ops\nfn f() { crate::disk::f(\"crate::x\") }";
        let up = ["disk may not use crate::ops: see the order in lib.rs"];
        for (disk, expected) in [
            ("use std::fmt;\nuse os::ops;", &[][..]),
            ("use crate::ops;", &up),
            ("use super::{ops::{self as other, Format}};", &up),
            ("fn f() { call!(crate::ops::f()) }", &up),
            ("use crate::Item;", &["disk may not use an item of lib.rs"]),
            ("pub(crate) fn f() {}", &[]),
        ] {
            let files = [("disk.rs", disk), ("ops/disk.rs", ops), ("ops.rs", "")];
            assert_eq!(breaches(LIB, &files), expected, "{disk}");
        }
        let of_lib = LIB.to_owned() + "pub use ops::Format;";
        let disk = ("disk.rs", "use crate::Format;");
        assert_eq!(breaches(&of_lib, &[disk, ("ops.rs", "")]), up);
        assert_eq!(
            breaches(&LIB.replace("`disk`", "disk"), &[("disk.rs", "")]),
            ["disk has no place in the order"]
        );
    }

    #[test]
    fn tests_may_use_everything_and_the_code_after_them_may_not() {
        let up = ["disk may not use crate::ops: see the order in lib.rs"];
        for (disk, expected) in [
            ("#[cfg(test)]\nmod tests { use crate::ops; }", &[][..]),
            ("#[cfg(test)]\nmod tests;\nuse crate::ops;", &up),
            (
                "#[cfg(test)]\nuse crate::ops;\nfn f() { crate::ops::f() }",
                &up,
            ),
        ] {
            let files = [
                ("disk.rs", disk),
                ("disk/tests.rs", "use crate::ops;"),
                ("ops.rs", ""),
            ];
            assert_eq!(breaches(LIB, &files), expected, "{disk}");
        }
    }

    #[test]
    fn parts_of_a_module_are_in_no_circle_but_may_use_the_module() {
        let parent = ("ops.rs", "mod a;\nmod b;\nuse self::a::A;\npub use b::B;");
        let (a, c) = (
            ("ops/a.rs", "use super::Ops;\nuse super::b::x::B;"),
            ("ops/c.rs", "use super::a;"),
        );
        let disk = ("disk.rs", "");
        assert_eq!(
            breaches(LIB, &[parent, a, c, ("ops/b.rs", ""), disk]),
            [""; 0]
        );
        for b in [
            ("ops/b.rs", "use crate::ops::a;"),
            ("ops/b/x.rs", "use super::super::a;"),
            ("ops/b/x.rs", "use crate::ops::A;"),
        ] {
            assert_eq!(
                breaches(LIB, &[parent, a, ("ops/b.rs", ""), b, c, disk]),
                ["ops has a circle: a uses b", "ops has a circle: b uses a"],
                "{b:?}"
            );
        }
    }
}
