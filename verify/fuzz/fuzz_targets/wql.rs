#![no_main]
//! The target `wql` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("wql", bytes));
