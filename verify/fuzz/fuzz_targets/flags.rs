#![no_main]
//! The target `flags` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("flags", bytes));
