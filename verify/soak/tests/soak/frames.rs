//! A request as HTTP/2 frames, to be cut off at any byte.

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Returns all bytes of a connection with one request: a call such as `v1.Disk/PartitionDisk`, and
/// its encoded message.
pub(crate) fn request(call: &str, message: &[u8]) -> Vec<u8> {
    // `:method: POST` and `:scheme: http` from HPACK's static table, then literals.
    let mut head = vec![0x83, 0x86];
    for (name, value) in [
        (":path", &*format!("/{call}")),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        head.push(0);
        head.extend(text(name));
        head.extend(text(value));
    }
    let length = u32::try_from(message.len()).expect("small");
    let body = [&[0], &length.to_be_bytes()[..], message].concat();
    [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(HEADERS, END_HEADERS, 1, &head),
        frame(DATA, END_STREAM, 1, &body),
    ]
    .concat()
}

fn text(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len())
        .ok()
        .filter(|length| *length < 0x7f)
        .expect("short");
    [&[length], text.as_bytes()].concat()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("small").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
