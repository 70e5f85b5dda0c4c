//! The named pipe.

use std::io;
use std::mem;
use std::path::PathBuf;

use tokio::net::windows::named_pipe::ServerOptions;

use super::{Sizes, answer};

pub(crate) async fn serve(name: &str, _folder: Option<PathBuf>, sizes: Sizes) -> io::Result<()> {
    let path = format!(r"\\.\pipe\{name}");
    let mut idle = ServerOptions::new().create(&path)?;
    loop {
        idle.connect().await?;
        let next = ServerOptions::new().create(&path)?;
        tokio::spawn(answer(mem::replace(&mut idle, next), sizes));
    }
}
