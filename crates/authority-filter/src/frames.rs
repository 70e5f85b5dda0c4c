//! Frames (RFC 9113, section 4): finds the header blocks in the bytes that a client sends.

use std::mem;

use crate::ProtocolError;
use crate::hpack::Table;

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
/// The default of `SETTINGS_MAX_FRAME_SIZE`. The filter checks it for header blocks only.
const MAX_FRAME: usize = 16_384;
/// Maximum size of a buffered header block, with frame heads and padding. hyper accepts 16 KiB of decoded headers.
pub(crate) const MAX_BUFFERED: usize = 32 * 1024;
/// `feed` begins no further frame once it has produced this many octets of output.
const MAX_OUT: usize = 16 * 1024;
/// Maximum size of an allocation that is kept for the next block.
pub(crate) const MAX_KEPT: usize = 512;

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
    head_length: usize,
    /// The frames of an unfinished header block, unchanged.
    buffered: Vec<u8>,
    /// The HEADERS frame that began the buffered block, if CONTINUATION frames follow.
    opening: Option<Opening>,
    /// The rewritten block. Empty between blocks; kept for its allocation.
    rewritten: Vec<u8>,
    /// How many buffered blocks are complete.
    complete_blocks: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// How many octets of the preface have been received.
    Preface(usize),
    /// Between frames, or within the head of one.
    Head,
    /// How many octets of a frame that passes unchanged are left.
    Passing(usize),
    /// How many octets of a buffered frame of a header block are left.
    Buffering(Head, usize),
    Failed(ProtocolError),
}

/// The head of a frame.
#[derive(Clone, Copy, Debug)]
struct Head {
    length: usize,
    kind: u8,
    flags: u8,
    stream: [u8; 4],
}

/// The fields of a HEADERS frame that are written again with a rewritten block.
#[derive(Clone, Copy, Debug)]
struct Opening {
    flags: u8,
    stream: [u8; 4],
    priority: Option<[u8; PRIORITY_OCTETS]>,
}

/// How `feed` has processed the octets of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// How many octets, from the first on, pass to the server unchanged.
    pub passed: usize,
    /// How many octets have been filtered. The remaining octets must be fed again.
    pub taken: usize,
}

/// The octets passed to one call of `feed`.
struct Input<'a> {
    octets: &'a [u8],
    at: usize,
    /// How many of the first octets pass unchanged.
    passed: usize,
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
            state: State::Preface(0),
            table: Table::new(),
            head: [0; HEAD],
            head_length: 0,
            buffered: Vec::new(),
            opening: None,
            rewritten: Vec::new(),
            complete_blocks: 0,
        }
    }

    /// How many octets of the preface are left to receive.
    pub(crate) fn preface_left(&self) -> usize {
        match self.state {
            State::Preface(seen) => PREFACE.len() - seen,
            _ => 0,
        }
    }

    /// The number of the header block that the client has begun and not completed, if there is one.
    pub(crate) fn unfinished_block(&self) -> Option<u64> {
        (!self.buffered.is_empty()).then_some(self.complete_blocks)
    }

    /// Filters the next octets from the client. The server must read the octets that pass, and then the octets that
    /// this appends to `out`, which must be empty. Takes all octets, unless `out` becomes large.
    ///
    /// After a [`ProtocolError`] every later call returns the same error.
    pub fn feed(&mut self, octets: &[u8], out: &mut Vec<u8>) -> Result<Fed, ProtocolError> {
        let mut input = Input { octets, at: 0, passed: 0 };
        self.advance(&mut input, out).inspect_err(|error| self.state = State::Failed(*error))?;
        Ok(Fed { passed: input.passed, taken: input.at })
    }

    fn advance(&mut self, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if let State::Failed(error) = self.state {
            return Err(error);
        }
        while !input.rest().is_empty() && out.len() < MAX_OUT {
            match self.state {
                State::Preface(seen) => self.preface(seen, input, out)?,
                State::Head => self.head(input, out)?,
                State::Passing(left) => {
                    let some = left.min(input.rest().len());
                    input.pass(some, out);
                    self.pass_frame(left - some);
                }
                State::Buffering(head, left) => self.buffer(head, left, input, out)?,
                State::Failed(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn preface(&mut self, seen: usize, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let some = input.rest().len().min(PREFACE.len() - seen);
        if input.rest()[..some] != PREFACE[seen..seen + some] {
            return Err(ProtocolError("the connection does not begin with the preface"));
        }
        input.pass(some, out);
        self.state = if seen + some == PREFACE.len() { State::Head } else { State::Preface(seen + some) };
        Ok(())
    }

    fn head(&mut self, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if self.head_length == 0
            && let Some(octets) = input.rest().first_chunk()
        {
            let head = Head::read(octets);
            self.check_order(head)?;
            return self.whole_head(head, input, out);
        }
        let some = input.rest().len().min(HEAD - self.head_length);
        self.head[self.head_length..][..some].copy_from_slice(input.skip(some));
        self.head_length += some;
        if self.head_length < HEAD {
            return Ok(());
        }
        self.head_length = 0;
        let head = Head::read(&self.head);
        self.check_order(head)?;
        if head.is_header_frame() {
            return self.begin_buffering(head, input, out);
        }
        out.extend_from_slice(&self.head);
        self.pass_frame(head.length);
        Ok(())
    }

    /// Processes a frame whose head is complete in the input.
    fn whole_head(&mut self, head: Head, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if !head.is_header_frame() {
            input.pass(HEAD, out);
            self.pass_frame(head.length);
            return Ok(());
        }
        let is_whole = self.opening.is_none() && head.flags & END_HEADERS != 0;
        let Some(payload) = input.rest().get(HEAD..HEAD + head.length).filter(|_| is_whole) else {
            self.head.copy_from_slice(input.skip(HEAD));
            return self.begin_buffering(head, input, out);
        };
        // The usual case: a block in one frame, complete in the input, is read without buffering.
        let (opening, fragment) = head.split(payload)?;
        if self.table.rewrite(fragment, &mut self.rewritten)? {
            input.skip(HEAD + head.length);
            opening.write(&self.rewritten, out);
            self.clear_block();
        } else {
            input.pass(HEAD + head.length, out);
        }
        Ok(())
    }

    fn pass_frame(&mut self, left: usize) {
        self.state = if left == 0 { State::Head } else { State::Passing(left) };
    }

    /// Refuses a frame that a client may not send at this point.
    fn check_order(&self, head: Head) -> Result<(), ProtocolError> {
        let violation = match (head.kind, self.opening) {
            (CONTINUATION, None) => "a CONTINUATION frame follows no header block",
            (CONTINUATION, Some(opening)) if opening.stream_id() != head.stream_id() => {
                "a CONTINUATION frame belongs to another stream"
            }
            (CONTINUATION, Some(_)) => return head.check_length(),
            (_, Some(_)) => "another frame interrupts a header block",
            (HEADERS, None) if head.stream_id() == 0 => "a HEADERS frame belongs to stream 0",
            (HEADERS, None) => return head.check_length(),
            (PUSH_PROMISE, None) => "a client sent a PUSH_PROMISE frame",
            _ => return Ok(()),
        };
        Err(ProtocolError(violation))
    }

    fn begin_buffering(&mut self, head: Head, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if self.buffered.len() + HEAD + head.length > MAX_BUFFERED {
            return Err(ProtocolError("a header block is larger than 32 KiB"));
        }
        self.reserve(HEAD);
        self.buffered.extend_from_slice(&self.head);
        self.buffer(head, head.length, input, out)
    }

    /// Makes room for some octets of the block. The allocation doubles up to the maximum, not beyond it.
    fn reserve(&mut self, octets: usize) {
        let length = self.buffered.len() + octets;
        if length > self.buffered.capacity() {
            let capacity = length.max(MAX_BUFFERED.min(2 * self.buffered.capacity()));
            self.buffered.reserve_exact(capacity - self.buffered.len());
        }
    }

    fn buffer(
        &mut self,
        head: Head,
        left: usize,
        input: &mut Input<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let some = left.min(input.rest().len());
        self.reserve(some);
        self.buffered.extend_from_slice(input.skip(some));
        if some < left {
            self.state = State::Buffering(head, left - some);
            return Ok(());
        }
        self.state = State::Head;
        let first = self.buffered.len() - head.length;
        let is_whole = self.opening.is_none();
        let (opening, fragment) = match self.opening {
            Some(opening) => (opening, &self.buffered[first..]),
            None => head.split(&self.buffered[first..])?,
        };
        if head.flags & END_HEADERS == 0 {
            self.opening = Some(opening);
            return Ok(());
        }
        self.opening = None;
        let is_rewritten = if is_whole {
            self.table.rewrite(fragment, &mut self.rewritten)?
        } else {
            self.table.rewrite(&fragments(&self.buffered)?, &mut self.rewritten)?
        };
        if is_rewritten {
            opening.write(&self.rewritten, out);
        } else if out.is_empty() {
            mem::swap(out, &mut self.buffered);
        } else {
            out.extend_from_slice(&self.buffered);
        }
        self.complete_blocks += 1;
        self.clear_block();
        Ok(())
    }

    fn clear_block(&mut self) {
        for buffer in [&mut self.buffered, &mut self.rewritten] {
            buffer.clear();
            buffer.shrink_to(MAX_KEPT);
        }
    }
}

impl Head {
    fn read(octets: &[u8; HEAD]) -> Self {
        let &[high, middle, low, kind, flags, ref stream @ ..] = octets;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        Self { length, kind, flags, stream: *stream }
    }

    fn is_header_frame(self) -> bool {
        matches!(self.kind, HEADERS | CONTINUATION)
    }

    fn stream_id(self) -> u32 {
        stream_id(self.stream)
    }

    fn check_length(self) -> Result<(), ProtocolError> {
        if self.length > MAX_FRAME {
            return Err(ProtocolError("a header frame is larger than the server allows"));
        }
        Ok(())
    }

    /// Splits the payload of a HEADERS frame into its fields and its fragment of the header block.
    fn split(self, payload: &[u8]) -> Result<(Opening, &[u8]), ProtocolError> {
        const SHORT: ProtocolError = ProtocolError("a HEADERS frame is shorter than its padding and priority");
        let mut rest = payload;
        let mut padding = 0;
        if self.flags & PADDED != 0 {
            let (&length, after) = rest.split_first().ok_or(SHORT)?;
            (padding, rest) = (usize::from(length), after);
        }
        let mut priority = None;
        if self.flags & PRIORITY != 0 {
            let (octets, after) = rest.split_first_chunk::<PRIORITY_OCTETS>().ok_or(SHORT)?;
            let &[a, b, c, d, _] = octets;
            if stream_id([a, b, c, d]) == self.stream_id() {
                // A server may discard such a block unread. Its header table would then differ from the client's.
                return Err(ProtocolError("a stream depends on itself"));
            }
            (priority, rest) = (Some(*octets), after);
        }
        let length = rest.len().checked_sub(padding).ok_or(SHORT)?;
        Ok((Opening { flags: self.flags, stream: self.stream, priority }, &rest[..length]))
    }
}

impl Opening {
    fn stream_id(self) -> u32 {
        stream_id(self.stream)
    }

    /// Writes the frames of a rewritten header block, without padding.
    fn write(self, block: &[u8], out: &mut Vec<u8>) {
        let priority = self.priority.as_ref().map_or(&[][..], |octets| octets);
        let flags = self.flags & !(PADDED | END_HEADERS);
        let mut rest = self.write_frame(HEADERS, flags, priority, block, out);
        while !rest.is_empty() {
            rest = self.write_frame(CONTINUATION, 0, &[], rest, out);
        }
    }

    /// Writes a frame with as much of `block` as fits, and returns the rest.
    fn write_frame<'a>(self, kind: u8, flags: u8, first: &[u8], block: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let (some, rest) = block.split_at(block.len().min(MAX_FRAME - first.len()));
        let [.., high, middle, low] = (first.len() + some.len()).to_be_bytes();
        let flags = if rest.is_empty() { flags | END_HEADERS } else { flags };
        out.extend_from_slice(&[high, middle, low, kind, flags]);
        out.extend_from_slice(&self.stream);
        out.extend_from_slice(first);
        out.extend_from_slice(some);
        rest
    }
}

/// Returns the header block in a HEADERS frame and the CONTINUATION frames that follow it.
///
/// This copy exists only while the block is rewritten. While a block is incomplete, only its frames are held.
fn fragments(mut frames: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    let mut block = Vec::with_capacity(frames.len());
    while let Some((octets, rest)) = frames.split_first_chunk() {
        let head = Head::read(octets);
        let (payload, rest) = rest.split_at(head.length);
        block.extend_from_slice(if head.kind == HEADERS { head.split(payload)?.1 } else { payload });
        frames = rest;
    }
    Ok(block)
}

/// Returns the number of a stream, without the reserved bit.
fn stream_id(octets: [u8; 4]) -> u32 {
    u32::from_be_bytes(octets) & 0x7fff_ffff
}

impl<'a> Input<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.octets[self.at..]
    }

    /// Returns the next `length` octets, which do not pass.
    fn skip(&mut self, length: usize) -> &'a [u8] {
        let octets = &self.rest()[..length];
        self.at += length;
        octets
    }

    /// Passes `length` octets: in place, or through `out` if octets before them were buffered or rewritten.
    fn pass(&mut self, length: usize, out: &mut Vec<u8>) {
        if self.passed == self.at {
            self.passed += length;
            self.at += length;
        } else {
            out.extend_from_slice(self.skip(length));
        }
    }
}
