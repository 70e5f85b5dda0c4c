//! Compiles `proto/sim_control.proto` into OUT_DIR.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=build.rs");
    let descriptors = protox::compile(["sim_control.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // A test needs only the clients.
    tonic_prost_build::configure()
        .server_mod_attribute("csi_proxy_sim.v1", "#[cfg(feature = \"server\")]")
        .compile_fds(descriptors)?;
    Ok(())
}
