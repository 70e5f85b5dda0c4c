//! Buffers for Windows calls: with a length of 32 bits, and aligned to eight bytes.
//!
//! A `[u8]` may have any address, but for several information classes the I/O manager refuses a
//! buffer that is not aligned. A buffer that is aligned is passed directly; any other is copied.

use std::ffi::c_void;

use os::{OsError, OsResult, U16String};
use zerocopy::IntoBytes as _;

const ALIGNMENT: usize = align_of::<u64>();

/// Returns the length of a buffer as a `DWORD`.
pub(crate) fn length(bytes: &[u8]) -> OsResult<u32> {
    u32::try_from(bytes.len()).map_err(|_| OsError::INVALID_PARAMETER)
}

/// Returns the size of a structure as a `DWORD`.
pub(crate) const fn size<T>() -> u32 {
    const { assert!(size_of::<T>() <= 0xffff) };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "asserted, and try_from is not const"
    )]
    let size = size_of::<T>() as u32;
    size
}

/// Calls `call` with an aligned buffer and copies what it wrote to `output`, even if it fails.
pub(crate) fn fill<T>(
    output: &mut [u8],
    call: impl FnOnce(*mut c_void, u32) -> OsResult<T>,
) -> OsResult<T> {
    let size = length(output)?;
    if output.as_ptr().addr().is_multiple_of(ALIGNMENT) {
        return call(output.as_mut_ptr().cast(), size);
    }
    let mut aligned = vec![0_u64; output.len().div_ceil(ALIGNMENT)];
    let result = call(aligned.as_mut_ptr().cast(), size);
    output.copy_from_slice(&aligned.as_bytes()[..output.len()]);
    result
}

/// Calls `call` with an aligned buffer that has the bytes of `input`.
pub(crate) fn read<T>(
    input: &[u8],
    call: impl FnOnce(*const c_void, u32) -> OsResult<T>,
) -> OsResult<T> {
    let size = length(input)?;
    if input.as_ptr().addr().is_multiple_of(ALIGNMENT) {
        return call(input.as_ptr().cast(), size);
    }
    let mut aligned = vec![0_u64; input.len().div_ceil(ALIGNMENT)];
    aligned.as_mut_bytes()[..input.len()].copy_from_slice(input);
    call(aligned.as_ptr().cast(), size)
}

/// Splits a list of zero-terminated strings, which ends at an empty string.
pub(crate) fn strings(list: &[u16]) -> Vec<U16String> {
    list.split(|unit| *unit == 0)
        .take_while(|text| !text.is_empty())
        .map(U16String::from_vec)
        .collect()
}

#[cfg(test)]
mod tests {
    use os::U16String;

    use super::{ALIGNMENT, fill, read, strings};

    /// Returns a part of `bytes` that begins at an address where no `u64` can be.
    fn misaligned(bytes: &mut [u8; 24]) -> &mut [u8] {
        let skip = usize::from(bytes.as_ptr().addr().is_multiple_of(ALIGNMENT));
        &mut bytes[skip..skip + 10]
    }

    #[test]
    fn windows_always_gets_an_aligned_buffer() {
        let mut bytes = [7; 24];
        let input = misaligned(&mut bytes);
        read(input, |pointer, length| {
            assert_eq!((pointer.addr() % ALIGNMENT, length), (0, 10));
            Ok(())
        })
        .unwrap();
        fill(input, |pointer, length| {
            assert_eq!((pointer.addr() % ALIGNMENT, length), (0, 10));
            Ok(())
        })
        .unwrap();
        assert_eq!(
            misaligned(&mut bytes),
            [0; 10],
            "bytes that the call did not write are zero"
        );
    }

    #[test]
    fn a_list_of_strings_ends_at_an_empty_string() {
        let list: Vec<u16> = "a\0bc\0\0rest".encode_utf16().collect();
        assert_eq!(strings(&list), ["a", "bc"].map(U16String::from_str));
        assert!(strings(&[0]).is_empty());
    }
}
