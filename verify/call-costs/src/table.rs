//! The tables in `docs/call-costs.md`, with which new counts are compared.

use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs, io};

/// A table in the page.
#[derive(Debug)]
pub struct Table {
    columns: &'static [Column],
}

#[derive(Debug)]
struct Column {
    name: &'static str,
    /// By how much counts may differ from the table, as a part of them.
    tolerance: f64,
    decimals: usize,
}

/// The table of what the operations and libraries do: of the test's profile.
pub const COUNTS: Table = Table {
    columns: &[
        Column {
            name: "primitive calls",
            tolerance: 0.0,
            decimals: 0,
        },
        Column {
            name: "WMI calls",
            tolerance: 0.0,
            decimals: 0,
        },
        Column {
            name: "writes",
            tolerance: 0.01,
            decimals: 0,
        },
        Column {
            name: "allocations",
            tolerance: 0.01,
            decimals: 1,
        },
        Column {
            name: "bytes allocated",
            tolerance: 0.01,
            decimals: 0,
        },
    ],
};

/// The table of instructions: of the profile `counted`.
pub const INSTRUCTIONS: Table = Table {
    columns: &[Column {
        name: "instructions",
        tolerance: 0.01,
        decimals: 0,
    }],
};

/// A row: the name of a call, and its counts.
pub type Row = (String, Vec<f64>);

impl Table {
    fn head(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|column| column.name).collect();
        let align = "--:|".repeat(names.len());
        format!("| call | {} |\n|---|{align}\n", names.join(" | "))
    }

    fn row(&self, (name, counts): &Row) -> String {
        let counts = self.columns.iter().zip(counts);
        let cells: Vec<_> = counts
            .map(|(column, count)| format!("{count:.*}", column.decimals))
            .collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    }

    /// Returns where the table is in the page: the bytes of its rows.
    fn find(&self, page: &str) -> Result<std::ops::Range<usize>, String> {
        let head = self.head();
        let start = page
            .find(&head)
            .ok_or_else(|| format!("the page has no table that begins with:\n{head}"))?;
        let start = start + head.len();
        let rows = page[start..]
            .split_inclusive('\n')
            .take_while(|line| line.starts_with('|'));
        Ok(start..start + rows.map(str::len).sum::<usize>())
    }

    /// Returns how `counted` differs from the table in `page`; nothing if it does not.
    pub fn differences(&self, page: &str, counted: &[Row]) -> Result<Vec<String>, Box<dyn Error>> {
        let expected = &page[self.find(page)?];
        let mut lines = expected.lines();
        let mut differences = Vec::new();
        for (name, counts) in counted {
            let line = lines.next().unwrap_or_default();
            let mut cells = line.split('|').map(str::trim).skip(1);
            if cells.next() != Some(name) {
                return Err(format!("the row of {name} is missing or out of order").into());
            }
            for (column, count) in self.columns.iter().zip(counts) {
                let expected: f64 = cells.next().unwrap_or_default().parse()?;
                if (count - expected).abs() > expected * column.tolerance {
                    let (decimals, what) = (column.decimals, column.name);
                    differences.push(format!(
                        "{name}: {count:.decimals$} {what}, the table has {expected:.decimals$}"
                    ));
                }
            }
        }
        Ok(differences)
    }

    /// Returns the page with `counted` in the table.
    pub fn replaced(&self, page: &str, counted: &[Row]) -> Result<String, Box<dyn Error>> {
        let place = self.find(page)?;
        let rows: String = counted.iter().map(|row| self.row(row)).collect();
        Ok(format!(
            "{}{rows}{}",
            &page[..place.start],
            &page[place.end..]
        ))
    }
}

/// The file of the page.
pub fn file() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/call-costs.md"
    ))
}

/// Reads the page.
pub fn page() -> Result<String, Box<dyn Error>> {
    let page = fs::read_to_string(file())?;
    Ok(page.replace("\r\n", "\n"))
}

/// Returns why counts on this machine cannot be compared with those of the page, or `None` if they
/// can.
pub fn why_incomparable(page: &str) -> Option<String> {
    if (env::consts::OS, env::consts::ARCH) != ("linux", "x86_64") {
        return Some("the page has the counts of Linux on x86-64".into());
    }
    let rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .arg("--version")
        .output();
    why_of_another(page, "compiler", rustc)
}

/// Returns why instructions on this machine cannot be compared with those of the page, or `None` if
/// they can. Unlike the other counts, they include those of the C library, which allocates memory.
pub fn why_instructions_incomparable(page: &str) -> Option<String> {
    let c_library = || Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    why_incomparable(page).or_else(|| why_of_another(page, "C library", c_library()))
}

/// Returns why counts cannot be compared, unless the page names the version of `what` that a
/// command printed.
fn why_of_another(page: &str, what: &str, version: io::Result<Output>) -> Option<String> {
    match version {
        Err(error) => Some(format!("cannot ask for the version of the {what}: {error}")),
        Ok(output) => {
            let version = String::from_utf8_lossy(&output.stdout);
            let version = version.trim();
            let is_same = !version.is_empty() && page.contains(version);
            (!is_same)
                .then(|| format!("the page has the counts of another {what} than {version:?}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::process::{ExitStatus, Output};

    use super::{COUNTS, INSTRUCTIONS, Row, why_of_another};

    fn page() -> String {
        let rows = "| a, b | 2 | 0 | 1 | 60.5 | 5000 |\n| c | 3 | 1 | 1 | 10.0 | 100 |\n";
        format!(
            "text\n\n{}{rows}\nmore | text\n{}| a, b | 1000 |\n",
            COUNTS.head(),
            INSTRUCTIONS.head()
        )
    }

    fn rows(primitives: f64, allocations: f64) -> Vec<Row> {
        let first = (
            "a, b".to_owned(),
            vec![primitives, 0.0, 1.0, allocations, 5000.0],
        );
        vec![first, ("c".to_owned(), vec![3.0, 1.0, 1.0, 10.0, 100.0])]
    }

    #[test]
    fn calls_are_compared_exactly_and_allocations_within_one_percent() {
        let differences = |primitives, allocations| {
            COUNTS
                .differences(&page(), &rows(primitives, allocations))
                .unwrap()
        };
        assert!(differences(2.0, 60.9).is_empty() && differences(2.0, 60.1).is_empty());
        assert_eq!(
            differences(2.0, 61.2),
            ["a, b: 61.2 allocations, the table has 60.5"]
        );
        assert_eq!(
            differences(2.0, 59.8),
            ["a, b: 59.8 allocations, the table has 60.5"]
        );
        assert_eq!(differences(2.004, 60.5).len(), 1);
    }

    #[test]
    fn a_missing_row_is_an_error() {
        let mut counted = rows(2.0, 60.5);
        counted.push(("new".to_owned(), vec![0.0; 5]));
        assert!(COUNTS.differences(&page(), &counted).is_err());
        assert!(COUNTS.differences("no table", &counted).is_err());
    }

    #[test]
    fn a_renewed_table_has_the_counts_and_changes_nothing_else() {
        let renewed = COUNTS.replaced(&page(), &rows(7.0, 3.0)).unwrap();
        assert!(
            COUNTS
                .differences(&renewed, &rows(7.0, 3.0))
                .unwrap()
                .is_empty()
        );
        assert_eq!(COUNTS.replaced(&renewed, &rows(2.0, 60.5)).unwrap(), page());
        assert!(
            INSTRUCTIONS
                .differences(&renewed, &[("a, b".to_owned(), vec![1009.0])])
                .unwrap()
                .is_empty()
        );
    }
    #[test]
    fn counts_are_compared_only_with_those_of_the_same_version() {
        let why = |stdout: &str| {
            let output = Output {
                status: ExitStatus::default(),
                stdout: stdout.into(),
                stderr: Vec::new(),
            };
            why_of_another("of glibc 2.36.", "C library", Ok(output))
        };
        assert_eq!(why("glibc 2.36\n"), None);
        let other = r#"the page has the counts of another C library than "glibc 2.41""#;
        assert_eq!(why("glibc 2.41\n").as_deref(), Some(other));
        assert!(why("\n").is_some());
        assert!(
            why_of_another(
                "of glibc 2.36.",
                "C library",
                Err(ErrorKind::NotFound.into())
            )
            .is_some()
        );
    }
}
