//! A client that sends the bytes of a driver written in Go and costs next to nothing itself: all
//! requests are encoded before they are sent, and of a response only the frames are looked at.

use std::error::Error;

use api::GROUP_VERSIONS;
use httlib_hpack::Encoder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::call::Call;
use crate::daemon::Daemon;
use crate::excluded::excluded;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const SETTINGS: u8 = 0x4;
const WINDOW_UPDATE: u8 = 0x8;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const ACK: u8 = 0x1;
const HEAD: usize = 9;
const HEADER_TABLE_SIZE: u16 = 0x1;
const DEFAULT_TABLE: u32 = 4096;

/// The largest flow-control window, so that the server never waits for one.
const WINDOW: u32 = (1 << 31) - 1;
/// How a client library encodes a header: by its index if it has one, else added to the table, with
/// a Huffman code.
const AS_GO_DOES: u8 = Encoder::BEST_FORMAT | Encoder::WITH_INDEXING | Encoder::HUFFMAN_VALUE;

/// A connection on which one call is made again and again.
pub struct Client {
    stream: DuplexStream,
    call: Call,
    encoder: Encoder<'static>,
    /// The size that the server allows the header table, until the next header block tells that it
    /// is used.
    table_size: Option<u32>,
    next_stream: u32,
    /// Decreases from call to call, as the deadlines of a driver differ.
    timeout: u32,
    received: Vec<u8>,
}

impl Client {
    /// Opens a connection to the endpoint of the call, and begins HTTP/2.
    pub async fn connect(daemon: &Daemon, call: &Call) -> Result<Self, Box<dyn Error>> {
        let mut client = Self {
            stream: daemon.connect(call.service)?,
            call: call.clone(),
            encoder: Encoder::with_dynamic_size(DEFAULT_TABLE),
            table_size: None,
            next_stream: 1,
            timeout: 59_999_999,
            received: vec![0; 1 << 14],
        };
        let mut start = PREFACE.to_vec();
        push_frame(&mut start, SETTINGS, 0, 0, &[]);
        push_frame(&mut start, SETTINGS, ACK, 0, &[]);
        push_frame(
            &mut start,
            WINDOW_UPDATE,
            0,
            0,
            &(WINDOW - 65_535).to_be_bytes(),
        );
        client.stream.write_all(&start).await?;
        client.read_settings().await?;
        Ok(client)
    }

    /// Reads the server's settings, the first frame that it sends.
    async fn read_settings(&mut self) -> Result<(), Box<dyn Error>> {
        let mut head = [0; HEAD];
        self.stream.read_exact(&mut head).await?;
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = &mut self.received[..length];
        self.stream.read_exact(payload).await?;
        for setting in payload.chunks_exact(6) {
            let &[high, low, a, b, c, d] = setting else {
                continue;
            };
            if u16::from_be_bytes([high, low]) == HEADER_TABLE_SIZE {
                self.table_size = Some(u32::from_be_bytes([a, b, c, d]).min(DEFAULT_TABLE));
            }
        }
        Ok(())
    }

    /// Makes another call of the same endpoint from now on.
    pub fn set_call(&mut self, call: &Call) {
        self.call = call.clone();
    }

    /// Encodes and makes so many calls, one after the other.
    pub async fn call(&mut self, count: usize) -> Result<(), Box<dyn Error>> {
        let requests = excluded(|| self.prepare(count));
        self.send(&requests).await
    }

    /// Encodes the next requests. They must be sent in this order.
    pub fn prepare(&mut self, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.request()).collect()
    }

    /// Sends requests, each after the response to the one before.
    pub async fn send(&mut self, requests: &[Vec<u8>]) -> Result<(), Box<dyn Error>> {
        for request in requests {
            self.stream.write_all(request).await?;
            if self.response().await? != self.call.succeeds {
                return Err(
                    format!("{} has another outcome than it should", self.call.name).into(),
                );
            }
        }
        Ok(())
    }

    fn request(&mut self) -> Vec<u8> {
        let Call { service, rpc, .. } = self.call;
        let pipe = GROUP_VERSIONS
            .iter()
            .find(|row| row.service == service)
            .expect("the service exists")
            .pipe();
        self.timeout -= 1237;
        let mut block = Vec::new();
        if let Some(size) = self.table_size.take() {
            self.encoder
                .update_max_dynamic_size(size, &mut block)
                .expect("the size is valid");
        }
        for (name, value) in [
            (":method", "POST".to_owned()),
            (":scheme", "http".to_owned()),
            (":path", format!("/{service}/{rpc}")),
            (":authority", format!(r"\\.\\pipe\\{pipe}")),
            ("content-type", "application/grpc".to_owned()),
            ("user-agent", "grpc-go/1.85.0".to_owned()),
            ("te", "trailers".to_owned()),
            ("grpc-timeout", format!("{}u", self.timeout)),
        ] {
            let field = (name.as_bytes().to_vec(), value.into_bytes(), AS_GO_DOES);
            self.encoder
                .encode(field, &mut block)
                .expect("the field is valid");
        }
        let length = u32::try_from(self.call.request.len()).expect("the message is short");
        let message = [&[0][..], &length.to_be_bytes(), &self.call.request].concat();
        let mut request = Vec::new();
        push_frame(&mut request, HEADERS, END_HEADERS, self.next_stream, &block);
        push_frame(&mut request, DATA, END_STREAM, self.next_stream, &message);
        self.next_stream += 2;
        request
    }

    /// Reads until the end of a stream, and returns whether it had a message.
    async fn response(&mut self) -> Result<bool, Box<dyn Error>> {
        let (mut has_message, mut filled) = (false, 0);
        loop {
            let read = self.stream.read(&mut self.received[filled..]).await?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            filled += read;
            let mut at = 0;
            while let Some(&[high, middle, low, kind, flags, ..]) =
                self.received[at..filled].first_chunk::<HEAD>()
            {
                let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                if filled - at < HEAD + length {
                    break;
                }
                at += HEAD + length;
                has_message |= kind == DATA && length > 0;
                if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                    return Ok(has_message);
                }
            }
            self.received.copy_within(at..filled, 0);
            filled -= at;
        }
    }
}

fn push_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len())
        .expect("the frame is short")
        .to_be_bytes();
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}
