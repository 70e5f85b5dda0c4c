//! Header blocks (HPACK, RFC 7541). The parser only finds pseudo-headers, whose names begin with a colon.
//!
//! The h2 crate keeps a pseudo-header in its dynamic table as a part of the buffer that it arrived in, and copies other
//! fields. A client could thus make it keep a large buffer for each entry. A pseudo-header that a client adds to the
//! table is therefore *withheld* from the server's table: this table keeps it, and each block that refers to it gets it
//! as a literal. The server's table has the other entries of the client's table and perhaps older entries, so the
//! indexes in a block are translated.
//!
//! The table stores only the length of other entries' names, because sizes decide which entries are evicted.

use std::collections::VecDeque;

use crate::frames::{MAX_BLOCK, MAX_KEPT};
use crate::{ProtocolError, huffman, value};

const AUTHORITY: &[u8] = b":authority";
const AUTHORITY_INDEX: usize = 1;
/// The last of the pseudo-headers, with which the static table begins.
const LAST_PSEUDO_INDEX: usize = 14;
/// The default of `SETTINGS_HEADER_TABLE_SIZE`. The server must not announce a higher value.
const MAX_TABLE: usize = 4096;
/// Maximum octets of a rewritten block, so that it does not exceed [`MAX_BLOCK`] with the heads of its frames.
const MAX_REWRITTEN: usize = MAX_BLOCK - 64;
/// The size of an entry without its name and value.
const ENTRY_OVERHEAD: usize = 32;
/// Maximum octets of an integer after its prefix. A longer integer exceeds 2^28, which no reader accepts.
const MAX_INTEGER: u32 = 4;

/// The representations of a field, by the first bits of its first octet, and the bits of the integer in that octet.
const INDEXED: (u8, u32) = (0b1000_0000, 7);
const ADDED: (u8, u32) = (0b0100_0000, 6);
const RESIZED: (u8, u32) = (0b0010_0000, 5);
const NOT_ADDED: (u8, u32) = (0, 4);
const NEVER_ADDED: u8 = 0b0001_0000;

/// The lengths of the names in the static table (RFC 7541, appendix A).
const STATIC_NAMES: [u8; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14, 16, 13, 12, 6, 4,
    4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10, 25, 17, 10, 4, 3, 16,
];

/// Rewrites the header blocks of one direction of a connection.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Entries,
    /// The decoded value of a pseudo-header; kept for its allocation.
    value: Vec<u8>,
}

/// The client's dynamic table.
#[derive(Debug)]
struct Entries {
    /// Newest first.
    fields: VecDeque<Entry>,
    size: usize,
    limit: usize,
    /// How many entries have been added to the server's table.
    sent: usize,
}

#[derive(Debug)]
struct Entry {
    name: Name,
    size: usize,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Also in the server's table, as the entry with this number.
    Server(usize),
    /// In this table only: as a literal that is added to no table, and the position at which the name in it ends.
    Withheld(Box<[u8]>, usize),
}

/// The name of a field.
#[derive(Clone, Copy, Debug)]
struct Name {
    length: usize,
    is_pseudo: bool,
    is_authority: bool,
}

/// The name of a literal, as a block has it.
#[derive(Clone, Copy)]
enum WrittenName<'a> {
    /// The index of a name in the server's tables.
    Index(usize),
    /// A string with its length, not decoded.
    Text(&'a [u8]),
}

/// A field that a client refers to by its index.
struct Indexed<'a> {
    name: Name,
    written: WrittenName<'a>,
    /// The whole field, if it is withheld from the server's table.
    withheld: Option<&'a [u8]>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { entries: Entries { fields: VecDeque::new(), size: 0, limit: MAX_TABLE, sent: 0 }, value: Vec::new() }
    }

    /// Reads a complete header block, and writes the block that the server must read to `rewritten`, which must be empty.
    pub(crate) fn rewrite(&mut self, block: &[u8], rewritten: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut cursor = Cursor { rest: block };
        let mut may_resize = true;
        while let Some(&first) = cursor.rest.first() {
            if first & 0b1110_0000 == RESIZED.0 {
                if !may_resize {
                    return Err(ProtocolError("a header block resizes the table after its first field"));
                }
                let limit = cursor.integer(RESIZED.1)?;
                self.entries.resize(limit)?;
                write_integer(limit, RESIZED.0, RESIZED.1, rewritten);
                continue;
            }
            may_resize = false;
            if first & INDEXED.0 != 0 {
                let Indexed { written, withheld, .. } = self.entries.get(cursor.integer(INDEXED.1)?)?;
                match withheld {
                    Some(literal) => rewritten.extend_from_slice(literal),
                    None => written.write(INDEXED, rewritten),
                }
            } else {
                self.rewrite_literal(first, &mut cursor, rewritten)?;
            }
            if rewritten.len() > MAX_REWRITTEN {
                return Err(TOO_LARGE);
            }
        }
        self.value.clear();
        self.value.shrink_to(MAX_KEPT);
        Ok(())
    }

    fn rewrite_literal(
        &mut self,
        first: u8,
        cursor: &mut Cursor<'_>,
        rewritten: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let is_added = first & ADDED.0 != 0;
        let kind = if is_added { ADDED } else { (first & NEVER_ADDED, NOT_ADDED.1) };
        let index = cursor.integer(kind.1)?;
        let (name, written) = if index == 0 {
            let (text, encoded) = cursor.text()?;
            (Name::of(text)?, WrittenName::Text(encoded))
        } else {
            let Indexed { name, written, .. } = self.entries.get(index)?;
            (name, written)
        };
        let (text, encoded) = cursor.text()?;
        let is_withheld = is_added && name.is_pseudo;
        let literal = rewritten.len();
        written.write(if is_withheld { NOT_ADDED } else { kind }, rewritten);
        let name_end = rewritten.len() - literal;
        if name.is_authority || is_withheld {
            // What is withheld is decoded here, and not by the server in each block that refers to it.
            self.value.clear();
            text.each(|octet| self.value.push(octet))?;
            if name.is_authority && !value::is_accepted(&self.value) {
                value::sanitize(&mut self.value);
            }
            write_text(&self.value, rewritten);
        } else {
            rewritten.extend_from_slice(encoded);
        }
        if is_added {
            let size = name.length + text.length()? + ENTRY_OVERHEAD;
            self.entries.add(name, size, is_withheld.then(|| (&rewritten[literal..], name_end)));
        }
        Ok(())
    }
}

const TOO_LARGE: ProtocolError = ProtocolError("a header block is larger than 32 KiB");

impl Entries {
    fn get(&self, index: usize) -> Result<Indexed<'_>, ProtocolError> {
        let Some(position) = index.checked_sub(1) else {
            return Err(ProtocolError("a header field has index 0"));
        };
        if let Some(&length) = STATIC_NAMES.get(position) {
            let (is_pseudo, is_authority) = (index <= LAST_PSEUDO_INDEX, index == AUTHORITY_INDEX);
            let name = Name { length: length.into(), is_pseudo, is_authority };
            return Ok(Indexed { name, written: WrittenName::Index(index), withheld: None });
        }
        let Some(entry) = self.fields.get(position - STATIC_NAMES.len()) else {
            return Err(ProtocolError("a header field has an index beyond the table"));
        };
        let (written, withheld) = match &entry.place {
            Place::Server(number) => {
                let newer = self.sent.wrapping_sub(*number);
                (WrittenName::Index(STATIC_NAMES.len() + 1 + newer), None)
            }
            Place::Withheld(literal, name_end) => {
                let written = match literal[..*name_end] {
                    [0, ref text @ ..] => WrittenName::Text(text),
                    // The indexes of pseudo-headers fit into an octet.
                    [index, ..] => WrittenName::Index(index.into()),
                    [] => unreachable!("a literal has a name"),
                };
                (written, Some(&**literal))
            }
        };
        Ok(Indexed { name: entry.name, written, withheld })
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
    ///
    /// The server's table has fewer entries, and so it evicts later: it has every entry of the client's table that is
    /// not withheld.
    fn add(&mut self, name: Name, size: usize, withheld: Option<(&[u8], usize)>) {
        self.evict(self.limit.saturating_sub(size));
        if size > self.limit {
            return;
        }
        let place = if let Some((literal, name_end)) = withheld {
            Place::Withheld(literal.into(), name_end)
        } else {
            self.sent = self.sent.wrapping_add(1);
            Place::Server(self.sent)
        };
        self.size += size;
        self.fields.push_front(Entry { name, size, place });
    }

    /// Removes the oldest entries until the remaining entries fit into `size`.
    fn evict(&mut self, size: usize) {
        while self.size > size {
            let Some(oldest) = self.fields.pop_back() else { break };
            self.size -= oldest.size;
        }
    }
}

impl WrittenName<'_> {
    /// Begins a field of a representation with this name or index.
    fn write(self, (bits, prefix): (u8, u32), block: &mut Vec<u8>) {
        match self {
            Self::Index(index) => write_integer(index, bits, prefix, block),
            Self::Text(text) => {
                block.push(bits);
                block.extend_from_slice(text);
            }
        }
    }
}

impl Name {
    fn of(text: Text<'_>) -> Result<Self, ProtocolError> {
        let (mut length, mut is_pseudo, mut same) = (0, false, true);
        text.each(|octet| {
            is_pseudo = is_pseudo || (length == 0 && octet == b':');
            same = same && AUTHORITY.get(length) == Some(&octet);
            length += 1;
        })?;
        // The h2 crate refuses such a field and, in a block that continues, does not add it to its table.
        if length == 0 {
            return Err(ProtocolError("a header field has an empty name"));
        }
        Ok(Self { length, is_pseudo, is_authority: same && length == AUTHORITY.len() })
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

    /// Reads a string; returns it, and the octets that it was read from.
    fn text(&mut self) -> Result<(Text<'a>, &'a [u8]), ProtocolError> {
        let before = self.rest;
        let is_huffman = before.first().is_some_and(|first| first & 0b1000_0000 != 0);
        let length = self.integer(7)?;
        let Some((octets, rest)) = self.rest.split_at_checked(length) else {
            return Err(ProtocolError("a header block ends within a string"));
        };
        self.rest = rest;
        Ok((Text { octets, is_huffman }, &before[..before.len() - rest.len()]))
    }
}

/// Writes `text` without Huffman coding.
fn write_text(text: &[u8], block: &mut Vec<u8>) {
    write_integer(text.len(), 0, 7, block);
    block.extend_from_slice(text);
}

/// Writes an integer that begins with the low `prefix` bits of an octet, whose other bits are `bits`.
fn write_integer(integer: usize, bits: u8, prefix: u32, block: &mut Vec<u8>) {
    let max = (1 << prefix) - 1;
    if integer < max {
        return block.push(bits | low_octet(integer));
    }
    block.push(bits | low_octet(max));
    let mut rest = integer - max;
    while rest >= 0b1000_0000 {
        block.push(low_octet(rest) | 0b1000_0000);
        rest >>= 7;
    }
    block.push(low_octet(rest));
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
            assert!(read(&mut Table::new(), &block).is_err(), "{what}");
        }
        read(&mut Table::new(), &[0x3f, 0xe1, 0x1f, 0x82]).expect("a table of 4096 is allowed");
    }

    /// A field that adds an entry of size 34 to the table.
    const FIELD: &[u8] = &[0x40, 1, b'a', 1, b'b'];
    const NEWEST: &[u8] = &[0xbe];

    /// Returns the block that the server reads.
    fn read(table: &mut Table, block: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        let mut rewritten = Vec::new();
        table.rewrite(block, &mut rewritten).map(|()| rewritten)
    }

    #[test]
    fn the_oldest_entries_are_evicted_from_a_full_table() {
        let mut table = Table::new();
        read(&mut table, &FIELD.repeat(MAX_TABLE / 34 + 1)).unwrap();
        // An indexed field whose index does not fit into seven bits.
        assert!(read(&mut table, &[0xff, 61 + 120 - 127]).is_ok(), "the 120th newest entry is in the table");
        assert!(read(&mut table, &[0xff, 61 + 121 - 127]).is_err(), "the 121st was evicted");
    }

    #[test]
    fn the_oldest_entries_are_evicted_when_the_table_shrinks() {
        let mut table = Table::new();
        read(&mut table, &FIELD.repeat(2)).unwrap();
        read(&mut table, &[0x3f, 34 - 31]).unwrap();
        assert!(read(&mut table, NEWEST).is_ok());
        assert!(read(&mut table, &[0xbf]).is_err());
    }

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut table = Table::new();
        read(&mut table, &[0x3f, 35 - 31]).unwrap();
        read(&mut table, FIELD).unwrap();
        assert!(read(&mut table, NEWEST).is_ok());
        read(&mut table, &[0x40, 1, b'a', 3, b'b', b'b', b'b']).unwrap();
        assert!(read(&mut table, NEWEST).is_err());
    }

    #[test]
    fn a_huffman_coded_value_is_checked_after_decoding() {
        // The Huffman code of "%%%%" is "UUU".
        assert_eq!(read(&mut Table::new(), b"\x11\x83UUU").unwrap(), b"\x11\x04----");
    }

    #[test]
    fn a_pseudo_header_is_withheld_from_the_servers_table_and_written_where_a_block_refers_to_it() {
        let table = &mut Table::new();
        // `:path` with a name from the static table, a field, `:path2` with a name of its own and Huffman coding.
        assert_eq!(
            read(table, b"\x44\x02/a\x40\x01n\x01v\x40\x06:path2\x83UUU").unwrap(),
            b"\x04\x02/a\x40\x01n\x01v\x00\x06:path2\x04%%%%"
        );
        assert_eq!(read(table, b"\xbe").unwrap(), b"\x00\x06:path2\x04%%%%");
        assert_eq!(
            read(table, b"\x82\xbf\xc0\x83").unwrap(),
            b"\x82\xbe\x04\x02/a\x83",
            "the field is the newest of the server"
        );
        // Names from the table: in a literal that is added, one that is not, and one that must never be.
        assert_eq!(read(table, b"\x7f\x00\x01w").unwrap(), b"\x7e\x01w");
        assert_eq!(read(table, b"\x0f\x32\x01w\x1f\x32\x01x").unwrap(), b"\x04\x01w\x14\x01x");
        assert_eq!(read(table, b"\x0f\x30\x01w").unwrap(), b"\x00\x06:path2\x01w");
        assert_eq!(read(table, b"\xbe\xc0").unwrap(), b"\xbe\xbf", "the server has both fields");
    }

    #[test]
    fn a_small_block_does_not_become_a_large_one() {
        let table = &mut Table::new();
        read(table, &[&[0x44, 0x7f, 0xa1, 0x1e][..], &[b'/'; 4000]].concat()).unwrap();
        assert_eq!(read(table, &[0xbe; 8]).unwrap().len(), 8 * 4004);
        assert_eq!(read(table, &[0xbe; 9]), Err(TOO_LARGE));
    }
}
