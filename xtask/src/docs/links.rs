//! The links of pages to other sites, which curl asks for. CI does not check them: sites are down at times.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::{Error, process, workspace};

/// Asks for each linked page, prints those that were not found or could not be checked, and returns whether none was
/// missing and any was found.
pub(super) fn check() -> Result<bool, Error> {
    let files = workspace::files().ok_or("the list of files is read from git, and this is not a git checkout")?;
    let mut linked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let text = fs::read_to_string(workspace::root().join(file))?;
        for link in links(&text) {
            linked.entry(link.to_owned()).or_default().insert(file.display().to_string());
        }
    }
    let (mut found, mut missing) = (0, 0);
    for (link, files) in &linked {
        let status = status(link);
        if status.as_deref().is_some_and(|status| status.starts_with('2')) {
            found += 1;
            continue;
        }
        let is_missing = matches!(status.as_deref(), Some("404" | "410"));
        missing += usize::from(is_missing);
        let what = if is_missing { "not found" } else { "not checked" };
        let status = status.as_deref().unwrap_or("no answer");
        println!("{what}: {link} ({status}), in {}", files.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    }
    println!("{found} of {} links found, {missing} not found", linked.len());
    Ok(found > 0 && missing == 0)
}

/// Returns the status of the response to a request for a page, after redirections.
fn status(link: &str) -> Option<String> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--location", "--max-time", "30", "--write-out", r"\n%{http_code}", link]);
    process::output(&mut curl)?.lines().last().map(str::to_owned)
}

/// Returns the links in a page, except those to this machine.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("https://").chain(text.match_indices("http://"));
    starts.filter_map(|(start, scheme)| {
        let rest = &text[start..];
        let end = rest.find(|letter: char| letter.is_whitespace() || ")<>\"'`|".contains(letter));
        let link = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', ',', ';', ':']);
        let host = &link[scheme.len()..];
        (host.contains('.') && !host.starts_with("127.0.0.1")).then_some(link)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_link_ends_where_its_address_ends() {
        let page = "[a](https://a.example/b?c=d#e), <http://f.example>; https://g.example/h; | `https://i.example` | \
                    curl 'http://127.0.0.1:9818/metrics' http://localhost:9818/ https://j.example/k.";
        let mut links: Vec<_> = super::links(page).collect();
        links.sort_unstable();
        let all = [
            "http://f.example",
            "https://a.example/b?c=d#e",
            "https://g.example/h",
            "https://i.example",
            "https://j.example/k",
        ];
        assert_eq!(links, all);
    }
}
