//! The filter on the frames of a connection. The fuzz targets `header_filter` and
//! `header_filter_h2` in `verify/fuzz-targets` run it on any bytes, and between the encoder and the
//! decoder of other crates.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use header_filter::{FrameFilter, HeaderFilter, ProtocolError};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf, duplex};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const MAX_FRAME: usize = 16_384;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const PING: u8 = 0x6;
const CONTINUATION: u8 = 0x9;

/// The most that one call may append to its output: what makes it stop, and a header block or the
/// rest of its input.
const MAX_OUT: usize = 16 * 1024 + 52 * 1024;

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Feeds the filter in pieces of these lengths, repeatedly.
fn filtered(octets: &[u8], pieces: &[usize]) -> Result<Vec<u8>, ProtocolError> {
    let mut filter = FrameFilter::new();
    let mut result = Vec::new();
    let mut rest = octets;
    for piece in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (mut some, after) = rest.split_at(rest.len().min(*piece));
        while !some.is_empty() {
            let mut out = Vec::new();
            let taken = filter.feed(some, &mut out)?;
            assert!(out.len() <= MAX_OUT, "{} octets", out.len());
            result.extend(out);
            some = &some[taken..];
        }
        rest = after;
    }
    Ok(result)
}

#[test]
fn a_rewritten_block_larger_than_a_frame_continues_in_another() {
    // `:path` of 24,000 octets `a`, for which Huffman coding needs five bits each.
    let path = [0x18, 0xc6, 0x31, 0x8c, 0x63].repeat(3000);
    let priority = [0x80, 0, 0, 99, 9];
    let padding = [0; 7];
    let block = [&[0x44, 0xff, 0x99, 0x74], &path[..]].concat();
    let payload = [&[7], &priority[..], &block, &padding].concat();
    let flags = END_STREAM | END_HEADERS | PADDED | PRIORITY;
    let ping = frame(PING, 0, 0, &[9; 8]);
    let sent = [PREFACE, &ping, &frame(HEADERS, flags, 1, &payload), &ping].concat();
    let rewritten = [&[0x04, 0x7f, 0xc1, 0xba, 0x01][..], &vec![b'a'; 24_000]].concat();
    let (first, second) = rewritten.split_at(MAX_FRAME - priority.len());
    let first = [&priority, first].concat();
    let received = [
        PREFACE,
        &ping,
        &frame(HEADERS, END_STREAM | PRIORITY, 1, &first),
        &frame(CONTINUATION, END_HEADERS, 1, second),
        &ping,
    ];
    for pieces in [&[usize::MAX][..], &[1], &[1000]] {
        assert_eq!(filtered(&sent, pieces).unwrap(), received.concat());
    }
}

#[test]
fn framing_violations_are_errors() {
    let block = [0x82];
    let headers = |flags| frame(HEADERS, flags, 1, &block);
    let flood: Vec<u8> = frame(CONTINUATION, 0, 1, &[]).repeat(8000);
    let big = vec![0; MAX_FRAME + 1];
    for (what, frames) in [
        (
            "CONTINUATION first",
            frame(CONTINUATION, END_HEADERS, 1, &block),
        ),
        (
            "CONTINUATION after a complete block",
            [headers(END_HEADERS), frame(CONTINUATION, 0, 1, &block)].concat(),
        ),
        (
            "CONTINUATION of another stream",
            [headers(0), frame(CONTINUATION, END_HEADERS, 3, &block)].concat(),
        ),
        (
            "DATA within a block",
            [headers(0), frame(DATA, 0, 1, &[])].concat(),
        ),
        (
            "HEADERS within a block",
            [headers(0), headers(END_HEADERS)].concat(),
        ),
        (
            "HEADERS of stream 0",
            frame(HEADERS, END_HEADERS, 0, &block),
        ),
        (
            "HEADERS of the reserved bit alone",
            frame(HEADERS, END_HEADERS, 1 << 31, &block),
        ),
        (
            "PUSH_PROMISE",
            frame(0x5, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
        ),
        (
            "no octet for the padding length",
            frame(HEADERS, END_HEADERS | PADDED, 1, &[]),
        ),
        (
            "padding longer than the frame",
            frame(HEADERS, END_HEADERS | PADDED, 1, &[2, 0x82]),
        ),
        (
            "an incomplete priority",
            frame(HEADERS, END_HEADERS | PRIORITY, 1, &[0, 0, 0, 3]),
        ),
        (
            "a stream that depends on itself",
            frame(HEADERS, END_HEADERS | PRIORITY, 1, &[0, 0, 0, 1, 0, 0x82]),
        ),
        (
            "a HEADERS frame too large",
            frame(HEADERS, END_HEADERS, 1, &big),
        ),
        (
            "a CONTINUATION frame too large",
            [headers(0), frame(CONTINUATION, 0, 1, &big)].concat(),
        ),
        ("a block without end", [headers(0), flood].concat()),
        (
            "a field cut short",
            frame(HEADERS, END_HEADERS, 1, &[0x82, 0x41]),
        ),
        (
            "an index beyond the table",
            frame(HEADERS, END_HEADERS, 1, &[0xbe]),
        ),
        (
            "a table larger than allowed",
            frame(HEADERS, END_HEADERS, 1, &[0x3f, 0xe2, 0x1f, 0x82]),
        ),
    ] {
        let octets = [PREFACE, &frames].concat();
        let error = filtered(&octets, &[usize::MAX]).expect_err(what);
        texts::seen!(error.to_string());
        assert_eq!(
            filtered(&octets, &[1]),
            filtered(&octets, &[usize::MAX]),
            "{what}"
        );
    }
    for octets in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\t",
    ] {
        let error = filtered(octets, &[usize::MAX]).unwrap_err();
        texts::seen!(error.to_string());
    }
}

/// A client that sends its blocks in halves may take the time for each of them anew.
#[tokio::test(start_paused = true)]
async fn a_header_block_that_stays_incomplete_is_an_error_after_its_time() {
    const TIME: Duration = Duration::from_secs(10);
    let (mut client, server) = duplex(1024);
    let mut filter = HeaderFilter::new(server, TIME);
    let block = |stream| frame(HEADERS, END_HEADERS, stream, &[0x82]);
    let mut sent = [PREFACE, &block(1)[..9]].concat();
    let mut read = vec![0; PREFACE.len()];
    for stream in [3, 5, 7, 9, 11] {
        client.write_all(&sent).await.unwrap();
        filter.read_exact(&mut read).await.unwrap();
        tokio::time::timeout(TIME * 2 / 3, filter.read(&mut [0]))
            .await
            .expect_err("the block is incomplete");
        sent = [&[0x82], &block(stream)[..9]].concat();
        read = vec![0; 10];
    }
    let read = tokio::time::timeout(TIME / 2, filter.read(&mut [0]))
        .await
        .expect("the time for the block is over");
    assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
}

/// Each block would be four hundred times as long.
#[tokio::test]
async fn blocks_that_become_longer_are_filtered_when_the_server_has_read_those_before() {
    const PATH: usize = 4000;
    let added = [&[0x44, 0x7f, 0xa1, 0x1e][..], &[b'/'; PATH]].concat();
    let first = [PREFACE, &frame(HEADERS, END_HEADERS, 1, &added)].concat();
    let further = (0..1000).flat_map(|call| frame(HEADERS, END_HEADERS, 3 + 2 * call, &[0xbe]));
    let sent: Vec<u8> = first.into_iter().chain(further).collect();
    let mut stream = HeaderFilter::new(&sent[..], Duration::from_mins(1));
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.unwrap();
    assert!(read.len() > 1000 * PATH);
    assert_eq!(read, filtered(&sent, &[usize::MAX]).unwrap());
}

#[test]
fn a_client_that_never_stops_sending_gives_other_connections_a_turn() {
    let flood = frame(PING, 0, 0, &[0; 8]).repeat(100_000);
    let sent = [PREFACE, &flood[..]].concat();
    let mut stream = HeaderFilter::new(&sent[..], Duration::from_mins(1));
    let context = &mut Context::from_waker(Waker::noop());
    for _ in 0..10 {
        let (mut octets, mut read) = ([0; 8192], 0);
        loop {
            let mut buffer = ReadBuf::new(&mut octets);
            if Pin::new(&mut stream)
                .poll_read(context, &mut buffer)
                .is_pending()
            {
                break;
            }
            read += buffer.filled().len();
            assert!(read < 50_000, "no turn for others");
        }
        assert!(read > 0);
    }
}

#[test]
fn after_an_error_every_call_returns_it_again() {
    let mut filter = FrameFilter::new();
    let mut out = Vec::new();
    let error = filter.feed(b"GET", &mut out).unwrap_err();
    assert_eq!(filter.feed(PREFACE, &mut out), Err(error));
    assert!(out.is_empty());
}

#[test]
fn large_messages_pass_and_trailers_are_refused() {
    let message = vec![b'x'; MAX_FRAME];
    let mut octets = [
        PREFACE,
        &frame(HEADERS, END_HEADERS, 3, &[0x82]),
        &frame(DATA, 0, 3, &message),
    ]
    .concat();
    assert_eq!(filtered(&octets, &[usize::MAX]).as_ref(), Ok(&octets));
    // The stream that is open, and one that may have ended.
    for stream in [3, 1] {
        let trailers = frame(HEADERS, END_HEADERS | END_STREAM, stream, &[0x82]);
        let error = filtered(&[&octets[..], &trailers].concat(), &[usize::MAX]).unwrap_err();
        assert!(error.to_string().ends_with("trailers"), "{error}");
        texts::seen!(error.to_string());
    }
    octets.extend(frame(HEADERS, END_HEADERS, 5, &[0x82]));
    assert_eq!(filtered(&octets, &[usize::MAX]).as_ref(), Ok(&octets));
}
