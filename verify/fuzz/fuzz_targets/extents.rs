#![no_main]
//! The target `extents` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("extents", bytes));
