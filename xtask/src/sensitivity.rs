//! `cargo xtask sensitivity`: the program of `verify/sensitivity`, which breaks one rule at a
//! time.

use crate::summary::Summary;
use crate::workspace;

/// Runs the program. Each patch counts as one test.
pub(crate) fn run() -> Summary {
    if workspace::files().is_none() {
        return Summary::skipped(
            "sensitivity",
            "git copies the tree, and this is not a git checkout",
        );
    }
    Summary::of_compiling_tests(workspace::cargo().args([
        "run",
        "--quiet",
        "--package",
        "csi-proxy-sensitivity",
    ]))
}
