#![no_main]
//! The target `device_descriptors` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("device_descriptors", bytes));
