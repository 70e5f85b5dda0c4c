//! The address of this repository: every file has the one in Cargo.toml, so that `cargo xtask
//! address` replaces all of them.

use super::Source;
use crate::address::Address;

/// What stands for an address that is not known yet: a placeholder in angle brackets.
const PLACEHOLDERS: [&str; 5] = ["address", "org", "owner", "repository", "this repository"];
/// The owner before the first push.
const OWNER: &str = "OWNER";

/// Returns a breach for each line with a placeholder that the task does not know.
pub(super) fn breaches(source: &Source, address: &Address) -> Vec<String> {
    let is_unknown = |line: &str| {
        PLACEHOLDERS
            .iter()
            .any(|name| line.contains(&format!("<{name}>")))
            || line.match_indices(&format!("{OWNER}/")).any(|(at, _)| {
                !line[at..].starts_with(&address.slug)
                    && !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            })
            || line.contains(&format!("ghcr.io/{OWNER}"))
    };
    let lines = source.text.lines().zip(1..);
    lines
        .filter(|(line, _)| is_unknown(line))
        .map(|(_, number)| {
            source.breach(
                number,
                "a placeholder for the address of the repository that `cargo xtask address` does \
                 not replace; write the address in Cargo.toml",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{OWNER, breaches};
    use crate::address::Address;
    use crate::lint::tests::source;

    #[test]
    fn a_placeholder_that_would_not_be_replaced_is_found() {
        let address = |owner: &str| {
            Address::parse(&format!("https://github.com/{owner}/csi-proxy")).expect("an address")
        };
        let found = |line: &str, owner| {
            let text = line.replace("PLACEHOLDER", OWNER);
            !breaches(&source("docs/a.md", &text), &address(owner)).is_empty()
        };
        assert!(!found("https://github.com/PLACEHOLDER/csi-proxy", OWNER));
        assert!(!found("CREATOR_PLACEHOLDER/x", OWNER));
        assert!(found(
            "https://github.com/PLACEHOLDER/csi-proxy",
            "harbour-works"
        ));
        assert!(found("PLACEHOLDER/other", OWNER));
        assert!(found("ghcr.io/PLACEHOLDER/csi-proxy", OWNER));
        assert!(found(&format!("git clone <{}>", "this repository"), OWNER));
    }
}
