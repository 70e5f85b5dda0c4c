//! Answers requests of so many bytes with replies of so many bytes, without HTTP/2 and gRPC: what the socket or the pipe,
//! the runtime and the client cost by themselves. `cargo xtask bench` compares csi-proxy with it.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use clap::Parser;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

#[cfg(unix)]
#[path = "sockets.rs"]
mod imp;

#[cfg(windows)]
#[path = "pipes.rs"]
mod imp;

#[derive(Parser)]
#[command(version, about = "Answers bytes with bytes, to compare csi-proxy with")]
struct Arguments {
    /// Folder for the socket; created if missing. No effect on Windows
    #[arg(long)]
    socket_folder: Option<PathBuf>,
    /// The size of a request
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    request_bytes: u16,
    /// The size of a reply
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    reply_bytes: u16,
}

/// How many bytes of requests are received at once, as in the daemon.
const BUFFER: usize = 16 << 10;

#[derive(Clone, Copy)]
struct Sizes {
    request: usize,
    reply: usize,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { socket_folder, request_bytes, reply_bytes } = Arguments::parse();
    let sizes = Sizes { request: request_bytes.into(), reply: reply_bytes.into() };
    Ok(imp::serve("csi-proxy-ping-pong", socket_folder, sizes).await?)
}

/// Answers until the client closes the connection. Requests that arrive together are answered together.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, sizes: Sizes) -> io::Result<()> {
    let mut received = vec![0; BUFFER];
    let replies = vec![0; (BUFFER / sizes.request + 1) * sizes.reply];
    let mut unanswered = 0;
    loop {
        match stream.read(&mut received).await? {
            0 => return Ok(()),
            count => unanswered += count,
        }
        let whole = unanswered / sizes.request;
        unanswered %= sizes.request;
        stream.write_all(&replies[..whole * sizes.reply]).await?;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::{Sizes, answer};

    #[tokio::test]
    async fn a_request_is_answered_when_it_is_whole() {
        let (mut client, server) = tokio::io::duplex(64);
        let serving = tokio::spawn(answer(server, Sizes { request: 4, reply: 3 }));
        client.write_all(&[0; 4 + 4 + 1]).await.expect("it reads");
        client.read_exact(&mut [0; 6]).await.expect("two replies");
        client.write_all(&[0; 3]).await.expect("it reads");
        client.read_exact(&mut [0; 3]).await.expect("the third reply");
        client.shutdown().await.expect("the end");
        assert_eq!(client.read(&mut [0]).await.expect("the end"), 0, "nothing else was sent");
        serving.await.expect("no panic").expect("the client has closed the connection");
    }
}
