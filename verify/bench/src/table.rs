//! The table: csi-proxy's figures divided by those of the other servers, in docs/performance.md and
//! the README.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The figures of calls, for each number of callers.
pub(crate) const OF_CALLS: [&str; 4] = [
    "calls/s",
    "median latency",
    "99th percentile",
    "CPU per call",
];
/// The figures of servers.
pub(crate) const OF_SERVERS: [&str; 5] = [
    "memory, idle",
    "memory, after a load",
    "idle connection",
    "threads, idle",
    "threads, a minute later",
];
pub(crate) const GO_PROGRAM: &str = "Go program";

const COLUMNS: [&str; 3] = ["grpc-go", "tonic", GO_PROGRAM];
/// The beginnings of the names of the README's rows.
const OF_README: [&str; 3] = ["calls/s", "CPU per call", "memory, "];

const BEGIN: &str = "<!-- cargo xtask bench writes what follows -->\n";
const END: &str = "<!-- the end of what cargo xtask bench writes -->\n";

/// The rows: a name, and for each column the ratios: that of each path, or that of each round.
pub(crate) struct Table {
    rows: Vec<(String, [Vec<f64>; 3])>,
    /// How much the rounds of one cell differ, from the lowest to the highest ratio.
    spreads: Vec<f64>,
}

impl Table {
    /// Creates the table with its rows in their order.
    pub(crate) fn new(callers: &[usize]) -> Self {
        let of_calls = OF_CALLS.iter().flat_map(|figure| {
            callers
                .iter()
                .map(|callers| Self::row_of_calls(figure, *callers))
        });
        let rows = of_calls
            .chain(OF_SERVERS.map(str::to_owned))
            .map(|name| (name, Default::default()))
            .collect();
        Self {
            rows,
            spreads: Vec::new(),
        }
    }

    /// Returns the name of the row of a figure of calls.
    pub(crate) fn row_of_calls(figure: &str, callers: usize) -> String {
        format!(
            "{figure}, {callers} {}",
            if callers == 1 { "caller" } else { "callers" }
        )
    }

    /// Adds the median of ratios to a cell.
    pub(crate) fn add(&mut self, row: &str, column: &str, rounds: &[f64]) {
        let mut rounds: Vec<f64> = rounds
            .iter()
            .copied()
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
            .collect();
        rounds.sort_by(f64::total_cmp);
        let (Some(lowest), Some(highest)) = (rounds.first(), rounds.last()) else {
            return;
        };
        if rounds.len() > 1 {
            self.spreads.push(highest / lowest - 1.0);
        }
        let at = self
            .rows
            .iter()
            .position(|(name, _)| name == row)
            .unwrap_or_else(|| {
                self.rows.push((row.to_owned(), Default::default()));
                self.rows.len() - 1
            });
        let Some(column) = COLUMNS.iter().position(|name| *name == column) else {
            return;
        };
        self.rows[at].1[column].push(rounds[rounds.len() / 2]);
    }

    /// Returns the rows whose names are wanted, as Markdown.
    pub(crate) fn render(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        let mut text = format!(
            "| csi-proxy, compared with | {} |\n|---|--:|--:|--:|\n",
            COLUMNS.join(" | ")
        );
        for (name, cells) in self.rows.iter().filter(|(name, _)| is_wanted(name)) {
            let _ = writeln!(
                text,
                "| {name} | {} |",
                cells.each_ref().map(|ratios| cell(ratios)).join(" | ")
            );
        }
        text
    }

    /// Writes the table to the pages. `measured` says where and how it was measured.
    pub(crate) fn write(&self, root: &Path, measured: &str) -> Result<(), Box<dyn Error>> {
        let mut spreads = self.spreads.clone();
        spreads.sort_by(f64::total_cmp);
        let spread = 100.0 * spreads.get(spreads.len() / 2).copied().unwrap_or_default();
        let sentence = format!(
            "{measured} The rounds of half of the cells differ by less than {spread:.0} %.\n"
        );
        replace(
            &root.join("docs/performance.md"),
            &format!("{}\n{sentence}", self.render(|_| true)),
        )?;
        let is_of_readme = |name: &str| {
            OF_README
                .iter()
                .any(|beginning| name.starts_with(beginning))
        };
        replace(&root.join("README.md"), &self.render(is_of_readme))
    }
}

/// Returns the geometric mean of the ratios, and their range.
fn cell(ratios: &[f64]) -> String {
    let Some(count) = u32::try_from(ratios.len()).ok().filter(|count| *count > 0) else {
        return "–".to_owned();
    };
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / f64::from(count)).exp();
    let (lowest, highest) = (
        ratios.iter().copied().fold(f64::MAX, f64::min),
        ratios.iter().copied().fold(0.0, f64::max),
    );
    if count == 1 {
        format!("{mean:.2}")
    } else {
        format!("{mean:.2} ({lowest:.2}–{highest:.2})")
    }
}

/// Replaces what is between the marks of a page.
fn replace(page: &Path, block: &str) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(page)?;
    let parts = text
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) =
        parts.ok_or_else(|| format!("{} has no place for the table", page.display()))?;
    Ok(fs::write(
        page,
        format!("{before}{BEGIN}\n{block}\n{END}{after}"),
    )?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{BEGIN, COLUMNS, END, GO_PROGRAM, Table};

    #[test]
    fn a_cell_has_the_mean_of_the_paths_and_their_range() {
        let mut table = Table::new(&[1]);
        for rounds in [[0.5, 0.9, 0.4], [1.9, 2.0, 2.1]] {
            table.add("calls/s, 1 caller", "tonic", &rounds);
        }
        table.add("cycle of a driver", GO_PROGRAM, &[0.37]);
        let text = table.render(|name| name.starts_with('c'));
        let rows = "| calls/s, 1 caller | – | 1.00 (0.50–2.00) | – |\n| cycle of a driver | – | – \
                    | 0.37 |\n";
        assert!(text.ends_with(rows), "{text}");
    }

    #[test]
    fn the_readme_has_the_numbers_of_the_page_and_the_page_is_short() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |page: &str| fs::read_to_string(root.join(page)).expect("the page");
        let (page, readme) = (read("docs/performance.md"), read("README.md"));
        let table = |text: &str| -> Vec<String> {
            let block = text
                .split_once(BEGIN)
                .and_then(|(_, rest)| rest.split_once(END))
                .expect("the marks")
                .0;
            block
                .lines()
                .filter(|line| line.starts_with('|'))
                .map(str::to_owned)
                .collect()
        };
        let (rows, some) = (table(&page), table(&readme));
        assert!(
            some.len() > 2 && some.iter().all(|row| rows.contains(row)),
            "{some:#?}"
        );
        assert!(
            rows[0].ends_with(&format!("| {} |", COLUMNS.join(" | "))),
            "{}",
            rows[0]
        );
        assert!(page.split_whitespace().count() <= 1200);
    }
}
