#![no_main]
//! The target `node_descriptions` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("node_descriptions", bytes));
