#![no_main]
//! The target `host_paths` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("host_paths", bytes));
