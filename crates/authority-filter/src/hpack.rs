//! Header blocks (HPACK, RFC 7541), parsed as far as needed to find `:authority`.
//!
//! The name of a field may be an index into the dynamic table, so the filter keeps a table too. It stores only the
//! length of each entry's name, because sizes decide which entries are evicted, and whether the name is `:authority`.
//! A rewritten value is as long as the original, so the entries of the sender's table, of this one and of the reader's
//! always have the same sizes.

use std::collections::VecDeque;

use crate::frames::MAX_KEPT;
use crate::{ProtocolError, huffman, value};

const AUTHORITY: &[u8] = b":authority";
const AUTHORITY_INDEX: usize = 1;
/// The default of `SETTINGS_HEADER_TABLE_SIZE`. The server must not announce a higher value.
const MAX_TABLE: usize = 4096;
/// What an entry counts in addition to its name and value.
const ENTRY_OVERHEAD: usize = 32;
/// Maximum octets of an integer after its prefix. More would exceed 2^28, and no reader accepts that.
const MAX_INTEGER: u32 = 4;

/// The lengths of the names in the static table (RFC 7541, appendix A).
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

/// The name of a field: its length, and whether it is `:authority`.
#[derive(Clone, Copy, Debug)]
struct Name {
    length: usize,
    is_authority: bool,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { entries: VecDeque::new(), size: 0, limit: MAX_TABLE, value: Vec::new() }
    }

    /// Reads a complete header block. If an authority must be rewritten, writes the new block to `rewritten`, which
    /// must be empty, and returns true.
    pub(crate) fn rewrite(&mut self, block: &[u8], rewritten: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        let is_rewritten = self.read_block(block, rewritten);
        self.value.clear();
        self.value.shrink_to(MAX_KEPT);
        is_rewritten
    }

    fn read_block(&mut self, block: &[u8], rewritten: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        let mut cursor = Cursor { rest: block };
        let mut unwritten = block;
        let mut may_resize = true;
        while let Some(&first) = cursor.rest.first() {
            if first & 0b1110_0000 == 0b0010_0000 {
                if !may_resize {
                    return Err(ProtocolError("a header block resizes the table after its first field"));
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
            if name.is_authority && self.is_invalid(text)? {
                value::sanitize(&mut self.value);
                rewritten.extend_from_slice(&unwritten[..unwritten.len() - before_value]);
                write_text(&self.value, rewritten);
                unwritten = cursor.rest;
            }
            if is_added {
                self.add(Entry { name, size: name.length + text.length()? + ENTRY_OVERHEAD });
            }
        }
        if rewritten.is_empty() {
            return Ok(false);
        }
        rewritten.extend_from_slice(unwritten);
        Ok(true)
    }

    /// Whether a server refuses the authority. If it does, the decoded authority is in `self.value`.
    fn is_invalid(&mut self, text: Text<'_>) -> Result<bool, ProtocolError> {
        if !text.is_huffman && value::is_accepted(text.octets) {
            return Ok(false);
        }
        self.value.clear();
        text.each(|octet| self.value.push(octet))?;
        Ok(!value::is_accepted(&self.value))
    }

    fn name_at(&self, index: usize) -> Result<Name, ProtocolError> {
        let Some(position) = index.checked_sub(1) else {
            return Err(ProtocolError("a header field has index 0"));
        };
        if let Some(&length) = STATIC_NAMES.get(position) {
            return Ok(Name { length: length.into(), is_authority: index == AUTHORITY_INDEX });
        }
        match self.entries.get(position - STATIC_NAMES.len()) {
            Some(entry) => Ok(entry.name),
            None => Err(ProtocolError("a header field has an index beyond the table")),
        }
    }

    fn resize(&mut self, limit: usize) -> Result<(), ProtocolError> {
        if limit > MAX_TABLE {
            return Err(ProtocolError("a header table is larger than the server allows"));
        }
        self.limit = limit;
        self.evict(limit);
        Ok(())
    }

    /// Adds an entry. An entry larger than the table empties the table and is not added.
    fn add(&mut self, entry: Entry) {
        self.evict(self.limit.saturating_sub(entry.size));
        if entry.size <= self.limit {
            self.size += entry.size;
            self.entries.push_front(entry);
        }
    }

    /// Removes the oldest entries until the others fit into `size`.
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
        // The h2 crate refuses such a field and, in a block that continues, does not add it to its table.
        if length == 0 {
            return Err(ProtocolError("a header field has an empty name"));
        }
        Ok(Self { length, is_authority: same && length == AUTHORITY.len() })
    }
}

/// A string in a block, not decoded.
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

/// The unread part of a block.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn octet(&mut self) -> Result<u8, ProtocolError> {
        let (&octet, rest) = self.rest.split_first().ok_or(ProtocolError("a header block ends within a field"))?;
        self.rest = rest;
        Ok(octet)
    }

    /// Reads an integer that begins with the low `prefix` bits of the next octet.
    fn integer(&mut self, prefix: u32) -> Result<usize, ProtocolError> {
        let max = (1 << prefix) - 1;
        let mut integer = usize::from(self.octet()?) & max;
        if integer < max {
            return Ok(integer);
        }
        for position in 0..MAX_INTEGER {
            let octet = self.octet()?;
            integer += usize::from(octet & 0b0111_1111) << (7 * position);
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
    fn the_static_names_have_the_lengths_of_another_implementation() {
        let mut decoder = httlib_hpack::Decoder::default();
        for (index, &length) in (1_u8..).zip(&STATIC_NAMES) {
            let mut fields = Vec::new();
            decoder.decode(&mut vec![0b1000_0000 | index], &mut fields).unwrap();
            assert_eq!(fields[0].0.len(), usize::from(length), "{index}");
            assert_eq!(fields[0].0 == AUTHORITY, usize::from(index) == AUTHORITY_INDEX);
        }
    }

    #[test]
    fn an_invalid_block_is_refused() {
        let mut long = vec![0x7f];
        long.extend([0xff; 5]);
        for (what, block) in [
            ("index 0", vec![0x80]),
            ("index beyond the static table", vec![0xbe]),
            ("name beyond the table", vec![0x7e, 0x00]),
            ("no value", vec![0x41]),
            ("short value", vec![0x41, 0x02, b'a']),
            ("short name", vec![0x40, 0x02, b'a']),
            ("empty name", vec![0x40, 0x00, 0x01, b'a']),
            ("short integer", vec![0x7f]),
            ("endless integer", long),
            ("table of 4097", vec![0x3f, 0xe2, 0x1f]),
            ("resize after a field", vec![0x82, 0x20]),
            ("Huffman padding of zeros", vec![0x41, 0x81, 0b0001_1000]),
        ] {
            assert!(Table::new().rewrite(&block, &mut Vec::new()).is_err(), "{what}");
        }
        assert!(
            !Table::new().rewrite(&[0x3f, 0xe1, 0x1f, 0x82], &mut Vec::new()).unwrap(),
            "a table of 4096 is allowed"
        );
    }

    /// A field that adds an entry of size 34 to the table.
    const ADDED: &[u8] = &[0x40, 1, b'a', 1, b'b'];
    const NEWEST: &[u8] = &[0xbe];

    fn read(table: &mut Table, block: &[u8]) -> Result<bool, ProtocolError> {
        table.rewrite(block, &mut Vec::new())
    }

    #[test]
    fn the_oldest_entries_are_evicted_from_a_full_table() {
        let mut table = Table::new();
        read(&mut table, &ADDED.repeat(MAX_TABLE / 34 + 1)).unwrap();
        // An indexed field whose index does not fit into seven bits.
        assert!(read(&mut table, &[0xff, 61 + 120 - 127]).is_ok(), "the 120th newest entry is in the table");
        assert!(read(&mut table, &[0xff, 61 + 121 - 127]).is_err(), "the 121st was evicted");
    }

    #[test]
    fn the_oldest_entries_are_evicted_when_the_table_shrinks() {
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
    fn a_huffman_coded_value_is_checked_after_decoding() {
        // The Huffman code of "%%%%" is "UUU".
        let mut rewritten = Vec::new();
        assert!(Table::new().rewrite(b"\x41\x83UUU", &mut rewritten).unwrap());
        assert_eq!(rewritten, b"\x41\x04----");
    }

    #[test]
    fn a_string_of_any_length_reads_back() {
        for length in (0..300).chain([16_510, 16_511, 65_536]) {
            let mut block = Vec::new();
            write_text(&vec![b'-'; length], &mut block);
            let mut cursor = Cursor { rest: &block };
            let text = cursor.text().unwrap();
            assert_eq!((text.octets.len(), text.is_huffman, cursor.rest.len()), (length, false, 0));
        }
    }
}
