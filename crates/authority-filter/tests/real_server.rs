//! An HTTP/2 server like that of csi-proxy, called by clients whose authority is the path of a pipe.
#![cfg(unix)]

mod server;

use authority_filter::AuthorityFilter;
use httlib_hpack::Encoder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

const RAW: &str = r"\\.\\pipe\\csi-proxy-disk-v1";
const ENCODED: &str = "%5C%5C.%5C%5Cpipe%5C%5Ccsi-proxy-disk-v1";

struct Frame {
    kind: u8,
    flags: u8,
    payload: Vec<u8>,
}

/// An HTTP/2 client that writes its frames itself, so that it can send what no library sends.
struct Client {
    stream: UnixStream,
    encoder: Encoder<'static>,
    decoder: loona_hpack::Decoder<'static>,
    next_stream: u32,
}

impl Client {
    async fn new(mut stream: UnixStream) -> Self {
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        Self { stream, encoder: Encoder::default(), decoder: loona_hpack::Decoder::new(), next_stream: 1 }
    }

    /// Sends one request, with each field in the representation that `flags` select.
    async fn call(&mut self, authority: &str, flags: u8) {
        let mut block = Vec::new();
        for (name, value) in
            [(":method", "POST"), (":scheme", "http"), (":path", "/v1.Disk/ListDiskIDs"), (":authority", authority)]
        {
            self.encoder.encode((Vec::from(name), Vec::from(value), flags), &mut block).unwrap();
        }
        let mut frame = u32::try_from(block.len()).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([0x1, 0x4 | 0x1]);
        frame.extend(self.next_stream.to_be_bytes());
        frame.extend(block);
        self.next_stream += 2;
        self.stream.write_all(&frame).await.unwrap();
    }

    async fn frame(&mut self) -> Frame {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        self.stream.read_exact(&mut payload).await.unwrap();
        Frame { kind: head[3], flags: head[4], payload }
    }

    /// Reads until a stream ends. Returns the authority that the server received, or an error if it reset the stream.
    async fn answer(&mut self) -> Result<String, &'static str> {
        let mut authority = None;
        loop {
            let frame = self.frame().await;
            match frame.kind {
                0x1 => {
                    for (name, value) in self.decoder.decode(&frame.payload).unwrap() {
                        if name == server::SEEN_AUTHORITY.as_bytes() {
                            authority = Some(String::from_utf8(value).unwrap());
                        }
                    }
                    if frame.flags & 0x1 != 0 {
                        return Ok(authority.unwrap());
                    }
                }
                0x3 => return Err("reset"),
                0x7 => panic!("the server sent GOAWAY: {:?}", frame.payload),
                _ => {}
            }
        }
    }
}

/// Returns a client of a server behind the filter.
async fn filtered_client() -> Client {
    let (client, stream) = UnixStream::pair().unwrap();
    tokio::spawn(server::serve_stream(AuthorityFilter::new(stream, server::BLOCK_TIME)));
    Client::new(client).await
}

const INDEXED: u8 = Encoder::BEST_FORMAT | Encoder::WITH_INDEXING;

#[tokio::test]
async fn without_the_filter_a_server_resets_streams_that_name_a_pipe() {
    let (client, stream) = UnixStream::pair().unwrap();
    tokio::spawn(server::serve_stream(stream));
    let mut client = Client::new(client).await;
    for authority in [RAW, ENCODED] {
        client.call(authority, INDEXED).await;
        assert_eq!(client.answer().await, Err("reset"));
    }
    client.call("localhost", INDEXED).await;
    assert_eq!(client.answer().await.unwrap(), "localhost");
}

#[tokio::test]
async fn every_stream_of_a_connection_that_names_a_pipe_is_answered() {
    const HUFFMAN: u8 = Encoder::HUFFMAN_NAME | Encoder::HUFFMAN_VALUE;
    for flags in [INDEXED, INDEXED | HUFFMAN, Encoder::WITH_INDEXING | HUFFMAN, Encoder::NEVER_INDEXED, HUFFMAN] {
        let mut client = filtered_client().await;
        for _ in 0..150 {
            for (authority, seen) in [
                (RAW, "--.--pipe--csi-proxy-disk-v1"),
                (ENCODED, "-5C-5C.-5C-5Cpipe-5C-5Ccsi-proxy-disk-v1"),
                ("localhost:80", "localhost:80"),
            ] {
                client.call(authority, flags).await;
                assert_eq!(client.answer().await.unwrap(), seen);
            }
        }
    }
}

#[tokio::test]
async fn many_streams_at_once_are_answered() {
    let mut client = filtered_client().await;
    for _ in 0..100 {
        client.call(RAW, INDEXED | Encoder::HUFFMAN_VALUE).await;
    }
    // Responses arrive in any order and may interleave, so only their ends are counted.
    let mut ended = 0;
    while ended < 100 {
        let frame = client.frame().await;
        assert_ne!(frame.kind, 0x3, "a stream was reset");
        ended += usize::from(frame.kind == 0x1 && frame.flags & 0x1 != 0);
    }
}
