//! Frames (RFC 9113, section 4): finding the header blocks in what a client sends.

use crate::ProtocolError;
use crate::hpack::Table;

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
/// The default of `SETTINGS_MAX_FRAME_SIZE`. Only header blocks are held to it here.
const LARGEST_FRAME: usize = 16_384;
/// A header block with its frames' heads and padding. hyper takes 16 KiB of header list, decoded.
const LARGEST_HELD: usize = 64 * 1024;
/// Allocations above this are not kept for the next block.
const LARGEST_KEPT: usize = 4 * 1024;

const HEADERS: u8 = 0x1;
const PUSH_PROMISE: u8 = 0x5;
const CONTINUATION: u8 = 0x9;

const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
const PRIORITY_OCTETS: usize = 5;

/// One direction of a connection, client to server: octets in, octets out, no input or output of its own.
#[derive(Debug)]
pub struct FrameFilter {
    state: State,
    table: Table,
    /// The head of the frame that is next, or as much of it as there is.
    head: [u8; HEAD],
    head_length: usize,
    /// The frames of an unfinished header block, as they came.
    held: Vec<u8>,
    /// The HEADERS frame that began the block in `held`, when that frame was not its last.
    opening: Option<Opening>,
    /// The fragments of the block that `opening` began.
    block: Vec<u8>,
    /// Empty between blocks; kept for its allocation.
    mended: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// So many octets of the preface have come.
    Preface(usize),
    /// Between frames, or within the head of one.
    Head,
    /// So many octets of a frame that is passed on are to come.
    Passing(usize),
    /// So many octets of a frame of a header block are to come.
    Holding(Head, usize),
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

/// What of a HEADERS frame goes with its block if that is written anew.
#[derive(Clone, Copy, Debug)]
struct Opening {
    flags: u8,
    stream: [u8; 4],
    priority: Option<[u8; PRIORITY_OCTETS]>,
}

/// The octets given to one call of `feed`.
struct Input<'a> {
    octets: &'a [u8],
    at: usize,
    /// So many of the first octets go on as they are.
    passed: usize,
}

impl Default for FrameFilter {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameFilter {
    /// The filter of a connection on which nothing has been sent. Allocates nothing.
    pub fn new() -> Self {
        Self {
            state: State::Preface(0),
            table: Table::new(),
            head: [0; HEAD],
            head_length: 0,
            held: Vec::new(),
            opening: None,
            block: Vec::new(),
            mended: Vec::new(),
        }
    }

    /// Whether the client has said all of its preface, so that it is one that speaks HTTP/2.
    pub fn has_preface(&self) -> bool {
        self.preface_left() == 0
    }

    /// How many octets of the preface are to come.
    pub(crate) fn preface_left(&self) -> usize {
        match self.state {
            State::Preface(seen) => PREFACE.len() - seen,
            _ => 0,
        }
    }

    /// Takes what the client sent next, and returns how many of its first octets go on to the server as they are.
    /// What goes on behind those is appended to `out`.
    ///
    /// Nothing can follow [`ProtocolError`]: every later call returns it again.
    pub fn feed(&mut self, octets: &[u8], out: &mut Vec<u8>) -> Result<usize, ProtocolError> {
        let mut input = Input { octets, at: 0, passed: 0 };
        self.advance(&mut input, out).inspect_err(|malformed| self.state = State::Failed(*malformed))?;
        Ok(input.passed)
    }

    fn advance(&mut self, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if let State::Failed(malformed) = self.state {
            return Err(malformed);
        }
        while !input.rest().is_empty() {
            match self.state {
                State::Preface(seen) => self.preface(seen, input, out)?,
                State::Head => self.head(input, out)?,
                State::Passing(left) => {
                    let some = left.min(input.rest().len());
                    input.pass(some, out);
                    self.pass_on(left - some);
                }
                State::Holding(head, left) => self.hold(head, left, input, out)?,
                State::Failed(malformed) => return Err(malformed),
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
        if head.is_of_block() {
            return self.begin_holding(head, input, out);
        }
        out.extend_from_slice(&self.head);
        self.pass_on(head.length);
        Ok(())
    }

    /// Goes on from a head that stands whole in the input.
    fn whole_head(&mut self, head: Head, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if !head.is_of_block() {
            input.pass(HEAD, out);
            self.pass_on(head.length);
            return Ok(());
        }
        let is_whole = self.opening.is_none() && head.flags & END_HEADERS != 0;
        let Some(payload) = input.rest().get(HEAD..HEAD + head.length).filter(|_| is_whole) else {
            self.head.copy_from_slice(input.skip(HEAD));
            return self.begin_holding(head, input, out);
        };
        // The usual case: a block in one frame, all of it here, is read where it is.
        let (opening, fragment) = head.split(payload)?;
        if self.table.read(fragment, &mut self.mended)? {
            input.skip(HEAD + head.length);
            opening.write(&self.mended, out);
            self.forget_block();
        } else {
            input.pass(HEAD + head.length, out);
        }
        Ok(())
    }

    fn pass_on(&mut self, left: usize) {
        self.state = if left == 0 { State::Head } else { State::Passing(left) };
    }

    /// Refuses a frame that may not come now, or may not come from a client at all.
    fn check_order(&self, head: Head) -> Result<(), ProtocolError> {
        let fault = match (head.kind, self.opening) {
            (CONTINUATION, None) => "a CONTINUATION frame without a header block",
            (CONTINUATION, Some(opening)) if opening.stream_id() != head.stream_id() => {
                "a CONTINUATION frame of another stream"
            }
            (CONTINUATION, Some(_)) => return head.check_length(),
            (_, Some(_)) => "another frame within a header block",
            (HEADERS, None) if head.stream_id() == 0 => "a HEADERS frame of stream 0",
            (HEADERS, None) => return head.check_length(),
            (PUSH_PROMISE, None) => "a PUSH_PROMISE frame from a client",
            _ => return Ok(()),
        };
        Err(ProtocolError(fault))
    }

    fn begin_holding(&mut self, head: Head, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if self.held.len() + HEAD + head.length > LARGEST_HELD {
            return Err(ProtocolError("a header block of more than 64 KiB"));
        }
        self.held.extend_from_slice(&self.head);
        self.hold(head, head.length, input, out)
    }

    fn hold(&mut self, head: Head, left: usize, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let some = left.min(input.rest().len());
        self.held.extend_from_slice(input.skip(some));
        if some < left {
            self.state = State::Holding(head, left - some);
            return Ok(());
        }
        self.state = State::Head;
        let payload = &self.held[self.held.len() - head.length..];
        let (opening, fragment) = match self.opening {
            Some(opening) => (opening, payload),
            None => head.split(payload)?,
        };
        if head.flags & END_HEADERS == 0 {
            self.opening = Some(opening);
            self.block.extend_from_slice(fragment);
            return Ok(());
        }
        let is_mended = if self.opening.take().is_some() {
            self.block.extend_from_slice(fragment);
            self.table.read(&self.block, &mut self.mended)?
        } else {
            self.table.read(fragment, &mut self.mended)?
        };
        if is_mended {
            opening.write(&self.mended, out);
        } else {
            out.extend_from_slice(&self.held);
        }
        self.forget_block();
        Ok(())
    }

    fn forget_block(&mut self) {
        for buffer in [&mut self.held, &mut self.block, &mut self.mended] {
            buffer.clear();
            buffer.shrink_to(LARGEST_KEPT);
        }
    }
}

impl Head {
    fn read(octets: &[u8; HEAD]) -> Self {
        let &[high, middle, low, kind, flags, ref stream @ ..] = octets;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        Self { length, kind, flags, stream: *stream }
    }

    fn is_of_block(self) -> bool {
        matches!(self.kind, HEADERS | CONTINUATION)
    }

    fn stream_id(self) -> u32 {
        stream_id(self.stream)
    }

    fn check_length(self) -> Result<(), ProtocolError> {
        if self.length > LARGEST_FRAME {
            return Err(ProtocolError("a header frame larger than the server allows"));
        }
        Ok(())
    }

    /// Splits the payload of a HEADERS frame into what it says of the stream and its fragment of the block.
    fn split(self, payload: &[u8]) -> Result<(Opening, &[u8]), ProtocolError> {
        const SHORT: ProtocolError = ProtocolError("a HEADERS frame is shorter than its padding and priority");
        let mut rest = payload;
        let mut padding = 0;
        if self.flags & PADDED != 0 {
            let (&length, behind) = rest.split_first().ok_or(SHORT)?;
            (padding, rest) = (usize::from(length), behind);
        }
        let mut priority = None;
        if self.flags & PRIORITY != 0 {
            let (octets, behind) = rest.split_first_chunk::<PRIORITY_OCTETS>().ok_or(SHORT)?;
            let &[a, b, c, d, _] = octets;
            if stream_id([a, b, c, d]) == self.stream_id() {
                // A server may drop such a block unread, and its header table would no longer be the client's.
                return Err(ProtocolError("a stream that depends on itself"));
            }
            (priority, rest) = (Some(*octets), behind);
        }
        let length = rest.len().checked_sub(padding).ok_or(SHORT)?;
        Ok((Opening { flags: self.flags, stream: self.stream, priority }, &rest[..length]))
    }
}

impl Opening {
    fn stream_id(self) -> u32 {
        stream_id(self.stream)
    }

    /// Writes the frames of a header block that has been written anew. Padding is left out.
    fn write(self, block: &[u8], out: &mut Vec<u8>) {
        let priority = self.priority.as_ref().map_or(&[][..], |octets| octets);
        let flags = self.flags & !(PADDED | END_HEADERS);
        let mut rest = self.write_frame(HEADERS, flags, priority, block, out);
        while !rest.is_empty() {
            rest = self.write_frame(CONTINUATION, 0, &[], rest, out);
        }
    }

    /// Writes a frame with as much of `block` as it can hold, and returns what is left.
    fn write_frame<'a>(self, kind: u8, flags: u8, first: &[u8], block: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let (some, rest) = block.split_at(block.len().min(LARGEST_FRAME - first.len()));
        let [.., high, middle, low] = (first.len() + some.len()).to_be_bytes();
        let flags = if rest.is_empty() { flags | END_HEADERS } else { flags };
        out.extend_from_slice(&[high, middle, low, kind, flags]);
        out.extend_from_slice(&self.stream);
        out.extend_from_slice(first);
        out.extend_from_slice(some);
        rest
    }
}

/// The number of a stream, without the bit that has no meaning.
fn stream_id(octets: [u8; 4]) -> u32 {
    u32::from_be_bytes(octets) & 0x7fff_ffff
}

impl<'a> Input<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.octets[self.at..]
    }

    /// Takes `length` octets out.
    fn skip(&mut self, length: usize) -> &'a [u8] {
        let octets = &self.rest()[..length];
        self.at += length;
        octets
    }

    /// Lets `length` octets go on: where they are, or through `out` if something before them has been held or mended.
    fn pass(&mut self, length: usize, out: &mut Vec<u8>) {
        if self.passed == self.at {
            self.passed += length;
            self.at += length;
        } else {
            out.extend_from_slice(self.skip(length));
        }
    }
}
