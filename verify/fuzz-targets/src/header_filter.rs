//! The targets for the header filter: alone, and in front of the HTTP/2 server.

use std::time::Duration;

use bytes::Bytes;
use header_filter::{FrameFilter, HeaderFilter, ProtocolError};
use httlib_hpack::Encoder;
use http::{HeaderMap, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::runtime::Runtime;

use crate::input::Input;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const GOAWAY: u8 = 0x7;
const PING: u8 = 0x6;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The maximum number of calls in one input: h2 ends a connection with too many unanswered calls,
/// which is no defect of the filter.
const MAX_CALLS: usize = 50;
/// A call that takes longer hangs.
const HANG_TIMEOUT: Duration = Duration::from_secs(30);

/// The filter's output does not depend on how the input is split, and a second filter does not
/// change it.
pub(crate) fn any_split(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (with_preface, piece) = (input.byte(), usize::from(input.byte()));
    let preface = if with_preface % 4 == 0 {
        &[][..]
    } else {
        PREFACE
    };
    let sent = [preface, input.rest()].concat();
    let whole = filtered(&sent, usize::MAX);
    for piece in [1, piece + 1] {
        let (passed, outcome) = filtered(&sent, piece);
        assert_eq!(outcome, whole.1, "in pieces of {piece}");
        if outcome.is_ok() {
            assert_eq!(passed, whole.0, "in pieces of {piece}");
        }
    }
    if whole.1.is_ok() {
        let (again, outcome) = filtered(&whole.0, usize::MAX);
        assert_eq!(outcome, Ok(()), "the filter's output is not HTTP/2");
        assert_eq!(again, whole.0, "a second filter changes the output");
    }
}

fn filtered(bytes: &[u8], piece: usize) -> (Vec<u8>, Result<(), ProtocolError>) {
    let (mut filter, mut result) = (FrameFilter::new(), Vec::new());
    for mut chunk in bytes.chunks(piece) {
        while !chunk.is_empty() {
            let mut out = Vec::new();
            match filter.feed(chunk, &mut out) {
                Ok(taken) => chunk = &chunk[taken..],
                Err(malformed) => return (result, Err(malformed)),
            }
            result.extend(out);
        }
    }
    (result, Ok(()))
}

/// Every call is answered, and received with the deadline and the field that its client sent. Without the filter,
/// the server would reset a stream whose authority is the path of a pipe.
pub(crate) fn in_front_of_h2(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut encoder = Encoder::default();
    let (mut sent, mut expected) = ([PREFACE, SETTINGS].concat(), Vec::new());
    while !input.is_empty() && expected.len() < MAX_CALLS {
        let authority = input.string();
        let timeout = format!("{}u", input.byte());
        let stream = u32::try_from(2 * expected.len() + 1).expect("few calls");
        let values = [authority, timeout.as_bytes()];
        let filling = request(&mut encoder, stream, values, &mut input, &mut sent);
        expected.push((timeout, filling));
    }
    let (client, server) = tokio::io::duplex(4096);
    let serving = async {
        // The client is dropped after the server, which may still have frames to send.
        let (received, _client) = tokio::join!(
            serve(HeaderFilter::new(server, HANG_TIMEOUT)),
            send_and_receive(client, sent, expected.len())
        );
        assert_eq!(
            received, expected,
            "not every call was received once, in order"
        );
    };
    let runtime = runtime();
    let completed = runtime.block_on(async { tokio::time::timeout(HANG_TIMEOUT, serving).await });
    completed.expect("the server answers in time");
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Encodes one request, in any representation of HPACK and any frames that the input selects.
/// Returns the length of its field `x-filling`.
fn request(
    encoder: &mut Encoder<'_>,
    stream: u32,
    [authority, timeout]: [&[u8]; 2],
    input: &mut Input<'_>,
    sent: &mut Vec<u8>,
) -> usize {
    let flags = input.byte();
    let mut block = Vec::new();
    if flags & 0x20 != 0 {
        let size = u32::from(flags) * 16;
        encoder
            .update_max_dynamic_size(size, &mut block)
            .expect("a size that the server allows");
    }
    let flags = flags & 0x1f;
    let mut field = |name: &[u8], value: &[u8], flags: u8| {
        encoder
            .encode((name.to_vec(), value.to_vec(), flags), &mut block)
            .expect("any bytes can be encoded");
    };
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/v1.Disk/ListDiskIDs"),
    ] {
        field(
            name.as_bytes(),
            value.as_bytes(),
            Encoder::BEST_FORMAT | flags & Encoder::WITH_INDEXING,
        );
    }
    field(b":authority", authority, flags);
    field(b"grpc-timeout", timeout, input.byte() & 0x1f);
    // Evicts older entries from the dynamic table.
    let filling = usize::from(input.byte()) * 8;
    field(b"x-filling", &vec![b'x'; filling], input.byte() & 0x1f);
    let cut = usize::from(input.byte()) % (block.len() + 1);
    let shape = input.byte();
    let (mut head, mut padding, mut flags) = (Vec::new(), 0, END_STREAM);
    if shape & 2 != 0 {
        padding = usize::from(shape >> 4);
        head.push(shape >> 4);
        flags |= PADDED;
    }
    if shape & 4 != 0 {
        head.extend([0x80, 0, 0, 99, shape]);
        flags |= PRIORITY;
    }
    if shape & 8 != 0 {
        frame(PING, 0, 0, &[shape; 8], sent);
    }
    let (first, second) = if shape.is_multiple_of(2) {
        flags |= END_HEADERS;
        (&block[..], &[][..])
    } else {
        block.split_at(cut)
    };
    let payload = [&head[..], first, &vec![0; padding]].concat();
    frame(HEADERS, flags, stream, &payload, sent);
    if flags & END_HEADERS == 0 {
        frame(CONTINUATION, END_HEADERS, stream, second, sent);
    }
    filling
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], sent: &mut Vec<u8>) {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    sent.extend_from_slice(&length[1..]);
    sent.extend([kind, flags]);
    sent.extend(stream.to_be_bytes());
    sent.extend_from_slice(payload);
}

/// Answers all calls of a connection, and returns their deadlines and the lengths of their field
/// `x-filling`.
async fn serve(stream: HeaderFilter<DuplexStream>) -> Vec<(String, usize)> {
    let mut connection = h2::server::handshake(stream)
        .await
        .expect("a client that speaks HTTP/2");
    let mut received = Vec::new();
    while let Some(call) = connection.accept().await {
        let (request, mut responder) = call.expect("an open connection");
        assert_eq!(
            request.uri().authority(),
            None,
            "the filter leaves out the authority"
        );
        let header = |name| request.headers().get(name);
        let deadline = header("grpc-timeout").and_then(|value| value.to_str().ok());
        received.push((
            deadline.unwrap_or_default().to_owned(),
            header("x-filling").map_or(0, http::HeaderValue::len),
        ));
        let mut body = responder
            .send_response(Response::new(()), false)
            .expect("an open stream");
        body.send_data(Bytes::from_static(b"answer"), false)
            .expect("an open stream");
        body.send_trailers(HeaderMap::new())
            .expect("an open stream");
    }
    received
}

/// Sends the bytes, reads until each call is answered, and closes the connection. The server must
/// not reset a stream.
async fn send_and_receive(client: DuplexStream, sent: Vec<u8>, calls: usize) -> DuplexStream {
    let (mut reading, mut writing) = tokio::io::split(client);
    let write = async { writing.write_all(&sent).await.expect("the server reads") };
    let read = async {
        let mut answered = 0;
        while answered < calls {
            let mut head = [0; 9];
            reading
                .read_exact(&mut head)
                .await
                .expect("the server answers");
            let length =
                usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let mut payload = vec![0; length];
            reading
                .read_exact(&mut payload)
                .await
                .expect("the server answers");
            assert!(
                ![RST_STREAM, GOAWAY].contains(&head[3]),
                "the server reset a call: {payload:?}"
            );
            answered += usize::from(head[3] == HEADERS && head[4] & END_STREAM != 0);
        }
    };
    tokio::join!(write, read);
    writing.shutdown().await.expect("the server reads");
    reading.unsplit(writing)
}
