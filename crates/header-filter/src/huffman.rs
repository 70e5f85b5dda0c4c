//! A decoder of the Huffman code of HPACK (RFC 7541, appendix B).
//!
//! The code is canonical: codes of one length are consecutive and in the order of their symbols,
//! and shorter codes precede longer ones. The lengths alone therefore define the code, and a symbol
//! is found by comparing the next 32 bits with the end of the range of each length.

use crate::error::ProtocolError;

const SYMBOLS: usize = 257;
const MAX_LENGTH: usize = 30;

/// The code length in bits of each octet, and of the end-of-string symbol.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The codes of one length.
#[derive(Clone, Copy)]
struct Range {
    /// The first code, shifted to the top of 32 bits.
    first: u32,
    /// The end after the last code, shifted likewise. Wider than a code, because the last range
    /// ends at 2^32.
    end: u64,
    /// The index in `ORDER` of the symbol of the first code.
    symbol: usize,
}

const CODE: ([Range; MAX_LENGTH + 1], [u16; SYMBOLS]) = canonical();
static RANGES: [Range; MAX_LENGTH + 1] = CODE.0;
/// The symbols in the order of their codes.
static ORDER: [u16; SYMBOLS] = CODE.1;

const fn canonical() -> ([Range; MAX_LENGTH + 1], [u16; SYMBOLS]) {
    let mut ranges = [Range {
        first: 0,
        end: 0,
        symbol: 0,
    }; MAX_LENGTH + 1];
    let mut order = [0; SYMBOLS];
    let (mut symbols, mut end, mut length) = (0, 0_u64, 1);
    while length <= MAX_LENGTH {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "only the longest range ends above 32 bits"
        )]
        let first = end as u32;
        ranges[length] = Range {
            first,
            end,
            symbol: symbols,
        };
        let mut symbol: u16 = 0;
        while (symbol as usize) < SYMBOLS {
            if LENGTHS[symbol as usize] as usize == length {
                order[symbols] = symbol;
                symbols += 1;
                end += 1 << (32 - length);
            }
            symbol += 1;
        }
        ranges[length].end = end;
        length += 1;
    }
    (ranges, order)
}

/// Decodes `coded` and calls `emit` with each octet of the text.
pub(crate) fn decode(coded: &[u8], mut emit: impl FnMut(u8)) -> Result<(), ProtocolError> {
    const INVALID: ProtocolError = ProtocolError("a Huffman-coded string has an invalid end");
    // The top `count` bits of `bits` are not decoded yet; the others are zero.
    let (mut bits, mut count) = (0_u64, 0_usize);
    let mut coded = coded.iter();
    loop {
        while count <= 56 {
            let Some(&octet) = coded.next() else { break };
            bits |= u64::from(octet) << (56 - count);
            count += 8;
        }
        if count == 0 {
            return Ok(());
        }
        // The padding after the last octet consists of ones, a prefix of the end-of-string symbol.
        let window = ((bits | (u64::MAX >> 1 >> (count - 1))) >> 32) as u32;
        let (length, range) = range_of(window);
        if length > count {
            let padding_only = bits == !(u64::MAX >> count);
            return if count < 8 && padding_only {
                Ok(())
            } else {
                Err(INVALID)
            };
        }
        let symbol = ORDER[range.symbol + ((window - range.first) >> (32 - length)) as usize];
        // The only symbol that is not an octet is the end of string, which must not be encoded.
        let octet = u8::try_from(symbol).map_err(|_| INVALID)?;
        emit(octet);
        bits <<= length;
        count -= length;
    }
}

fn range_of(window: u32) -> (usize, Range) {
    let mut length = 5; // the shortest code
    while u64::from(window) >= RANGES[length].end {
        length += 1;
    }
    (length, RANGES[length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(coded: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        let mut text = Vec::new();
        decode(coded, |octet| text.push(octet)).map(|()| text)
    }

    #[test]
    fn the_example_of_the_rfc_decodes() {
        let coded = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(text_of(&coded).unwrap(), b"www.example.com");
        assert_eq!(text_of(&[]).unwrap(), b"");
    }

    #[test]
    fn every_octet_decodes_from_the_output_of_another_implementation() {
        for octet in 0..=u8::MAX {
            let text = [octet, b'a', octet, octet];
            let mut coded = Vec::new();
            httlib_hpack::Encoder::default()
                .encode_literal(Vec::new(), text.to_vec(), 2, &mut coded)
                .unwrap();
            // A literal without index and name: two octets precede the length of the value, which
            // is below 127 here.
            assert_eq!(text_of(&coded[3..]).unwrap(), text, "{octet:#x}");
        }
    }

    #[test]
    fn a_string_is_padded_with_less_than_an_octet_of_ones() {
        assert_eq!(text_of(&[0b0001_1111]).unwrap(), b"a");
        assert!(
            text_of(&[0b0001_1111, 0xff]).is_err(),
            "an octet of padding"
        );
        assert!(text_of(&[0b0001_1110]).is_err(), "a zero in the padding");
        assert!(text_of(&[0xff; 4]).is_err(), "an end-of-string symbol");
    }
}
