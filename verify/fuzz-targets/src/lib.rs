//! Fuzz targets: functions of untrusted bytes that panic if an invariant is violated.
//!
//! `verify/fuzz/` runs each target in libFuzzer (`cargo xtask fuzz`). The tests of this crate run each target over its
//! seeds and over the inputs that fuzzing has found, and need no libFuzzer.
//!
//! Windows' answers are fuzzed where the storage operations receive them: a [`CorruptingOs`] is a simulated node that
//! replaces one answer with the fuzzer's bytes. This tests the decoding of buffers together with its callers, for example
//! how they enlarge a buffer, and no parser has to be public for it.

mod authority;
mod descriptions;
mod devices;
mod input;
mod rpcs;
mod texts;

pub use faults::{CorruptingOs, Corruption};

/// A fuzz target.
pub struct Target {
    /// The name of the target, of its program in `verify/fuzz/fuzz_targets`, and of its folder in `verify/fuzz/seeds`.
    pub name: &'static str,
    /// Panics if an invariant is violated with these bytes.
    pub run: fn(&[u8]),
}

/// All fuzz targets.
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

/// Runs the target with this name, for libFuzzer's program.
///
/// # Panics
///
/// If no target has this name, or if the target panics.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("the program has the name of a target").run)(bytes);
}
