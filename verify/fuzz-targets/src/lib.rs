//! Fuzz targets: functions of untrusted bytes that panic if an invariant is violated.
//!
//! The program in `verify/fuzz` runs a target in libFuzzer (`cargo xtask fuzz`). The tests of this
//! crate run each target over its seeds and over the inputs that fuzzing has found, and need no
//! libFuzzer.
//!
//! The fuzzer replaces the answers of Windows where the storage operations receive them: a
//! [`CorruptingOs`] is a simulated node with one answer replaced. This tests the decoding of a
//! buffer together with its callers, for example how they enlarge the buffer, and no parser has to
//! be public.

mod devices;
mod header_filter;
mod input;
mod rpcs;
mod texts;

pub use faults::{CorruptingOs, Corruption};

/// A fuzz target.
pub struct Target {
    /// The name of the target and of its folder in `verify/fuzz/seeds`.
    pub name: &'static str,
    /// Panics if an invariant is violated with these bytes.
    pub run: fn(&[u8]),
}

/// All fuzz targets.
pub static TARGETS: [Target; 16] = [
    Target {
        name: "device_descriptors",
        run: devices::device_descriptor,
    },
    Target {
        name: "drive_layouts",
        run: devices::drive_layout,
    },
    Target {
        name: "extents",
        run: devices::extents,
    },
    Target {
        name: "file_systems",
        run: devices::file_system,
    },
    Target {
        name: "flags",
        run: texts::flags,
    },
    Target {
        name: "header_filter",
        run: header_filter::any_split,
    },
    Target {
        name: "header_filter_h2",
        run: header_filter::in_front_of_h2,
    },
    Target {
        name: "host_paths",
        run: texts::host_path,
    },
    Target {
        name: "listings",
        run: devices::listing,
    },
    Target {
        name: "locations",
        run: devices::location,
    },
    Target {
        name: "page83",
        run: devices::page83,
    },
    Target {
        name: "reparse_points",
        run: devices::reparse_point,
    },
    Target {
        name: "rpcs",
        run: rpcs::calls,
    },
    Target {
        name: "smbios",
        run: devices::smbios,
    },
    Target {
        name: "volume_content",
        run: devices::content,
    },
    Target {
        name: "volume_ids",
        run: texts::volume_id,
    },
];

/// Returns the target with this name.
///
/// # Panics
///
/// If no target has this name.
pub fn target(name: &str) -> &'static Target {
    TARGETS
        .iter()
        .find(|target| target.name == name)
        .unwrap_or_else(|| panic!("no fuzz target is named {name}"))
}
