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
    let of_windows: Vec<&Evidence> = all
        .iter()
        .filter(|evidence| evidence.system == "Windows")
        .collect();
    if of_windows.is_empty() {
        return "**csi-proxy has never run on a real Windows node**: [the folder of \
                reports](evidence/README.md) is empty. [Prove it on your \
                Windows](prove-on-windows.md).\n"
            .to_owned();
    }
    let checks = facts::all().len() + ACCEPTANCE.len();
    let ended = ended_fallbacks(all);
    format!(
        "{}\nProven on each of the builds {}: {} of {checks} checks.\n\n[Fallbacks that the next \
         release removes](appendix-fallbacks.md#when-a-fallback-ends): {}.\n",
        table(&of_windows),
        BUILDS.join(", "),
        proven(all).len(),
        if ended.is_empty() {
            "none".to_owned()
        } else {
            ended.join(", ")
        },
    )
}

/// Returns the fallbacks that the rule in docs/appendix-fallbacks.md ends, by their `call`. The
/// table on that page has the facts that end each of them.
pub fn ended_fallbacks(all: &[Evidence]) -> Vec<&'static str> {
    let proven = proven(all);
    let is_used = |call: &str| {
        let all = all.iter().filter(|evidence| is_supported(evidence));
        let mut used = all.flat_map(|evidence| &evidence.fallbacks);
        used.any(|used| used.split(' ').next() == Some(call))
    };
    fallbacks()
        .filter(|(call, facts)| facts.iter().all(|fact| proven.contains(fact)) && !is_used(call))
        .map(|(call, _)| call)
        .collect()
}

/// Returns the fallbacks of docs/appendix-fallbacks.md, each with the cell about its end: facts, or
/// that it stays.
pub fn fallbacks() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let rows = include_str!("../../../docs/appendix-fallbacks.md").lines();
    rows.filter(|row| row.starts_with("| `") && !row.starts_with("| `call`"))
        .filter_map(|row| {
            let call = row.split('`').nth(1)?;
            let end = row.trim_end_matches(" |").rsplit("| ").next()?;
            Some((call, end.split(", ").collect()))
        })
}

/// Returns the checks that hold on each of the [`BUILDS`], and fail in no report of these builds.
fn proven(all: &[Evidence]) -> BTreeSet<&str> {
    let all: Vec<_> = all
        .iter()
        .filter(|evidence| is_supported(evidence))
        .collect();
    let holds = |id: &str, build: &str| {
        let mut of_build = all.iter().filter(|evidence| evidence.build == build);
        of_build.any(|evidence| evidence.holds.contains(id))
    };
    let fails = |id: &str| all.iter().any(|evidence| evidence.fails.contains_key(id));
    let ids = all.iter().flat_map(|evidence| &evidence.holds);
    ids.map(String::as_str)
        .filter(|id| BUILDS.iter().all(|build| holds(id, build)) && !fails(id))
        .collect()
}

/// Returns whether a report is of one of the [`BUILDS`] of Windows Server. Windows 10 and 11 have
/// the same builds.
fn is_supported(evidence: &Evidence) -> bool {
    evidence.system == "Windows"
        && evidence.installation.starts_with("Server")
        && BUILDS.contains(&&*evidence.build)
}
