//! Checks what csi-proxy depends on, on a Windows machine of a user, and reports the result.
//!
//! csi-proxy-selftest.exe makes disks of its own, which are VHDX files. On them, it runs the checks
//! of all facts (`verify/facts`) and the [`ACCEPTANCE`], each in a process of its own, and writes
//! an [`Evidence`]. docs/windows.md has a part that a test makes of the files in docs/evidence.

mod acceptance;
mod clouds;
mod disks;
mod disks_of_node;
mod evidence;
mod form;
mod machine;
mod order;
mod page;
mod run;

pub use acceptance::ACCEPTANCE;
pub use clouds::{Cloud, part_about_clouds, wrong_citation};
pub use disks_of_node::{
    DisksOfNode, RecordedDevice, RecordedDisk, RecordedIdentifier, RecordedIds, RecordedLocation,
    RecordedMsftDisk, recorded_disks,
};
pub use evidence::Evidence;
pub use machine::{LocalMachine, Machine};
pub use order::checks;
pub use page::{BUILDS, ended_fallbacks, fallbacks, part_of_windows_page, report};
pub use run::{FREE_SPACE, RECORD_DISKS, Run};
