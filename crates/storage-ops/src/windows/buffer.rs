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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use faults::{Fault, FaultAction, Probe, Probed, Trace, When};
    use os::abi::{ControlCode, DriveLayout, PartitionEntry};
    use os::{NtPath, Os, OsError};

    use super::{control, control_grown};
    use crate::windows::disk_device::QUERY;

    const LAYOUT: ControlCode = ControlCode::DISK_GET_DRIVE_LAYOUT_EX;

    #[test]
    fn an_answer_is_read_as_a_whole_however_small_the_first_buffer_is() {
        let sim = os_sim::node().disk(1 << 30).partitioned().build();
        let disk = sim.open(&NtPath::disk(1), &QUERY).unwrap();
        let whole = control_grown(&*disk, LAYOUT, &[], 4096).unwrap();
        assert_eq!(whole.len(), size_of::<DriveLayout>() + 2 * size_of::<PartitionEntry>());
        assert_eq!(control_grown(&*disk, LAYOUT, &[], 1).unwrap(), whole);
    }

    #[test]
    fn a_device_that_asks_for_ever_more_room_gets_a_mebibyte_and_no_more() {
        let sim = os_sim::node().build();
        let trace = Arc::new(Trace::counting());
        let greedy = Fault::each(
            |call| call.primitive.starts_with("control"),
            When::Before,
            FaultAction::Fail(OsError::INSUFFICIENT_BUFFER),
        );
        let probes: Vec<Arc<dyn Probe>> = vec![Arc::clone(&trace) as Arc<dyn Probe>, Arc::new(greedy)];
        let disk = Probed::new(sim.process(), probes).open(&NtPath::disk(0), &QUERY).unwrap();
        assert_eq!(control_grown(&*disk, LAYOUT, &[], 1 << 18), Err(OsError::INSUFFICIENT_BUFFER));
        // With 256, 512 and 1024 KiB.
        assert_eq!(trace.counts().of("control DISK_GET_DRIVE_LAYOUT_EX"), 3);
    }

    #[test]
    fn an_answer_that_is_no_whole_structure_is_an_error() {
        let sim = os_sim::node().build();
        let disk = sim.open(&NtPath::disk(0), &QUERY).unwrap();
        let nothing = control::<u32>(&*disk, ControlCode::DISK_UPDATE_PROPERTIES, &[]);
        assert_eq!(nothing, Err(OsError::INSUFFICIENT_BUFFER));
    }
}
