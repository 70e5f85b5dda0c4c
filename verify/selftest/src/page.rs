//! The pages that are made of [`Evidence`].

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::{ACCEPTANCE, Evidence};

/// The builds on which a fact must be proven before a fallback ends: docs/appendix-fallbacks.md.
const BUILDS: [&str; 3] = ["17763", "20348", "26100"];

/// Returns the page about one run: what is proven on this build of Windows, and what is not.
pub fn report(evidence: &Evidence) -> String {
    let mut page = format!("# What is proven on {} {}\n\n{}", evidence.system, evidence.build, table(&[evidence]));
    for (title, checks) in &evidence.not_run {
        let checks: Vec<&str> = checks.iter().map(String::as_str).collect();
        let _ = write!(page, "\nNot run without {title}: {}\n", checks.join(", "));
    }
    let holds: Vec<&str> = evidence.holds.iter().map(String::as_str).collect();
    let _ = write!(page, "\nProven, in {} seconds: {}\n", evidence.seconds, holds.join(", "));
    page
}

/// Returns the part of docs/windows.md about what is proven.
pub fn part_of_windows_page(all: &[Evidence]) -> String {
    let all: Vec<&Evidence> = all.iter().filter(|evidence| evidence.system == "Windows").collect();
    if all.is_empty() {
        return "**csi-proxy has never run on a real Windows node**: [the folder of reports](evidence/README.md) is empty.\n".to_owned();
    }
    let on = |build: &str| -> BTreeSet<&String> {
        all.iter().filter(|evidence| evidence.build == build).flat_map(|evidence| &evidence.holds).collect()
    };
    let proven = on(BUILDS[0]).into_iter().filter(|id| BUILDS.iter().all(|build| on(build).contains(id))).count();
    let checks = facts::all().len() + ACCEPTANCE.len();
    format!("{}\nProven on each of the builds {}: {proven} of {checks} checks.\n", table(&all), BUILDS.join(", "))
}

/// Returns a table with a row for each run, and a list of the checks that failed.
fn table(all: &[&Evidence]) -> String {
    let mut table = "| Windows | csi-proxy | checks that hold | fail | did not run | acceptance | fallbacks used |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut failures = String::new();
    for evidence in all {
        let accepted = ACCEPTANCE.iter().filter(|check| evidence.holds.contains(check.id)).count();
        let used: Vec<&str> = evidence.fallbacks.iter().map(String::as_str).collect();
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
            if used.is_empty() { "none".to_owned() } else { used.join(", ") },
        );
        for (id, why) in &evidence.fails {
            let _ = writeln!(failures, "- {id} fails on build {}: {why}", evidence.build);
        }
    }
    if failures.is_empty() { table } else { format!("{table}\n{failures}") }
}
