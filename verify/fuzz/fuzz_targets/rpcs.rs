#![no_main]
//! The target `rpcs` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("rpcs", bytes));
