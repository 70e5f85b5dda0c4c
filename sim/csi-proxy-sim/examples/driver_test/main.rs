//! A driver's test against csi-proxy-sim: `cargo run -p csi-proxy-sim --example driver_test`.

mod calls;

use std::error::Error;
use std::process::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // An installed simulator is `Command::new("csi-proxy-sim")`; this one is built from the source tree.
    let mut simulator = Command::new("cargo");
    simulator.args(["run", "--quiet", "--package", "csi-proxy-sim", "--"]);
    calls::test(simulator).await?;
    println!("The driver's calls returned what they must.");
    Ok(())
}
