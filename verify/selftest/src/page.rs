//! What a page says about [`Evidence`].

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::{ACCEPTANCE, Evidence};

/// The builds on which a fact must be proven before a fallback ends: docs/appendix-fallbacks.md.
pub const BUILDS: [&str; 3] = ["17763", "20348", "26100"];

/// Returns the page about one run: what is proven on this build of Windows, and what is not.
pub fn report(evidence: &Evidence) -> String {
    let mut page = format!(
        "# What is proven on {} {}\n\n",
        evidence.system, evidence.build
    );
    for (disk, why) in &evidence.no_disks {
        let _ = writeln!(page, "**No disk {disk}**: {why}\n");
    }
    for error in &evidence.errors {
        let _ = writeln!(page, "**Failed**: {error}\n");
    }
    page += &table(&[evidence]);
    for (title, checks) in &evidence.not_run {
        let _ = write!(page, "\nNot run (missing: {title}): {}\n", list(checks));
    }
    let _ = write!(
        page,
        "\nProven, in {} seconds: {}\n",
        evidence.seconds,
        list(&evidence.holds)
    );
    page
}

fn list(names: &BTreeSet<String>) -> String {
    names
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns a table with a row for each run, and a list of the checks that failed.
fn table(all: &[&Evidence]) -> String {
    let mut table = "| Windows | csi-proxy | checks that hold | fail | did not run | acceptance | \
                     fallbacks used |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut failures = String::new();
    for evidence in all {
        let accepted = ACCEPTANCE
            .iter()
            .filter(|check| evidence.holds.contains(check.id))
            .count();
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
            if evidence.fallbacks.is_empty() {
                "none".to_owned()
            } else {
                list(&evidence.fallbacks)
            },
        );
        for (id, why) in &evidence.fails {
            let _ = writeln!(failures, "- {id} fails on build {}: {why}", evidence.build);
        }
    }
    if failures.is_empty() {
        table
    } else {
        format!("{table}\n{failures}")
    }
}

/// Returns the part of docs/windows.md about what is proven.
pub fn part_of_windows_page(all: &[Evidence]) -> String {
    let all: Vec<&Evidence> = all
        .iter()
        .filter(|evidence| evidence.system == "Windows")
        .collect();
    if all.is_empty() {
        return "**csi-proxy has never run on a real Windows node**: [the folder of \
                reports](evidence/README.md) is empty. [Prove it on your \
                Windows](prove-on-windows.md).\n"
            .to_owned();
    }
    let on = |build: &str| -> BTreeSet<&String> {
        // Windows 10 and 11 have the same builds.
        let is_of = |evidence: &&&Evidence| {
            evidence.build == build && evidence.installation.starts_with("Server")
        };
        let of: Vec<_> = all.iter().filter(is_of).collect();
        let fails = |id: &&String| of.iter().any(|evidence| evidence.fails.contains_key(*id));
        of.iter()
            .flat_map(|evidence| &evidence.holds)
            .filter(|id| !fails(id))
            .collect()
    };
    let proven = on(BUILDS[0])
        .into_iter()
        .filter(|id| BUILDS.iter().all(|build| on(build).contains(id)))
        .count();
    let checks = facts::all().len() + ACCEPTANCE.len();
    let clusters: Vec<&BTreeSet<String>> = all
        .iter()
        .filter_map(|evidence| evidence.cluster.as_ref())
        .collect();
    let used: BTreeSet<&str> = clusters
        .iter()
        .flat_map(|used| used.iter().map(String::as_str))
        .collect();
    format!(
        "{}\nProven on each of the builds {}: {proven} of {checks} checks.\n\nFallbacks used in {} \
         clusters: {}.\n",
        table(&all),
        BUILDS.join(", "),
        clusters.len(),
        if used.is_empty() {
            "none".to_owned()
        } else {
            Vec::from_iter(used).join(", ")
        },
    )
}
