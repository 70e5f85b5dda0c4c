//! Typed reading of the buffers that devices and file systems fill.

use os::abi::{ControlCode, FileAttributeTagInfo};
use os::{FileInfo, Handle, OsError, OsResult};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// The largest answer that is believed: far above any drive layout or descriptor.
const LARGEST: usize = 1 << 20;

/// Sends `code` and reads one fixed structure.
pub(crate) fn control<T>(handle: &dyn Handle, code: ControlCode, input: &[u8]) -> OsResult<T>
where
    T: FromBytes + IntoBytes + FromZeros,
{
    let mut answer = T::new_zeroed();
    let filled = handle.control(code, input, answer.as_mut_bytes())?;
    if filled < size_of::<T>() { Err(OsError::INSUFFICIENT_BUFFER) } else { Ok(answer) }
}

/// Sends `code` with buffers that double until the answer fits.
pub(crate) fn control_grown(handle: &dyn Handle, code: ControlCode, input: &[u8], first: usize) -> OsResult<Vec<u8>> {
    let mut buffer = vec![0; first];
    loop {
        match handle.control(code, input, &mut buffer) {
            Ok(filled) => {
                buffer.truncate(filled);
                return Ok(buffer);
            }
            Err(OsError::INSUFFICIENT_BUFFER | OsError::MORE_DATA) if buffer.len() < LARGEST => {
                buffer = vec![0; buffer.len() * 2];
            }
            Err(code) => return Err(code),
        }
    }
}

/// Sends `code`, which answers nothing.
pub(crate) fn send(handle: &dyn Handle, code: ControlCode, input: &[u8]) -> OsResult<()> {
    handle.control(code, input, &mut []).map(drop)
}

/// Reads one fixed structure of information about a file.
pub(crate) fn query<T>(handle: &dyn Handle, class: FileInfo) -> OsResult<T>
where
    T: FromBytes + IntoBytes + FromZeros,
{
    let mut answer = T::new_zeroed();
    handle.query(class, answer.as_mut_bytes())?;
    Ok(answer)
}

/// The attributes of a file and the tag of its reparse point.
pub(crate) fn attributes(handle: &dyn Handle) -> OsResult<FileAttributeTagInfo> {
    query(handle, FileInfo::AttributeTag)
}

/// The structure at `offset` of `buffer`, if it lies in there as a whole.
pub(crate) fn at<T: FromBytes + KnownLayout + Immutable>(buffer: &[u8], offset: usize) -> Option<T> {
    T::read_from_prefix(buffer.get(offset..)?).ok().map(|(value, _)| value)
}

/// The UTF-16 units in `length` bytes at `offset` of `buffer`, if they lie in there as a whole.
pub(crate) fn units_at(buffer: &[u8], offset: usize, length: usize) -> Option<os::U16String> {
    let bytes = buffer.get(offset..offset.checked_add(length)?)?;
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    Some(os::U16String::from_vec(units.collect::<Vec<_>>()))
}
