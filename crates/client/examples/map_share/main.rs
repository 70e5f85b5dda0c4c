//! NodeStageVolume and NodeUnstageVolume of an SMB share:
//! `cargo run -p csi-proxy-client --example map_share -- [SOCKET_FOLDER]`, with `cargo sim` running
//! elsewhere.

mod calls;

use std::env;
use std::error::Error;

use csi_proxy_client::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = match env::args_os().nth(1) {
        Some(folder) => Client::builder().socket_folder(folder).build(),
        None => Client::new(),
    };
    Ok(calls::run(&client).await?)
}
