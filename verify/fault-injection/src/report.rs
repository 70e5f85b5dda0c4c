//! The table that summarizes a run.

use std::collections::BTreeMap;
use std::fmt;

/// The counts of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// The number of states it was run in.
    pub states: usize,
    /// The number of primitive calls of its reference runs, or of requests in random runs.
    pub calls: usize,
    /// The number of cases.
    pub cases: usize,
    /// How many of the cases also ran in the executor.
    pub in_executor: usize,
    /// The number of cases that violated an invariant.
    pub failures: usize,
}

impl Row {
    fn add(&mut self, other: Self) {
        self.states += other.states;
        self.calls += other.calls;
        self.cases += other.cases;
        self.in_executor += other.in_executor;
        self.failures += other.failures;
    }
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
    pub fn add(&mut self, other: &Self) {
        for (operation, row) in &other.rows {
            self.row(operation).add(*row);
        }
    }

    /// Returns the sum of all rows.
    pub fn sum(&self) -> Row {
        let mut sum = Row::default();
        self.rows.values().for_each(|row| sum.add(*row));
        sum
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:34} {:>7} {:>7} {:>9} {:>11} {:>9}",
            "operation", "states", "calls", "cases", "in executor", "failures"
        )?;
        let total = ("all".to_owned(), self.sum());
        self.rows
            .iter()
            .chain([(&total.0, &total.1)])
            .try_for_each(|(operation, row)| {
                writeln!(
                    f,
                    "{operation:34} {:>7} {:>7} {:>9} {:>11} {:>9}",
                    row.states, row.calls, row.cases, row.in_executor, row.failures
                )
            })
    }
}
