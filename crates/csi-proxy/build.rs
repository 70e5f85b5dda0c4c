//! Adds resources to the Windows program, and the commit to the version.

use std::error::Error;

#[path = "build/resources.rs"]
mod resources;
#[path = "build/version.rs"]
mod version;

fn main() -> Result<(), Box<dyn Error>> {
    version::set();
    resources::add("csi-proxy")
}
