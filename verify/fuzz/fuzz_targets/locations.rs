#![no_main]
//! The target `locations` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("locations", bytes));
