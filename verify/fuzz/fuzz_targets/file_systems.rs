#![no_main]
//! The target `file_systems` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("file_systems", bytes));
