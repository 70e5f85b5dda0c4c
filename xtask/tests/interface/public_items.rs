//! The public items of a library, as its sources declare them, without documentation and bodies.
//!
//! Every `pub` item counts. The compiler's lint `unreachable_pub` warns about one that other crates cannot reach, so the
//! list does not follow modules. Code that macros generate is not listed, but the macro's input is, if it says `pub` or
//! makes constants. The messages that `csi-proxy-api` generates are frozen in `crates/api/tests/wire.json`.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use syn::{Attribute, Fields, File, ImplItem, Item, ItemImpl, TraitItem, Type, Visibility, parse_quote};

use super::is_test;

/// The macros that make public items.
const MACROS: [&str; 2] = ["bitflags", "codes"];

/// Returns the public items of a library.
pub(crate) fn of(sources: &[File]) -> BTreeSet<String> {
    let mut items = Vec::new();
    for source in sources {
        collect(&source.items, &mut items);
    }
    let public_types: BTreeSet<String> = items.iter().filter_map(name_of_type).collect();
    items.retain(|item| match item {
        Item::Impl(item) => {
            item.trait_.is_none() || type_name(&item.self_ty).is_some_and(|name| public_types.contains(&name))
        }
        _ => true,
    });
    items
        .into_iter()
        .map(|item| prettyplease::unparse(&File { shebang: None, attrs: Vec::new(), items: vec![item] }))
        .collect()
}

fn collect(items: &[Item], into: &mut Vec<Item>) {
    for item in items {
        let mut item = item.clone();
        if let Item::Mod(module) = &item {
            if let Some((_, items)) = &module.content
                && !is_test(&module.attrs)
            {
                collect(items, into);
            }
            continue;
        }
        if let Some(attributes) = attributes(&mut item) {
            if is_test(attributes) {
                continue;
            }
            keep(attributes);
        }
        if strip(&mut item) {
            into.push(item);
        }
    }
}

/// Removes what callers do not see. Returns whether something is left.
fn strip(item: &mut Item) -> bool {
    match item {
        Item::Const(item) => is_public(&item.vis),
        Item::Static(item) => is_public(&item.vis),
        Item::Type(item) => is_public(&item.vis),
        Item::Use(item) => is_public(&item.vis),
        Item::Fn(item) => {
            item.block = parse_quote!({});
            is_public(&item.vis)
        }
        Item::Struct(item) => {
            strip_fields(&mut item.fields);
            is_public(&item.vis)
        }
        Item::Enum(item) => {
            for variant in &mut item.variants {
                keep(&mut variant.attrs);
                variant.fields.iter_mut().for_each(|field| keep(&mut field.attrs));
            }
            is_public(&item.vis)
        }
        Item::Trait(item) => {
            for part in &mut item.items {
                match part {
                    TraitItem::Fn(function) => {
                        keep(&mut function.attrs);
                        function.default = function.default.is_some().then(|| parse_quote!({}));
                    }
                    TraitItem::Const(constant) => keep(&mut constant.attrs),
                    TraitItem::Type(of) => keep(&mut of.attrs),
                    _ => {}
                }
            }
            is_public(&item.vis)
        }
        Item::Impl(item) => strip_impl(item),
        Item::Macro(item) => {
            item.mac.tokens = without_documentation(item.mac.tokens.clone());
            item.ident.is_none()
                && item.mac.path.get_ident().is_some_and(|name| MACROS.iter().any(|known| name == known))
        }
        _ => false,
    }
}

fn strip_impl(item: &mut ItemImpl) -> bool {
    if item.trait_.is_some() {
        // Its functions are those of the trait.
        item.items.retain(|part| matches!(part, ImplItem::Type(_)));
        return true;
    }
    item.items.retain(|part| match part {
        ImplItem::Fn(function) => is_public(&function.vis) && !is_test(&function.attrs),
        ImplItem::Const(constant) => is_public(&constant.vis),
        _ => false,
    });
    for part in &mut item.items {
        match part {
            ImplItem::Fn(function) => {
                keep(&mut function.attrs);
                function.block = parse_quote!({});
            }
            ImplItem::Const(constant) => {
                keep(&mut constant.attrs);
                constant.expr = parse_quote!(_);
            }
            _ => {}
        }
    }
    !item.items.is_empty()
}

/// Removes private fields, except that one stands for them: callers cannot build the struct.
fn strip_fields(fields: &mut Fields) {
    let is_open = fields.iter().all(|field| is_public(&field.vis));
    fields.iter_mut().for_each(|field| keep(&mut field.attrs));
    match fields {
        Fields::Named(fields) if !is_open => {
            fields.named = fields.named.iter().filter(|field| is_public(&field.vis)).cloned().collect();
            fields.named.push(parse_quote!(_private: _));
        }
        Fields::Unnamed(fields) if !is_open => {
            fields.unnamed = fields.unnamed.iter().filter(|field| is_public(&field.vis)).cloned().collect();
            fields.unnamed.push(parse_quote!(_));
        }
        _ => {}
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Keeps the attributes that callers depend on.
fn keep(attributes: &mut Vec<Attribute>) {
    attributes
        .retain(|attribute| ["derive", "non_exhaustive", "repr"].iter().any(|kept| attribute.path().is_ident(kept)));
}

fn attributes(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    Some(match item {
        Item::Const(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::Fn(item) => &mut item.attrs,
        Item::Impl(item) => &mut item.attrs,
        Item::Macro(item) => &mut item.attrs,
        Item::Static(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::Type(item) => &mut item.attrs,
        Item::Use(item) => &mut item.attrs,
        _ => return None,
    })
}

fn name_of_type(item: &Item) -> Option<String> {
    match item {
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Enum(item) => Some(item.ident.to_string()),
        _ => None,
    }
}

fn type_name(of: &Type) -> Option<String> {
    let Type::Path(path) = of else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

/// Removes the attributes in the input of a macro, of which almost all are documentation.
fn without_documentation(tokens: TokenStream) -> TokenStream {
    use proc_macro2::{Delimiter, Group, TokenTree};
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket && is_hash(kept.last()) => {
                kept.pop();
            }
            TokenTree::Group(group) => {
                kept.push(Group::new(group.delimiter(), without_documentation(group.stream())).into());
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

fn is_hash(token: Option<&proc_macro2::TokenTree>) -> bool {
    matches!(token, Some(proc_macro2::TokenTree::Punct(punct)) if punct.as_char() == '#')
}
