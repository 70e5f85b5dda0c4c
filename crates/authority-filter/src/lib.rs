//! The filter that lets an HTTP/2 server answer clients which name a pipe in `:authority`.
//!
//! Go clients dial `\\.\\pipe\\csi-proxy-disk-v1` and send that text as `:authority`, raw or percent-encoded. Neither
//! is an authority, and the HTTP/2 implementation under hyper and tonic resets such a stream before any service sees
//! it; there is no setting. [`AuthorityFilter`] sits between the connection and the server and mends the value: octets that
//! may be at fault become `-`.
//!
//! The value keeps its length and the field its representation, so the header tables at both ends stay in step: only
//! the block that spells the value out changes, and all later ones, which name it by index, pass as they are. For the
//! same reason nothing is ever encoded again, and apart from a header block that arrives in pieces nothing is held
//! back. What breaks the framing of HTTP/2 closes the connection, because what cannot be read cannot be followed.
//!
//! The server is taken to announce the defaults of `SETTINGS_HEADER_TABLE_SIZE` and `SETTINGS_MAX_FRAME_SIZE`.

mod frames;
mod hpack;
mod huffman;
mod stream;
mod value;

use std::{error, fmt, io};

pub use frames::FrameFilter;
pub use stream::AuthorityFilter;

/// What a client sent is not HTTP/2, or breaks a rule that the filter depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolError(&'static str);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the client broke HTTP/2: {}", self.0)
    }
}

impl error::Error for ProtocolError {}

impl From<ProtocolError> for io::Error {
    fn from(malformed: ProtocolError) -> Self {
        Self::new(io::ErrorKind::InvalidData, malformed)
    }
}
