#![no_main]
//! The target `listings` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("listings", bytes));
