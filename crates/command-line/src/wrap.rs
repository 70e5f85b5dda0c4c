//! The width of the terminal.

use std::io::{self, IsTerminal as _};

/// Returns the width of the terminal that standard error is; None if it is not one.
pub(crate) fn stderr_width() -> Option<usize> {
    let stderr = io::stderr();
    let size = stderr
        .is_terminal()
        .then(|| terminal_size::terminal_size_of(&stderr))?;
    size.map(|(width, _)| usize::from(width.0))
}
