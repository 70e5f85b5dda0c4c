//! The one door for everything a developer or CI does: `cargo xtask test`.

fn main() {}
