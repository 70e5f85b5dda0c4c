#![no_main]
//! The target `authority_h2` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("authority_h2", bytes));
