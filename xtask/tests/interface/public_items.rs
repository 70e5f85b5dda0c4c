//! The public items of a library, as its sources declare them, without documentation and bodies.
//!
//! Every `pub` item counts. The compiler's lint `unreachable_pub` warns about one that other crates
//! cannot reach, so the items of a private module are listed as if they were in the module around
//! it. Code that macros generate is not listed, but the macro's input is. The messages that
//! `csi-proxy-api` generates are frozen in `crates/api/tests/wire.json`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::token::Brace;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Block, Expr, ExprLit, Fields, File, ImplItem, ImplItemConst, Item, ItemConst,
    ItemEnum, ItemFn, ItemImpl, ItemMod, ItemStatic, ItemStruct, ItemTrait, ItemType, ItemUse, Lit,
    Macro, Meta, Type, Variant, Visibility, parse_quote,
};

use super::{is_test, parsed};

/// Returns the public items of a library whose root is in `file`.
pub(crate) fn of(root: File, file: &Path) -> String {
    let (mut items, mut types) = (Vec::new(), BTreeSet::new());
    collect(root.items, file, &mut items, &mut types);
    sort(&mut items, &types);
    text(items)
}

fn text(items: Vec<Item>) -> String {
    prettyplease::unparse(&File {
        shebang: None,
        attrs: Vec::new(),
        items,
    })
}

/// Collects the listed items of a file, and the names of the types among them.
fn collect(items: Vec<Item>, file: &Path, into: &mut Vec<Item>, types: &mut BTreeSet<String>) {
    for mut item in items {
        let mut strip = Strip::default();
        if let Item::Mod(module) = &mut item {
            let file = file_of(module, file);
            strip.visit_attributes_mut(&mut module.attrs);
            if strip.is_for_tests {
                continue;
            }
            let items = module
                .content
                .take()
                .map_or_else(|| parsed(&file).items, |(_, items)| items);
            let mut listed = Vec::new();
            collect(items, &file, &mut listed, types);
            // What is compiled on one system is listed apart.
            if is_public(&module.vis) || !module.attrs.is_empty() {
                module.content = Some((Brace::default(), listed));
                into.push(item);
            } else {
                into.append(&mut listed);
            }
        } else if is_listed(&item) {
            strip.visit_item_mut(&mut item);
            if let Item::Struct(ItemStruct { ident, .. }) | Item::Enum(ItemEnum { ident, .. }) =
                &item
            {
                types.insert(ident.to_string());
            }
            into.extend((!strip.is_for_tests).then_some(item));
        }
    }
}

/// Returns the file of a module that `parent` declares.
fn file_of(module: &ItemMod, parent: &Path) -> PathBuf {
    let mut paths = module
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("path"));
    let path = paths.find_map(
        |attribute| match &attribute.meta.require_name_value().ok()?.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(file),
                ..
            }) => Some(parent.with_file_name(file.value())),
            _ => None,
        },
    );
    let folder = if parent.ends_with("lib.rs") {
        parent.with_file_name("")
    } else {
        parent.with_extension("")
    };
    path.unwrap_or_else(|| folder.join(format!("{}.rs", module.ident)))
}

/// Sorts the items, and removes implementations of traits for types that are not listed.
fn sort(items: &mut Vec<Item>, types: &BTreeSet<String>) {
    items.retain(|item| match item {
        Item::Impl(item) => {
            item.trait_.is_none() || self_type(item).is_some_and(|name| types.contains(&name))
        }
        _ => true,
    });
    for item in &mut *items {
        if let Item::Mod(ItemMod {
            content: Some((_, items)),
            ..
        }) = item
        {
            sort(items, types);
        }
    }
    items.sort_by_cached_key(|item| text(vec![item.clone()]));
}

fn is_listed(item: &Item) -> bool {
    match item {
        Item::Const(ItemConst { vis, .. })
        | Item::Enum(ItemEnum { vis, .. })
        | Item::Fn(ItemFn { vis, .. })
        | Item::Static(ItemStatic { vis, .. })
        | Item::Struct(ItemStruct { vis, .. })
        | Item::Trait(ItemTrait { vis, .. })
        | Item::Type(ItemType { vis, .. })
        | Item::Use(ItemUse { vis, .. }) => is_public(vis),
        Item::Impl(item) => item.trait_.is_some() || item.items.iter().any(is_listed_of_type),
        // Not the definition of a macro.
        Item::Macro(item) => item.ident.is_none(),
        _ => false,
    }
}

/// Returns whether a part of an `impl` without a trait is public.
fn is_listed_of_type(part: &ImplItem) -> bool {
    match part {
        ImplItem::Fn(function) => is_public(&function.vis) && !is_test(&function.attrs),
        ImplItem::Const(constant) => is_public(&constant.vis),
        _ => false,
    }
}

/// Removes what callers do not see.
#[derive(Default)]
struct Strip {
    /// Whether an attribute says so.
    is_for_tests: bool,
}

impl VisitMut for Strip {
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<Attribute>) {
        self.is_for_tests |= is_test(attributes);
        let kept = ["cfg", "deprecated", "derive", "non_exhaustive", "repr"];
        // `#[doc(hidden)]`, but not documentation.
        let is_hidden =
            |found: &Attribute| found.path().is_ident("doc") && matches!(found.meta, Meta::List(_));
        attributes.retain(|found| {
            is_hidden(found) || kept.iter().any(|kept| found.path().is_ident(kept))
        });
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        block.stmts.clear();
    }

    fn visit_item_impl_mut(&mut self, item: &mut ItemImpl) {
        let has_trait = item.trait_.is_some();
        // The functions of a trait are listed there.
        item.items.retain(|part| {
            if has_trait {
                matches!(part, ImplItem::Type(_))
            } else {
                is_listed_of_type(part)
            }
        });
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_impl_item_const_mut(&mut self, constant: &mut ImplItemConst) {
        self.visit_attributes_mut(&mut constant.attrs);
        constant.expr = parse_quote!(_);
    }

    /// Removes private fields, except that one stands for them: callers cannot build the struct.
    fn visit_fields_mut(&mut self, fields: &mut Fields) {
        let is_open = fields.iter().all(|field| is_public(&field.vis));
        visit_mut::visit_fields_mut(self, fields);
        match fields {
            Fields::Named(fields) if !is_open => {
                fields.named = fields
                    .named
                    .iter()
                    .filter(|field| is_public(&field.vis))
                    .cloned()
                    .collect();
                fields.named.push(parse_quote!(_private: _));
            }
            Fields::Unnamed(fields) if !is_open => {
                fields.unnamed = fields
                    .unnamed
                    .iter()
                    .filter(|field| is_public(&field.vis))
                    .cloned()
                    .collect();
                fields.unnamed.push(parse_quote!(_));
            }
            _ => {}
        }
    }

    /// All fields of a variant are public.
    fn visit_variant_mut(&mut self, variant: &mut Variant) {
        self.visit_attributes_mut(&mut variant.attrs);
        variant
            .fields
            .iter_mut()
            .for_each(|field| self.visit_field_mut(field));
    }

    fn visit_macro_mut(&mut self, input: &mut Macro) {
        input.tokens = without_documentation(input.tokens.clone());
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn self_type(item: &ItemImpl) -> Option<String> {
    let Type::Path(path) = &*item.self_ty else {
        return None;
    };
    path.path
        .segments
        .last()
        .map(|segment| segment.ident.to_string())
}

/// Removes the attributes in the input of a macro, of which almost all are documentation.
fn without_documentation(tokens: TokenStream) -> TokenStream {
    let is_hash = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Bracket && is_hash(kept.last()) =>
            {
                kept.pop();
            }
            TokenTree::Group(group) => {
                kept.push(
                    Group::new(group.delimiter(), without_documentation(group.stream())).into(),
                );
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}
