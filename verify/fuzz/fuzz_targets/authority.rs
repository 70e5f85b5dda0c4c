#![no_main]
//! The target `authority` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("authority", bytes));
