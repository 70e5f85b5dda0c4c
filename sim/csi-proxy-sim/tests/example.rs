//! The example for authors of drivers must run.

use std::process::Command;

#[expect(dead_code, reason = "only cargo calls the main function of an example")]
#[path = "../examples/driver_test.rs"]
mod driver_test;

#[tokio::test]
async fn the_test_of_a_driver_passes() {
    driver_test::test(Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim"))).await.expect("no failing call");
}
