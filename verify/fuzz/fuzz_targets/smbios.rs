#![no_main]
//! The target `smbios` for libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("smbios", bytes));
