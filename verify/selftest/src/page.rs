//! What a page says about [`Evidence`].

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::{ACCEPTANCE, Evidence};

/// Returns the page about one run: what is proven on this build of Windows, and what is not.
pub fn report(evidence: &Evidence) -> String {
    let mut page = format!("# What is proven on {} {}\n\n{}", evidence.system, evidence.build, table(&[evidence]));
    for (title, checks) in &evidence.not_run {
        let _ = write!(page, "\nNot run without {title}: {}\n", list(checks));
    }
    let _ = write!(page, "\nProven, in {} seconds: {}\n", evidence.seconds, list(&evidence.holds));
    page
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns a table with a row for each run, and a list of the checks that failed.
pub fn table(all: &[&Evidence]) -> String {
    let mut table = "| Windows | csi-proxy | checks that hold | fail | did not run | acceptance | fallbacks used |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut failures = String::new();
    for evidence in all {
        let accepted = ACCEPTANCE.iter().filter(|check| evidence.holds.contains(check.id)).count();
        let _ = writeln!(
            table,
            "| {}, {}, {} | {} | {} | {} | {} | {accepted} of {} | {} |",
            evidence.build,
            evidence.edition,
            evidence.installation,
            evidence.version,
            evidence.holds.len(),
            evidence.fails.len(),
            evidence.not_run.values().map(BTreeSet::len).sum::<usize>(),
            ACCEPTANCE.len(),
            if evidence.fallbacks.is_empty() { "none".to_owned() } else { list(&evidence.fallbacks) },
        );
        for (id, why) in &evidence.fails {
            let _ = writeln!(failures, "- {id} fails on build {}: {why}", evidence.build);
        }
    }
    if failures.is_empty() { table } else { format!("{table}\n{failures}") }
}
