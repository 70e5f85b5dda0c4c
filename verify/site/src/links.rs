//! The links of pages: which file of the tree is which page of the site.

use std::collections::BTreeMap;

use crate::{DRIVERS, DRIVERS_PAGE};

/// The pages that are copied from the tree, by the path of their source.
pub(crate) struct Pages(pub(crate) BTreeMap<String, String>);

impl Pages {
    /// Reads the links in the table of contents.
    pub(crate) fn of(summary: &str) -> Self {
        let sources = targets(summary).map(|target| resolved("docs/SUMMARY.md", target));
        let copied = sources.filter(|source| made_from(source).is_none());
        Self(
            copied
                .map(|source| (source.clone(), page_of(&source)))
                .collect(),
        )
    }

    /// Returns `text`, the page from `source`, with links between the pages of the site. Links to
    /// other files of the tree become text.
    pub(crate) fn rewritten(&self, source: &str, text: &str) -> String {
        let mut rewritten = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, link, after)) = next_link(rest) {
            let (file, anchor) = link
                .target
                .split_at(link.target.find('#').unwrap_or(link.target.len()));
            rewritten += before;
            let is_elsewhere = link.target.contains("://") || file.is_empty() || link.is_picture;
            let link = match self.page(&resolved(source, file)) {
                _ if is_elsewhere => link.whole.to_owned(),
                Some(page) => format!("[{}]({page}{anchor})", link.text),
                None => link.text.to_owned(),
            };
            rewritten += &link;
            rest = after;
        }
        rewritten + rest
    }

    fn page(&self, source: &str) -> Option<String> {
        self.0.get(source).cloned().or_else(|| made_from(source))
    }
}

/// Returns the page that is made from a source.
fn made_from(source: &str) -> Option<String> {
    source.starts_with(DRIVERS).then(|| DRIVERS_PAGE.to_owned())
}

/// Returns the name of the page from a source: that of the file in `docs/`, else the path of its
/// folder.
fn page_of(source: &str) -> String {
    match source.rsplit_once('/') {
        Some(("docs", file)) => file.to_owned(),
        Some((folder, "README.md")) => format!("{}.md", folder.replace('/', "-")),
        Some((folder, file)) => format!("{}-{file}", folder.replace('/', "-")),
        None => format!("project-{}", source.to_lowercase()),
    }
}

/// Returns the path of a link's target from the root of the tree, with `/` on each system.
fn resolved(page: &str, target: &str) -> String {
    let mut path: Vec<&str> = page.split('/').collect();
    path.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(path.pop()),
            "" | "." => {}
            part => path.push(part),
        }
    }
    path.join("/")
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
            "- [A](a.md)\n- [Flags](../crates/csi-proxy/README.md)\n- \
             [Calls](../sim/csi-proxy-sim/drivers/01-azuredisk.json)\n",
        );
        let copied = [
            ("crates/csi-proxy/README.md", "crates-csi-proxy.md"),
            ("docs/a.md", "a.md"),
        ];
        assert!(
            pages
                .0
                .iter()
                .map(|(source, page)| (source.as_str(), page.as_str()))
                .eq(copied)
        );
        for (text, rewritten) in [
            ("[a](a.md#b) [c](#d)", "[a](a.md#b) [c](#d)"),
            (
                "x [flags](../crates/csi-proxy/README.md#flags) y",
                "x [flags](crates-csi-proxy.md#flags) y",
            ),
            (
                "[p](../sim/csi-proxy-sim/drivers/02-gce-pd.json)",
                "[p](driver-calls.md)",
            ),
            ("see [lint](../xtask/src/lint.rs).", "see lint."),
            (
                "[w](https://example.com/a.md) ![p](channels.svg)",
                "[w](https://example.com/a.md) ![p](channels.svg)",
            ),
        ] {
            assert_eq!(pages.rewritten("docs/b.md", text), rewritten);
        }
        assert_eq!(
            pages.rewritten("crates/csi-proxy/README.md", "[a](../../docs/a.md)"),
            "[a](a.md)"
        );
    }
}
