#![no_main]
//! The target `reparse_points` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("reparse_points", bytes));
