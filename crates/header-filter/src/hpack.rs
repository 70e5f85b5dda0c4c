//! Header blocks (HPACK, RFC 7541): decoded, and written again without references to the dynamic
//! table.
//!
//! The h2 crate would keep entries of its table as parts of the buffers that they arrived in, where
//! each could keep a large buffer in memory. It therefore gets no entry: this table has the entries
//! of the client, and each block that refers to one gets the field as a literal.
//!
//! Fields that the server does not read are left out, which saves h2 the work to decode them.

use std::collections::VecDeque;
use std::mem;

use crate::error::ProtocolError;
use crate::huffman;

/// The default of `SETTINGS_HEADER_TABLE_SIZE`. The server must not announce a higher value.
const MAX_TABLE: usize = 4096;
/// Maximum size of a header block, with frame heads and padding. h2 accepts 16 KiB of decoded
/// headers.
pub(crate) const MAX_BLOCK: usize = 32 * 1024;
/// Maximum size of an allocation that is kept for the next block.
pub(crate) const MAX_KEPT: usize = 512;
/// Maximum octets of a rewritten block: a block of [`MAX_BLOCK`] in the shortest Huffman code, five
/// bits for an octet.
const MAX_REWRITTEN: usize = MAX_BLOCK / 5 * 8;
/// The size of an entry without its name and value.
const ENTRY_OVERHEAD: usize = 32;
/// Maximum octets of an integer after its prefix. A longer integer exceeds 2^28, which no reader
/// accepts.
const MAX_INTEGER: u32 = 4;

/// The representations of a field, by the first bits of its first octet, and the bits of the
/// integer in that octet.
const INDEXED: (u8, u32) = (0b1000_0000, 7);
const ADDED: (u8, u32) = (0b0100_0000, 6);
const RESIZED: (u8, u32) = (0b0010_0000, 5);
const NOT_ADDED: (u8, u32) = (0, 4);

/// The lengths of the names in the static table (RFC 7541, appendix A).
const STATIC_NAMES: [u8; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14,
    16, 13, 12, 6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10,
    25, 17, 10, 4, 3, 16,
];
/// The indexes of `:authority`, `content-type` and `user-agent` in the static table.
const AUTHORITY: usize = 1;
const CONTENT_TYPE: usize = 31;
const USER_AGENT: usize = 58;

/// The name of a field, without its text.
#[derive(Clone, Copy, Debug)]
struct Name {
    /// Its index in the static table, or 0.
    index: usize,
    /// Its length, which counts for the size of an entry even if the entry does not keep its text.
    length: usize,
    /// Whether the server reads fields with this name. Of `content-type`, the server reads only a
    /// value that it refuses.
    is_read: bool,
}

/// Rewrites the header blocks of one direction of a connection, and keeps the client's dynamic
/// table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Newest first.
    entries: VecDeque<Entry>,
    /// The sum of the sizes of the entries.
    size: usize,
    limit: usize,
    /// The buffer for the text of the field that is being decoded; kept for its allocation.
    field: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    name: Name,
    /// The text of the field; empty if the server does not read the field.
    text: Box<[u8]>,
    /// The size as the client counts it.
    size: usize,
}

const TOO_LARGE: ProtocolError = ProtocolError("a header block is larger than 32 KiB");

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            limit: MAX_TABLE,
            field: Vec::new(),
        }
    }

    /// Reads a complete header block, and writes the block that the server must read to
    /// `rewritten`, which must be empty.
    pub(crate) fn rewrite(
        &mut self,
        block: &[u8],
        rewritten: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let mut field = mem::take(&mut self.field);
        let mut cursor = Cursor { rest: block };
        let mut may_resize = true;
        while let Some(&first) = cursor.rest.first() {
            if first & 0b1110_0000 == RESIZED.0 {
                if !may_resize {
                    return Err(ProtocolError(
                        "a header block resizes the table after its first field",
                    ));
                }
                self.resize(cursor.integer(RESIZED.1)?)?;
                continue;
            }
            may_resize = false;
            if first & INDEXED.0 != 0 {
                match self.get(cursor.integer(INDEXED.1)?)? {
                    (name, Some(text)) => name.write(text, rewritten),
                    (name, None) if name.is_read => write_integer(name.index, INDEXED, rewritten),
                    _ => {}
                }
            } else {
                let is_added = first & ADDED.0 != 0;
                let index = cursor.integer(if is_added { ADDED.1 } else { NOT_ADDED.1 })?;
                let name = self.read_literal(index, &mut cursor, &mut field)?;
                name.write(&field, rewritten);
                if is_added {
                    self.add(name, &field);
                }
            }
            if rewritten.len() > MAX_REWRITTEN {
                return Err(TOO_LARGE);
            }
        }
        field.clear();
        field.shrink_to(MAX_KEPT);
        self.field = field;
        Ok(())
    }

    /// Reads the text of a literal into `field`, and returns its name.
    fn read_literal(
        &self,
        index: usize,
        cursor: &mut Cursor<'_>,
        field: &mut Vec<u8>,
    ) -> Result<Name, ProtocolError> {
        field.clear();
        let mut name = if index == 0 {
            cursor.text(field)?;
            let name = Name::of(field)?;
            field.truncate(name.length_in_text());
            name
        } else {
            let (name, text) = self.get(index)?;
            field.extend_from_slice(&text.unwrap_or_default()[..name.length_in_text()]);
            name
        };
        cursor.text(field)?;
        if name.index == CONTENT_TYPE {
            name.is_read = !field.starts_with(b"application/grpc");
        }
        Ok(name)
    }

    /// Returns the name with this index, and the text of the field unless the index is in the static
    /// table.
    fn get(&self, index: usize) -> Result<(Name, Option<&[u8]>), ProtocolError> {
        let Some(position) = index.checked_sub(1) else {
            return Err(ProtocolError("a header field has index 0"));
        };
        if let Some(&length) = STATIC_NAMES.get(position) {
            let is_read = !matches!(index, AUTHORITY | USER_AGENT);
            return Ok((
                Name {
                    index,
                    length: length.into(),
                    is_read,
                },
                None,
            ));
        }
        let entry = self.entries.get(position - STATIC_NAMES.len());
        let entry = entry.ok_or(ProtocolError(
            "a header field has an index beyond the table",
        ))?;
        Ok((entry.name, Some(&entry.text)))
    }

    fn resize(&mut self, limit: usize) -> Result<(), ProtocolError> {
        if limit > MAX_TABLE {
            return Err(ProtocolError(
                "a header table is larger than the server allows",
            ));
        }
        self.limit = limit;
        self.evict(limit);
        Ok(())
    }

    /// Adds the field of this name with the text `field`. A field larger than the table empties the
    /// table and is not added.
    fn add(&mut self, name: Name, field: &[u8]) {
        let size = name.length + field.len() - name.length_in_text() + ENTRY_OVERHEAD;
        self.evict(self.limit.saturating_sub(size));
        if size > self.limit {
            return;
        }
        self.size += size;
        let text = if name.is_read { field } else { &[] };
        self.entries.push_front(Entry {
            name,
            text: text.into(),
            size,
        });
    }

    /// Removes the oldest entries until the remaining entries fit into `size`.
    fn evict(&mut self, size: usize) {
        while self.size > size {
            let Some(oldest) = self.entries.pop_back() else {
                break;
            };
            self.size -= oldest.size;
        }
    }
}

impl Name {
    /// Returns the name with this text.
    fn of(text: &[u8]) -> Result<Self, ProtocolError> {
        // The h2 crate refuses such a field.
        if text.is_empty() {
            return Err(ProtocolError("a header field has an empty name"));
        }
        let is_read = !matches!(text, b":authority" | b"te" | b"user-agent");
        let index = if text == b"content-type" {
            CONTENT_TYPE
        } else {
            0
        };
        Ok(Self {
            index,
            length: text.len(),
            is_read,
        })
    }

    /// Returns how many octets the name has at the beginning of the text of a field. Only a name
    /// without an index that the server reads is part of the text; the value follows.
    fn length_in_text(self) -> usize {
        if self.index == 0 && self.is_read {
            self.length
        } else {
            0
        }
    }

    /// Writes the field of this name with this text, unless the server does not read it.
    fn write(self, text: &[u8], block: &mut Vec<u8>) {
        if !self.is_read {
            return;
        }
        let (name, value) = text.split_at(self.length_in_text());
        write_integer(self.index, NOT_ADDED, block);
        if self.index == 0 {
            write_text(name, block);
        }
        write_text(value, block);
    }
}

/// The unread part of a block.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn octet(&mut self) -> Result<u8, ProtocolError> {
        let (&octet, rest) = self
            .rest
            .split_first()
            .ok_or(ProtocolError("a header block ends within a field"))?;
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
        Err(ProtocolError(
            "an integer in a header block has more than five octets",
        ))
    }

    /// Reads a string, and appends what it means to `out`.
    fn text(&mut self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let is_huffman = self
            .rest
            .first()
            .is_some_and(|first| first & 0b1000_0000 != 0);
        let length = self.integer(7)?;
        let Some((octets, rest)) = self.rest.split_at_checked(length) else {
            return Err(ProtocolError("a header block ends within a string"));
        };
        self.rest = rest;
        if is_huffman {
            return huffman::decode(octets, |octet| out.push(octet));
        }
        out.extend_from_slice(octets);
        Ok(())
    }
}

/// Writes `text` without Huffman coding.
fn write_text(text: &[u8], block: &mut Vec<u8>) {
    write_integer(text.len(), (0, 7), block);
    block.extend_from_slice(text);
}

/// Writes an integer that begins with the low `prefix` bits of an octet, whose other bits are
/// `bits`.
fn write_integer(integer: usize, (bits, prefix): (u8, u32), block: &mut Vec<u8>) {
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
            decoder
                .decode(&mut vec![0b1000_0000 | index], &mut fields)
                .unwrap();
            assert_eq!(fields[0].0.len(), usize::from(length), "{index}");
            let (name, _) = Table::new().get(index.into()).unwrap();
            assert_eq!(
                name.is_read,
                Name::of(&fields[0].0).unwrap().is_read,
                "{index}"
            );
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
            let error = read(&mut Table::new(), &block).expect_err(what);
            texts::seen!(error.to_string());
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
        assert!(
            read(&mut table, &[0xff, 61 + 120 - 127]).is_ok(),
            "the 120th newest entry is in the table"
        );
        assert!(
            read(&mut table, &[0xff, 61 + 121 - 127]).is_err(),
            "the 121st was evicted"
        );
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
    fn a_huffman_coded_text_is_decoded() {
        // The Huffman code of "%%%%" is "UUU".
        assert_eq!(
            read(&mut Table::new(), b"\x14\x83UUU").unwrap(),
            b"\x04\x04%%%%"
        );
    }

    #[test]
    fn no_field_is_added_to_the_servers_table_and_a_reference_becomes_a_literal() {
        let table = &mut Table::new();
        // `:path` with a name from the static table, a field, `:path2` with a name of its own and
        // Huffman coding.
        let first = read(table, b"\x44\x02/a\x40\x01n\x01v\x40\x06:path2\x83UUU").unwrap();
        assert_eq!(first, b"\x04\x02/a\x00\x01n\x01v\x00\x06:path2\x04%%%%");
        assert_eq!(
            read(table, b"\x82\xbe\xbf\xc0\x83").unwrap(),
            b"\x82\x00\x06:path2\x04%%%%\x00\x01n\x01v\x04\x02/a\x83"
        );
        // Names from the table: in a literal that is added, one that is not, and one that must
        // never be.
        assert_eq!(read(table, b"\x7f\x01\x01w").unwrap(), b"\x04\x01w");
        assert_eq!(
            read(table, b"\x0f\x31\x01w\x1f\x2f\x01x").unwrap(),
            b"\x00\x01n\x01w\x04\x01x"
        );
        assert_eq!(read(table, b"\xbe").unwrap(), b"\x04\x01w");
    }

    #[test]
    fn what_the_server_does_not_read_is_left_out() {
        let table = &mut Table::new();
        // `:authority`, `te` and `user-agent` are added to the table.
        let first = b"\x82\x41\x02\\\\\x40\x02te\x01t\x7a\x83UUU\x83";
        assert_eq!(read(table, first).unwrap(), b"\x82\x83");
        assert_eq!(read(table, b"\xbe\xbf\xc0\x81\xba").unwrap(), b"");
        assert_eq!(
            table.size,
            3 * 32 + 10 + 2 + 2 + 1 + 10 + 4,
            "the client counts all of its entries"
        );
    }

    #[test]
    fn the_server_reads_only_a_content_type_that_it_refuses() {
        let grpc = b"\x10application/grpc".as_slice();
        let json = b"\x10application/json".as_slice();
        let read_json = [b"\x0f\x10", json].concat();
        for name in [b"\x5f".as_slice(), b"\x40\x0ccontent-type"] {
            let table = &mut Table::new();
            assert_eq!(read(table, &[name, grpc].concat()).unwrap(), b"");
            assert_eq!(read(table, &[name, json].concat()).unwrap(), read_json);
            // Both entries, and literals with the name of the other entry.
            assert_eq!(read(table, b"\xbf\xbe").unwrap(), read_json);
            assert_eq!(
                read(table, &[b"\x0f\x30", json, b"\x0f\x2f", grpc].concat()).unwrap(),
                read_json
            );
        }
    }

    #[test]
    fn each_entry_keeps_its_text_while_older_ones_are_evicted() {
        let table = &mut Table::new();
        for round in 0..100 {
            read(table, &[&[0x40, 1, b'a', 100][..], &[round; 100]].concat()).unwrap();
            let expected = [&[0, 1, b'a', 100][..], &[round; 100]].concat();
            assert_eq!(read(table, NEWEST).unwrap(), expected);
        }
        let oldest = [0x80 | u8::try_from(61 + table.entries.len()).unwrap()];
        assert_eq!(
            read(table, &oldest).unwrap()[4],
            100 - u8::try_from(table.entries.len()).unwrap()
        );
    }

    #[test]
    fn a_small_block_does_not_become_a_large_one() {
        let table = &mut Table::new();
        read(
            table,
            &[&[0x44, 0x7f, 0xa1, 0x1e][..], &[b'/'; 4000]].concat(),
        )
        .unwrap();
        assert_eq!(read(table, &[0xbe; 13]).unwrap().len(), 13 * 4004);
        assert_eq!(read(table, &[0xbe; 14]), Err(TOO_LARGE));
    }
}
