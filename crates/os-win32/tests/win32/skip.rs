//! Skipping a test on a system that lacks a function.

use std::path::Path;
use std::thread;

/// Prints that this test, or the rest of it, cannot run on this system. `cargo xtask` counts these
/// lines, which `xtask/src/test_output.rs` reads.
pub(crate) fn skipped(why: &str) {
    println!(
        "skipped: {}: {why}",
        thread::current().name().unwrap_or("a test")
    );
}

/// Skips a test, like [`skipped`], because Wine lacks a function of Windows. On Windows, the test
/// fails.
pub(crate) fn skipped_by_wine(why: &str) {
    assert!(is_wine(), "{why}");
    skipped(&format!("{why} (Wine)"));
}

/// Returns whether the system is Wine, which has the program winecfg.exe.
pub(crate) fn is_wine() -> bool {
    Path::new(r"C:\windows\system32\winecfg.exe").exists()
}
