//! The results in docs/facts.md: the systems in parentheses after the id of each fact, and the
//! table that counts them.

use facts::Results;

/// The systems, in the order of the page.
const SYSTEMS: [&str; 3] = ["simulator", "Wine", "Windows"];

/// Prints the results that are not "holds", and how many there are. Returns whether no check
/// failed.
pub(crate) fn print(system: &str, results: &Results) -> bool {
    let (mut held, mut failed) = (0, 0);
    for (id, result) in results {
        if result == "holds" {
            held += 1;
        } else if let Some(why) = result.strip_prefix("FAILS: ") {
            failed += 1;
            println!("FAILED {id} ({system}): {why}");
        } else {
            println!("skipped: {id} ({system}): {result}");
        }
    }
    println!("facts on {system}:");
    println!(
        "{held} passed, {failed} failed, {} skipped",
        results.len() - held - failed
    );
    failed == 0
}

/// Returns the page with the results on a system, instead of the results that the page has for it.
pub(crate) fn with_results(page: &str, system: &str, results: &Results) -> String {
    let lines: Vec<String> = page
        .lines()
        .map(|line| with_result(line, system, results))
        .collect();
    let facts: Vec<&str> = lines
        .iter()
        .filter_map(|line| Some(parsed(line)?.1))
        .collect();
    lines
        .iter()
        .map(|line| counted(line, &facts) + "\n")
        .collect()
}

/// Splits the line of a fact into its id, the systems in parentheses, and the rest with the
/// sentence.
fn parsed(line: &str) -> Option<(&str, &str, &str)> {
    let (id, rest) = line.strip_prefix("- **")?.split_once("** (")?;
    let (systems, rest) = rest.split_once("): ")?;
    Some((id, systems, rest))
}

/// Returns a line with the result of its fact on a system. A system on which the check could not
/// run is not named.
fn with_result(line: &str, system: &str, results: &Results) -> String {
    let Some((id, systems, rest)) = parsed(line) else {
        return line.to_owned();
    };
    let named = SYSTEMS.iter().filter_map(|name| {
        if *name == system {
            return results.get(id).and_then(|result| named(system, result));
        }
        systems
            .split(", ")
            .find(|named| named.ends_with(name))
            .map(str::to_owned)
    });
    format!(
        "- **{id}** ({}): {rest}",
        named.collect::<Vec<_>>().join(", ")
    )
}

/// Returns how the page names a system for a result.
fn named(system: &str, result: &str) -> Option<String> {
    match result.split(':').next() {
        Some("holds") => Some(system.to_owned()),
        Some("differs") => Some(format!("not {system}")),
        Some("FAILS") => Some(format!("FAILS on {system}")),
        _ => None,
    }
}

/// Returns a line of the page, with the current numbers if it is a row of the table.
fn counted(line: &str, facts: &[&str]) -> String {
    let count = |text: &str| {
        facts
            .iter()
            .filter(|systems| systems.split(", ").any(|named| named == text))
            .count()
    };
    let numbers = match line.split(" |").next() {
        Some("| hold") => SYSTEMS.map(count),
        Some("| differ") => SYSTEMS.map(|system| count(&format!("not {system}"))),
        Some("| fail") => SYSTEMS.map(|system| count(&format!("FAILS on {system}"))),
        Some("| not run") => SYSTEMS.map(|system| {
            facts
                .iter()
                .filter(|systems| !systems.contains(system))
                .count()
        }),
        _ => return line.to_owned(),
    };
    let head = line.split(" |").next().unwrap_or_default();
    format!(
        "{head} | {} | {} | {} |",
        numbers[0], numbers[1], numbers[2]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/facts.md");

    #[test]
    fn the_page_has_one_sentence_with_a_source_for_each_check() {
        let lines = || PAGE.lines().filter_map(parsed);
        let ids: Vec<&str> = lines().map(|(id, ..)| id).collect();
        assert_eq!(
            ids,
            facts::all().iter().map(|fact| fact.id).collect::<Vec<_>>()
        );
        for (id, _, rest) in lines() {
            let (sentence, source) = rest.split_once(". *").expect("a sentence and a source");
            assert!(!sentence.contains(". "), "{id}: {sentence}");
            if source.starts_with("Assumed.* ") {
                continue;
            }
            for source in source.trim_end_matches('*').split("; ") {
                let key = source.split(' ').next().unwrap_or_default();
                assert!(
                    PAGE.contains(&format!("- **{key}**: ")) || source.contains('/'),
                    "{id}: {source}"
                );
            }
        }
    }

    #[test]
    fn the_page_gets_the_results_of_one_system_and_keeps_those_of_other_systems() {
        let page = "| hold | 2 | 0 | 1 |\n| fail | 0 | 0 | 0 |\n| not run | 0 | 2 | 1 |\n\
                    - **A-1** (simulator, Windows): One. *WF*\n- **A-2** (simulator): Two. *WF*\n- \
                    **A-3**: A note.\n";
        let wine = [("A-1", "differs: it has none"), ("A-2", "FAILS: left: 1")];
        let wine = wine
            .map(|(id, result)| (id.to_owned(), result.to_owned()))
            .into();
        let expected = "| hold | 2 | 0 | 1 |\n| fail | 0 | 1 | 0 |\n| not run | 0 | 0 | 1 |\n\
                        - **A-1** (simulator, not Wine, Windows): One. *WF*\n\
                        - **A-2** (simulator, FAILS on Wine): Two. *WF*\n- **A-3**: A note.\n";
        assert_eq!(with_results(page, "Wine", &wine), expected);
        assert_eq!(with_results(expected, "Wine", &wine), expected);
    }
}
