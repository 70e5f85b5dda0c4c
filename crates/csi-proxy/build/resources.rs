//! The resources of the Windows programs: the version, which Explorer, `Get-Item` and inventories
//! show, and the manifest.
//!
//! The build scripts of `csi-proxy` and `csi-proxyctl` compile this file.

use std::env;
use std::error::Error;

const THIS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../csi-proxy/build/resources.rs"
);
const MANIFEST: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../csi-proxy/csi-proxy.exe.manifest"
);

/// Adds the resources to the program `name`.
pub(crate) fn add(name: &str, version: &str) -> Result<(), Box<dyn Error>> {
    for file in ["build.rs", THIS, MANIFEST] {
        println!("cargo:rerun-if-changed={file}");
    }
    if env::var("CARGO_CFG_TARGET_OS")? == "windows" {
        // The other versions are those of the package.
        winresource::WindowsResource::new()
            .set("ProductName", "csi-proxy")
            .set("ProductVersion", version)
            .set("OriginalFilename", &format!("{name}.exe"))
            .set("InternalName", name)
            .set("LegalCopyright", "Apache-2.0")
            .set_manifest_file(MANIFEST)
            .compile()?;
        if env::var("CARGO_CFG_TARGET_ENV")? == "msvc" {
            // Windows looks for the DLLs that the program imports in System32 alone. For DLLs that
            // it loads later, see `limit_dll_search`. Other linkers cannot set this.
            println!("cargo:rustc-link-arg-bins=/DEPENDENTLOADFLAG:0x800");
        }
    }
    Ok(())
}
