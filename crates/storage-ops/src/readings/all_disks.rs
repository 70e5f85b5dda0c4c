//! Readings of all disks of the node.

use std::collections::HashSet;

use os::abi::DISK_INTERFACE;
use os::{NtPath, Os, OsError};

use crate::devices::Disk;
use crate::devices::disk::{OPEN_FOR_QUERY, device_number};
use crate::error::OperationResult;
use crate::error_class::ErrorClass;
use crate::node::run::Run;
use crate::provider::report;
use crate::types::DiskNumber;
use crate::windows::{Device, Fallback, Windows};

/// A disk that could not be opened or read.
pub(crate) struct UnreadDisk {
    /// The disk, by its number if that is known.
    pub(crate) device: Device,
    /// Windows' error code; `SEM_TIMEOUT` if the disk has not answered in time.
    pub(crate) code: OsError,
}

/// A function that reads an open disk.
type Read<R> = fn(&dyn Os, Disk) -> R;

/// The results of reading each disk, in the order of the disk numbers, and the disks that could not
/// be opened or have not answered.
pub(crate) type DisksRead<R> = (Vec<(DiskNumber, R)>, Vec<UnreadDisk>);

/// Opens each disk and calls `read`, as [`read_listed`] does. If Windows does not list the disks,
/// takes those that the storage provider reports.
pub(crate) async fn read<R: Send + 'static>(
    run: Run<'_>,
    read: Read<R>,
) -> OperationResult<DisksRead<R>> {
    run.or_fallback(Fallback::DiskList, read_listed(run.windows(), read), || {
        let numbers = report::disk_numbers(run)?;
        let devices = numbers
            .into_iter()
            .map(|number| (NtPath::disk(number.0), Device::Disk(number)));
        Ok(read_each(run.windows(), devices, read))
    })
    .await
}

/// Opens each disk and calls `read`. Both may hang and run on another thread, so `read` must make
/// all queries of the disk that the caller needs.
pub(crate) fn read_listed<R: Send + 'static>(
    windows: &Windows,
    read: Read<R>,
) -> OperationResult<DisksRead<R>> {
    let interfaces = windows.os().device_interfaces(DISK_INTERFACE)?;
    let present: HashSet<_> = interfaces.iter().collect();
    windows
        .device_queries
        .forget(|device| matches!(device, Device::Interface(path) if !present.contains(path)));
    let devices = interfaces
        .into_iter()
        .map(|path| (NtPath::from_win32(&path), Device::Interface(path)));
    Ok(read_each(windows, devices, read))
}

fn read_each<R: Send + 'static>(
    windows: &Windows,
    devices: impl Iterator<Item = (NtPath, Device)>,
    read: Read<R>,
) -> DisksRead<R> {
    let (mut disks, mut unread) = (Vec::new(), Vec::new());
    let targets = devices.map(|(path, device)| (device, (path, read)));
    let answers = windows.query_each(targets, |os, (path, read), identify| {
        let handle = os.open(&path, &OPEN_FOR_QUERY)?;
        let Some(number) = device_number(&*handle)? else {
            return Ok(None);
        };
        identify(number);
        Ok(Some((number, read(os, Disk { number, handle }))))
    });
    for (device, answer) in answers {
        match (answer, device) {
            (None, device) => {
                unread.push(UnreadDisk {
                    device: windows.device_queries.as_disk(device),
                    code: OsError::SEM_TIMEOUT,
                });
            }
            // The number belongs to another disk by now.
            (Some(Ok(Some((number, _)))), Device::Disk(asked)) if number != asked => {}
            (Some(Ok(disk)), _) => disks.extend(disk),
            // A disk that is removed while the list is read is left out.
            (Some(Err(code)), _) if ErrorClass::DeviceRemoved.contains(code) => {}
            (Some(Err(code)), device) => {
                let device = windows.device_queries.as_disk(device);
                tracing::warn!(%device, %code, "left out a disk that could not be opened");
                unread.push(UnreadDisk { device, code });
            }
        }
    }
    disks.sort_unstable_by_key(|(number, _)| *number);
    (disks, unread)
}
