//! The example for authors of drivers must run.

use std::process::Command;

#[path = "../examples/driver_test/calls.rs"]
mod calls;

#[tokio::test]
async fn the_test_of_a_driver_passes() {
    calls::test(Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim"))).await.expect("no failing call");
}
