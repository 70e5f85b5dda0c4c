//! The filter between an HPACK encoder and a decoder from other crates.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use header_filter::{FrameFilter, HeaderFilter, ProtocolError};
use httlib_hpack::{Decoder, Encoder};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf, duplex};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const MAX_FRAME: usize = 16_384;
const AUTHORITY: &[u8] = b":authority";

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const PING: u8 = 0x6;
const CONTINUATION: u8 = 0x9;

/// The largest header block that the filter accepts, with the heads of its frames.
const MAX_BLOCK: usize = 32 * 1024;

/// The most that one call may append to its output: what makes it stop, and a header block or the
/// rest of its input.
const MAX_OUT: usize = 16 * 1024 + 52 * 1024;

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A header block or another frame that a client sends.
#[derive(Clone, Debug)]
enum Sent {
    Block(Block),
    Other { kind: u8, payload: Vec<u8> },
}

#[derive(Clone, Debug)]
struct Block {
    /// How much larger its stream is than the stream of the block before.
    later: u32,
    ends_stream: bool,
    padding: Option<u8>,
    priority: Option<u8>,
    table_sizes: Vec<u32>,
    fields: Vec<Field>,
    /// Where the block is split into frames.
    cuts: Vec<Index>,
}

#[derive(Clone, Debug)]
struct Field {
    name: Vec<u8>,
    value: Vec<u8>,
    /// The representation that the encoder uses.
    flags: u8,
    /// Uses the name, or the whole field, of this entry of the dynamic table instead, if it exists.
    entry: Option<u32>,
    whole_entry: bool,
}

/// What a server must receive of it.
#[derive(Clone, Debug, PartialEq)]
enum Received {
    Block {
        stream: u32,
        ends_stream: bool,
        priority: Option<Vec<u8>>,
        fields: Fields,
    },
    Other {
        kind: u8,
        payload: Vec<u8>,
    },
}

impl Received {
    fn decoded_size(&self) -> usize {
        let Self::Block { fields, .. } = self else {
            return 0;
        };
        fields
            .iter()
            .map(|(name, value)| name.len() + value.len() + 8)
            .sum()
    }
}

struct Opening {
    stream: u32,
    flags: u8,
    priority: Option<Vec<u8>>,
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(AUTHORITY.to_vec()),
        1 => Just(b":authorit".to_vec()),
        1 => Just(b":authority2".to_vec()),
        2 => Just(b":path".to_vec()),
        1 => Just(b"te".to_vec()),
        1 => Just(b"user-agent".to_vec()),
        2 => Just(b"content-type".to_vec()),
        2 => Just(b"grpc-timeout".to_vec()),
        1 => Just(b"www-authenticate".to_vec()),
        2 => vec(b'a'..=b'c', 1..3),
        // An empty name is an error, which a test in hpack.rs shows.
        1 => vec(any::<u8>(), 1..40),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => Just(br"\\.\\pipe\\csi-proxy-disk-v1".to_vec()),
        2 => Just(b"%5C%5C.%5Cpipe%5Ccsi-proxy-disk-v1".to_vec()),
        2 => Just(b"localhost".to_vec()),
        1 => Just(b"59999m".to_vec()),
        2 => Just(b"application/grpc+proto".to_vec()),
        1 => vec(any::<u8>(), 0..60),
        // Long enough to evict much or all of the table.
        1 => (any::<u8>(), 1000..5000_usize).prop_map(|(octet, length)| vec![octet; length]),
        1 => (120..140_usize).prop_map(|length| vec![b'\\'; length]),
    ]
}

fn field() -> impl Strategy<Value = Field> {
    let entry = prop_oneof![2 => Just(None), 1 => (0..6_u32).prop_map(Some)];
    (name(), value(), 0..32_u8, entry, any::<bool>()).prop_map(
        |(name, value, flags, entry, whole_entry)| Field {
            name,
            value,
            flags,
            entry,
            whole_entry,
        },
    )
}

fn block() -> impl Strategy<Value = Block> {
    let table_sizes =
        prop_oneof![5 => Just(Vec::new()), 1 => vec(prop_oneof![0..200_u32, 0..=4096_u32], 1..3)];
    let fields = vec(field(), 1..8);
    let cuts = prop_oneof![Just(Vec::new()), vec(any::<Index>(), 0..6)];
    (
        any::<bool>(),
        option::of(any::<u8>()),
        option::of(any::<u8>()),
        table_sizes,
        fields,
        cuts,
        1..5_u32,
    )
        .prop_map(
            |(ends_stream, padding, priority, table_sizes, fields, cuts, later)| Block {
                later,
                ends_stream,
                padding,
                priority,
                table_sizes,
                fields,
                cuts,
            },
        )
}

fn any_frame() -> impl Strategy<Value = Sent> {
    let other = (
        prop_oneof![Just(DATA), Just(PING), Just(0xee)],
        vec(any::<u8>(), 0..200),
    );
    prop_oneof![4 => block().prop_map(Sent::Block), 1 => other.prop_map(|(kind, payload)| Sent::Other { kind, payload })]
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

impl Field {
    fn write(&self, encoder: &mut Encoder<'_>, block: &mut Vec<u8>) {
        let from_table = self.entry.is_some_and(|entry| {
            let index = 62 + entry;
            if self.whole_entry {
                encoder.encode(index, block).is_ok()
            } else {
                encoder
                    .encode((index, self.value.clone(), self.flags), block)
                    .is_ok()
            }
        });
        if !from_table {
            encoder
                .encode((self.name.clone(), self.value.clone(), self.flags), block)
                .unwrap();
        }
    }
}

impl Block {
    fn priority_octets(&self) -> Option<Vec<u8>> {
        self.priority.map(|weight| vec![0x80, 0, 0, 99, weight])
    }

    fn write(&self, stream: u32, encoder: &mut Encoder<'_>) -> Vec<u8> {
        let mut block = Vec::new();
        for &size in &self.table_sizes {
            encoder.update_max_dynamic_size(size, &mut block).unwrap();
        }
        for field in &self.fields {
            field.write(encoder, &mut block);
        }

        let mut cuts: Vec<_> = self
            .cuts
            .iter()
            .map(|cut| cut.index(block.len() + 1))
            .collect();
        // A fragment must fit into a frame with padding and priority.
        cuts.extend((0..block.len()).step_by(MAX_FRAME - 300));
        cuts.sort_unstable();
        cuts.push(block.len());
        let mut frames = Vec::new();
        let mut at = cuts.remove(0);
        let flags = if cuts.is_empty() { END_HEADERS } else { 0 };
        frames.extend(self.first_frame(stream, flags, &block[..at]));
        while !cuts.is_empty() {
            let end = cuts.remove(0);
            let flags = if cuts.is_empty() { END_HEADERS } else { 0 };
            frames.extend(frame(CONTINUATION, flags, stream, &block[at..end]));
            at = end;
        }
        frames
    }

    fn first_frame(&self, stream: u32, mut flags: u8, fragment: &[u8]) -> Vec<u8> {
        let mut payload = Vec::new();
        if let Some(padding) = self.padding {
            flags |= PADDED;
            payload.push(padding);
        }
        if let Some(priority) = self.priority_octets() {
            flags |= PRIORITY;
            payload.extend(priority);
        }
        if self.ends_stream {
            flags |= END_STREAM;
        }
        payload.extend_from_slice(fragment);
        payload.resize(payload.len() + usize::from(self.padding.unwrap_or(0)), 0);
        frame(HEADERS, flags, stream, &payload)
    }
}

/// What a server must receive of these fields.
fn rewritten(fields: Fields) -> Fields {
    let is_read = |name: &[u8], value: &[u8]| match name {
        AUTHORITY | b"te" | b"user-agent" => false,
        b"content-type" => !value.starts_with(b"application/grpc"),
        _ => true,
    };
    fields
        .into_iter()
        .filter(|(name, value)| is_read(name, value))
        .collect()
}

fn write(frames: &[Sent]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    let mut octets = PREFACE.to_vec();
    let mut stream = 0;
    for one in frames {
        octets.extend(match one {
            Sent::Block(block) => {
                stream += block.later;
                block.write(stream, &mut encoder)
            }
            Sent::Other { kind, payload } => frame(*kind, 0, 0, payload),
        });
    }
    octets
}

/// What a server must receive, derived from what it receives without the filter.
fn expected(frames: &[Sent], sent: &[u8]) -> Vec<Received> {
    let mut received = read(sent, &mut Some(decoder()));
    assert_eq!(received.len(), frames.len());
    for (frame, received) in frames.iter().zip(&mut received) {
        let (Sent::Block(block), Received::Block { fields, .. }) = (frame, received) else {
            continue;
        };
        assert_eq!(block.fields.len(), fields.len());
        for (field, (name, value)) in block.fields.iter().zip(&*fields) {
            if field.entry.is_none() {
                assert_eq!(
                    (&field.name, &field.value),
                    (name, value),
                    "the encoder and the decoder disagree"
                );
            }
        }
        *fields = rewritten(std::mem::take(fields));
    }
    received
}

fn decoder() -> Decoder<'static> {
    Decoder::with_dynamic_size(4096)
}

fn fields_of(mut block: Vec<u8>, decoder: &mut Decoder<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut fields = Vec::new();
    decoder.decode(&mut block, &mut fields).unwrap();
    fields
        .into_iter()
        .map(|(name, value, _)| (name, value))
        .collect()
}

/// Parses frames like a server, and checks the rules of RFC 9113. Without a `decoder`, each header
/// block gets its own, so no block may refer to an earlier one.
fn read(octets: &[u8], decoder: &mut Option<Decoder<'_>>) -> Vec<Received> {
    let mut rest = octets.strip_prefix(PREFACE).unwrap();
    let mut received = Vec::new();
    // The frame that began the block, and the block so far.
    let mut open: Option<(Opening, Vec<u8>)> = None;
    while !rest.is_empty() {
        let length = usize::from(rest[0]) << 16 | usize::from(rest[1]) << 8 | usize::from(rest[2]);
        assert!(length <= MAX_FRAME);
        let (kind, flags) = (rest[3], rest[4]);
        let stream = u32::from_be_bytes(rest[5..9].try_into().unwrap());
        let mut payload = &rest[9..9 + length];
        rest = &rest[9 + length..];
        match kind {
            HEADERS => {
                assert!(open.is_none());
                if flags & PADDED != 0 {
                    payload = &payload[1..payload.len() - usize::from(payload[0])];
                }
                let mut priority = None;
                if flags & PRIORITY != 0 {
                    priority = Some(payload[..5].to_vec());
                    payload = &payload[5..];
                }
                open = Some((
                    Opening {
                        stream,
                        flags,
                        priority,
                    },
                    payload.to_vec(),
                ));
            }
            CONTINUATION => {
                let (opening, block) = open.as_mut().unwrap();
                assert_eq!(opening.stream, stream);
                block.extend_from_slice(payload);
            }
            kind => {
                assert!(open.is_none());
                received.push(Received::Other {
                    kind,
                    payload: payload.to_vec(),
                });
                continue;
            }
        }
        if flags & END_HEADERS != 0 {
            let (
                Opening {
                    stream,
                    flags,
                    priority,
                },
                block,
            ) = open.take().unwrap();
            let fields = match decoder {
                Some(decoder) => fields_of(block, decoder),
                None => fields_of(block, &mut self::decoder()),
            };
            received.push(Received::Block {
                stream,
                ends_stream: flags & END_STREAM != 0,
                priority,
                fields,
            });
        }
    }
    assert!(open.is_none());
    received
}

/// Returns the length of the largest header block in these frames, with the heads of its frames.
fn largest_block(octets: &[u8]) -> usize {
    let mut rest = octets.strip_prefix(PREFACE).unwrap();
    let (mut block, mut largest) = (0, 0);
    while let [high, middle, low, kind, ..] = *rest {
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        match kind {
            HEADERS => block = 9 + length,
            CONTINUATION => block += 9 + length,
            _ => {}
        }
        largest = largest.max(block);
        rest = &rest[9 + length..];
    }
    largest
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

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![usize::MAX]),
        Just(vec![1]),
        vec(1..40_usize, 1..10),
        vec(1..3000_usize, 1..10)
    ]
}

proptest! {
    // Fewer than usual, because the decoder builds its Huffman table for every string.
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_server_receives_what_it_reads_and_no_reference_to_a_table(
        frames in vec(any_frame(), 1..20),
        pieces in pieces(),
    ) {
        let sent = write(&frames);
        prop_assume!(largest_block(&sent) <= MAX_BLOCK);
        let expected = expected(&frames, &sent);
        prop_assume!(expected.iter().all(|received| received.decoded_size() < MAX_BLOCK - 200));
        let arrived = filtered(&sent, &pieces).unwrap();
        prop_assert_eq!(read(&arrived, &mut None), expected);
    }
}

proptest! {
    #[test]
    fn a_filtered_stream_yields_the_output_of_the_filter(
        frames in vec(any_frame(), 1..10),
        pieces in vec(1..2000_usize, 1..10),
    ) {
        let sent = write(&frames);
        prop_assume!(largest_block(&sent) <= MAX_BLOCK);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = runtime.block_on(async {
            let mut stream = HeaderFilter::new(&sent[..], Duration::from_mins(1));
            let mut result = Vec::new();
            for piece in pieces.iter().cycle() {
                let mut octets = vec![0; *piece];
                let length = stream.read(&mut octets).await.unwrap();
                if length == 0 {
                    break;
                }
                result.extend_from_slice(&octets[..length]);
            }
            result
        });
        prop_assert_eq!(read, filtered(&sent, &[usize::MAX]).unwrap());
    }
}

#[test]
fn a_rewritten_block_larger_than_a_frame_continues_in_another() {
    // Huffman coding needs five bits for this octet. Without it, 24 KiB that fitted into one frame
    // need two.
    let block = Block {
        later: 1,
        ends_stream: true,
        padding: Some(7),
        priority: Some(9),
        table_sizes: Vec::new(),
        fields: vec![Field {
            name: b":path".to_vec(),
            value: vec![b'a'; 24_000],
            flags: Encoder::HUFFMAN_VALUE,
            entry: None,
            whole_entry: false,
        }],
        cuts: Vec::new(),
    };
    let mut encoder = Encoder::default();
    let mut fragment = Vec::new();
    block.fields[0].write(&mut encoder, &mut fragment);
    let sent = [PREFACE, &block.first_frame(1, END_HEADERS, &fragment)].concat();
    assert!(sent.len() < MAX_FRAME);
    let frames = [Sent::Block(block)];
    for pieces in [&[usize::MAX][..], &[1], &[1000]] {
        assert_eq!(
            read(&filtered(&sent, pieces).unwrap(), &mut None),
            expected(&frames, &sent)
        );
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
