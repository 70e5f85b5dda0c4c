//! `cargo xtask ci`: everything that must succeed before a change is merged.

use crate::beside::Beside;
use crate::summary::Summary;
use crate::{Error, checks, test};

/// Runs all checks, the cheap ones first, then all tests. A failure ends none of them.
///
/// The programs that are shipped are built beside the other checks: much of that is the work of one
/// thread.
pub(crate) fn run() -> Result<Summary, Error> {
    let shipped = Beside::start(&["check", checks::SHIPPED])?;
    let mut sum = checks::run(&checks::ALL);
    sum += shipped.end()?;
    sum += test::with_differential();
    Ok(sum)
}
