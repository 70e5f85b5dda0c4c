//! Adds resources to the Windows program.

use std::error::Error;

#[path = "build/resources.rs"]
mod resources;

fn main() -> Result<(), Box<dyn Error>> {
    resources::add("csi-proxy")
}
