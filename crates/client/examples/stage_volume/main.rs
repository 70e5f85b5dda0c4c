//! NodeStageVolume to NodeUnstageVolume of a disk:
//! `cargo run -p csi-proxy-client --example stage_volume -- [SOCKET_FOLDER]`, with `cargo sim`
//! running elsewhere.

mod calls;

use std::env;

use csi_proxy_client::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), calls::Error> {
    let client = match env::args_os().nth(1) {
        Some(folder) => Client::builder().socket_folder(folder).build(),
        None => Client::new(),
    };
    calls::run(&client).await
}
