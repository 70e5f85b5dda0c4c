//! Adds resources to the Windows program.

use std::error::Error;

#[path = "../csi-proxy/build/resources.rs"]
mod resources;

fn main() -> Result<(), Box<dyn Error>> {
    resources::add("csi-proxyctl")
}
