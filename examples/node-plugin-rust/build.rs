//! Generates the services of CSI and of kubelet's plugin registration.
//!
//! Their protos are published in Go modules, which Go downloads and verifies here. A driver may
//! rather have copies of the two files in its tree, named by `CSI_PROTO` and `REGISTRATION_PROTO`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// For each proto the variable that names a copy, the module, and the file in the module.
const PROTOS: [(&str, &str, &str); 2] = [
    (
        "CSI_PROTO",
        "github.com/container-storage-interface/spec@v1.13.0",
        "csi.proto",
    ),
    (
        "REGISTRATION_PROTO",
        "k8s.io/kubelet@v0.35.1",
        "pkg/apis/pluginregistration/v1/api.proto",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    for (variable, module, file) in PROTOS {
        println!("cargo::rerun-if-env-changed={variable}");
        let proto = match std::env::var_os(variable) {
            Some(copy) => PathBuf::from(copy),
            None => download(module)?.join(file),
        };
        println!("cargo::rerun-if-changed={}", proto.display());
        let files = protox::compile([&proto], [proto.parent().unwrap_or(Path::new("."))])?;
        tonic_prost_build::configure()
            .build_client(false)
            .generate_default_stubs(true)
            .compile_fds(files)?;
    }
    Ok(())
}

/// Returns the folder of a Go module, after downloading it.
fn download(module: &str) -> Result<PathBuf, Box<dyn Error>> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .output();
    let output =
        output.map_err(|error| format!("cannot run go, which downloads {module}: {error}"))?;
    let json = String::from_utf8(output.stdout)?;
    let folder = json
        .lines()
        .find_map(|line| line.trim().strip_prefix("\"Dir\": \"")?.strip_suffix("\","));
    let error = || {
        format!(
            "go cannot download {module}: {json}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    };
    // JSON doubles the backslashes of Windows.
    Ok(folder.ok_or_else(error)?.replace(r"\\", r"\").into())
}
