#![no_main]
//! The target `volume_ids` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("volume_ids", bytes));
