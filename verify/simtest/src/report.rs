//! The table that summarizes a run.

use std::collections::BTreeMap;
use std::fmt;

/// The counts of one operation.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The number of states it was run in.
    pub states: usize,
    /// The number of primitive calls of its reference runs, or of requests in random runs.
    pub calls: usize,
    /// The number of cases, by kind.
    pub cases: BTreeMap<&'static str, usize>,
    /// The number of cases that violated an invariant.
    pub failures: usize,
}

/// A row for each operation.
#[derive(Clone, Debug, Default)]
pub struct Report {
    rows: BTreeMap<String, Row>,
}

impl Report {
    /// Returns the row of an operation.
    pub fn row(&mut self, operation: &str) -> &mut Row {
        self.rows.entry(operation.to_owned()).or_default()
    }

    /// Adds the counts of another report.
    pub fn add(&mut self, other: Self) {
        for (operation, row) in other.rows {
            let sum = self.row(&operation);
            sum.states += row.states;
            sum.calls += row.calls;
            sum.failures += row.failures;
            for (kind, count) in row.cases {
                *sum.cases.entry(kind).or_default() += count;
            }
        }
    }

    /// Returns the sum of all rows.
    pub fn sum(&self) -> Row {
        let mut sum = Self::default();
        for row in self.rows.values() {
            sum.add(Self { rows: BTreeMap::from([(String::new(), row.clone())]) });
        }
        sum.rows.remove("").unwrap_or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = self.sum();
        let kinds: Vec<&str> = sum.cases.keys().copied().collect();
        write!(f, "{:34} {:>7} {:>7}", "operation", "states", "calls")?;
        kinds.iter().try_for_each(|kind| write!(f, " {kind:>9}"))?;
        writeln!(f, " {:>9} {:>9}", "cases", "failures")?;
        let total = ("all".to_owned(), sum);
        for (operation, row) in self.rows.iter().chain([(&total.0, &total.1)]) {
            write!(f, "{operation:34} {:>7} {:>7}", row.states, row.calls)?;
            for kind in &kinds {
                write!(f, " {:>9}", row.cases.get(kind).copied().unwrap_or_default())?;
            }
            writeln!(f, " {:>9} {:>9}", row.cases.values().sum::<usize>(), row.failures)?;
        }
        Ok(())
    }
}
