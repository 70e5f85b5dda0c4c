//! Adds resources to the Windows program: the version, which Explorer, `Get-Item` and inventories show, and the manifest.

use std::env;
use std::error::Error;

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/csi-proxy.exe.manifest");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={MANIFEST}");
    if env::var("CARGO_CFG_TARGET_OS")? == "windows" {
        // The versions are those of the package.
        winresource::WindowsResource::new()
            .set("ProductName", "csi-proxy")
            .set("OriginalFilename", "csi-proxy.exe")
            .set("InternalName", "csi-proxy")
            .set("LegalCopyright", "Apache-2.0")
            .set_manifest_file(MANIFEST)
            .compile()?;
        if env::var("CARGO_CFG_TARGET_ENV")? == "msvc" {
            // Windows looks for the DLLs that the program imports in System32 alone. For others, see `dll_search`.
            // Other linkers cannot set this.
            println!("cargo:rustc-link-arg-bins=/DEPENDENTLOADFLAG:0x800");
        }
    }
    Ok(())
}
