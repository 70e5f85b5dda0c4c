//! Requests to devices and file systems, with typed buffers.

use os::abi::{ControlCode, FILE_ATTRIBUTE_REPARSE_POINT, FileAttributeTagInfo, FileBasicInfo};
use os::{FileInfo, Handle, OsError, OsResult};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::error_class::ErrorClass;

/// The maximum size of a buffer: far larger than any partition table or descriptor.
pub(crate) const MAX_SIZE: usize = 1 << 20;

/// Sends `code` and returns the structure in the answer.
pub(crate) fn control<T>(handle: &dyn Handle, code: ControlCode, input: &[u8]) -> OsResult<T>
where
    T: FromBytes + IntoBytes + FromZeros,
{
    let mut answer = T::new_zeroed();
    let filled = handle.control(code, input, answer.as_mut_bytes())?;
    if filled < size_of::<T>() {
        Err(OsError::INSUFFICIENT_BUFFER)
    } else {
        Ok(answer)
    }
}

/// Sends `code` and returns the answer. Doubles the buffer, which begins with `first` bytes, until
/// the answer fits.
pub(crate) fn control_grown(
    handle: &dyn Handle,
    code: ControlCode,
    input: &[u8],
    first: usize,
) -> OsResult<Vec<u8>> {
    let mut buffer = vec![0; first];
    loop {
        match handle.control(code, input, &mut buffer) {
            Ok(filled) => {
                buffer.truncate(filled);
                return Ok(buffer);
            }
            Err(code) if ErrorClass::BufferTooSmall.contains(code) && buffer.len() < MAX_SIZE => {
                buffer = vec![0; buffer.len() * 2];
            }
            Err(code) => return Err(code),
        }
    }
}

/// Sends `code`, whose answer is empty.
pub(crate) fn send(handle: &dyn Handle, code: ControlCode, input: &[u8]) -> OsResult<()> {
    handle.control(code, input, &mut []).map(drop)
}

/// Queries an information class of a file.
pub(crate) fn query<T>(handle: &dyn Handle, class: FileInfo) -> OsResult<T>
where
    T: FromBytes + IntoBytes + FromZeros,
{
    let mut answer = T::new_zeroed();
    handle.query(class, answer.as_mut_bytes())?;
    Ok(answer)
}

/// Queries the attributes of a file and the tag of its reparse point.
pub(crate) fn attributes(handle: &dyn Handle) -> OsResult<FileAttributeTagInfo> {
    match query(handle, FileInfo::AttributeTag) {
        // FAT has no reparse points and does not know the class.
        Err(code) if ErrorClass::UnsupportedOrInvalid.contains(code) => {
            let attributes = query::<FileBasicInfo>(handle, FileInfo::Basic)?.attributes;
            let is_reparse_point = attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0;
            if is_reparse_point {
                Err(code)
            } else {
                Ok(FileAttributeTagInfo {
                    attributes,
                    reparse_tag: 0,
                })
            }
        }
        outcome => outcome,
    }
}

/// Returns the structure at `offset` of `buffer`, or `None` if the buffer is too short.
pub(crate) fn at<T: FromBytes + KnownLayout + Immutable>(
    buffer: &[u8],
    offset: usize,
) -> Option<T> {
    T::read_from_prefix(buffer.get(offset..)?)
        .ok()
        .map(|(value, _)| value)
}

/// Returns the UTF-16 text in `length` bytes at `offset` of `buffer`, or `None` if the buffer is
/// too short.
pub(crate) fn units_at(buffer: &[u8], offset: usize, length: usize) -> Option<os::U16String> {
    let bytes = buffer.get(offset..offset.checked_add(length)?)?;
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    Some(os::U16String::from_vec(units.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use faults::{Fault, FaultAction, Probe, Probed, Trace, When};
    use os::abi::ControlCode;
    use os::{NtPath, Os, OsError};

    use super::{control, control_grown};
    use crate::devices::disk::OPEN_FOR_QUERY;

    const LAYOUT: ControlCode = ControlCode::DISK_GET_DRIVE_LAYOUT_EX;

    #[test]
    fn a_buffer_grows_to_one_mebibyte_at_most() {
        let sim = os_sim::node().build();
        let trace = Arc::new(Trace::counting());
        let insatiable = Fault::each(
            |call| call.primitive.starts_with("control"),
            When::Before,
            FaultAction::Fail(OsError::INSUFFICIENT_BUFFER),
        );
        let probes: Vec<Arc<dyn Probe>> =
            vec![Arc::clone(&trace) as Arc<dyn Probe>, Arc::new(insatiable)];
        let disk = Probed::new(sim.process(), probes)
            .open(&NtPath::disk(0), &OPEN_FOR_QUERY)
            .unwrap();
        assert_eq!(
            control_grown(&*disk, LAYOUT, &[], 1 << 18),
            Err(OsError::INSUFFICIENT_BUFFER)
        );
        // With 256, 512 and 1024 KiB.
        assert_eq!(trace.counts().of("control DISK_GET_DRIVE_LAYOUT_EX"), 3);
    }

    #[test]
    fn an_answer_shorter_than_the_structure_is_an_error() {
        let sim = os_sim::node().build();
        let disk = sim.open(&NtPath::disk(0), &OPEN_FOR_QUERY).unwrap();
        let nothing = control::<u32>(&*disk, ControlCode::DISK_UPDATE_PROPERTIES, &[]);
        assert_eq!(nothing, Err(OsError::INSUFFICIENT_BUFFER));
    }
}
