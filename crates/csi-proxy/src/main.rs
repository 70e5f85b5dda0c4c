//! A privileged daemon that answers CSI node plugins on Windows.

fn main() {}
