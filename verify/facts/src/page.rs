//! The page docs/facts.md. The same facts and results give the same page.

use std::collections::BTreeMap;
use std::fmt;

use facts::{Fact, Origin, Outcome, SOURCES, SUBJECTS};

use crate::isolated::Results;

const INTRODUCTION: &str = include_str!("introduction.md");
const NOTES: &str = include_str!("notes.md");

/// The systems, in the order of the page.
const SYSTEMS: [&str; 3] = ["simulator", "Wine", "Windows"];

/// Writes an outcome as one line.
pub(crate) fn result(outcome: &Outcome) -> String {
    let line = match outcome {
        Outcome::Holds => "holds".to_owned(),
        Outcome::Differs(how) => format!("differs: {how}"),
        Outcome::Missing(what) => format!("missing: {what}"),
        Outcome::Fails(why) => format!("FAILS: {why}"),
    };
    line.replace(['\r', '\n', '\t'], " ")
}

/// Prints the results that are not "holds", and how many there are. Returns whether no check failed.
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
    println!("{held} passed, {failed} failed, {} skipped", results.len() - held - failed);
    failed == 0
}

/// What a check found, as the page shows it. A system where the check could not run is not mentioned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Holds,
    /// Wine is known to behave otherwise.
    Not,
    Fails,
}

impl Cell {
    fn of(result: &str) -> Option<Self> {
        match result.split(':').next() {
            Some("holds") => Some(Self::Holds),
            Some("differs") => Some(Self::Not),
            Some("FAILS") => Some(Self::Fails),
            _ => None,
        }
    }

    /// Returns what the page writes before the name of the system.
    fn prefix(self) -> &'static str {
        match self {
            Self::Holds => "",
            Self::Not => "not ",
            Self::Fails => "FAILS on ",
        }
    }
}

/// The page.
#[derive(Default)]
pub(crate) struct Page {
    /// By the id of the fact and the name of the system.
    cells: BTreeMap<(String, &'static str), Cell>,
}

impl Page {
    /// Reads the results on the page. Those of a fact whose sentence has changed are left out.
    pub(crate) fn read(text: &str) -> Self {
        let mut page = Self::default();
        let lines: BTreeMap<&str, &str> =
            text.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("** (")).collect();
        for fact in facts::all() {
            let Some((cells, rest)) = lines.get(fact.id).and_then(|line| line.split_once("): ")) else { continue };
            if !rest.starts_with(&escaped(fact.sentence)) {
                continue;
            }
            for system in SYSTEMS {
                let shown = |cell: &Cell| cells.split(", ").any(|shown| shown == format!("{}{system}", cell.prefix()));
                if let Some(cell) = [Cell::Holds, Cell::Not, Cell::Fails].into_iter().find(shown) {
                    page.cells.insert((fact.id.to_owned(), system), cell);
                }
            }
        }
        page
    }

    /// Replaces the results on a system.
    pub(crate) fn set(&mut self, system: &'static str, results: &Results) {
        self.cells.retain(|(_, other), _| *other != system);
        for (id, result) in results {
            if let Some(cell) = Cell::of(result) {
                self.cells.insert((id.clone(), system), cell);
            }
        }
    }

    fn write_counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = facts::all();
        let assumed = all.iter().filter(|fact| matches!(fact.origin, Origin::Assumed(_))).count();
        writeln!(f, "\n{} facts have a check; {assumed} of them are assumed.\n", all.len())?;
        writeln!(f, "| checks | simulator | Wine | Windows |\n|---|---|---|---|")?;
        for (name, wanted) in
            [("hold", Some(Cell::Holds)), ("differ", Some(Cell::Not)), ("fail", Some(Cell::Fails)), ("not run", None)]
        {
            write!(f, "| {name} |")?;
            for system in SYSTEMS {
                let found = |fact: &&Fact| self.cells.get(&(fact.id.to_owned(), system)).copied() == wanted;
                write!(f, " {} |", all.iter().filter(found).count())?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_fact(&self, f: &mut fmt::Formatter<'_>, fact: &Fact) -> fmt::Result {
        let cells = SYSTEMS.iter().filter_map(|system| {
            let cell = self.cells.get(&(fact.id.to_owned(), *system))?;
            Some(format!("{}{system}", cell.prefix()))
        });
        let cells = cells.collect::<Vec<_>>().join(", ");
        write!(f, "- **{}** ({cells}): {} ", fact.id, escaped(fact.sentence))?;
        match fact.origin {
            Origin::Published(sources) => writeln!(f, "*{}*", escaped(sources)),
            Origin::Assumed(reason) => writeln!(f, "*Assumed.* {}", escaped(reason)),
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(INTRODUCTION)?;
        self.write_counts(f)?;
        writeln!(f, "\n## Sources\n")?;
        for (key, name) in SOURCES {
            writeln!(f, "- **{key}**: {}", escaped(name))?;
        }
        for subject in SUBJECTS {
            writeln!(f, "\n## {}\n", subject.title)?;
            for fact in subject.facts() {
                self.write_fact(f, &fact)?;
            }
        }
        write!(f, "\n{NOTES}")
    }
}

/// Escapes what has a meaning in Markdown, except in code spans.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut in_code = false;
    for letter in text.chars() {
        in_code ^= letter == '`';
        if !in_code && matches!(letter, '\\' | '*' | '<' | '>' | '[' | ']') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(result: &str) -> Results {
        facts::all().into_iter().map(|fact| (fact.id.to_owned(), result.to_owned())).collect()
    }

    #[test]
    fn a_page_without_new_results_stays_the_same() {
        let mut page = Page::default();
        page.set("simulator", &results("holds"));
        page.set("Wine", &results("differs: it has none"));
        page.set("Windows", &results("FAILS: left: 1 right: 2"));
        let text = page.to_string();
        assert!(text.contains("- **FILE-OPEN-01** (simulator, not Wine, FAILS on Windows): A name"), "{text}");
        assert_eq!(Page::read(&text).to_string(), text);
    }

    #[test]
    fn a_fact_with_a_new_sentence_has_not_run() {
        let mut page = Page::default();
        page.set("Windows", &results("holds"));
        let text = page.to_string().replace("(Windows): A name", "(Windows): Some name");
        assert!(Page::read(&text).to_string().contains("- **FILE-OPEN-01** (): A name"));
    }
}
