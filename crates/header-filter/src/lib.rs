//! A filter of HTTP/2 request headers. It lets a server accept clients that send the path of a named
//! pipe as `:authority`.
//!
//! Go clients dial `\\.\\pipe\\csi-proxy-disk-v1` and send that text as `:authority`, raw or
//! percent-encoded. Neither is a valid authority ([RFC 9113, section 8.3.1]). The `h2` crate resets
//! such a stream before any service sees it, and has no setting for that ([hyperium/h2#442],
//! [hyperium/h2#487]). A patched copy of h2 would have to follow each of its security releases, and
//! its maintainers regard such a value as invalid.
//!
//! [`HeaderFilter`] wraps the connection. It decodes each header block and writes it again,
//! without references to the header table, without padding, and without the fields that the server
//! does not read: `:authority`, `te`, `user-agent`, and the `content-type` of gRPC (`hpack.rs` has
//! the reasons). All other frames pass unchanged. The filter holds a header block until the block
//! is complete, and no other frame. It disconnects a client that violates the framing of HTTP/2,
//! because it could no longer follow the header table of that client, and a client that sends
//! trailers, which gRPC has in responses only.
//!
//! The server must announce the default value of `SETTINGS_MAX_FRAME_SIZE`, and at most the default
//! of `SETTINGS_HEADER_TABLE_SIZE`. Until the client resizes the table, the filter uses the default
//! size.
//!
//! [RFC 9113, section 8.3.1]: https://www.rfc-editor.org/rfc/rfc9113#section-8.3.1
//! [hyperium/h2#442]: https://github.com/hyperium/h2/issues/442
//! [hyperium/h2#487]: https://github.com/hyperium/h2/issues/487

// The modules, from the lowest: `error`, `huffman`, `hpack`, `frames`, `stream`.

mod error;
mod frames;
mod hpack;
mod huffman;
mod stream;

pub use error::ProtocolError;
pub use frames::FrameFilter;
pub use stream::HeaderFilter;
