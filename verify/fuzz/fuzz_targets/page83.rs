#![no_main]
//! The target `page83` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("page83", bytes));
