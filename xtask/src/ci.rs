//! Everything that must succeed before a change is merged.

use crate::summary::Summary;
use crate::{checks, test};

/// Runs all checks, the cheap ones first, and all tests, also after a failure. Each check counts as one test.
pub(crate) fn run() -> Summary {
    let checks = [
        checks::format,
        checks::source_rules,
        checks::workflows,
        checks::clippy,
        checks::rust_example,
        checks::documentation,
        checks::site,
        checks::clippy_for_windows,
        checks::dependencies,
        checks::packages,
    ];
    let mut sum = Summary::default();
    for check in checks {
        sum += check();
    }
    sum += test::run(&[]);
    sum
}
