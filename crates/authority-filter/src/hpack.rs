//! Header blocks (HPACK, RFC 7541), read as far as finding `:authority` needs.
//!
//! A field's name may be an index into the dynamic table, so the table is followed: of each entry how long its name
//! is, because sizes decide what is evicted, and whether the name is `:authority`. The texts themselves are not kept.
//! A mended value is as long as the one it replaces, so the sender's table, this one and the reader's have entries of
//! the same sizes, always.

use std::collections::VecDeque;

use crate::{ProtocolError, huffman, value};

const AUTHORITY: &[u8] = b":authority";
const AUTHORITY_INDEX: usize = 1;
/// The default of `SETTINGS_HEADER_TABLE_SIZE`; a server behind the filter must not announce another.
const LARGEST_TABLE: usize = 4096;
/// What an entry counts for beyond its name and value.
const ENTRY_OVERHEAD: usize = 32;
/// Octets of an integer behind its prefix. More would be above 2^28, and no reader takes them.
const LONGEST_INTEGER: u32 = 4;

/// How long the names of the static table are (RFC 7541, appendix A).
const STATIC_NAMES: [u8; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14, 16, 13, 12, 6, 4,
    4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10, 25, 17, 10, 4, 3, 16,
];

/// The dynamic table of one direction of a connection.
#[derive(Debug)]
pub(crate) struct Table {
    /// Newest first.
    entries: VecDeque<Entry>,
    size: usize,
    limit: usize,
    /// The decoded value of an authority; kept for its allocation.
    value: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    name: Name,
    size: usize,
}

/// A field's name: all that matters is how long it is and whether it is the one.
#[derive(Clone, Copy, Debug)]
struct Name {
    length: usize,
    is_authority: bool,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { entries: VecDeque::new(), size: 0, limit: LARGEST_TABLE, value: Vec::new() }
    }

    /// Reads a whole header block. Where a value has to be mended, writes the block anew to `mended`, which is to be
    /// empty, and returns true; otherwise leaves `mended` alone.
    pub(crate) fn read(&mut self, block: &[u8], mended: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        let mut cursor = Cursor { rest: block };
        let mut unwritten = block;
        let mut may_resize = true;
        while let Some(&first) = cursor.rest.first() {
            if first & 0b1110_0000 == 0b0010_0000 {
                if !may_resize {
                    return Err(ProtocolError("a header block resizes the table behind its first field"));
                }
                self.resize(cursor.integer(5)?)?;
                continue;
            }
            may_resize = false;
            if first & 0b1000_0000 != 0 {
                self.name_at(cursor.integer(7)?)?;
                continue;
            }
            let is_added = first & 0b0100_0000 != 0;
            let name = match cursor.integer(if is_added { 6 } else { 4 })? {
                0 => Name::of(cursor.text()?)?,
                index => self.name_at(index)?,
            };
            let before_value = cursor.rest.len();
            let text = cursor.text()?;
            if name.is_authority && self.needs_mending(text)? {
                value::mend(&mut self.value);
                mended.extend_from_slice(&unwritten[..unwritten.len() - before_value]);
                write_text(&self.value, mended);
                unwritten = cursor.rest;
            }
            if is_added {
                self.add(Entry { name, size: name.length + text.length()? + ENTRY_OVERHEAD });
            }
        }
        if mended.is_empty() {
            return Ok(false);
        }
        mended.extend_from_slice(unwritten);
        Ok(true)
    }

    /// Whether a server refuses the authority; if so, it is left in `self.value`.
    fn needs_mending(&mut self, text: Text<'_>) -> Result<bool, ProtocolError> {
        if !text.is_huffman && value::is_accepted(text.octets) {
            return Ok(false);
        }
        self.value.clear();
        text.each(|octet| self.value.push(octet))?;
        Ok(!value::is_accepted(&self.value))
    }

    fn name_at(&self, index: usize) -> Result<Name, ProtocolError> {
        let Some(place) = index.checked_sub(1) else {
            return Err(ProtocolError("a header field has index 0"));
        };
        if let Some(&length) = STATIC_NAMES.get(place) {
            return Ok(Name { length: length.into(), is_authority: index == AUTHORITY_INDEX });
        }
        match self.entries.get(place - STATIC_NAMES.len()) {
            Some(entry) => Ok(entry.name),
            None => Err(ProtocolError("a header field has an index beyond the table")),
        }
    }

    fn resize(&mut self, limit: usize) -> Result<(), ProtocolError> {
        if limit > LARGEST_TABLE {
            return Err(ProtocolError("a header table larger than the server allows"));
        }
        self.limit = limit;
        self.evict(limit);
        Ok(())
    }

    /// Adds an entry; one larger than the table empties it and is not kept.
    fn add(&mut self, entry: Entry) {
        self.evict(self.limit.saturating_sub(entry.size));
        if entry.size <= self.limit {
            self.size += entry.size;
            self.entries.push_front(entry);
        }
    }

    /// Drops the oldest entries until what is left fits into `size`.
    fn evict(&mut self, size: usize) {
        while self.size > size {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.size -= oldest.size;
        }
    }
}

impl Name {
    fn of(text: Text<'_>) -> Result<Self, ProtocolError> {
        let (mut length, mut same) = (0, true);
        text.each(|octet| {
            same = same && AUTHORITY.get(length) == Some(&octet);
            length += 1;
        })?;
        Ok(Self { length, is_authority: same && length == AUTHORITY.len() })
    }
}

/// A string as it stands in a block.
#[derive(Clone, Copy)]
struct Text<'a> {
    octets: &'a [u8],
    is_huffman: bool,
}

impl Text<'_> {
    fn each(self, mut emit: impl FnMut(u8)) -> Result<(), ProtocolError> {
        if self.is_huffman {
            return huffman::decode(self.octets, emit);
        }
        self.octets.iter().for_each(|&octet| emit(octet));
        Ok(())
    }

    fn length(self) -> Result<usize, ProtocolError> {
        if !self.is_huffman {
            return Ok(self.octets.len());
        }
        let mut length = 0;
        huffman::decode(self.octets, |_| length += 1)?;
        Ok(length)
    }
}

/// What of a block has not been read.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn octet(&mut self) -> Result<u8, ProtocolError> {
        let (&octet, rest) = self.rest.split_first().ok_or(ProtocolError("a header block ends within a field"))?;
        self.rest = rest;
        Ok(octet)
    }

    /// An integer that begins with the low `prefix` bits of the next octet.
    fn integer(&mut self, prefix: u32) -> Result<usize, ProtocolError> {
        let most = (1 << prefix) - 1;
        let mut integer = usize::from(self.octet()?) & most;
        if integer < most {
            return Ok(integer);
        }
        for place in 0..LONGEST_INTEGER {
            let octet = self.octet()?;
            integer += usize::from(octet & 0b0111_1111) << (7 * place);
            if octet & 0b1000_0000 == 0 {
                return Ok(integer);
            }
        }
        Err(ProtocolError("an integer in a header block has more than five octets"))
    }

    fn text(&mut self) -> Result<Text<'a>, ProtocolError> {
        let is_huffman = self.rest.first().is_some_and(|first| first & 0b1000_0000 != 0);
        let length = self.integer(7)?;
        let Some((octets, rest)) = self.rest.split_at_checked(length) else {
            return Err(ProtocolError("a header block ends within a string"));
        };
        self.rest = rest;
        Ok(Text { octets, is_huffman })
    }
}

/// Writes `text` without Huffman coding.
fn write_text(text: &[u8], block: &mut Vec<u8>) {
    const PREFIX: usize = 0b0111_1111;
    if text.len() < PREFIX {
        block.push(low_octet(text.len()));
    } else {
        block.push(low_octet(PREFIX));
        let mut rest = text.len() - PREFIX;
        while rest >= 0b1000_0000 {
            block.push(low_octet(rest) | 0b1000_0000);
            rest >>= 7;
        }
        block.push(low_octet(rest));
    }
    block.extend_from_slice(text);
}

fn low_octet(number: usize) -> u8 {
    number.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_static_names_are_as_long_as_another_implementation_says() {
        let mut decoder = httlib_hpack::Decoder::default();
        for (index, &length) in (1_u8..).zip(&STATIC_NAMES) {
            let mut fields = Vec::new();
            decoder.decode(&mut vec![0b1000_0000 | index], &mut fields).unwrap();
            assert_eq!(fields[0].0.len(), usize::from(length), "{index}");
            assert_eq!(fields[0].0 == AUTHORITY, usize::from(index) == AUTHORITY_INDEX);
        }
    }

    #[test]
    fn a_block_that_breaks_the_rules_is_refused() {
        let mut long = vec![0x7f];
        long.extend([0xff; 5]);
        for (what, block) in [
            ("index 0", vec![0x80]),
            ("index beyond the static table", vec![0xbe]),
            ("name beyond the table", vec![0x7e, 0x00]),
            ("no value", vec![0x41]),
            ("short value", vec![0x41, 0x02, b'a']),
            ("short name", vec![0x40, 0x02, b'a']),
            ("short integer", vec![0x7f]),
            ("endless integer", long),
            ("table of 4097", vec![0x3f, 0xe2, 0x1f]),
            ("resize behind a field", vec![0x82, 0x20]),
            ("Huffman padding of zeros", vec![0x41, 0x81, 0b0001_1000]),
        ] {
            assert!(Table::new().read(&block, &mut Vec::new()).is_err(), "{what}");
        }
        assert!(!Table::new().read(&[0x3f, 0xe1, 0x1f, 0x82], &mut Vec::new()).unwrap(), "a table of 4096 is allowed");
    }

    /// A field that is added to the table and counts for 34 there.
    const ADDED: &[u8] = &[0x40, 1, b'a', 1, b'b'];
    const NEWEST: &[u8] = &[0xbe];

    fn read(table: &mut Table, block: &[u8]) -> Result<bool, ProtocolError> {
        table.read(block, &mut Vec::new())
    }

    #[test]
    fn the_oldest_entries_go_when_the_table_is_full() {
        let mut table = Table::new();
        read(&mut table, &ADDED.repeat(LARGEST_TABLE / 34 + 1)).unwrap();
        // An indexed field: the low seven bits are full, and the rest follows.
        assert!(read(&mut table, &[0xff, 61 + 120 - 127]).is_ok(), "the 120th newest is there");
        assert!(read(&mut table, &[0xff, 61 + 121 - 127]).is_err(), "the 121st is gone");
    }

    #[test]
    fn the_oldest_entries_go_when_the_table_shrinks() {
        let mut table = Table::new();
        read(&mut table, &ADDED.repeat(2)).unwrap();
        read(&mut table, &[0x3f, 34 - 31]).unwrap();
        assert!(read(&mut table, NEWEST).is_ok());
        assert!(read(&mut table, &[0xbf]).is_err());
    }

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut table = Table::new();
        read(&mut table, &[0x3f, 35 - 31]).unwrap();
        read(&mut table, ADDED).unwrap();
        assert!(read(&mut table, NEWEST).is_ok());
        read(&mut table, &[0x40, 1, b'a', 3, b'b', b'b', b'b']).unwrap();
        assert!(read(&mut table, NEWEST).is_err());
    }

    #[test]
    fn a_huffman_coded_value_is_judged_by_what_it_stands_for() {
        // "%%%%", whose code happens to spell "UUU".
        let mut mended = Vec::new();
        assert!(Table::new().read(b"\x41\x83UUU", &mut mended).unwrap());
        assert_eq!(mended, b"\x41\x04----");
    }

    #[test]
    fn a_text_of_any_length_reads_back() {
        for length in (0..300).chain([16_510, 16_511, 65_536]) {
            let mut block = Vec::new();
            write_text(&vec![b'-'; length], &mut block);
            let mut cursor = Cursor { rest: &block };
            let text = cursor.text().unwrap();
            assert_eq!((text.octets.len(), text.is_huffman, cursor.rest.len()), (length, false, 0));
        }
    }
}
