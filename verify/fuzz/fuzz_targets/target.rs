#![no_main]
//! Runs the fuzz target that the environment variable `FUZZ_TARGET` names, in libFuzzer.

use std::sync::LazyLock;

use fuzz_targets::Target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a fuzz target");
    fuzz_targets::target(&name)
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
