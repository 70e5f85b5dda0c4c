#![no_main]
//! The target `drive_layouts` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("drive_layouts", bytes));
