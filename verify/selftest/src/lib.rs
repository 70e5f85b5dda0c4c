//! Checks what csi-proxy depends on, on a Windows machine of a user, and reports the result.
//!
//! csi-proxy-selftest.exe makes disks of its own, which are VHD files. On them, it runs the checks
//! of all facts (`verify/facts`) and the [`ACCEPTANCE`], each in a process of its own, and writes
//! an [`Evidence`]. docs/windows.md has a part that a test makes of the files in docs/evidence.

mod acceptance;
mod disks;
mod evidence;
mod machine;
mod order;
mod page;
mod run;

pub use acceptance::ACCEPTANCE;
pub use evidence::Evidence;
pub use machine::{LocalMachine, Machine};
pub use order::checks;
pub use page::{BUILDS, part_of_windows_page, report};
pub use run::Run;
