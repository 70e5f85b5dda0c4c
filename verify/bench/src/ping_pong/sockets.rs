//! The Unix socket.

use std::io;
use std::path::PathBuf;

use tokio::net::UnixListener;

use super::{Sizes, answer};

pub(crate) async fn serve(name: &str, folder: Option<PathBuf>, sizes: Sizes) -> io::Result<()> {
    let folder = folder.ok_or_else(|| io::Error::other("--socket-folder is missing"))?;
    std::fs::create_dir_all(&folder)?;
    let listener = UnixListener::bind(folder.join(format!("{name}.sock")))?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(answer(stream, sizes));
    }
}
