//! The page docs/facts.md. The same facts and results give the same page.

use std::collections::BTreeMap;
use std::fmt;

use super::program::{Catalogue, Fact, Results, Verdict};

const INTRODUCTION: &str = "\
# Facts about Windows

This page is written by `cargo xtask facts`. It lists what csi-proxy and its simulated node assume about Windows.

A fact is one sentence about what a call to Windows does. Each has its public sources or, if none was found, the reason why it is assumed. Most have a check: a function in `verify/facts/src/facts` that makes the calls and compares. The same function runs on the simulated node, under Wine and on Windows, so the columns can be compared:

    cargo xtask facts                          # all checks that this machine can run; replaces this page
    cargo test -p csi-proxy-facts FILE-OPEN    # some of them, on this machine

On Linux, the command replaces the columns of the simulator and of Wine and keeps the column of Windows. On Windows, in a clone of the repository, it replaces the columns of the simulator and of Windows, and keeps the column of Wine. Checks that overwrite disks use only disks that the environment names: `verify/facts/src/local.rs`.

| cell | meaning |
|---|---|
| holds | the check has run, and the fact holds |
| differs: ... | Wine 8.0, that of Debian 12, is known to behave otherwise, and the check fails there. Another version differs in other facts: Wine 10 in FILE-INFO-02 |
| missing: ... | the check needs something that this system does not have |
| FAILS: ... | the fact does not hold |
| not run | the check has not run on this system |
| not checked: ... | the fact has no check, for this reason |

Three rules keep the checks honest, and tests enforce them. A fact must hold on the simulated node. A check must notice when a call ends otherwise (`verify/facts/tests/mutations`). Each outcome that a storage operation meets in the fault-free scenarios of `verify/simtest` must be the outcome of a call in some check (`verify/facts/tests/coverage`).
";

const NOT_RUN: &str = "not run";

/// The results on one system, as the cells of a column by the ids of the facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Column(BTreeMap<String, String>);

/// The page.
pub(super) struct Page<'a> {
    catalogue: &'a Catalogue,
    simulator: Column,
    pub(super) wine: Column,
    pub(super) windows: Column,
}

impl Column {
    /// Returns the column of these results.
    pub(super) fn of(results: &Results) -> Self {
        let cell = |verdict: &Verdict| match verdict {
            Verdict::Holds => "holds".to_owned(),
            Verdict::Differs(how) => format!("differs: {}", escaped(how)),
            Verdict::Skipped(what) => format!("missing: {}", escaped(what)),
            Verdict::Fails(why) => format!("FAILS: {}", escaped(why)),
        };
        Self(results.iter().map(|(id, verdict)| (id.clone(), cell(verdict))).collect())
    }

    /// Returns a column without results.
    pub(super) fn missing() -> Self {
        Self::default()
    }

    fn cell(&self, id: &str) -> &str {
        self.0.get(id).map_or(NOT_RUN, String::as_str)
    }

    /// Returns how many cells of these facts begin with `start`.
    fn count(&self, facts: &[&Fact], start: &str) -> usize {
        facts.iter().filter(|fact| self.cell(&fact.id).starts_with(start)).count()
    }
}

impl<'a> Page<'a> {
    /// Returns the page with these results of the simulator, and with the columns of Wine and Windows in the page `old`.
    /// A fact whose sentence has changed has not run.
    pub(super) fn new(catalogue: &'a Catalogue, simulator: &Results, old: &str) -> Self {
        let mut page =
            Self { catalogue, simulator: Column::of(simulator), wine: Column::default(), windows: Column::default() };
        for row in old.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
            let cells: Vec<&str> = row.split(" | ").collect();
            let [id, sentence, _, _, wine, windows] = cells[..] else { continue };
            let same = |fact: &&Fact| fact.id == id && escaped(&fact.sentence) == sentence;
            if catalogue.facts.iter().any(|fact| same(&fact)) {
                page.wine.0.insert(id.to_owned(), wine.to_owned());
                page.windows.0.insert(id.to_owned(), windows.to_owned());
            }
        }
        page
    }

    fn write_counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = &self.catalogue.facts;
        let (checked, unchecked): (Vec<&Fact>, Vec<&Fact>) = facts.iter().partition(|fact| fact.unchecked.is_none());
        let assumed = checked.iter().filter(|fact| fact.assumed).count();
        writeln!(f, "\n| facts | number |\n|---|---|")?;
        writeln!(f, "| with a check, with public sources | {} |", checked.len() - assumed)?;
        writeln!(f, "| with a check, assumed | {assumed} |")?;
        writeln!(f, "| without a check | {} |", unchecked.len())?;
        writeln!(f, "| all | {} |", facts.len())?;
        writeln!(f, "\n| checks | simulator | Wine | Windows |\n|---|---|---|---|")?;
        for start in ["holds", "differs", "missing", "FAILS", NOT_RUN] {
            let count = |column: &Column| column.count(&checked, start);
            let columns = [&self.simulator, &self.wine, &self.windows].map(count);
            writeln!(f, "| {start} | {} | {} | {} |", columns[0], columns[1], columns[2])?;
        }
        Ok(())
    }

    fn write_fact(&self, f: &mut fmt::Formatter<'_>, fact: &Fact) -> fmt::Result {
        let origin = if fact.assumed { format!("assumed: {}", fact.origin) } else { fact.origin.clone() };
        let unchecked = fact.unchecked.as_ref().map(|reason| format!("not checked: {}", escaped(reason)));
        let cells = match &unchecked {
            Some(reason) => [reason, "", ""],
            None => [&self.simulator, &self.wine, &self.windows].map(|column| column.cell(&fact.id)),
        };
        let (sentence, origin) = (escaped(&fact.sentence), escaped(&origin));
        writeln!(f, "| {} | {sentence} | {origin} | {} | {} | {} |", fact.id, cells[0], cells[1], cells[2])
    }
}

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(INTRODUCTION)?;
        self.write_counts(f)?;
        writeln!(f, "\n## Sources\n\n| key | source |\n|---|---|")?;
        for source in &self.catalogue.sources {
            writeln!(f, "| {} | {} |", source.key, escaped(&source.name))?;
        }
        let mut subject = None;
        for fact in &self.catalogue.facts {
            if subject != Some(&fact.subject) {
                subject = Some(&fact.subject);
                writeln!(f, "\n## {}\n", fact.subject)?;
                writeln!(f, "| id | fact | source | simulator | Wine | Windows |\n|---|---|---|---|---|---|")?;
            }
            self.write_fact(f, fact)?;
        }
        Ok(())
    }
}

/// Escapes what has a meaning in a Markdown table, except in code spans, where only a vertical bar has one.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut in_code = false;
    for letter in text.chars() {
        match letter {
            '\n' => escaped.push(' '),
            '|' => escaped.push_str(r"\|"),
            '`' => {
                in_code = !in_code;
                escaped.push(letter);
            }
            '\\' | '*' | '<' | '>' | '[' | ']' if !in_code => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::program::Source;
    use super::*;

    fn fact(id: &str, sentence: &str) -> Fact {
        Fact {
            subject: "Opening".to_owned(),
            id: id.to_owned(),
            sentence: sentence.to_owned(),
            origin: "WF open".to_owned(),
            assumed: false,
            unchecked: None,
        }
    }

    fn catalogue(sentence: &str) -> Catalogue {
        let sources = vec![Source { key: "WF".to_owned(), name: "a test".to_owned() }];
        let unchecked = Fact { unchecked: Some("no operation does it".to_owned()), ..fact("B-2", "It | is.") };
        Catalogue { sources, facts: vec![fact("A-1", sentence), unchecked] }
    }

    fn results(verdict: Verdict) -> Results {
        [("A-1".to_owned(), verdict)].into()
    }

    #[test]
    fn a_page_without_new_results_stays_the_same() {
        let catalogue = catalogue(r"A name \??\ is | `\??\`.");
        let mut page = Page::new(&catalogue, &results(Verdict::Holds), "");
        page.wine = Column::of(&results(Verdict::Differs("it has | none".to_owned())));
        page.windows = Column::of(&results(Verdict::Fails("left: 1\nright: 2".to_owned())));
        let first = page.to_string();
        assert!(first.contains(
            r"| A-1 | A name \\??\\ is \| `\??\`. | WF open | holds | differs: it has \| none | FAILS: left: 1 right: 2 |"
        ));
        assert!(first.contains(r"| B-2 | It \| is. | WF open | not checked: no operation does it |  |  |"), "{first}");
        assert_eq!(Page::new(&catalogue, &results(Verdict::Holds), &first).to_string(), first);
    }

    #[test]
    fn a_fact_with_a_new_sentence_has_not_run_elsewhere() {
        let (before, after) = (catalogue("It is."), catalogue("It is not."));
        let mut page = Page::new(&before, &results(Verdict::Holds), "");
        page.windows = Column::of(&results(Verdict::Holds));
        let page = Page::new(&after, &results(Verdict::Holds), &page.to_string()).to_string();
        assert!(page.contains("| A-1 | It is not. | WF open | holds | not run | not run |"), "{page}");
    }

    #[test]
    fn each_check_is_counted_once_in_each_column() {
        let catalogue = catalogue("It is.");
        let page = Page::new(&catalogue, &results(Verdict::Holds), "").to_string();
        assert!(page.contains("| with a check, with public sources | 1 |"));
        assert!(page.contains("| without a check | 1 |"));
        assert!(page.contains("| holds | 1 | 0 | 0 |") && page.contains("| not run | 0 | 1 | 1 |"), "{page}");
    }
}
