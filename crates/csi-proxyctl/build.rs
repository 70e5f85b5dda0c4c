//! Adds resources to the Windows program, and the commit to the version.

use std::error::Error;

#[path = "../csi-proxy/build/resources.rs"]
mod resources;
#[path = "../csi-proxy/build/version.rs"]
mod version;

fn main() -> Result<(), Box<dyn Error>> {
    version::set();
    resources::add("csi-proxyctl")
}
