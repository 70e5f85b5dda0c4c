//! What is fuzzed: bytes that come from outside, and what must hold of them.
//!
//! A target is a function of bytes that panics where something does not hold. `verify/fuzz/` gives each to libFuzzer
//! (`cargo xtask fuzz`), the tests of this crate run each over its seeds and over what was once found, so that neither
//! needs the other.
//!
//! What Windows answers is fuzzed where the storage operations see it: a [`CorruptingOs`] is a simulated node that answers one
//! thing with the fuzzer's bytes. So the reading of buffers is tested with all that stands around it, such as how the
//! room for an answer grows, and no parser has to be public for it.

mod authority;
mod descriptions;
mod devices;
mod input;
mod rpcs;
mod texts;

pub use faults::{CorruptingOs, Corruption};

/// A target.
pub struct Target {
    /// Its name: that of its program in `verify/fuzz/fuzz_targets` and of its folder in `verify/fuzz/seeds`.
    pub name: &'static str,
    /// Panics where something does not hold for these bytes.
    pub run: fn(&[u8]),
}

/// All targets.
pub static TARGETS: [Target; 18] = [
    Target { name: "authority", run: authority::any_split },
    Target { name: "authority_h2", run: authority::in_front_of_h2 },
    Target { name: "device_descriptors", run: devices::device_descriptor },
    Target { name: "drive_layouts", run: devices::drive_layout },
    Target { name: "extents", run: devices::extents },
    Target { name: "file_systems", run: devices::file_system },
    Target { name: "flags", run: texts::flags },
    Target { name: "host_paths", run: texts::host_path },
    Target { name: "listings", run: devices::listing },
    Target { name: "locations", run: devices::location },
    Target { name: "node_descriptions", run: descriptions::node },
    Target { name: "page83", run: devices::page83 },
    Target { name: "reparse_points", run: devices::reparse_point },
    Target { name: "rpcs", run: rpcs::calls },
    Target { name: "smbios", run: devices::smbios },
    Target { name: "volume_content", run: devices::content },
    Target { name: "volume_ids", run: texts::volume_id },
    Target { name: "wql", run: texts::wql },
];

/// Runs the target of this name, for the program that libFuzzer calls.
///
/// Panics if there is none, and where the target does.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("each program has the name of a target").run)(bytes);
}
