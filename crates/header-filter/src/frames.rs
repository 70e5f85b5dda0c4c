//! Frames (RFC 9113, section 4): finds the header blocks in the bytes that a client sends.

use crate::error::ProtocolError;
use crate::hpack::{MAX_BLOCK, MAX_KEPT, Table};

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
/// The default of `SETTINGS_MAX_FRAME_SIZE`. The filter checks it for header blocks only.
const MAX_FRAME: usize = 16_384;
/// `feed` begins no further frame once it has produced this many octets of output.
const MAX_OUT: usize = 16 * 1024;

const HEADERS: u8 = 0x1;
const PUSH_PROMISE: u8 = 0x5;
const CONTINUATION: u8 = 0x9;

const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
const PRIORITY_OCTETS: usize = 5;

/// Filters the bytes from a client to a server. It does no input or output.
#[derive(Debug)]
pub struct FrameFilter {
    state: State,
    table: Table,
    /// The part of the next frame's head that has been received.
    head: [u8; HEAD],
    /// The HEADERS frame that began the unfinished block, if CONTINUATION frames follow.
    opening: Option<Opening>,
    /// The unfinished block.
    block: Vec<u8>,
    /// The size of the unfinished block with frame heads and padding, as far as frames have begun.
    block_size: usize,
    /// The rewritten block. Empty between blocks; kept for its allocation.
    rewritten: Vec<u8>,
    /// How many blocks are complete.
    complete_blocks: u64,
    /// The stream that was opened last.
    newest_stream: u32,
    failed: Option<ProtocolError>,
}

/// What the next octets belong to, and how many octets of it are left.
#[derive(Clone, Copy, Debug)]
enum State {
    Preface(usize),
    /// The head of a frame.
    Head(usize),
    /// The payload of a frame that passes unchanged.
    Passing(usize),
    /// The payload of a frame of a header block.
    Block(Head, usize),
}

/// The head of a frame.
#[derive(Clone, Copy, Debug)]
struct Head {
    length: usize,
    kind: u8,
    flags: u8,
    stream: [u8; 4],
}

/// The fields of a HEADERS frame that are written again with its block.
#[derive(Clone, Copy, Debug)]
struct Opening {
    flags: u8,
    stream: [u8; 4],
    priority: Option<[u8; PRIORITY_OCTETS]>,
}

impl Default for FrameFilter {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameFilter {
    /// Creates the filter of a new connection. Allocates nothing.
    pub fn new() -> Self {
        Self {
            state: State::Preface(PREFACE.len()),
            table: Table::new(),
            head: [0; HEAD],
            opening: None,
            block: Vec::new(),
            block_size: 0,
            rewritten: Vec::new(),
            complete_blocks: 0,
            newest_stream: 0,
            failed: None,
        }
    }

    /// How many octets of the preface are left to receive.
    pub(crate) fn preface_left(&self) -> usize {
        if let State::Preface(left) = self.state {
            left
        } else {
            0
        }
    }

    /// The number of the header block that the client has begun and not completed, if there is one.
    pub(crate) fn unfinished_block(&self) -> Option<u64> {
        (self.block_size > 0).then_some(self.complete_blocks)
    }

    /// Filters the next octets from the client, and appends the octets that the server must read to
    /// `out`. Returns how many octets were filtered: all, unless `out` becomes large. The remaining
    /// octets must be fed again.
    ///
    /// After a [`ProtocolError`] every later call returns the same error.
    pub fn feed(&mut self, octets: &[u8], out: &mut Vec<u8>) -> Result<usize, ProtocolError> {
        let mut rest = octets;
        while !rest.is_empty() && out.len() < MAX_OUT {
            if let Some(error) = self.failed {
                return Err(error);
            }
            let taken = self
                .take(rest, out)
                .inspect_err(|error| self.failed = Some(*error))?;
            rest = &rest[taken..];
        }
        Ok(octets.len() - rest.len())
    }

    /// Takes octets of what they belong to. Returns how many.
    fn take(&mut self, octets: &[u8], out: &mut Vec<u8>) -> Result<usize, ProtocolError> {
        let (State::Preface(left)
        | State::Head(left)
        | State::Passing(left)
        | State::Block(_, left)) = self.state;
        let some = &octets[..left.min(octets.len()).min(MAX_OUT)];
        let still_left = left - some.len();
        match self.state {
            State::Preface(_) => {
                if !PREFACE[PREFACE.len() - left..].starts_with(some) {
                    return Err(ProtocolError(
                        "the connection does not begin with the preface",
                    ));
                }
                out.extend_from_slice(some);
                self.state = if still_left > 0 {
                    State::Preface(still_left)
                } else {
                    State::Head(HEAD)
                };
            }
            State::Head(_) => {
                self.head[HEAD - left..][..some.len()].copy_from_slice(some);
                self.state = State::Head(still_left);
                if still_left == 0 {
                    self.begin_frame(out)?;
                }
            }
            State::Passing(_) => {
                out.extend_from_slice(some);
                self.state = if still_left > 0 {
                    State::Passing(still_left)
                } else {
                    State::Head(HEAD)
                };
            }
            State::Block(head, _) => {
                self.block.extend_from_slice(some);
                self.state = State::Block(head, still_left);
                if still_left == 0 {
                    self.end_frame_of_block(head, out)?;
                }
            }
        }
        Ok(some.len())
    }

    /// Begins the frame whose head has been received.
    fn begin_frame(&mut self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let head = Head::read(&self.head);
        self.check_order(head)?;
        if !matches!(head.kind, HEADERS | CONTINUATION) {
            out.extend_from_slice(&self.head);
            self.state = State::Passing(head.length);
            return Ok(());
        }
        self.block_size += HEAD + head.length;
        if self.block_size > MAX_BLOCK {
            return Err(ProtocolError("a header block is larger than 32 KiB"));
        }
        self.block.reserve_exact(head.length);
        self.state = State::Block(head, head.length);
        if head.length == 0 {
            self.end_frame_of_block(head, out)
        } else {
            Ok(())
        }
    }

    /// Refuses a frame that a client of gRPC may not send at this point.
    fn check_order(&mut self, head: Head) -> Result<(), ProtocolError> {
        let violation = match (head.kind, self.opening) {
            (CONTINUATION, None) => "a CONTINUATION frame follows no header block",
            (CONTINUATION, Some(opening))
                if stream_id(opening.stream) != stream_id(head.stream) =>
            {
                "a CONTINUATION frame belongs to another stream"
            }
            (CONTINUATION, Some(_)) => return head.check_length(),
            (_, Some(_)) => "another frame interrupts a header block",
            (HEADERS, None) if stream_id(head.stream) == 0 => "a HEADERS frame belongs to stream 0",
            // No gRPC client sends trailers, and h2 would keep memory for them.
            (HEADERS, None) if stream_id(head.stream) <= self.newest_stream => {
                "a request has trailers"
            }
            (HEADERS, None) => {
                self.newest_stream = stream_id(head.stream);
                return head.check_length();
            }
            (PUSH_PROMISE, None) => "a client sent a PUSH_PROMISE frame",
            _ => return Ok(()),
        };
        Err(ProtocolError(violation))
    }

    /// Ends a frame of the unfinished block. Writes the block if it is complete.
    fn end_frame_of_block(&mut self, head: Head, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        self.state = State::Head(HEAD);
        let opening = match self.opening {
            Some(opening) => opening,
            None => head.open(&mut self.block)?,
        };
        if head.flags & END_HEADERS == 0 {
            self.opening = Some(opening);
            return Ok(());
        }
        self.table.rewrite(&self.block, &mut self.rewritten)?;
        opening.write(&self.rewritten, out);
        self.opening = None;
        self.block_size = 0;
        self.complete_blocks += 1;
        for buffer in [&mut self.block, &mut self.rewritten] {
            buffer.clear();
            buffer.shrink_to(MAX_KEPT);
        }
        Ok(())
    }
}

impl Head {
    fn read(octets: &[u8; HEAD]) -> Self {
        let &[high, middle, low, kind, flags, ref stream @ ..] = octets;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        Self {
            length,
            kind,
            flags,
            stream: *stream,
        }
    }

    fn check_length(self) -> Result<(), ProtocolError> {
        if self.length > MAX_FRAME {
            return Err(ProtocolError(
                "a header frame is larger than the server allows",
            ));
        }
        Ok(())
    }

    /// Reads the fields of a HEADERS frame, and leaves only its fragment of the header block in
    /// `payload`.
    fn open(self, payload: &mut Vec<u8>) -> Result<Opening, ProtocolError> {
        const SHORT: ProtocolError =
            ProtocolError("a HEADERS frame is shorter than its padding and priority");
        let mut rest = payload.as_slice();
        let mut padding = 0;
        if self.flags & PADDED != 0 {
            let (&length, after) = rest.split_first().ok_or(SHORT)?;
            (padding, rest) = (usize::from(length), after);
        }
        let mut priority = None;
        if self.flags & PRIORITY != 0 {
            let (octets, after) = rest.split_first_chunk::<PRIORITY_OCTETS>().ok_or(SHORT)?;
            let &[a, b, c, d, _] = octets;
            if stream_id([a, b, c, d]) == stream_id(self.stream) {
                // A server may discard such a block unread. Its header table would then differ from
                // the client's.
                return Err(ProtocolError("a stream depends on itself"));
            }
            (priority, rest) = (Some(*octets), after);
        }
        let length = rest.len().checked_sub(padding).ok_or(SHORT)?;
        let first = payload.len() - rest.len();
        payload.truncate(first + length);
        payload.drain(..first);
        Ok(Opening {
            flags: self.flags,
            stream: self.stream,
            priority,
        })
    }
}

impl Opening {
    /// Writes the frames of a header block, without padding.
    fn write(self, block: &[u8], out: &mut Vec<u8>) {
        let priority = self.priority.as_ref().map_or(&[][..], |octets| octets);
        let flags = self.flags & !(PADDED | END_HEADERS);
        let mut rest = self.write_frame(HEADERS, flags, priority, block, out);
        while !rest.is_empty() {
            rest = self.write_frame(CONTINUATION, 0, &[], rest, out);
        }
    }

    /// Writes a frame with as much of `block` as fits, and returns the rest.
    fn write_frame<'a>(
        self,
        kind: u8,
        flags: u8,
        first: &[u8],
        block: &'a [u8],
        out: &mut Vec<u8>,
    ) -> &'a [u8] {
        let (some, rest) = block.split_at(block.len().min(MAX_FRAME - first.len()));
        let [.., high, middle, low] = (first.len() + some.len()).to_be_bytes();
        let flags = if rest.is_empty() {
            flags | END_HEADERS
        } else {
            flags
        };
        out.extend_from_slice(&[high, middle, low, kind, flags]);
        out.extend_from_slice(&self.stream);
        out.extend_from_slice(first);
        out.extend_from_slice(some);
        rest
    }
}

/// Returns the number of a stream, without the reserved bit.
fn stream_id(octets: [u8; 4]) -> u32 {
    u32::from_be_bytes(octets) & 0x7fff_ffff
}
