//! `csi-proxyctl`, the administrator's tool for csi-proxy.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    csi_proxyctl::main().await
}
