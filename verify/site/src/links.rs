//! The links of pages: which file of the tree is which page of the site.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use crate::MADE;

/// The pages that the table of contents lists, by the path of their source in the tree.
pub(crate) struct Pages {
    by_source: BTreeMap<String, String>,
}

impl Pages {
    /// Reads the links in the table of contents.
    pub(crate) fn of(summary: &str) -> Self {
        let sources = targets(summary).map(|target| resolved("docs/SUMMARY.md", target));
        Self { by_source: sources.map(|source| (source.clone(), page_of(&source))).collect() }
    }

    /// Returns the sources that are pages themselves, each with the name of its page.
    pub(crate) fn copied(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_page = |(source, _): &(&String, &String)| made_from(source).is_none();
        self.by_source.iter().filter(is_page).map(|(source, page)| (source.as_str(), page.as_str()))
    }

    /// Returns `text`, the page from `source`, with links between the pages of the site. Links to other files of the tree
    /// become text.
    pub(crate) fn rewritten(&self, source: &str, text: &str) -> String {
        let mut rewritten = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, link, after)) = next_link(rest) {
            let (file, anchor) = link.target.split_once('#').map_or((link.target, None), |(file, at)| (file, Some(at)));
            rewritten.push_str(before);
            let is_elsewhere = link.target.contains("://") || file.is_empty() || link.is_picture;
            if is_elsewhere {
                rewritten.push_str(link.whole);
            } else {
                match self.page(&resolved(source, file)) {
                    Some(page) => {
                        let anchor = anchor.map_or_else(String::new, |anchor| format!("#{anchor}"));
                        for part in ["[", link.text, "](", page, &anchor, ")"] {
                            rewritten.push_str(part);
                        }
                    }
                    None => rewritten.push_str(link.text),
                }
            }
            rest = after;
        }
        rewritten + rest
    }

    fn page(&self, source: &str) -> Option<&str> {
        self.by_source.get(source).map(String::as_str).or_else(|| made_from(source))
    }
}

/// Returns the page that is made from a source.
fn made_from(source: &str) -> Option<&'static str> {
    let is_inside = |folder: &str| source.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    MADE.iter().find(|(folder, _)| is_inside(folder)).map(|(_, page)| *page)
}

/// Returns the name of the page from a source: that of the file in `docs/`, else the path of its folder.
fn page_of(source: &str) -> String {
    if let Some(page) = made_from(source) {
        return page.to_owned();
    }
    match source.rsplit_once('/') {
        Some(("docs", file)) => file.to_owned(),
        Some((folder, "README.md")) => format!("{}.md", folder.replace('/', "-")),
        Some((folder, file)) => format!("{}-{file}", folder.replace('/', "-")),
        None => format!("project-{}", source.to_lowercase()),
    }
}

/// Returns the path of a link's target from the root of the tree.
fn resolved(page: &str, target: &str) -> String {
    let mut path = Path::new(page).parent().unwrap_or(Path::new("")).to_path_buf();
    for component in Path::new(target).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            component => path.push(component),
        }
    }
    path.to_string_lossy().into_owned()
}

/// A link in a page, `[text](target)`.
struct Link<'t> {
    whole: &'t str,
    text: &'t str,
    target: &'t str,
    is_picture: bool,
}

/// Returns the text before the next link, the link, and the text after it.
fn next_link(text: &str) -> Option<(&str, Link<'_>, &str)> {
    let middle = text.find("](")?;
    let start = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')? + 1;
    let link = Link {
        whole: &text[start..end],
        text: &text[start + 1..middle],
        target: &text[middle + 2..end - 1],
        is_picture: text[..start].ends_with('!'),
    };
    Some((&text[..start], link, &text[end..]))
}

/// Returns the targets of the links in a page.
pub(crate) fn targets(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (_, link, after) = next_link(text)?;
        text = after;
        Some(link.target)
    })
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn links_between_pages_stay_and_others_become_text() {
        let pages = Pages::of(
            "- [A](a.md)\n- [Flags](../crates/csi-proxy/README.md)\n- [Disk](../crates/api/proto/disk/v1/api.proto)\n",
        );
        assert_eq!(
            pages.copied().collect::<Vec<_>>(),
            [("crates/csi-proxy/README.md", "crates-csi-proxy.md"), ("docs/a.md", "a.md")]
        );
        for (text, rewritten) in [
            ("[a](a.md#b) [c](#d)", "[a](a.md#b) [c](#d)"),
            ("x [flags](../crates/csi-proxy/README.md#flags) y", "x [flags](crates-csi-proxy.md#flags) y"),
            ("[p](../crates/api/proto/disk/v1beta1/api.proto)", "[p](api-disk.md)"),
            ("see [lint](../xtask/src/lint.rs).", "see lint."),
            ("[w](https://example.com/a.md) ![p](channels.svg)", "[w](https://example.com/a.md) ![p](channels.svg)"),
        ] {
            assert_eq!(pages.rewritten("docs/b.md", text), rewritten);
        }
        assert_eq!(pages.rewritten("crates/csi-proxy/README.md", "[a](../../docs/a.md)"), "[a](a.md)");
    }
}
