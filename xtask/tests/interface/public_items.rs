//! The public items of a library, as its sources declare them, without documentation and bodies.
//!
//! Every `pub` item counts. The compiler's lint `unreachable_pub` warns about one that other crates cannot reach, so the
//! list does not follow modules. Code that macros generate is not listed, but the macro's input is, if it says `pub` or
//! makes constants. The messages that `csi-proxy-api` generates are frozen in `crates/api/tests/wire.json`.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Block, Fields, File, ImplItem, ImplItemConst, Item, ItemConst, ItemEnum, ItemFn, ItemImpl, ItemStatic,
    ItemStruct, ItemTrait, ItemType, ItemUse, Macro, Type, Variant, Visibility, parse_quote,
};

use super::is_test;

/// The macros that make public items.
const MACROS: [&str; 2] = ["bitflags", "codes"];

/// Returns the public items of a library.
pub(crate) fn of(sources: &[File]) -> BTreeSet<String> {
    let mut items = Vec::new();
    for source in sources {
        collect(&source.items, &mut items);
    }
    let types: BTreeSet<String> = items.iter().filter_map(name_of_type).collect();
    items.retain(|item| match item {
        Item::Impl(item) => item.trait_.is_none() || self_type(item).is_some_and(|name| types.contains(&name)),
        _ => true,
    });
    let unparse = |item| prettyplease::unparse(&File { shebang: None, attrs: Vec::new(), items: vec![item] });
    items.into_iter().map(unparse).collect()
}

fn collect(items: &[Item], into: &mut Vec<Item>) {
    for item in items {
        if let Item::Mod(module) = item {
            let items = module.content.as_ref().filter(|_| !is_test(&module.attrs));
            collect(items.map_or(&[], |(_, items)| items), into);
        } else if is_listed(item) {
            let (mut item, mut strip) = (item.clone(), Strip::default());
            strip.visit_item_mut(&mut item);
            if !strip.is_for_tests {
                into.push(item);
            }
        }
    }
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
        Item::Macro(item) => item.ident.is_none() && MACROS.iter().any(|name| item.mac.path.is_ident(name)),
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
        attributes.retain(|found| ["derive", "non_exhaustive", "repr"].iter().any(|kept| found.path().is_ident(kept)));
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        block.stmts.clear();
    }

    fn visit_item_impl_mut(&mut self, item: &mut ItemImpl) {
        let has_trait = item.trait_.is_some();
        // The functions of a trait are listed there.
        item.items.retain(|part| if has_trait { matches!(part, ImplItem::Type(_)) } else { is_listed_of_type(part) });
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

    /// All fields of a variant are public.
    fn visit_variant_mut(&mut self, variant: &mut Variant) {
        self.visit_attributes_mut(&mut variant.attrs);
        variant.fields.iter_mut().for_each(|field| self.visit_field_mut(field));
    }

    fn visit_macro_mut(&mut self, input: &mut Macro) {
        input.tokens = without_documentation(input.tokens.clone());
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn name_of_type(item: &Item) -> Option<String> {
    match item {
        Item::Struct(ItemStruct { ident, .. }) | Item::Enum(ItemEnum { ident, .. }) => Some(ident.to_string()),
        _ => None,
    }
}

fn self_type(item: &ItemImpl) -> Option<String> {
    let Type::Path(path) = &*item.self_ty else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

/// Removes the attributes in the input of a macro, of which almost all are documentation.
fn without_documentation(tokens: TokenStream) -> TokenStream {
    let is_hash = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
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
