//! The names that scripts, dashboards and log queries use, found in the sources and in generated pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprLit, ExprMethodCall, ExprStruct, ItemConst, ItemMod, Lit, Macro, Member};

use super::{is_test, path, read, sources};

/// The first line of names.txt.
pub(crate) const HEAD: &str = "# Names that others use. CONTRIBUTING.md says when one may be removed.";

/// The crates whose code a shipped program runs.
const CRATES: [&str; 6] = ["csi-proxy", "csi-proxyctl", "doctor", "server", "storage-ops", "os-win32"];
/// The macros of the log.
const LOG: [&str; 7] = ["debug", "error", "event", "info", "info_span", "trace", "warn"];

/// Returns all names, each after its kind.
pub(crate) fn all() -> BTreeSet<String> {
    let mut names = Names::default();
    for name in CRATES {
        names.program = name;
        for source in sources(&format!("crates/{name}/src")) {
            names.visit_file(&source);
        }
    }
    let metrics = read(&path("docs/metrics.md"));
    let rows = metrics.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    names.found.extend(rows.map(|name| format!("metric {name}")));
    names.found.extend(flags_in_help_texts());
    let flags = names.flags.iter().filter_map(|name| names.texts.get(name));
    names.found.extend(flags.map(|flag| format!("flag csi-proxyctl --{flag}")));
    names.found
}

/// Returns the flags in the golden files of csi-proxyctl's help texts. Those of a command that makes a call come from the
/// fields of its request, which `crates/api/tests/wire.json` freezes.
fn flags_in_help_texts() -> BTreeSet<String> {
    let files = fs::read_dir(path("crates/csi-proxyctl/tests/golden")).expect("the golden files");
    let files = files.map(|entry| entry.expect("an entry").path());
    let helps = files.filter(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("help")));
    let mut flags = BTreeSet::new();
    for help in helps {
        for word in read(&help).split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
            if word.starts_with("--") && word.len() > 2 {
                flags.insert(format!("flag csi-proxyctl {word}"));
            }
        }
    }
    flags
}

#[derive(Default)]
struct Names {
    program: &'static str,
    found: BTreeSet<String>,
    /// The texts in constants of csi-proxyctl, and the constants that are the names of flags.
    texts: BTreeMap<String, String>,
    flags: Vec<String>,
}

impl<'a> Visit<'a> for Names {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    /// A row of a table of flags.
    fn visit_expr_struct(&mut self, row: &'a ExprStruct) {
        let is_name = |member: &Member| matches!(member, Member::Named(name) if name == "name");
        if row.path.segments.last().is_some_and(|kind| kind.ident == "Flag") {
            for field in row.fields.iter().filter(|field| is_name(&field.member)) {
                self.flag(&field.expr);
            }
        }
        visit::visit_expr_struct(self, row);
    }

    /// A flag without effect.
    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let (Expr::Path(function), Some(first)) = (&*call.func, call.args.first())
            && function.path.segments.last().is_some_and(|name| name.ident.to_string().starts_with("ignored_"))
        {
            self.flag(first);
        }
        visit::visit_expr_call(self, call);
    }

    /// A flag of csi-proxyctl.
    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        if let Some(Expr::Path(constant)) = call.args.first().filter(|_| call.method == "long") {
            self.flags.extend(constant.path.get_ident().map(ToString::to_string));
        }
        visit::visit_expr_method_call(self, call);
    }

    /// An exit code of csi-proxy, or a text of csi-proxyctl.
    fn visit_item_const(&mut self, constant: &'a ItemConst) {
        let name = constant.ident.to_string();
        match (&name[..], &*constant.expr) {
            ("USAGE", Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) => {
                self.found.insert(format!("exit code csi-proxy {name} {number}"));
            }
            ("FOUND" | "NOT_RUN", Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) => {
                self.found.insert(format!("exit code csi-proxy doctor {name} {number}"));
            }
            (_, Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) if self.program == "csi-proxyctl" => {
                self.texts.insert(name, text.value());
            }
            _ => {}
        }
        visit::visit_item_const(self, constant);
    }

    /// An exit code of csi-proxyctl.
    fn visit_item_enum(&mut self, codes: &'a syn::ItemEnum) {
        if self.program == "csi-proxyctl" && codes.ident == "Code" {
            for code in &codes.variants {
                if let Some((_, Expr::Lit(ExprLit { lit: Lit::Int(number), .. }))) = &code.discriminant {
                    self.found.insert(format!("exit code csi-proxyctl {} {number}", code.ident));
                }
            }
        }
    }

    /// A line of the log.
    fn visit_macro(&mut self, line: &'a Macro) {
        let path: Vec<String> = line.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [.., name] = &path[..]
            && LOG.contains(&&name[..])
            && path[0] == "tracing"
        {
            self.found.extend(fields(line.tokens.clone()).into_iter().map(|key| format!("log key {key}")));
        }
        visit::visit_macro(self, line);
    }
}

impl Names {
    fn flag(&mut self, name: &Expr) {
        if let Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) = name {
            self.found.insert(format!("flag {} -{}", self.program, name.value()));
        }
    }
}

/// Returns the keys in the input of a macro of the log: `key = value`, `%key` or `?key`, or a name alone, up to the text.
fn fields(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    let is_equals = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '=');
    let mut keys = Vec::new();
    for argument in tokens.split(is_comma) {
        match argument {
            [TokenTree::Literal(_), ..] if !keys.is_empty() || argument.len() == 1 => {}
            [TokenTree::Ident(key)] | [TokenTree::Punct(_), TokenTree::Ident(key)] => keys.push(key.to_string()),
            [TokenTree::Ident(key), equals, ..] if is_equals(equals) => keys.push(key.to_string()),
            _ => {}
        }
    }
    keys
}
