//! An HTTP/2 client that writes its frames itself, so that it can send what no library sends.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use transport::listener::ClientStream;

use super::daemon::Daemon;

pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) payload: Vec<u8>,
    pub(crate) stream: u32,
    pub(crate) flags: u8,
}

pub(crate) struct Client {
    pub(super) stream: ClientStream,
    next: u32,
}

fn literal(block: &mut Vec<u8>, name: &str, value: &[u8]) {
    let length = |bytes: &[u8]| {
        u8::try_from(bytes.len())
            .ok()
            .filter(|length| *length < 127)
            .expect("short")
    };
    block.extend([0, length(name.as_bytes())]);
    block.extend(name.as_bytes());
    block.push(length(value));
    block.extend(value);
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).expect("short").to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

impl Client {
    /// Opens a connection to an endpoint of `daemon`.
    pub(crate) async fn at(daemon: &Daemon, pipe: &str) -> Self {
        let mut stream = daemon.stream(pipe).await;
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .expect("the preface");
        let mut client = Self { stream, next: 1 };
        client.write(SETTINGS, 0, 0, &[]).await;
        client
    }

    /// Sends the headers of a call and returns its stream.
    pub(crate) async fn begin(&mut self, path: &str) -> u32 {
        let (stream, head) = self.head(path, b"x", "1H");
        self.write(HEADERS, 0x4, stream, &head).await;
        stream
    }

    /// Sends this many bytes of a header block, and not its end.
    pub(crate) async fn begin_block(&mut self, bytes: usize) {
        let block = vec![0; bytes];
        let mut kind = HEADERS;
        for piece in block.chunks(8192) {
            self.write(kind, 0, self.next, piece).await;
            kind = CONTINUATION;
        }
    }

    /// Sets the flow-control window of new streams.
    pub(crate) async fn set_window(&mut self, bytes: u32) {
        self.write(
            SETTINGS,
            0,
            0,
            &[&[0, 4], &bytes.to_be_bytes()[..]].concat(),
        )
        .await;
    }

    /// Sends one frame.
    pub(crate) async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.stream
            .write_all(&frame(kind, flags, stream, payload))
            .await
            .expect("the server reads");
    }

    pub(crate) async fn read(&mut self) -> Frame {
        let mut head = [0; 9];
        self.stream
            .read_exact(&mut head)
            .await
            .expect("the server writes");
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        self.stream
            .read_exact(&mut payload)
            .await
            .expect("the server writes");
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Frame {
            kind: head[3],
            flags: head[4],
            stream,
            payload,
        }
    }

    /// Returns the next stream, and the header block of a call on it.
    pub(crate) fn head(&mut self, path: &str, authority: &[u8], time: &str) -> (u32, Vec<u8>) {
        let mut block = Vec::new();
        literal(&mut block, ":method", b"POST");
        literal(&mut block, ":scheme", b"http");
        literal(&mut block, ":path", path.as_bytes());
        literal(&mut block, ":authority", authority);
        literal(&mut block, "content-type", b"application/grpc");
        literal(&mut block, "te", b"trailers");
        literal(&mut block, "grpc-timeout", time.as_bytes());
        let stream = self.next;
        self.next += 2;
        (stream, block)
    }

    /// Calls an RPC with an empty message and waits until its stream ends or is reset.
    pub(crate) async fn call(&mut self, path: &str, authority: &[u8]) -> Result<(), &'static str> {
        self.call_within(path, authority, "1H", b"").await
    }

    /// Calls an RPC with a message and a deadline, which only the server enforces.
    pub(crate) async fn call_within(
        &mut self,
        path: &str,
        authority: &[u8],
        time: &str,
        message: &[u8],
    ) -> Result<(), &'static str> {
        let (stream, block) = self.head(path, authority, time);
        self.write(HEADERS, 0x4, stream, &block).await;
        let length = u32::try_from(message.len()).expect("short").to_be_bytes();
        let body = [&[0], &length[..], message].concat();
        self.write(DATA, 0x1, stream, &body).await;
        loop {
            let frame = self.read().await;
            match frame.kind {
                HEADERS | DATA if frame.stream == stream && frame.flags & 0x1 != 0 => return Ok(()),
                RST_STREAM if frame.stream == stream => return Err("reset"),
                GOAWAY => return Err("GOAWAY"),
                _ => {}
            }
        }
    }
}
