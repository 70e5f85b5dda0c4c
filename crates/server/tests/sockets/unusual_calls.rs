//! Calls that no gRPC client makes: unfinished, unread, reset at once, in a flood.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::frames::{Client, DATA, GOAWAY, HEADERS, RST_STREAM, frame};

pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;

impl Client {
    /// Sends the headers of a call and the first `bytes` bytes of a message that declares `length`
    /// bytes.
    pub(crate) async fn begin_message(&mut self, path: &str, length: u32, bytes: usize) -> u32 {
        let stream = self.begin(path).await;
        let body = [&[0][..], &length.to_be_bytes(), &vec![0; bytes]].concat();
        for piece in body.chunks(16_384) {
            self.write(DATA, 0, stream, piece).await;
        }
        stream
    }

    /// Begins calls and reads nothing, until the server has closed the connection.
    pub(crate) async fn flood(mut self, path: &str) {
        loop {
            let (stream, head) = self.head(path, b"x", "1H");
            if self
                .stream
                .write_all(&frame(HEADERS, 0x4 | 0x1, stream, &head))
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// Sends a whole call and does not read the response.
    pub(crate) async fn send(&mut self, path: &str, message: &[u8]) -> u32 {
        let stream = self.begin(path).await;
        let length = u32::try_from(message.len()).expect("short").to_be_bytes();
        self.write(DATA, 0x1, stream, &[&[0], &length[..], message].concat())
            .await;
        stream
    }

    /// Reads until a stream has ended or has been reset.
    pub(crate) async fn read_to_end_of(&mut self, stream: u32) {
        loop {
            let frame = self.read().await;
            if frame.stream != stream {
                assert_ne!(frame.kind, GOAWAY, "the connection stays open");
                continue;
            }
            if frame.kind == RST_STREAM
                || matches!(frame.kind, HEADERS | DATA) && frame.flags & 0x1 != 0
            {
                return;
            }
        }
    }

    /// Begins calls and resets each of them, in one write.
    pub(crate) async fn begin_and_reset(&mut self, path: &str, calls: usize) {
        let mut bytes = Vec::new();
        for _ in 0..calls {
            let (stream, head) = self.head(path, b"x", "1H");
            bytes.extend(frame(HEADERS, 0x4, stream, &head));
            bytes.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
        }
        self.stream
            .write_all(&bytes)
            .await
            .expect("the server reads");
    }

    /// Waits until the server has closed the connection.
    pub(crate) async fn closed(mut self) {
        let mut rest = Vec::new();
        // A socket that is closed with unread bytes is reset, which counts as closed too.
        let _ = self.stream.read_to_end(&mut rest).await;
    }
}
