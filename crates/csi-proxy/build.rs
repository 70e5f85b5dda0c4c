//! Adds the version resource to the Windows program, which Explorer, `Get-Item` and inventories show.

use std::env;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS")? == "windows" {
        // The versions are those of the package.
        winresource::WindowsResource::new()
            .set("ProductName", "csi-proxy")
            .set("OriginalFilename", "csi-proxy.exe")
            .set("InternalName", "csi-proxy")
            .set("LegalCopyright", "Apache-2.0")
            .compile()?;
    }
    Ok(())
}
